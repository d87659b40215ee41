package archtest

import (
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// gates are the functions that let a tool act. What they act on has a decision in
// the log by then.
var gates = map[string]string{
	"(*dure/internal/kernel/loop.turn).await":       "runs a call",
	"(*dure/internal/kernel/loop.turn).starting":    "has a tool mark where things stand, right before a call runs",
	"(*dure/internal/kernel/loop.turn).interrupted": "has a tool look how far a call came that had been started",
}

// resumes has what they had let begin go on in another program: no tool acts there anew.
const resumes = "(*dure/internal/kernel/session.Session).resurrect"

// isOurs reports whether a package, or one above it, is among ours.
func isOurs(pkg string) bool {
	for name := range ours {
		if pkg == name || strings.HasPrefix(pkg, name+"/") {
			return true
		}
	}
	return false
}

// lent are functions that another module may call only for the one behind them.
var lent = map[string]string{
	"(*dure/internal/tools/web.client).dial": "(*dure/internal/tools/web.client).do",
}

// ours are the packages that touch the world without a call: what they touch is
// the program's own, or what its user has asked for on the command line. Tools are
// not among them.
var ours = map[string]string{
	"dure/cmd/dure":                         "writes what its user names: the manual page, the demo's folder",
	"dure/internal/app":                     "keeps caches of its own, runs the demo",
	"dure/internal/state/archive/index":     "keeps an index of the sessions",
	"dure/internal/state/archive/mirror":    "writes conversations where other programs look for them, of sessions that a host drives or where its user has asked for it",
	"dure/internal/state/archive/removal":   "deletes what is kept of the sessions that its user deletes",
	"dure/internal/state/archive/repair":    "repairs the transcripts that its user names",
	"dure/internal/extend/bundle/changeset": "takes back what a kill has left of a commit to a bundle; see works for what it does besides",
	"dure/internal/frontend/cli":            "keeps the history of the input line, and writes documents where its user wants them",
	"dure/internal/state/journal":           "keeps the logs",
	"dure/internal/state/checkpoint":        "keeps what the workspace looks like; puts files back when its user says so",
	"dure/internal/base/keys":               "keeps keys where the user wants them",
	"dure/internal/extend/hooks/run":        "asks the servers that hooks name, and has a file for the environment that they leave",
	"dure/internal/extend/launch":           "keeps the snippets and links that its user writes",
	"dure/internal/frontend/mcpserve":       "listens on this machine for the agents that its user lets in",
	"dure/internal/frontend/auth":           "listens on this machine for those whom its user lets in",
	"dure/internal/frontend/serve":          "takes requests of front-ends, and makes none",
	"dure/client/remote":                    "asks a server of this program, for a front-end",
	"dure/internal/knowledge/memory":        "keeps the notes of agents and what came of past tasks, which are listed and deleted from the command line",
	"dure/internal/knowledge/prompt/system": "keeps the prompts that its user writes",
	"dure/internal/extend/skills/shelf":     "makes and copies the skills that its user names",
	"dure/internal/extend/release":          "asks for newer versions when its user wants it",
	"dure/internal/extend/mcp/oauth":        "signs in where its user has configured it, keeps grants, and listens for the browser",
	"dure/internal/extend/plugins":          "keeps the plugins that its user installs from the command line, in a folder of its own",
	"dure/internal/state/worktree":          "mends what a kill has left of the work trees that it has made; see works for what it does besides",
	"dure/internal/safety/trust":            "keeps which folders are trusted, and what is allowed in them",
	"dure/internal/base/record":             "writes the small files of those listed here",
	"dure/internal/models/script":           "is the demo's model, on loopback",
	"dure/internal/models/wire":             "asks models",
	"dure/internal/extend/mcp":              "connects to servers that somebody has said yes to; what their tools do passes the gate",
	"dure/internal/base/cron/tab":           "keeps what its user has scheduled, with the user's own data",
	"dure/internal/extend/bundle/inbound":   "takes requests, and makes none",
	"dure/internal/extend/bundle/swarms":    "locks and serves the bundle that its user names; what its tools do passes the gate",
	"dure/internal/models/registry":         "looks whether a model's server answers, in a diagnosis that its user asks for",
	"dure/internal/models/chat":             "looks for model servers on this machine",
	"dure/internal/frontend/telemetry":      "tells collectors that its user, or the administrator, has named",
	"dure/internal/safety/sandbox":          "confines, watches and ends processes; starting one is an effect by itself",
}

// works are the functions of one of ours that are effects of tools all the same.
var works = []string{
	"(*dure/internal/state/worktree.Store).Create", "(*dure/internal/state/worktree.Store).Commit", "(*dure/internal/state/worktree.Store).Merge",
	"(*dure/internal/extend/bundle/changeset.Changesets).Open", "(*dure/internal/extend/bundle/changeset.Changesets).Commit",
}

// asks are the functions by which a plan asks git what is there. Git is hardened
// then: it runs nothing that a repository names, and changes nothing.
var asks = []string{
	"(*dure/internal/safety/workspace.Workspace).askGit", // names of files
	"(*dure/internal/tools/git.Git).do",                  // settings of the repository, and what a commit would take
}

// effect reports whether a function of another module changes files, starts a
// process or opens a connection.
func effect(f *types.Func) bool {
	pkg := f.Pkg()
	if pkg == nil {
		return false
	}
	name := f.Name()
	recv := ""
	if r := f.Signature().Recv(); r != nil {
		recv = types.TypeString(r.Type(), func(*types.Package) string { return "" })
	}
	switch pkg.Path() {
	case "os":
		return slices.Contains([]string{
			"Chmod", "Chown", "Chtimes", "Create", "CreateTemp", "Lchown", "Link", "Mkdir", "MkdirAll", "MkdirTemp", "OpenFile",
			"Remove", "RemoveAll", "Rename", "StartProcess", "Symlink", "Truncate", "WriteFile", "CopyFS",
		}, name) && (recv == "" || recv == "*Root")
	case "os/exec":
		return recv == "*Cmd" && slices.Contains([]string{"CombinedOutput", "Output", "Run", "Start"}, name)
	case "net":
		return strings.HasPrefix(name, "Dial") || strings.HasPrefix(name, "Listen")
	case "net/http":
		return slices.Contains([]string{"Do", "Get", "Head", "Post", "PostForm", "RoundTrip", "ListenAndServe", "Serve"}, name)
	}
	return false
}

// Every path from the program to an effect of a tool leads through the gate: with
// the gate taken out of the graph of calls, no effect of a tool can be reached.
// The graph has more edges than the program: a call through an interface may reach
// every type that fits, one through a function value every function of its shape,
// and what is handed to other modules is called by them.
func TestOneGate(t *testing.T) {
	t.Parallel()
	g := load(t)
	for _, name := range append(slices.Collect(maps.Keys(gates)), resumes) {
		f := g.funcs[name]
		if f == nil {
			t.Fatalf("%s is gone: name the function that takes its place", name)
		}
		g.cut[f] = true
	}
	g.reach(g.funcs["dure/cmd/dure.main"])
	for name := range gates {
		if !g.reached(name) {
			t.Errorf("%s cannot be reached: the graph is not the program", name)
		}
	}
	closed := g.effects()
	for _, site := range slices.Sorted(maps.Keys(closed)) {
		pkg := closed[site]
		if by, ok := lent[site]; ok && !g.reached(by) {
			continue
		}
		if !isOurs(pkg) && !slices.Contains(asks, site) {
			t.Errorf("%s can be reached around the gate:\n\t%s", site, strings.Join(g.path(site), "\n\t"))
		}
	}
	for _, name := range works {
		if g.reached(name) {
			t.Errorf("%s can be reached around the gate:\n\t%s", name, strings.Join(g.path(name), "\n\t"))
		}
	}
	starters := g.callers("(*dure/internal/safety/sandbox.Box).Run", "(*dure/internal/safety/sandbox.Box).Start")
	for _, f := range starters {
		if strings.HasPrefix(packageOf(f), "dure/internal/tools/builtin") && !slices.Contains(asks, f.String()) {
			t.Errorf("%s starts a process around the gate:\n\t%s", f, strings.Join(g.path(f.String()), "\n\t"))
		}
	}
	// The proof is worth something only if there is something behind the gate.
	through := slices.Collect(maps.Keys(g.cut))
	clear(g.cut)
	g.reach(through...)
	open := g.effects()
	for _, name := range works {
		if !g.reached(name) {
			t.Errorf("%s cannot be reached: name the function that takes its place", name)
		}
	}
	behind := map[string]bool{}
	for site, pkg := range open {
		if _, ok := closed[site]; !ok {
			behind[pkg] = true
		}
	}
	for _, pkg := range []string{"dure/internal/safety/workspace", "dure/internal/tools/web"} {
		if !behind[pkg] {
			t.Errorf("no effect of %s was found behind the gate: the graph is not the program", pkg)
		}
	}
	if n := len(g.callers("(*dure/internal/safety/sandbox.Box).Run", "(*dure/internal/safety/sandbox.Box).Start")); n <= len(starters) {
		t.Errorf("%d places start processes with the gate, %d without", n, len(starters))
	}
}

// Only the gates let tools act: nothing else calls Run, Mark or Probe of one, or
// takes it as a value.
func TestOnlyTheGatesLetToolsAct(t *testing.T) {
	g := load(t)
	var found []string
	for f := range ssautil.AllFunctions(g.prog) {
		if f.Pkg == nil || !strings.HasPrefix(f.Pkg.Pkg.Path(), "dure/") {
			continue
		}
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				if letsAct(in) {
					found = append(found, f.String())
				}
			}
		}
	}
	slices.Sort(found)
	if found = slices.Compact(found); !slices.Equal(found, slices.Sorted(maps.Keys(gates))) {
		t.Errorf("tools act in %v, want %v", found, slices.Sorted(maps.Keys(gates)))
	}
}

