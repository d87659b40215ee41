package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"dure/agent"
)

// walker follows one command line, and those inside it.
type walker struct {
	Options

	home    string // Options.Dir with slashes
	dialect dialect
	src     string // the text that positions refer to

	eff agent.Effects
	out *[]agent.SimpleCommand // where commands are listed

	room // memory that is used again

	funcs    map[string][]function // every function that any text so far defines
	integers map[string]bool       // variables whose values are evaluated
	arrays   map[string]bool       // variables that are arrays
	calls    []callFrame           // of functions that are being followed
	frame    *frame                // what the innermost loop or function changes

	bodies  int      // functions around this place, in this shell
	passed  []string // folders that paths leave by ".."
	forks   int      // pipes and background commands around this place
	piped   bool     // what stands here reads what nobody knows as its input
	remote  bool     // what stands here runs elsewhere
	side    []string // variables that the expansions of this command have set
	dirty   bool     // something may have changed any file before this place
	changed []string // files that were changed before this place
	placed  []placed // paths that were put elsewhere before this place
	globbed bool     // a pattern was looked up
	asked   string   // the folder whose repository was asked about last
	answer  bool     // and what that was

	primed   []string              // what variables have programs run, until the next command
	told     []string              // texts that commands before this place read as their input
	upstream upstream              // what stands before this place in its pipe
	streamed []agent.SimpleCommand // what the last <(…) has

	depth, scripts, wraps, steps, hints, globs int
	spent                                      bool // a limit was reached
	stopped                                    int  // where the last list was then
}

// outcome is where the shell can be after a command, by how that ended.
type outcome struct{ ok, fail *state }

func both(st *state) outcome { return outcome{st, st} }

func (o outcome) any() *state { return merge(o.ok, o.fail) }

func newWalker(o Options) *walker {
	w := walkers.Get().(*walker)
	*w = walker{Options: o, home: slashed(o.Dir), dialect: dialectOf(o.Shell), room: w.room}
	w.Home = slashed(o.Home)
	w.out = &w.top
	return w
}

// whole follows a text as a shell of its own, and what is left over of it.
func (w *walker) whole(text string) {
	st := &state{}
	if w.home != "" && rooted(w.home+"/") {
		st.dirs = []string{w.home}
	}
	if cd := w.Vars["CDPATH"]; cd != "" {
		st = w.bind(st, "CDPATH", value{kind: anybody})
	}
	w.text(st, text)
	w.uncalled()
	if strings.TrimSpace(text) == "" || w.eff.Unparsed == "" && w.steps == 0 {
		w.unparsed("there is no command in it")
	}
}

// swallows says whether a substitution has a here-document and, behind that, a ;
// that parts commands. Some shells print such a substitution again before they read
// it, and lose the first ; so that two commands become one.
func swallows(text string, stmts []*syntax.Stmt) (found bool) {
	if !strings.Contains(text, "<<") || !strings.Contains(text, "(") {
		return false
	}
	inside := func(inner []*syntax.Stmt, end int) {
		for _, s := range inner {
			syntax.Walk(s, func(n syntax.Node) bool {
				if r, ok := n.(*syntax.Redirect); ok && (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc) {
					at := int(r.Word.End().Offset())
					if r.Hdoc != nil && len(r.Hdoc.Parts) > 0 {
						at = int(r.Hdoc.End().Offset())
					}
					found = found || at >= end || strings.Contains(text[at:end], ";")
				}
				return !found
			})
		}
	}
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CmdSubst:
				if !n.Backquotes {
					inside(n.Stmts, min(int(n.End().Offset()), len(text)))
				}
			case *syntax.ProcSubst:
				inside(n.Stmts, min(int(n.End().Offset()), len(text)))
			}
			return !found
		})
	}
	return found
}

func (w *walker) unparsed(why string) {
	if w.eff.Unparsed == "" {
		w.eff.Unparsed = why
	}
}

func (w *walker) unreadable(why string) {
	if w.eff.Unreadable == "" && !w.remote {
		w.eff.Unreadable = why
	}
}

