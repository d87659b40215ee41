package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"dure/agent"
	"dure/internal/safety/shell/programs"
)

// job is a simple command that is about to be followed.
type job struct {
	argv
	prefix []assignment // those before its name
	vars   []string     // the same as they are listed, and those of what runs it
	in     *redirections
	shell  bool // the shell runs it: builtins are found
	direct bool // functions are passed over (command, builtin)
	more   bool // it gets further arguments, which nobody knows
}

// assignment is a variable with what it is given.
type assignment struct {
	name, text string // text as it is listed
	value      value
}

// simple follows a simple command. in is nil if it has no redirections.
func (w *walker) simple(st *state, c *syntax.CallExpr, in *redirections) outcome {
	j := job{argv: w.words(st, c.Args), in: in, shell: true}
	if len(j.list) == 0 {
		for _, as := range c.Assigns {
			a := w.assignment(st, as)
			st = w.assign(st, a.name, a.text, a.value, false)
		}
		return both(st)
	}
	for _, as := range c.Assigns {
		a := w.assignment(st, as)
		j.prefix = append(j.prefix, a)
		j.vars = append(j.vars, a.name+"="+a.text)
		w.evaluates(a.name, a.text)
	}
	return w.run(st, j)
}

// assignment follows NAME=value.
func (w *walker) assignment(st *state, as *syntax.Assign) assignment {
	a := assignment{name: as.Name.Value, value: value{kind: anybody}}
	if as.Index != nil {
		w.differs("an array")
		w.arith(st, as.Index)
	}
	if as.Index != nil || as.Array != nil {
		w.isArray(a.name)
	}
	if as.Array != nil {
		w.differs("an array")
		for _, e := range as.Array.Elems {
			if e.Index != nil {
				w.arith(st, e.Index)
			}
			if e.Value != nil {
				w.word(st, e.Value, &argv{})
			}
		}
		a.text = w.written(as.Array)
		return a
	}
	text, m, known := w.value(st, as.Value)
	a.text = text
	switch {
	case as.Index != nil:
	case known && strings.Contains(text, "~"):
	case known && m&(pipeIn|pipeOut) == 0:
		a.value = value{kind: literal, text: text}
	case m&numeric != 0:
		a.value = value{kind: digits}
	case m&inherits != 0:
		a.value = value{}
	}
	if as.Append {
		w.differs("+=")
		before := w.named(st, a.name)
		switch {
		case before.kind == literal && a.value.kind == literal:
			a.value.text = before.text + text
		case meet(before, a.value).kind != digits:
			a.value = value{kind: anybody}
		default:
			a.value = value{kind: digits}
		}
		a.text = "…" + text
	}
	return a
}

// run follows a command and lists it.
func (w *walker) run(st *state, j job) outcome {
	if w.spent {
		return both(st)
	}
	sc := w.spared()
	out := w.command(st, j, sc)
	if sc.Argv != nil {
		w.add(*sc)
	}
	w.used(sc)
	return out
}

// into lists what f finds as what a command runs in turn.
func (w *walker) into(list *[]agent.SimpleCommand, f func()) {
	out := w.out
	w.out = list
	f()
	w.out = out
}