// letsAct reports whether an instruction calls a method by which a tool acts, or
// makes a value of it.
func letsAct(in ssa.Instruction) bool {
	if call, ok := in.(ssa.CallInstruction); ok && call.Common().IsInvoke() {
		return acts(call.Common().Method)
	}
	if c, ok := in.(*ssa.MakeClosure); ok {
		if f, ok := c.Fn.(*ssa.Function); ok && f.Synthetic != "" {
			m, ok := f.Object().(*types.Func)
			return ok && acts(m)
		}
	}
	return false
}

func acts(m *types.Func) bool {
	recv := m.Signature().Recv()
	if recv == nil {
		return false
	}
	switch recv.Type().String() {
	case "dure/agent.Tool":
		return m.Name() == "Run"
	case "dure/agent.Checker":
		return true
	}
	return false
}

// graph is what may call what, as far as it has been reached. What a function
// makes a value of counts once that function is reached, and so do the types that
// it gives away as interfaces.
type graph struct {
	prog    *ssa.Program
	funcs   map[string]*ssa.Function
	foreign map[string]bool // methods of interfaces of other modules: name and shape

	cut   map[*ssa.Function]bool
	from  map[*ssa.Function]*ssa.Function // who reached it first
	todo  []*ssa.Function
	taken map[string][]*ssa.Function // functions that are values, by their shape
	types map[types.Type]bool        // that are interfaces somewhere

	called  map[string]*ssa.Function      // shapes that are called as values, and by whom
	invoked map[*types.Func]*ssa.Function // methods that are called through interfaces
}