// step counts a command, and says whether there are too many.
func (w *walker) step() bool {
	w.steps++
	if w.steps > maxSteps && !w.spent {
		w.spent = true
		w.unparsed("it is too much to follow")
	}
	return w.spent
}

// list follows statements one after the other. What comes after an exit is
// followed too, as nothing is sure enough to leave it out.
func (w *walker) list(st *state, stmts []*syntax.Stmt) outcome {
	out, last := both(st), st
	for i, s := range stmts {
		if w.spent {
			w.stopped = int(stmts[max(i-1, 0)].Pos().Offset())
			return both(last)
		}
		next := out.any()
		gone := next == nil
		if !gone {
			last = next
		}
		out = w.stmt(last, s)
		if gone {
			out = outcome{}
		}
	}
	if w.spent && len(stmts) > 0 {
		w.stopped = int(stmts[len(stmts)-1].Pos().Offset())
	}
	return out
}

// stmt follows one statement with its redirections.
func (w *walker) stmt(st *state, s *syntax.Stmt) outcome {
	if w.step() {
		return both(st)
	}
	if w.depth++; w.depth > 2*maxNesting {
		w.unparsed("it is nested too deeply")
		w.spent = true
	}
	defer func() { w.depth-- }()
	if s.Background || s.Coprocess || s.Disown {
		w.apart(func() {
			w.forks++
			w.redirected(st, s)
			w.forks--
		})
		return both(st)
	}
	side := w.side
	w.side = nil
	out := w.redirected(st, s)
	if len(w.side) > 0 {
		out.ok, out.fail = w.settled(out.ok, w.side), w.settled(out.fail, w.side)
	}
	w.side = side
	if s.Negated {
		out.ok, out.fail = out.fail, out.ok
	}
	return out
}

func (w *walker) redirected(st *state, s *syntax.Stmt) outcome {
	if len(s.Redirs) == 0 {
		return w.cmd(st, s.Cmd)
	}
	piped := w.piped
	in := w.redirects(st, s.Redirs)
	var out outcome
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		out = w.simple(in.state, call, in)
	} else {
		if s.Cmd == nil && w.dialect == dialectZsh {
			w.unreadable("what a redirection without a command runs")
		}
		out = w.cmd(in.state, s.Cmd)
	}
	if !in.lasting {
		w.piped = piped
	}
	out.fail = merge(out.fail, in.state) // a redirection may fail, and the command not run
	return out
}

func (w *walker) cmd(st *state, c syntax.Command) outcome {
	switch c := c.(type) {
	case nil:
	case *syntax.CallExpr:
		return w.simple(st, c, nil)
	case *syntax.BinaryCmd:
		return w.binary(st, c)
	case *syntax.Block:
		return w.list(st, c.Stmts)
	case *syntax.Subshell:
		w.apart(func() { w.list(st, c.Stmts) })
	case *syntax.IfClause:
		return both(w.conditional(st, c))
	case *syntax.WhileClause:
		return both(w.loop(st, func(st *state) *state {
			o := w.list(st, c.Cond)
			in, after := o.ok, o.fail
			if c.Until {
				in, after = after, in
			}
			return merge(after, w.list(orElse(in, st), c.Do).any())
		}))
	case *syntax.ForClause:
		return both(w.forClause(st, c))
	case *syntax.CaseClause:
		return both(w.caseClause(st, c))
	case *syntax.FuncDecl:
		return both(w.funcDecl(st, c))
	case *syntax.DeclClause:
		return w.declClause(st, c)
	case *syntax.LetClause:
		w.differs("let")
		if strings.ContainsAny(w.written(c), "<>") {
			w.unreadable("what let compares, or redirects") // without quotes, it does the latter
		}
		for _, x := range c.Exprs {
			st = w.arith(st, x)
		}
	case *syntax.ArithmCmd:
		w.differs("((")
		st = w.arith(st, c.X)
	case *syntax.TestClause:
		w.differs("[[")
		st = w.test(st, c.X)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return w.stmt(st, c.Stmt)
		}
	case *syntax.CoprocClause:
		// What its words mean depends on what follows, and it is hardly ever used.
		w.unreadable("what a coprocess is")
		if c.Name != nil {
			w.apart(func() { w.run(st, job{argv: w.words(st, []*syntax.Word{c.Name})}) })
		}
		w.apart(func() {
			w.forks++
			w.fed(func() { w.stmt(st, c.Stmt) })
			w.forks--
		})
		st = w.assign(st, "COPROC", "", value{kind: anybody}, false)
	default:
		w.unreadable("a construct that is not known")
	}
	return both(st)
}

