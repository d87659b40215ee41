package shell

import (
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/safety/shell/programs"
)

// interpreters run what they read from their input or from the file that they are
// given.
func interpreter(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if name == "." {
		return true
	}
	switch strings.TrimRight(name, ".0123456789") {
	case "sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "fish", "csh", "tcsh", "busybox", "pwsh", "python", "pypy", "perl", "ruby",
		"node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh", "Rscript", "R", "osascript", "at", "batch", "source":
		return true
	}
	return false
}

// executes notes that a program runs what nobody knows: what it is piped, or what
// a substitution gives it as a file.
func (w *walker) executes(j job, use programs.Use) {
	name := j.list[0].Text
	files := false
	for i, a := range j.list[1:] {
		if j.mark(i+1)&(pipeIn|pipeOut) != 0 || a.Text == "-" || device(a.Text) && a.Text != "/dev/null" {
			files = true
		}
	}
	streams := j.streams()
	switch {
	case !interpreter(name):
		if streams && unknown(programs.Look(programs.Call{Args: []programs.Word{j.list[0], {Text: "x", Known: true}}})) {
			w.unreadable("what " + name + " does with what it is given")
		}
	case files && len(use.Scripts) == 0:
		w.unreadable("what " + name + " runs: it is piped")
	case w.piped && len(use.Scripts) == 0 && !scripted(j.list) && !(j.in != nil && j.in.known) && !asksItself(j.list):
		w.unreadable("what " + name + " runs: it is piped")
	case j.more:
		w.unreadable("what " + name + " runs")
	}
}

// asksItself says whether an interpreter only tells about itself.
func asksItself(args []programs.Word) bool {
	return len(args) == 2 && (args[1].Text == "--version" || args[1].Text == "--help" || args[1].Text == "-V" || args[1].Text == "-v")
}

// wrapped follows what a program runs in turn.
func (w *walker) wrapped(st *state, j job, use programs.Use, sc *agent.SimpleCommand) {
	name := j.list[0].Text
	remote := w.remote
	w.remote = remote || use.Elsewhere
	defer func() { w.remote = remote }()
	at := st
	if !use.Transparent && (len(use.Runs) > 0 || len(use.Scripts) > 0) && moves(j.list) {
		at = st.with(func(c *state) { c.dirs, c.old = nil, nil })
	}
	if len(use.Runs)+len(use.Scripts) > 0 {
		for _, a := range j.list[1:] {
			if name, text, ok := strings.Cut(a.Text, "="); ok {
				w.evaluates(name, text)
			}
		}
	}
	inner := job{vars: j.vars, more: j.more || use.More}
	if !inner.more {
		inner.in = j.in // what it runs has the same input
	}
	inner.shell = j.shell && (name == "command" || name == "builtin")
	inner.direct = inner.shell
	if w.wraps++; w.wraps > maxWraps {
		w.unparsed("too many commands in it run each other")
		use.Runs, use.Scripts = nil, nil
	}
	defer func() { w.wraps-- }()
	for _, run := range use.Runs {
		if len(run) == 0 || inner.shell {
			continue // what command runs, builtin follows
		}
		w.into(&sc.Runs, func() {
			inner.argv = argv{list: run}
			if inner.more {
				w.opens(inner)
			}
			w.apart(func() { w.run(at, inner) })
		})
	}
	if j.shell && (name == "eval" || name == "trap") {
		return // these are the shell's own
	}
	w.inputs(at, j, use, sc)
	defer func() { inherit(sc, use) }()
	for _, s := range use.Scripts {
		w.into(&sc.Runs, func() {
			if !s.Known {
				w.glimpse(s.Text)
				return
			}
			w.started(at, s.Text, w.languageOf(name), j.vars)
		})
	}
	w.hinted(use.Hints, sc)
	if use.More && len(use.Scripts) > 0 {
		unkind(sc.Runs)
	}
}

// aPath is what a command is flagged with that has a path in place of its name.
const aPath = "a path in place of a name"

// inherit flags a program with what the programs are flagged with that it starts
// here: a rule for it is not one for those.
func inherit(sc *agent.SimpleCommand, use programs.Use) {
	if use.Elsewhere || use.Transparent || sc.Flagged != "" {
		return
	}
	for _, run := range sc.Runs {
		if run.Flagged != "" && run.Flagged != aPath {
			sc.Flagged = run.Flagged
			return
		}
	}
}

// unkind forgets what is known of commands that get more arguments.
func unkind(list []agent.SimpleCommand) {
	for i := range list {
		list[i].Kind = agent.CommandOther
		unkind(list[i].Runs)
	}
}

