package shell

import (
	"strings"

	"dure/agent"
	"dure/internal/safety/shell/programs"
)

// owns says whether a name is a builtin whose arguments are judged here.
func (w *walker) owns(name string) bool {
	switch name {
	case "cd", "chdir", "pushd", "popd", "dirs", "export", "readonly", "declare", "typeset", "local", "integer", "float", "nameref",
		"read", "mapfile", "readarray", "getopts", "let", "unset", "wait", "set", "shopt", "setopt", "unsetopt", "emulate",
		"alias", "unalias", "enable", "disable", "hash", "rehash", "exit", "logout", "return", "break", "continue", "shift", "bind", "complete",
		"compgen", "compopt", "fc", "history", "zmodload", "autoload", "zle", "functions", "vared", "sched", "coproc":
		return true
	}
	return false
}

// keepsFiles says whether a name is a builtin that changes the shell alone.
func keepsFiles(name string) bool {
	switch name {
	case "cd", "pushd", "popd", "export", "readonly", "declare", "typeset", "local", "read", "mapfile", "readarray", "getopts", "let",
		"unset", "wait", "set", "shopt", "exit", "return", "break", "continue", "shift", "trap", "umask", "ulimit", "dirs":
		return true
	}
	return false
}

// steersOnly says whether a builtin does nothing but lead through the text: none
// of these can change what a later name means, or what a program sees.
func (w *walker) steersOnly(name string, j job) bool {
	if len(j.vars) > 0 {
		return false
	}
	switch name {
	case "exit", "return", "break", "continue", "shift", "wait":
		return true
	case "exec":
		return len(j.list) == 1
	case "set":
		for _, a := range j.list[1:] {
			if !a.Known || strings.HasPrefix(a.Text, "-") && strings.ContainsAny(strings.TrimPrefix(a.Text, "-o"), "akf") {
				return false
			}
		}
		return true
	case "read", "local":
		for _, a := range j.list[1:] {
			if key, _, _ := strings.Cut(a.Text, "="); !strings.HasPrefix(key, "-") && exportable(key) {
				return false
			}
		}
		return len(j.list) > 1
	}
	return false
}

// builtin follows what a builtin does to the shell.
func (w *walker) builtin(st *state, name string, j job, sc *agent.SimpleCommand) outcome {
	args := j.after(1)
	switch name {
	case "cd", "chdir":
		if len(j.prefix) > 0 {
			w.unreadable("which folder cd enters")
		}
		return w.cd(st, args)
	case "pushd":
		w.differs("pushd")
		return w.pushd(st, args)
	case "popd":
		w.differs("popd")
		return w.popd(st, args)
	case "export", "readonly", "declare", "typeset", "local", "integer", "float", "nameref":
		if name == "declare" || name == "typeset" || name == "nameref" {
			w.differs(name)
		}
		return both(w.declareVars(st, name, args))
	case "read", "mapfile", "readarray", "getopts", "unset", "wait":
		return both(w.namesVars(st, name, args))
	case "printf":
		return both(w.printfVar(st, args))
	case "let":
		return both(w.let(st, args))
	case "test", "[":
		w.testArgs(args)
	case "set":
		return both(w.set(st, args))
	case "shopt", "setopt", "unsetopt":
		return both(w.shopt(st, args))
	case "shift":
		return both(w.shift(st, args))
	case "alias":
		w.alias(st, args, sc)
	case "eval":
		return w.eval(st, j, args, sc)
	case "trap":
		w.trap(st, args, sc)
	case "source", ".":
		w.notes(func(f *frame) { f.modes = true })
		return both(w.sourced(st))
	case "command", "builtin":
		return w.commandOf(st, j, sc)
	case "exec":
		if j.in != nil && len(args.list) == 0 {
			j.in.lasting = w.piped || j.in.input
		}
	case "exit", "logout":
		if len(args.list) == 0 && j.in == nil || len(args.list) == 1 && j.in == nil && (isNumber(args.list[0].Text) || args.mark(0)&numeric != 0) {
			return outcome{}
		}
	case "return", "break", "continue":
		w.notes(func(f *frame) { f.jumped = true })
	default:
		w.odd(name, args)
	}
	return both(st)
}

func (w *walker) notes(f func(*frame)) {
	if w.frame != nil {
		f(w.frame)
	}
}