// command follows a command by what is known of its program. One that is surely
// a function comes back without words: it is what its body has.
func (w *walker) command(st *state, j job, sc *agent.SimpleCommand) (out outcome) {
	sc.Argv = make([]string, len(j.list))
	for i, a := range j.list {
		sc.Argv[i] = a.Text
	}
	if len(st.taint)+len(j.vars) > 0 {
		sc.Vars = slices.Concat(st.taint, j.vars)
	}
	if len(st.dirs) > 0 && st.dirs[0] != w.home {
		sc.Dir = filepath.FromSlash(st.dirs[0])
	}
	out = both(st)
	if w.depth++; w.depth > 2*maxNesting || w.step() {
		w.unparsed("it is nested too deeply")
		w.spent = true
		w.depth--
		return out
	}
	defer func() { w.depth-- }()

	name := j.list[0]
	if name.Known && j.mark(0)&pattern != 0 {
		w.unreadable("what " + name.Text + " stands for")
	}
	if name.Known && strings.HasPrefix(name.Text, "-") && len(j.list) > 1 { // time -- x
		w.unreadable("what " + name.Text + " is a command of")
		w.into(&sc.Runs, func() { w.run(st, job{argv: j.after(1), vars: j.vars}) })
	}
	if set, _, ok := strings.Cut(name.Text, "="); ok && identifier(set) {
		w.unreadable("whether " + name.Text + " is an assignment")
	}
	if !name.Known || name.Text == "" {
		w.unnamed(st, j, sc)
		return out
	}
	if key, _, ok := strings.Cut(name.Text, "="); ok && identifier(strings.TrimSuffix(key, "+")) {
		w.unreadable("whether " + name.Text + " is a command")
	}
	fns := w.funcs[name.Text]
	if j.direct || w.dialect == dialectPOSIX && special(name.Text) {
		fns = nil
	}
	sure := j.shell && len(fns) > 0 && st.defined(name.Text)
	var use programs.Use
	if !sure {
		use = w.look(st, j, sc)
	}
	w.wrapped(st, j, use, sc)
	if len(w.primed) > 0 {
		w.primes(sc)
	}
	if j.shell && !sure {
		readable := w.eff.Unreadable
		out = w.builtin(st, name.Text, j, sc)
		if sc.Kind == agent.CommandOther && w.steersOnly(name.Text, j) && readable == w.eff.Unreadable && !st.voided {
			sc.Kind = agent.CommandReads
		}
	}
	if len(fns) > 0 {
		end := w.callFunctions(st, fns, j)
		sc.Kind, sc.Transparent = agent.CommandOther, false
		if sure {
			out, sc.Argv = both(end), nil
		} else if j.shell {
			out = both(merge(out.any(), end))
		}
	}
	switch {
	case sc.Kind == agent.CommandEdits:
		w.changed = append(w.changed, sc.Writes...)
	case sc.Kind == agent.CommandOther && !sc.Transparent && !(j.shell && keepsFiles(name.Text)):
		w.dirty = true
	}
	return w.kept(out, j, len(fns) > 0)
}

// unnamed follows a command whose name is not known.
func (w *walker) unnamed(st *state, j job, sc *agent.SimpleCommand) {
	name := j.list[0]
	w.unreadable("what " + orWord(name.Text, "an empty word") + " runs")
	w.dirty = true
	next := 1 // it may become nothing, and so may others behind it
	for next < len(j.list) && !j.list[next-1].One && !j.list[next].Known && !j.list[next].One {
		next++
	}
	if !name.One && next < len(j.list) {
		w.into(&sc.Runs, func() { w.run(st, job{argv: j.after(next), vars: j.vars}) })
	}
}

