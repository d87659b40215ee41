package archtest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Phrase is text that no file may hold, and why.
type Phrase struct {
	Match *regexp.Regexp
	Has   []string // one of them is in whatever Match finds: a line without is passed over quickly
	Why   string
	Go    bool // only in Go files outside tests
}

// Literal returns the phrase that is s itself.
func Literal(s, why string) Phrase {
	return Phrase{Match: regexp.MustCompile(regexp.QuoteMeta(s)), Has: []string{s}, Why: why}
}

// Phrases are those that do not depend on the machine.
var Phrases = []Phrase{
	{
		Match: regexp.MustCompile(`(//|#|<!--)\s*(TODO|FIXME|XXX)\b`),
		Has:   []string{"TODO", "FIXME", "XXX"},
		Why:   "do it, or leave it out",
	},
	{
		Match: regexp.MustCompile(`\b([Ii]ssue|ISSUE)[sS]?\s+#?\d`),
		Has:   []string{"ssue", "SSUE"},
		Why:   "say what the thing is: readers have no list of issues",
	},
	{
		Match: regexp.MustCompile(`"[^"]*\b[Ff]ailed to\b`),
		Has:   []string{"ailed to"},
		Why:   "an error says what was being done: reading x: cause",
		Go:    true,
	},
}

// CheckWords finds phrases in the text files of the module.
func CheckWords(t *Tree, phrases []Phrase) []Fault {
	var faults []Fault
	for _, p := range t.Text {
		if strings.HasPrefix(p.Path, "internal/archtest/") || path.Base(p.Path) == "go.sum" || p.Path == "LICENSE" {
			continue
		}
		code := path.Ext(p.Path) == ".go" && !strings.HasSuffix(p.Path, "_test.go")
		for i, line := range strings.Split(p.Text, "\n") {
			for _, ph := range phrases {
				has := func(word string) bool { return strings.Contains(line, word) }
				if ph.Go && !code || !slices.ContainsFunc(ph.Has, has) {
					continue
				}
				if m := ph.Match.FindString(line); m != "" {
					faults = append(faults, Fault{p.Path, i + 1, fmt.Sprintf("%q: %s", m, ph.Why)})
				}
			}
		}
	}
	return faults
}

// A Power is something that only few packages may reach for, so that what the
// program can do to its machine is decided in few places.
type Power struct {
	Import   string
	Packages []string // that may import it, tests excepted
	Why      string
}

// Powers lists who starts processes and who speaks to the network.
var Powers = []Power{
	{
		Import:   "os/exec",
		Packages: []string{"client/control", "internal/safety/sandbox", "internal/safety/workspace", "internal/state/checkpoint", "internal/state/worktree", "internal/bench", "internal/prooftest"},
		Why:      "processes are started by internal/safety/sandbox, git by those who keep files, and dure itself by its client",
	},
	{
		Import:   "net/http",
		Packages: []string{"client/control", "client/remote", "internal/frontend/serve", "internal/frontend/control/socket", "internal/frontend/auth", "internal/models", "internal/extend/hooks/run", "internal/extend/mcp", "internal/frontend/mcpserve", "internal/frontend/telemetry", "internal/extend/plugins", "internal/extend/release", "internal/base/hosts", "internal/tools", "internal/safety/sandbox", "internal/app", "internal/extend/bundle/inbound", "internal/bench"},
		Why:      "connections are made by the packages whose promise they are",
	},
}

// CheckPowers finds packages that use a power that is not theirs.
func CheckPowers(t *Tree, powers []Power) []Fault {
	var faults []Fault
	for _, f := range t.Go {
		if f.Test {
			continue
		}
		for _, spec := range f.AST.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			for _, p := range powers {
				if imp != p.Import {
					continue
				}
				if !slices.ContainsFunc(p.Packages, holds(f.Dir)) {
					faults = append(faults, Fault{f.Path, f.line(spec.Pos()), "imports " + imp + ": " + p.Why})
				}
			}
		}
	}
	return faults
}