// odd notes builtins that change what names mean, or run what they are given.
func (w *walker) odd(name string, args argv) {
	switch name {
	case "enable", "disable", "hash", "unalias", "emulate", "zmodload", "autoload", "functions", "zle", "vared", "sched",
		"bind", "complete", "compgen", "compopt", "fc", "history":
		for _, a := range args.list {
			if !a.Known || a.Text != "-r" && a.Text != "-l" && a.Text != "-a" || name != "hash" && name != "history" && name != "unalias" {
				w.unreadable("what " + name + " changes or runs")
			}
		}
	case "repeat", "foreach", "nocorrect", "noglob", "-", "always", "end":
		if w.dialect == dialectZsh {
			w.unreadable("what " + name + " runs")
		}
	}
}

// cd follows a change of folder, which may fail.
func (w *walker) cd(st *state, args argv) outcome {
	rest := args.list
	for len(rest) > 0 && rest[0].Known && len(rest[0].Text) > 1 && strings.Trim(rest[0].Text[1:], "PLe@") == "" && rest[0].Text[0] == '-' {
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0].Known && rest[0].Text == "--" {
		rest = rest[1:]
	}
	var to []string
	switch {
	case len(rest) > 1 || len(rest) == 1 && !rest[0].Known:
	case len(rest) == 0:
		if home := w.valueOf(st, "HOME"); home.kind == literal && rooted(home.text) {
			to = st.under(home.text)
		}
	case rest[0].Text == "-":
		to = st.old
	case strings.HasPrefix(rest[0].Text, "-") || strings.HasPrefix(rest[0].Text, "+") && w.dialect == dialectZsh:
	case w.searched(st, rest[0].Text):
	default:
		to = st.under(rest[0].Text)
	}
	if to == nil {
		w.unreadable("which folder cd enters")
	}
	if len(to) == 1 && w.Folder != nil && !w.dirty && w.Folder(to[0]) {
		return outcome{ok: w.enter(st, to)}
	}
	return outcome{w.enter(st, to), st}
}

// searched says whether cd may look for a folder in CDPATH.
func (w *walker) searched(st *state, p string) bool {
	if rooted(p) || p == "." || p == ".." || strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../") {
		return false
	}
	if st.lookup("CDPATH") != nil || st.lookup("cdpath") != nil {
		return true
	}
	for _, t := range st.taint {
		if strings.HasPrefix(t, "CDPATH=") {
			return true
		}
	}
	return false
}

func (w *walker) pushd(st *state, args argv) outcome {
	if len(args.list) == 1 && args.list[0].Known && !strings.HasPrefix(args.list[0].Text, "+") && !strings.HasPrefix(args.list[0].Text, "-") {
		o := w.cd(st, args)
		o.ok = o.ok.with(func(c *state) { c.stack = append(st.stack[:len(st.stack):len(st.stack)], st.dirs) })
		return o
	}
	w.unreadable("which folder pushd enters")
	return outcome{w.enter(st, nil).with(func(c *state) { c.lost = true }), st}
}

func (w *walker) popd(st *state, args argv) outcome {
	if n := len(st.stack); n > 0 && !st.lost && len(args.list) == 0 && st.stack[n-1] != nil {
		return outcome{w.enter(st, st.stack[n-1]).with(func(c *state) { c.stack = st.stack[:n-1] }), st}
	}
	if len(st.stack) == 0 && !st.lost && len(args.list) == 0 {
		return outcome{nil, st} // it fails
	}
	w.unreadable("which folder popd enters")
	return outcome{w.enter(st, nil).with(func(c *state) { c.lost = true }), st}
}

// testArgs follows test, which looks at a variable by its name with -v.
func (w *walker) testArgs(args argv) {
	for i, a := range args.list {
		if i+1 < len(args.list) && a.Known && (a.Text == "-v" || a.Text == "-R") {
			w.variable(args.list[i+1].Text, args.list[i+1].Known)
		}
		if !a.Known && args.mark(i)&(numeric|inherits) == 0 && (!a.One || !w.operates(args, i+1)) {
			w.unreadable("what " + a.Text + " makes of the test")
		}
		numbers := a.Known && len(a.Text) == 3 && strings.Contains(" -eq -ne -lt -le -gt -ge ", " "+a.Text+" ")
		if numbers && w.dialect != dialectBash && i > 0 && i+1 < len(args.list) {
			for _, k := range []int{i - 1, i + 1} {
				if x := args.list[k]; !x.Known && args.mark(k)&(numeric|inherits) == 0 || x.Known && strings.ContainsAny(x.Text, "[$`") {
					w.unreadable("what " + x.Text + " is in an expression")
				}
			}
		}
	}
}