func orWord(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// after is what follows the first n words.
func (a *argv) after(n int) argv {
	b := argv{list: a.list[n:]}
	if a.marks != nil {
		b.marks = a.marks[n:]
	}
	return b
}

// kept is where the shell is after a command with assignments before it: some
// shells keep those of special builtins and functions.
func (w *walker) kept(out outcome, j job, function bool) outcome {
	if !j.shell || len(j.prefix) == 0 || !function && !special(j.list[0].Text) {
		return out
	}
	keep := func(st *state) *state {
		if st == nil {
			return nil
		}
		for _, a := range j.prefix {
			st = w.assign(st, a.name, a.text, value{kind: anybody}, true)
		}
		return st
	}
	return outcome{keep(out.ok), keep(out.fail)}
}

// special says whether a name is a special builtin.
func special(name string) bool {
	switch name {
	case ":", ".", "source", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift", "times", "trap", "unset":
		return true
	}
	return false
}

func (st *state) defined(name string) bool {
	for d := st.defs; d != nil; d = d.next {
		if d.name == name {
			return true
		}
	}
	return false
}

// look asks what the program does with its arguments, and notes it.
func (w *walker) look(st *state, j job, sc *agent.SimpleCommand) programs.Use {
	use := programs.Look(programs.Call{Args: j.printed()})
	name := j.list[0].Text
	sc.Kind, sc.Flagged, sc.Critical, sc.Transparent = use.Kind, use.Flagged, use.Critical, use.Transparent
	if use.Destructive != "" {
		w.destroys(use.Destructive)
	}
	if use.Unreadable != "" && !(j.shell && w.owns(name)) && !j.tame(name) {
		w.unreadable(use.Unreadable)
		sc.Kind = agent.CommandOther
	}
	if at := st.under(use.Dir); use.Dir != "" && len(at) > 0 && !w.remote {
		sc.Dir = filepath.FromSlash(at[0])
	}
	if strings.Contains(name, "/") {
		sc.Kind, sc.Transparent = agent.CommandOther, false
		if sc.Flagged == "" && !unknown(use) {
			sc.Flagged = aPath
		}
		sc.Reads = w.touch(st, nil, name)
	}
	hadFolder := w.eff.Unreadable
	sc.Reads = w.touchAll(st, sc.Reads, use.Reads)
	sc.Writes = w.touchAll(st, nil, use.Writes)
	sc.Removes = w.touchAll(st, nil, use.Removes)
	for _, r := range sc.Removes {
		if !slices.Contains(sc.Writes, r) {
			sc.Writes = append(sc.Writes, r)
		}
	}
	if len(w.placed) > 0 {
		sc.Reads, sc.Writes = w.led(sc.Reads, nil), w.led(sc.Writes, sc.Removes)
		sc.Removes = w.led(sc.Removes, sc.Removes)
	}
	w.places(name, sc)
	if !w.remote {
		sc.Hosts = use.Hosts
		w.eff.Hosts = append(w.eff.Hosts, use.Hosts...)
	}
	w.eff.Reads = append(w.eff.Reads, sc.Reads...)
	w.eff.Writes = append(w.eff.Writes, sc.Writes...)
	if hadFolder != w.eff.Unreadable || j.more || w.remote || st.voided || slices.ContainsFunc(sc.Vars, steering) || len(w.funcs[name]) > 0 {
		sc.Kind = agent.CommandOther
	}
	if sc.Kind == agent.CommandReads && name == "git" && w.Repository != nil && slices.ContainsFunc(st.dirs, func(dir string) bool {
		return w.runsPrograms(dir)
	}) {
		sc.Kind = agent.CommandOther
	}
	if st.dirs == nil && sc.Kind == agent.CommandOther && !(j.shell && w.owns(name)) && w.home != "" {
		w.unreadable("in which folder " + name + " runs")
	}
	if name[strings.LastIndexByte(name, '/')+1:] == "env" && splits(j.list[1:]) {
		w.unreadable("what env -S makes of its words")
	}
	w.executes(j, use)
	return use
}

// runsPrograms asks about the repository of a folder, once for several commands.
func (w *walker) runsPrograms(dir string) bool {
	if w.asked != dir {
		w.asked, w.answer = dir, w.Repository(filepath.FromSlash(dir))
	}
	return w.answer
}

// printed is the words of a command. Those that it does nothing with but print
// them may as well become several.
func (j *job) printed() []programs.Word {
	from := len(j.list)
	switch j.list[0].Text {
	case "echo", ":", "true", "false":
		from = 1
	case "printf":
		if from > 1 && j.list[1].Known && !strings.HasPrefix(j.list[1].Text, "-") {
			from = 2
		}
	}
	list := j.list
	for i := from; i < len(list); i++ {
		if !list[i].Known && !list[i].One {
			list = slices.Clone(list)
			for k := i; k < len(list); k++ {
				list[k].One = !list[k].Known
			}
			break
		}
	}
	return list
}

// splits says whether env is told to take words apart.
func splits(args []programs.Word) bool {
	for _, a := range args {
		switch {
		case strings.HasPrefix(a.Text, "--s"):
			return true
		case strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--"):
			if strings.Contains(a.Text, "S") {
				return true
			}
		}
	}
	return false
}

// tame says whether the only unknown words are numbers, which a program takes for
// processes or times.
func (j *job) tame(name string) bool {
	switch name {
	case "kill", "wait", "sleep", "seq", "exit", "return", "shift":
	default:
		return false
	}
	for i, a := range j.list {
		if !a.Known && j.mark(i)&numeric == 0 {
			return false
		}
	}
	return true
}

// unknown says whether nothing is known of a program.
func unknown(u programs.Use) bool {
	return u.Kind == "" && u.Flagged == "" && !u.Transparent && len(u.Reads)+len(u.Writes)+len(u.Hosts)+len(u.Runs)+len(u.Scripts) == 0
}

func (w *walker) touchAll(st *state, to, paths []string) []string {
	for _, p := range paths {
		to = w.touch(st, to, p)
	}
	return once(to)
}

// callFunctions follows a call of a function, whichever definition is meant. What
// the bodies have is listed beside the call, so that no rule for a program of that
// name covers it.
func (w *walker) callFunctions(st *state, fns []function, j job) *state {
	if len(fns) > maxDefinitions { // what they have is listed once, as of functions that nothing calls
		w.unreadable("which of many functions " + j.list[0].Text + " is")
		return st.nowhere()
	}
	var end *state
	in := st
	for _, a := range j.prefix {
		in = w.assign(in, a.name, a.text, a.value, true)
	}
	in = in.with(func(c *state) { c.args, c.argsKnown = j.list[1:], true })
	if j.more || !j.shell {
		in = in.with(func(c *state) { c.args, c.argsKnown = nil, false })
	}
	for _, f := range fns {
		if j.shell {
			end = merge(end, w.follow(in, j.list[0].Text, f))
		} else {
			w.apart(func() { w.follow(in, j.list[0].Text, f) })
		}
	}
	if end == nil {
		return nil
	}
	return end.with(func(c *state) { c.args, c.argsKnown = st.args, st.argsKnown })
}
