package archtest

import (
	"fmt"
	"strconv"
	"strings"
)

// A Layer is a set of packages that do not import each other. A package below
// one that is named here (internal/models/sse) belongs to it, and packages of
// one such family may import each other.
type Layer struct {
	Name     string
	Packages []string
	May      []string // names of layers, or single packages, that they may import
}

// Layers is the module from the bottom up. docs/architecture.md draws it.
var Layers = []Layer{
	{Name: "vocabulary", Packages: []string{"agent"}},
	{Name: "client", Packages: []string{"client"}, May: []string{"vocabulary"}},
	{Name: "text", Packages: []string{"internal/frontend/text"}, May: []string{"vocabulary"}},
	{Name: "figures", Packages: []string{"internal/base/meter"}},
	{Name: "tests", Packages: []string{"internal/prooftest"}},

	// What everything rests on. The names of tools, models and files are guessed by
	// one measure, so it lies below all of them.
	{
		Name:     "ground",
		Packages: []string{"internal/safety/shell", "internal/safety/workspace", "internal/safety/trust", "internal/base/keys", "internal/base/near", "internal/base/record", "internal/base/calc", "internal/base/forms", "internal/base/hosts", "internal/base/frontmatter", "internal/base/jsonc", "internal/state/plan", "internal/state/hunks", "internal/base/cron"},
		May:      []string{"internal/base/record", "vocabulary"},
	},
	{
		Name:     "bounds",
		Packages: []string{"internal/safety/policy", "internal/safety/sandbox", "internal/state/checkpoint"},
		May:      []string{"ground", "vocabulary"},
	},
	{
		Name:     "stock",
		Packages: []string{"internal/extend/bundle", "internal/tools/catalog", "internal/frontend/auth", "internal/extend/oauth", "internal/state/worktree"},
		May:      []string{"bounds", "ground", "vocabulary"},
	},
	{
		Name:     "settings",
		Packages: []string{"internal/app/config"},
		May:      []string{"stock", "bounds", "ground", "vocabulary"},
	},
	{
		Name:     "record",
		Packages: []string{"internal/state/journal", "internal/state/transcript", "internal/kernel/budget"},
		May:      []string{"vocabulary"},
	},

	// What can be done and known. None of these knows another.
	{
		Name: "capability",
		Packages: []string{
			"internal/kernel/loop", "internal/extend/hooks", "internal/safety/guard", "internal/tools",
			"internal/extend/mcp", "internal/extend/exthost", "internal/extend/swarm", "internal/knowledge/prompt",
			"internal/knowledge/compact", "internal/extend/skills", "internal/knowledge/memory", "internal/knowledge/mention", "internal/tools/verify", "internal/extend/commands",
			"internal/models", "internal/state/archive", "internal/finance", "internal/extend/plugins", "internal/extend/launch", "internal/knowledge/survey",
		},
		May: []string{"stock", "bounds", "ground", "record", "vocabulary"},
	},

	// Running sessions know the loop and the record, and no capability by name.
	// They are the transport of a client in the same process.
	{
		Name:     "session",
		Packages: []string{"internal/kernel/session"},
		May:      []string{"internal/kernel/loop", "internal/state/plan", "record", "client", "vocabulary"},
	},
	{
		Name:     "replay",
		Packages: []string{"internal/kernel/replay"},
		May:      []string{"internal/kernel/loop", "record", "internal/state/checkpoint", "vocabulary"},
	},

	// Front-ends see a session only through its client.
	{
		Name: "edge",
		Packages: []string{
			"internal/frontend/cli", "internal/tui", "internal/web", "internal/server",
			"internal/frontend/sdk", "internal/frontend/acp", "internal/frontend/telemetry", "internal/frontend/mcpserve", "internal/frontend/control", "internal/frontend/serve",
		},
		May: []string{"internal/frontend/auth", "figures", "client", "internal/state/transcript", "internal/base/near", "internal/state/plan", "text", "vocabulary"},
	},

	// What brings messages from outside is a front-end that follows the routes of bundles.
	{
		Name:     "inbound",
		Packages: []string{"internal/extend/inbound"},
		May:      []string{"internal/extend/bundle", "internal/base/cron", "client", "vocabulary"},
	},

	// Wiring: the one place where everything meets. The command gives what it
	// builds to a front-end.
	{
		Name:     "wiring",
		Packages: []string{"internal/app"},
		May: []string{
			"edge", "inbound", "session", "replay", "capability", "settings", "stock", "bounds",
			"ground", "record", "client", "figures", "text", "vocabulary",
		},
	},
	{
		Name:     "command",
		Packages: []string{"cmd/dure"},
		May:      []string{"internal/frontend/auth", "wiring", "edge", "client", "figures", "text", "vocabulary"},
	},

	// Proofs about the rest; nothing imports them. The benchmarks run the program
	// in a process of their own where its binary has no way to show a figure.
	{
		Name:     "proof",
		Packages: []string{"internal/archtest", "internal/bench"},
		May:      []string{"wiring", "record", "internal/models", "internal/kernel/loop", "client", "vocabulary"},
	},
}

// CheckLayers finds imports that the layers do not permit, and packages that
// have no layer. Tests may import what they like.
func CheckLayers(t *Tree, layers []Layer) []Fault {
	var faults []Fault
	for _, f := range t.Go {
		if f.Test {
			continue
		}
		pkg, at := place(f.Dir, layers)
		if at < 0 {
			faults = append(faults, Fault{f.Path, 0, "package " + f.Dir + " has no layer: add it to Layers"})
			continue
		}
		for _, spec := range f.AST.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			dir, ours := strings.CutPrefix(imp, Module+"/")
			if !ours {
				continue
			}
			if to, toAt := place(dir, layers); !mayImport(layers, pkg, at, to, toAt) {
				faults = append(faults, Fault{f.Path, f.line(spec.Pos()), fmt.Sprintf("%s must not import %s", f.Dir, dir)})
			}
		}
	}
	return faults
}

// place returns the package of the layers that dir belongs to, and its layer.
func place(dir string, layers []Layer) (pkg string, at int) {
	for i, l := range layers {
		for _, p := range l.Packages {
			if dir == p || strings.HasPrefix(dir, p+"/") {
				return p, i
			}
		}
	}
	return "", -1
}

func mayImport(layers []Layer, from string, fromAt int, to string, toAt int) bool {
	if toAt < 0 {
		return false
	}
	if from == to {
		return true
	}
	for _, may := range layers[fromAt].May {
		if may == to || may == layers[toAt].Name {
			return true
		}
	}
	return false
}