// operates says whether a word of test ends an operand: it is an operator, or there
// is none.
func (w *walker) operates(args argv, i int) bool {
	if i >= len(args.list) {
		return true
	}
	switch a := args.list[i]; a.Text {
	case "]", ")", "=", "==", "!=", "<", ">", "-a", "-o", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return a.Known
	}
	return false
}

// alias follows a definition of an alias, which changes the words after it before
// they are parsed.
func (w *walker) alias(st *state, args argv, sc *agent.SimpleCommand) {
	for _, a := range args.list {
		name, text, ok := strings.Cut(a.Text, "=")
		if !ok && a.Known {
			continue
		}
		w.unreadable("what " + name + " means after alias")
		if ok && a.Known {
			w.into(&sc.Runs, func() {
				w.apart(func() { w.script(st.nowhere(), text, w.dialect, nil) })
			})
		}
	}
}

// eval follows its arguments as a command line of this shell.
func (w *walker) eval(st *state, j job, args argv, sc *agent.SimpleCommand) (out outcome) {
	out = both(st)
	rest := args.list
	if len(rest) > 0 && rest[0].Text == "--" {
		rest = rest[1:]
	}
	text, known := joined(rest)
	w.into(&sc.Runs, func() {
		if !known {
			w.unreadable("what eval runs")
			w.glimpse(text)
			return
		}
		in := st
		for _, a := range j.prefix {
			in = w.assign(in, a.name, a.text, a.value, true)
		}
		out = w.script(in, text, w.dialect, nil)
	})
	return out
}

func joined(words []programs.Word) (text string, known bool) {
	known = true
	texts := make([]string, len(words))
	for i, a := range words {
		texts[i], known = a.Text, known && a.Known
	}
	return strings.Join(texts, " "), known
}

// trap follows a command line that runs at some later time.
func (w *walker) trap(st *state, args argv, sc *agent.SimpleCommand) {
	rest := args.list
	if len(rest) > 0 && rest[0].Text == "--" {
		rest = rest[1:]
	}
	if len(rest) < 2 {
		return
	}
	w.into(&sc.Runs, func() {
		switch {
		case !rest[0].Known:
			w.unreadable("what trap runs")
			w.glimpse(rest[0].Text)
		case rest[0].Text != "-" && rest[0].Text != "" && !strings.HasPrefix(rest[0].Text, "-"):
			f := &frame{}
			parent := w.frame
			w.frame = f
			w.script(st.nowhere(), rest[0].Text, w.dialect, nil)
			w.frame = parent
			if len(f.sets) > 0 || len(f.taint) > 0 || f.dirs || f.modes { // at any time from now on
				w.unreadable("what trap changes in the shell")
			}
		}
	})
}

// sourced is the shell after a file that can do anything to it. What such a file
// does it could do by itself, but names are not what they were.
func (w *walker) sourced(st *state) *state {
	return st.with(func(c *state) {
		c.vars = &binding{value: value{kind: anybody}, fixed: true}
		if home := st.lookup("HOME"); home == nil {
			c.vars = &binding{name: "HOME", value: w.valueOf(st, "HOME"), next: c.vars}
		}
		c.voided, c.noGlob, c.noSplit = true, true, true
		c.args, c.argsKnown = nil, false
	})
}

// commandOf follows command and builtin, which pass over functions.
func (w *walker) commandOf(st *state, j job, sc *agent.SimpleCommand) outcome {
	rest := j.after(1)
	for len(rest.list) > 0 && rest.list[0].Known && (rest.list[0].Text == "--" || rest.list[0].Text == "-p") {
		rest = rest.after(1)
	}
	if len(rest.list) == 0 || rest.list[0].Known && strings.HasPrefix(rest.list[0].Text, "-") {
		return both(st)
	}
	out := both(st)
	w.into(&sc.Runs, func() {
		out = w.run(st, job{argv: rest, vars: j.vars, in: j.in, shell: true, direct: true, more: j.more})
	})
	return out
}