// program reads the program once for all tests. Other modules are known by their types alone.
var program = sync.OnceValues(func() (*ssa.Program, error) {
	cfg := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedExportFile,
		Fset: token.NewFileSet(),
	}
	pkgs, err := packages.Load(cfg, "dure/...")
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(pkgs) > 0 {
		return nil, errors.New("the program does not compile")
	}
	prog, _ := ssautil.Packages(pkgs, ssa.InstantiateGenerics)
	prog.Build()
	return prog, nil
})

// load returns the graph of the program, of which nothing is reached.
func load(t *testing.T) *graph {
	t.Helper()
	prog, err := program()
	if err != nil {
		t.Fatal(err)
	}
	g := &graph{
		prog: prog, funcs: map[string]*ssa.Function{}, foreign: map[string]bool{}, cut: map[*ssa.Function]bool{},
		from: map[*ssa.Function]*ssa.Function{}, taken: map[string][]*ssa.Function{}, types: map[types.Type]bool{},
		called: map[string]*ssa.Function{}, invoked: map[*types.Func]*ssa.Function{},
	}
	g.learn()
	return g
}

// learn names the functions of the program, and the methods by which other modules
// call what they are given.
func (g *graph) learn() {
	for f := range ssautil.AllFunctions(g.prog) {
		g.funcs[f.String()] = f
	}
	for _, p := range g.prog.AllPackages() {
		if strings.HasPrefix(p.Pkg.Path(), "dure") {
			continue
		}
		for _, name := range p.Pkg.Scope().Names() {
			if i, ok := p.Pkg.Scope().Lookup(name).Type().Underlying().(*types.Interface); ok {
				for m := range i.Methods() {
					g.foreign[m.Name()+shape(m.Signature())] = true
				}
			}
		}
	}
}