// moves says whether a wrapper may run its command in another folder.
func moves(args []programs.Word) bool {
	name := args[0].Text[strings.LastIndexByte(args[0].Text, '/')+1:]
	flags := []string{"-C", "--chdir", "--cwd", "--directory", "--prefix", "--working-directory", "--workdir", "--wd"}
	switch name {
	case "chroot", "nsenter", "unshare":
		return true
	case "sudo", "doas":
		flags = []string{"-D", "--chdir", "-i", "--login", "-R", "--chroot"}
	case "su", "runuser":
		flags = []string{"-", "-l", "--login"}
	case "find":
		flags = []string{"-execdir", "-okdir"}
	case "sh", "bash", "zsh", "dash", "eval", "trap", "xargs":
		return false
	}
	for _, a := range args[1:] {
		for _, flag := range flags {
			if a.Text == flag || len(a.Text) > len(flag) && a.Text[len(flag)] == '=' && strings.HasPrefix(a.Text, flag) || len(flag) == 2 && flag != "-i" && strings.HasPrefix(a.Text, flag) {
				return true
			}
		}
	}
	return false
}

// opens notes when arguments that nobody knows decide what a command runs.
func (w *walker) opens(j job) {
	list := append(slices.Clip(j.list), programs.Word{Text: "…"})
	use := programs.Look(programs.Call{Args: list})
	if len(use.Runs) > 0 || len(use.Scripts) > 0 || len(list) == 2 && interpreter(list[0].Text) {
		w.unreadable("what " + list[0].Text + " runs")
	}
}

// scripted says whether an interpreter is given the name of a script: without one,
// it runs what it reads.
func scripted(args []programs.Word) bool {
	name := args[0].Text[strings.LastIndexByte(args[0].Text, '/')+1:]
	python := strings.HasPrefix(name, "py")
	shell := dialectOf(name) != dialectOther
	if name == "at" || name == "batch" { // what stands there is a time
		return slices.ContainsFunc(args, func(a programs.Word) bool { return strings.HasPrefix(a.Text, "-f") })
	}
	for i := 1; i < len(args); i++ {
		t := args[i].Text
		switch {
		case t == "--":
			return i+1 < len(args)
		case len(t) < 2 || t[0] != '-' && t[0] != '+':
			return t != "-" && (!device(t) || t == "/dev/null")
		case python && strings.HasPrefix(t, "-m"):
			return true
		case shell && t[0] == '-' && t[1] != '-' && strings.Contains(t, "s"):
			return false
		case shell && t[1] != '-' && strings.HasSuffix(strings.ToLower(t), "o"), t == "--rcfile", t == "--init-file",
			python && (t == "-W" || t == "-X"), t == "-r", t == "--require", t == "--import":
			i++ // its value
		}
	}
	return false
}

// input follows a here-document that a shell or another interpreter reads.
func (w *walker) input(st *state, j job, sc *agent.SimpleCommand) {
	name := j.list[0].Text
	if !shellLike(name) {
		sc.Flagged = orWord(sc.Flagged, "inline code")
		w.overheard(name, j.in.script, sc)
		return
	}
	if !j.in.known {
		w.overheard(name, j.in.script, sc)
		return
	}
	sc.Flagged = orWord(sc.Flagged, "inline code")
	w.into(&sc.Runs, func() { w.started(st, j.in.script, w.languageOf(name), j.vars) })
}

// languageOf is the language of the command lines that a program has read.
func (w *walker) languageOf(name string) dialect {
	base := name[strings.LastIndexByte(name, '/')+1:]
	switch base {
	case "eval", "trap":
		return w.dialect
	}
	switch strings.TrimRight(base, "-.0123456789") {
	case "bash", "rbash":
		return dialectBash
	case "zsh":
		return dialectZsh
	case "fish", "csh", "tcsh", "nu", "elvish", "xonsh", "pwsh", "powershell", "rc", "es":
		return dialectOther
	}
	return dialectPOSIX
}

// child is what a shell that is started knows of this one.
func (st *state) child() *state {
	return st.with(func(c *state) {
		c.args, c.argsKnown = nil, false
		c.defs = nil
		if c.vars != nil {
			c.vars = &binding{value: value{kind: anybody}, fixed: true}
			if home := st.lookup("HOME"); home == nil {
				c.vars = &binding{name: "HOME", next: c.vars}
			}
		}
		c.noSplit, c.noGlob, c.exporting = st.noSplit, false, false
	})
}

// script follows a command line inside a command line.
func (w *walker) script(st *state, text string, d dialect, vars []string) outcome {
	if w.scripts++; w.scripts > maxScripts {
		w.unparsed("it has too many command lines inside each other")
		w.scripts--
		return both(st)
	}
	defer func() { w.scripts-- }()
	for _, v := range vars {
		st = w.tainted(st, v)
	}
	if fault := faultOf(text); fault != "" {
		w.unparsed("a command line in it: " + fault)
		text = visible(text)
	}
	if d == dialectOther {
		w.unreadable("what another shell makes of its command line")
		w.glimpse(text)
		return both(st)
	}
	saved := w.dialect
	w.dialect = d
	out := w.text(st, text)
	w.dialect = saved
	return out
}

// started follows a command line that a shell of its own reads.
func (w *walker) started(st *state, text string, d dialect, vars []string) {
	bodies := w.bodies
	w.bodies = 0
	w.apart(func() { w.script(st.child(), text, d, vars) })
	w.bodies = bodies
}
