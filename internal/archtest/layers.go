package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Layer is one row of the table: folders with all packages below them, and what those may
// import. A folder directly in internal/base is a room, and so it is in the other layers.
// Rooms of one layer do not import each other; packages of one room may.
type Layer struct {
	Paths []string
	May   []string // paths whose packages they may import, besides [Vocabulary]
}

// An Exception permits an import that the table does not.
type Exception struct {
	From, To string // paths; they hold for all packages below them
	Why      string
}

// Vocabulary is the package that every other one may import.
const Vocabulary = "agent"

// Layers is the module from the bottom up: a row lists only paths of rows above it.
// docs/architecture.md has a paragraph about each.
var Layers = []Layer{
	{Paths: []string{"agent", "client"}, May: []string{"agent/query"}},
	{Paths: []string{"internal/base"}},
	{Paths: []string{"internal/kernel/plug"}, May: []string{"agent/query"}}, // the contract of capabilities, which lie below the kernel
	{Paths: []string{"internal/safety"}, May: []string{"internal/base", "internal/kernel/plug", "agent/query"}},
	{Paths: []string{"internal/state"}, May: []string{
		"internal/safety/sandbox", "internal/safety/workspace", "internal/base", "internal/kernel/plug", "agent/query",
	}},
	{Paths: []string{"internal/kernel"}, May: []string{
		"internal/state/journal", "internal/state/transcript", "internal/state/plan", "client", "internal/kernel/plug",
	}},
	{Paths: []string{"internal/models"}, May: []string{"internal/base", "internal/kernel/plug", "agent/query"}},
	{Paths: []string{"internal/tools"}, May: []string{
		"internal/state/hunks", "internal/state/plan", "internal/safety/sandbox", "internal/safety/workspace", "internal/base", "internal/kernel/plug", "agent/query",
	}},
	{Paths: []string{"internal/knowledge"}, May: []string{
		"internal/state/transcript", "internal/safety/workspace", "internal/base", "internal/kernel/plug", "agent/query",
	}},
	{Paths: []string{"internal/extend"}, May: []string{
		"internal/tools/kit", "internal/tools/files", "internal/tools/catalog",
		"internal/state/hunks", "internal/state/worktree", "internal/state/transcript",
		"internal/safety/sandbox", "internal/safety/shell", "internal/safety/trust", "internal/safety/workspace",
		"client", "internal/base", "internal/kernel/plug", "agent/query",
	}},
	{Paths: []string{"internal/frontend"}, May: []string{
		"internal/state/transcript", "internal/state/plan", "internal/state/archive/repair", "client", "internal/base", "internal/kernel/plug", "agent/query",
	}},

	// Wiring, and what nothing imports: programs and proofs.
	{Paths: []string{"internal/app", "internal/archtest", "internal/bench", "internal/prooftest", "cmd"}, May: []string{
		"internal/app", "internal/frontend", "internal/extend", "internal/knowledge", "internal/tools", "internal/models",
		"internal/kernel", "internal/state", "internal/safety", "internal/base", "client", "agent/query",
	}},
}

// Exceptions are the imports that the table does not permit. Most are within a layer.
var Exceptions = []Exception{
	{"internal/state/archive", "internal/state", "it reads and writes what the others store: logs, conversations, plans"},
	{"internal/kernel", "internal/kernel/loop", "a session runs turns, and a replay runs them again"},
	{"internal/kernel/session", "internal/kernel/budget", "a tree of sessions spends from one budget"},
	{"internal/models", "internal/models/wire", "one HTTP request with its limits, for every dialect"},
	{"internal/models", "internal/models/sse", "one reader of event streams, for every dialect"},
	{"internal/tools", "internal/tools/kit", "what tools are made of"},
	{"internal/tools/builtin", "internal/tools/catalog", "its tools search and describe the catalog"},
	{"internal/extend/bundle/swarms", "internal/extend/mcp/oauth", "tools of bundles sign in with apps of the bundle"},
	{"internal/frontend", "internal/frontend/text", "one place for what people read"},
	{"internal/frontend", "internal/frontend/view", "one fold of events for people"},
	{"internal/frontend", "internal/frontend/auth", "one place that lets HTTP clients in"},
}

// Limits of the shape, so that a look at internal and at the table is enough to know it.
const (
	maxLayers     = 13
	maxExceptions = 12
	maxEntries    = 14 // of the folder internal
)