// values returns the operands of an instruction, but for what a call calls.
func values(in ssa.Instruction) []ssa.Value {
	var out []ssa.Value
	var callee ssa.Value
	if call, ok := in.(ssa.CallInstruction); ok && !call.Common().IsInvoke() {
		callee = call.Common().Value
	}
	for _, op := range in.Operands(nil) {
		if *op != nil && *op != callee {
			out = append(out, *op)
		}
	}
	if c, ok := in.(*ssa.MakeClosure); ok {
		out = append(out, c.Fn)
	}
	return out
}

// shape is a signature without its receiver and the names in it.
func shape(s *types.Signature) string {
	var b strings.Builder
	for _, tuple := range []*types.Tuple{s.Params(), s.Results()} {
		for v := range tuple.Variables() {
			b.WriteString(types.TypeString(v.Type(), nil) + ",")
		}
		b.WriteString(";")
	}
	return b.String()
}

// reach goes from functions to all that may be called, but not into those that are
// cut, nor into what is written inside of them. What was reached before stays
// reached.
func (g *graph) reach(starts ...*ssa.Function) {
	for _, f := range starts {
		delete(g.from, f)
		g.add(f, nil)
	}
	for _, f := range g.funcs { // what runs before main
		if f.Name() == "init" && packageOf(f) != "" {
			g.add(f, nil)
		}
	}
	for len(g.todo) > 0 {
		f := g.todo[0]
		g.todo = g.todo[1:]
		if g.within(f) {
			continue
		}
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				g.follow(f, in)
			}
		}
	}
}

// reached reports whether a function has been reached.
func (g *graph) reached(name string) bool {
	_, ok := g.from[g.funcs[name]]
	return ok
}

// within reports whether a function is one that is cut, or written in one.
func (g *graph) within(f *ssa.Function) bool {
	for ; f != nil; f = f.Parent() {
		if g.cut[f] {
			return true
		}
	}
	return false
}

func (g *graph) add(f, by *ssa.Function) {
	if f == nil {
		return
	}
	if _, ok := g.from[f]; !ok {
		g.from[f] = by
		g.todo = append(g.todo, f)
	}
}

// follow takes in what an instruction of a reached function may call, and what it
// makes callable.
func (g *graph) follow(f *ssa.Function, in ssa.Instruction) {
	if m, ok := in.(*ssa.MakeInterface); ok {
		g.give(m.X.Type(), f)
	}
	for _, v := range values(in) {
		if fn, ok := v.(*ssa.Function); ok {
			g.take(fn)
		}
	}
	switch in := in.(type) {
	case *ssa.Store: // into what another module calls, such as a command of cobra
		if field, ok := in.Addr.(*ssa.FieldAddr); ok && isForeign(field.X.Type()) {
			g.hand([]ssa.Value{in.Val}, f)
		}
	case *ssa.ChangeType: // to a type of another module that calls itself, such as http.HandlerFunc
		if isForeign(in.Type()) {
			g.hand([]ssa.Value{in.X}, f)
		}
	}
	call, ok := in.(ssa.CallInstruction)
	if !ok {
		return
	}
	c := call.Common()
	switch callee := c.StaticCallee(); {
	case callee != nil:
		g.add(callee, f)
		if len(callee.Blocks) == 0 { // of another module, which may call what it is given
			g.hand(c.Args, f)
		}
	case c.IsInvoke():
		g.invoke(c.Method, f)
		if packageOfMethod(c.Method) == "" {
			g.hand(c.Args, f)
		}
	default:
		g.callShape(shape(c.Signature()), f)
		g.hand(c.Args, f) // it may be of another module, as the iterators of loops are
	}
}

// take makes a function callable as a value.
func (g *graph) take(fn *ssa.Function) {
	key := shape(fn.Signature)
	if slices.Contains(g.taken[key], fn) {
		return
	}
	g.taken[key] = append(g.taken[key], fn)
	if by, ok := g.called[key]; ok {
		g.add(fn, by)
	}
}

// callShape is a call of whatever has a shape.
func (g *graph) callShape(key string, by *ssa.Function) {
	if _, ok := g.called[key]; ok {
		return
	}
	g.called[key] = by
	for _, fn := range g.taken[key] {
		g.add(fn, by)
	}
}

// hand gives the arguments of a call to another module, which may call them.
func (g *graph) hand(args []ssa.Value, by *ssa.Function) {
	for _, a := range args {
		switch a := a.(type) {
		case *ssa.Function:
			g.add(a, by)
			continue
		case *ssa.MakeClosure:
			g.add(a.Fn.(*ssa.Function), by)
			continue
		}
		if sig, ok := a.Type().Underlying().(*types.Signature); ok {
			g.callShape(shape(sig), by)
		}
	}
}