func orElse(st, other *state) *state {
	if st == nil {
		return other
	}
	return st
}

// apart follows something that runs in a shell of its own.
func (w *walker) apart(f func()) {
	frame := w.frame
	w.frame = nil
	f()
	w.frame = frame
}

// fed follows something whose input comes from nobody knows where.
func (w *walker) fed(f func()) {
	piped := w.piped
	w.piped = true
	f()
	w.piped = piped
}

// differs notes that shells which may run the text take something differently.
func (w *walker) differs(what string) {
	if w.dialect == dialectPOSIX {
		w.unreadable("shells take " + what + " differently")
	}
}

func (w *walker) binary(st *state, c *syntax.BinaryCmd) outcome {
	switch c.Op {
	case syntax.AndStmt:
		x := w.stmt(st, c.X)
		y := w.stmt(orElse(x.ok, st), c.Y)
		if x.ok == nil {
			return x
		}
		return outcome{y.ok, merge(x.fail, y.fail)}
	case syntax.OrStmt:
		x := w.stmt(st, c.X)
		y := w.stmt(orElse(x.fail, st), c.Y)
		if x.fail == nil {
			return x
		}
		return outcome{merge(x.ok, y.ok), y.fail}
	}
	if c.Op == syntax.PipeAll {
		w.differs("|&")
	}
	w.forks++
	upstream, listed, told := w.upstream, len(*w.out), len(w.told)
	w.apart(func() { w.stmt(st, c.X) })
	w.upstream = upstream.and((*w.out)[listed:], w.told[told:])
	var last outcome
	if w.dialect == dialectBash {
		w.apart(func() { w.fed(func() { w.stmt(st, c.Y) }) })
	} else { // some run the end of a pipe themselves
		w.fed(func() { last = w.stmt(st, c.Y) })
	}
	w.upstream = upstream
	w.forks--
	return both(merge(st, last.any()))
}

func (w *walker) conditional(st *state, c *syntax.IfClause) *state {
	if len(c.Cond) == 0 { // else
		return w.list(st, c.Then).any()
	}
	o := w.list(st, c.Cond)
	then := w.list(orElse(o.ok, st), c.Then).any()
	if o.ok == nil {
		then = nil
	}
	if c.Else == nil {
		return merge(then, o.fail)
	}
	other := w.conditional(orElse(o.fail, st), c.Else)
	if o.fail == nil {
		other = nil
	}
	return merge(then, other)
}

func (w *walker) destroys(what string) {
	if w.eff.Destructive == "" {
		w.eff.Destructive = what
	}
}

// text as it stands between two places of the source.
func (w *walker) written(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.src) || from >= to {
		return "…"
	}
	return w.src[from:to]
}

// effects are what was found, each path and host once.
func (w *walker) effects() agent.Effects {
	w.eff.Reads = once(append(w.eff.Reads, w.passed...))
	w.eff.Writes = once(w.eff.Writes)
	w.eff.Hosts = once(w.eff.Hosts)
	switch {
	case len(w.top) == 0:
	case cap(w.top) > maxTop:
		w.eff.Commands, w.top = slices.Clip(w.top), nil
	default:
		w.eff.Commands = slices.Clone(w.top)
	}
	return w.eff
}

// once is s without repetitions.
func once(s []string) []string {
	if len(s) < 2 {
		return s
	}
	if len(s) > 16 {
		seen := make(map[string]bool, len(s))
		return slices.DeleteFunc(s, func(x string) bool {
			was := seen[x]
			seen[x] = true
			return was
		})
	}
	out := s[:1]
	for _, x := range s[1:] {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}