// CheckLayers finds imports that neither the layers nor the exceptions permit, packages
// without a layer, and exceptions that nothing uses. Tests may import what they like.
func CheckLayers(t *Tree, layers []Layer, exceptions []Exception) []Fault {
	var faults []Fault
	used := map[Exception]bool{}
	for _, f := range t.Go {
		if f.Test {
			continue
		}
		at := place(f.Dir, layers)
		if at < 0 {
			faults = append(faults, Fault{f.Path, 0, "package " + f.Dir + " has no layer: add it to Layers"})
			continue
		}
		for _, spec := range f.AST.Imports {
			dir, ours := ownImport(spec)
			if !ours || dir == Vocabulary || room(dir) == room(f.Dir) || slices.ContainsFunc(layers[at].May, holds(dir)) {
				continue
			}
			i := slices.IndexFunc(exceptions, func(e Exception) bool { return below(f.Dir, e.From) && below(dir, e.To) })
			if i < 0 {
				faults = append(faults, Fault{f.Path, f.line(spec.Pos()), fmt.Sprintf("%s must not import %s", f.Dir, dir)})
				continue
			}
			used[exceptions[i]] = true
		}
	}
	for _, e := range exceptions {
		if !used[e] {
			faults = append(faults, Fault{e.From, 0, "nothing needs the exception for " + e.To + ": delete it"})
		}
	}
	return faults
}

// CheckTable finds what would let imports lead upwards, and more rows, exceptions or
// folders than a reader can keep in mind.
func CheckTable(t *Tree, layers []Layer, exceptions []Exception) []Fault {
	var faults []Fault
	bad := func(path, what string) { faults = append(faults, Fault{path, 0, what}) }
	for i, l := range layers {
		for _, p := range l.Paths {
			if !slices.ContainsFunc(t.Go, func(f *File) bool { return below(f.Dir, p) }) {
				bad(p, "has a layer and no packages")
			}
		}
		for _, p := range l.May {
			if at := place(p, layers); at < 0 || at > i {
				bad(l.Paths[0], "may import "+p+", which is not below it")
			}
		}
	}
	for _, e := range exceptions {
		if place(e.To, layers) > place(e.From, layers) {
			bad(e.From, "has an exception for "+e.To+", which is above it")
		}
	}
	entries := map[string]bool{}
	for _, f := range t.Go {
		if rest, inside := strings.CutPrefix(f.Dir, "internal/"); inside {
			name, _, _ := strings.Cut(rest, "/")
			entries[name] = true
		}
	}
	if len(layers) > maxLayers || len(exceptions) > maxExceptions || len(entries) > maxEntries {
		bad("internal", fmt.Sprintf("%d layers, %d exceptions, %d folders: at most %d, %d and %d",
			len(layers), len(exceptions), len(entries), maxLayers, maxExceptions, maxEntries))
	}
	return faults
}

// CheckCycles finds rooms that import each other, by whatever way round.
func CheckCycles(t *Tree) []Fault {
	imports := map[string]map[string]bool{}
	for _, f := range t.Go {
		if f.Test {
			continue
		}
		from := room(f.Dir)
		if imports[from] == nil {
			imports[from] = map[string]bool{}
		}
		for _, spec := range f.AST.Imports {
			if dir, ours := ownImport(spec); ours && room(dir) != from {
				imports[from][room(dir)] = true
			}
		}
	}
	var faults []Fault
	const open, done = 1, 2
	state := map[string]int{}
	var visit func(string, []string)
	visit = func(r string, way []string) {
		way = append(way, r)
		if state[r] == open {
			faults = append(faults, Fault{r, 0, "imports itself: " + strings.Join(way, " → ")})
		}
		if state[r] != 0 {
			return
		}
		state[r] = open
		for _, to := range slices.Sorted(maps.Keys(imports[r])) {
			visit(to, way)
		}
		state[r] = done
	}
	for _, r := range slices.Sorted(maps.Keys(imports)) {
		visit(r, nil)
	}
	return faults
}

// ownImport returns the folder of an imported package, and whether it is of this module.
func ownImport(spec *ast.ImportSpec) (dir string, ours bool) {
	imp, _ := strconv.Unquote(spec.Path.Value)
	return strings.CutPrefix(imp, Module+"/")
}

// below reports whether dir is the folder at path, or in it.
func below(dir, path string) bool {
	return dir == path || strings.HasPrefix(dir, path+"/")
}

// holds returns a function that reports whether a path holds dir.
func holds(dir string) func(path string) bool {
	return func(path string) bool { return below(dir, path) }
}

// room returns the folder that dir belongs to: internal/LAYER/ROOM, or the first of its path.
func room(dir string) string {
	parts := strings.Split(dir, "/")
	if parts[0] == "internal" {
		return strings.Join(parts[:min(3, len(parts))], "/")
	}
	return parts[0]
}

// place returns the row of the table that holds dir, or -1.
func place(dir string, layers []Layer) int {
	return slices.IndexFunc(layers, func(l Layer) bool { return slices.ContainsFunc(l.Paths, holds(dir)) })
}