// give makes the methods of a type callable: by other modules through interfaces
// of theirs, and by the program through its own.
func (g *graph) give(t types.Type, by *ssa.Function) {
	if g.types[t] {
		return
	}
	g.types[t] = true
	set := g.prog.MethodSets.MethodSet(t)
	for sel := range set.Methods() {
		if m, ok := sel.Obj().(*types.Func); ok && g.foreign[m.Name()+shape(m.Signature())] {
			g.add(g.prog.MethodValue(sel), by)
		}
	}
	for m, from := range g.invoked {
		g.meet(t, m, from)
	}
}

// invoke is a call of a method of an interface.
func (g *graph) invoke(m *types.Func, by *ssa.Function) {
	if _, ok := g.invoked[m]; ok {
		return
	}
	g.invoked[m] = by
	for t := range g.types {
		g.meet(t, m, by)
	}
}

// meet adds the method of t that a call of m may reach.
func (g *graph) meet(t types.Type, m *types.Func, by *ssa.Function) {
	i, ok := m.Signature().Recv().Type().Underlying().(*types.Interface)
	if !ok || !types.Implements(t, i) {
		return
	}
	if sel := g.prog.MethodSets.MethodSet(t).Lookup(m.Pkg(), m.Name()); sel != nil {
		g.add(g.prog.MethodValue(sel), by)
	}
}

// isForeign reports whether a type, or what it points to, is one of another module.
func isForeign(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return ok && (n.Obj().Pkg() == nil || !strings.HasPrefix(n.Obj().Pkg().Path(), "dure"))
}

func packageOfMethod(m *types.Func) string {
	if m.Pkg() == nil || !strings.HasPrefix(m.Pkg().Path(), "dure") {
		return ""
	}
	return m.Pkg().Path()
}

// effects returns the reached functions of the module that have an effect by
// themselves, with their packages.
func (g *graph) effects() map[string]string {
	found := map[string]string{}
	for f := range g.from {
		if g.within(f) || packageOf(f) == "" {
			continue
		}
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				if call, ok := in.(ssa.CallInstruction); ok && hasEffect(call.Common()) {
					found[f.String()] = packageOf(f)
				}
			}
		}
	}
	return found
}

func hasEffect(c *ssa.CallCommon) bool {
	if c.IsInvoke() {
		return effect(c.Method)
	}
	callee := c.StaticCallee()
	if callee == nil {
		return false
	}
	m, ok := callee.Object().(*types.Func)
	return ok && effect(m) && !onlyReads(m, c.Args)
}

// onlyReads reports whether a file is opened with flags that are known, and change
// nothing.
func onlyReads(m *types.Func, args []ssa.Value) bool {
	if m.Name() != "OpenFile" {
		return false
	}
	const changes = int64(os.O_WRONLY | os.O_RDWR | os.O_CREATE | os.O_TRUNC | os.O_APPEND)
	for _, a := range args {
		if c, ok := a.(*ssa.Const); ok && c.Type().String() == "int" {
			return c.Int64()&changes == 0
		}
	}
	return false
}

// packageOf returns the package of a function of the module, or "".
func packageOf(f *ssa.Function) string {
	for f.Parent() != nil {
		f = f.Parent()
	}
	if f.Origin() != nil {
		f = f.Origin()
	}
	if f.Pkg == nil || !strings.HasPrefix(f.Pkg.Pkg.Path(), "dure") {
		return ""
	}
	return f.Pkg.Pkg.Path()
}

// callers returns the reached functions that call one of the named.
func (g *graph) callers(names ...string) []*ssa.Function {
	var found []*ssa.Function
	for f := range g.from {
		if g.within(f) || packageOf(f) == "" {
			continue
		}
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				if call, ok := in.(ssa.CallInstruction); ok {
					if c := call.Common().StaticCallee(); c != nil && slices.Contains(names, c.String()) {
						found = append(found, f)
					}
				}
			}
		}
	}
	return found
}

// path says how a function was reached.
func (g *graph) path(name string) []string {
	var steps []string
	const longest = 40
	for f := g.funcs[name]; f != nil && len(steps) < longest; f = g.from[f] {
		steps = append(steps, fmt.Sprint(f))
	}
	slices.Reverse(steps)
	return steps
}
