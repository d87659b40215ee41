package programs

import (
	"slices"
	"strings"
)

// joined is words as one command line, the way that eval and ssh put them.
func joined(words []Word) Word {
	if len(words) == 1 {
		return words[0]
	}
	var b strings.Builder
	all := Word{Known: true}
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.Text)
		all.Known = all.Known && w.Known
	}
	all.Text = b.String()
	return all
}

// scripts notes words that a shell reads as one command line.
func (r *reading) scripts(words []Word) {
	if len(words) == 0 {
		return
	}
	w := joined(words)
	r.known(w)
	r.use.Scripts = append(r.use.Scripts, w)
}

// readShell reads sh and the like. With -c, or +c, which means the same, the first
// operand is a command line; else it is a script. One that talks to a person reads what
// that person has it do at the start, and writes down what it is told.
func readShell(r *reading) {
	if _, ok := r.has("-i", "+i", "--interactive"); ok {
		r.flag("interactive")
	}
	if _, ok := r.has("-c", "+c", "--command"); ok {
		r.flag("inline code")
		r.alone = true
		if len(r.operands) > 0 {
			r.scripts(r.operands[:1])
			for _, w := range r.operands[1:] {
				r.harmless(w)
			}
		}
		return
	}
	if _, ok := r.has("-s", "+s"); ok {
		r.flag("commands from its input")
		return
	}
	r.script()
}

func readEval(r *reading) {
	if len(r.operands) == 0 {
		return
	}
	r.flag("inline code")
	r.scripts(r.operands)
}

// readTrap reads what is run when a signal comes.
func readTrap(r *reading) {
	args := r.operands
	if len(args) > 0 && args[0].Known && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) < 2 || args[0].Known && (args[0].Text == "-" || args[0].Text == "" || args[0].Text == "-p" || args[0].Text == "-l") {
		if len(args) == 1 {
			r.known(args[0])
		}
		return
	}
	r.flag("inline code")
	r.scripts(args[:1])
}

func readCommand(r *reading) {
	if _, ok := r.has("-v", "-V"); ok {
		r.use.Transparent = false
		return
	}
	r.runs(r.operands)
}

// readPrintf flags -v, which sets a variable, and its subscript is evaluated.
func readPrintf(r *reading) {
	if len(r.operands) == 0 {
		return
	}
	first := r.operands[0]
	if strings.HasPrefix(first.Text, "-v") {
		r.flag("-v")
	}
	if !first.Known && r.maybeFlag(first) {
		r.unreadable(first)
	}
}

// readTest flags what evaluates a subscript, and with it what stands in that.
func readTest(r *reading) {
	args := r.operands
	if n := len(args); n > 0 && args[n-1].Text == "]" {
		args = args[:n-1]
	}
	numbers, subscript := false, false
	for _, w := range args {
		switch w.Text {
		case "-v", "-R":
			r.flag(w.Text)
		case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
			numbers = true
		default:
			subscript = subscript || strings.Contains(w.Text, "[")
		}
	}
	if numbers && subscript {
		r.flag("a subscript")
	}
	if len(args) == 2 && !args[0].Known {
		r.unreadable(args[0])
	}
}

// readEnv reads variables and then a command.
func readEnv(r *reading) {
	args := r.operands
	for len(args) > 0 {
		w := args[0]
		if w.Known && w.Text == "-" { // as -i
			args = args[1:]
			continue
		}
		name, _, ok := strings.Cut(w.Text, "=")
		if !ok || !w.Known && strings.ContainsAny(name, "$`\"'") {
			break
		}
		if Steers(name, Line) {
			r.flag(name + "=")
		}
		r.harmless(w)
		args = args[1:]
	}
	r.runs(args)
}

// readXargs is transparent without flags. What it runs gets arguments that nobody
// knows.
func readXargs(r *reading) {
	r.use.More = true
	if len(r.seen) > 0 {
		r.use.Transparent = false
	}
	if len(r.operands) == 0 {
		r.runs([]Word{{Text: "echo", Known: true}})
		return
	}
	hole, ok := r.has("-I", "-J", "-i", "--replace")
	if !ok {
		r.runs(r.operands)
		return
	}
	if hole.Text == "" {
		hole.Text = "{}"
	}
	argv := slices.Clone(r.operands)
	for i, w := range argv {
		if strings.Contains(w.Text, hole.Text) {
			argv[i] = Word{Text: w.Text, One: true}
		}
	}
	r.runs(argv)
}

// readSu reads su and runuser: with -u what follows is a command.
func readSu(r *reading) {
	if _, ok := r.has("-u", "--user"); ok {
		r.runs(r.operands)
		return
	}
	for _, w := range r.operands {
		r.harmless(w)
	}
}

// readFlock reads a file to lock, and a command or -c with a command line.
func readFlock(r *reading) {
	r.flag("runs a command")
	if len(r.operands) == 0 {
		return
	}
	file, rest := r.operands[0], r.operands[1:]
	if strings.Trim(file.Text, "0123456789") != "" || !file.Known {
		r.writes(file)
	}
	if len(rest) > 1 && (rest[0].Text == "-c" || rest[0].Text == "--command") {
		r.scripts(rest[1:2])
		return
	}
	r.runs(rest)
}

// readWatch has a shell read its operands, unless -x is given.
func readWatch(r *reading) {
	r.flag("runs a command")
	if _, ok := r.has("-x", "--exec"); ok {
		r.runs(r.operands)
		return
	}
	r.scripts(r.operands)
}

// readParallel has a shell read its operands up to :::, with an argument added.
func readParallel(r *reading) {
	r.flag("runs a command")
	r.use.More = true
	end := 0
	for end < len(r.operands) && !strings.HasPrefix(r.operands[end].Text, ":::") {
		end++
	}
	if end == 0 {
		r.use.Unreadable = "what parallel runs, which comes from its input"
		return
	}
	script := joined(r.operands[:end])
	script.Known = script.Known && !strings.Contains(script.Text, "{") // where the argument goes
	r.scripts([]Word{script})
	if end < len(r.operands) && strings.HasPrefix(r.operands[end].Text, "::::") {
		for _, w := range r.operands[end+1:] {
			r.reads(w)
		}
	}
}

// readScript reads script: a file to write and, on some systems, a command.
func readScript(r *reading) {
	if len(r.operands) == 0 {
		return
	}
	r.writes(r.operands[0])
	r.runs(r.operands[1:])
}

// readPlus reads editors and pagers, where +X is a command of theirs.
func readPlus(r *reading) {
	for _, w := range r.operands {
		if !strings.HasPrefix(w.Text, "+") {
			if len(r.g.operands) > 0 {
				r.role(r.g.operands[0], "", w)
			}
			continue
		}
		r.harmless(w)
		if strings.Trim(w.Text[1:], "0123456789,:") != "" && w.Text != "+G" && w.Text != "+F" {
			r.flag("+")
			r.hint(w.Text[1:], false)
			if len(w.Text) > 3 && w.Text[1] == '|' { // less: a mark, and a command
				r.hint(w.Text[3:], true)
			}
			if i := strings.IndexByte(w.Text, '!'); i >= 0 {
				r.role(roleRun, "", Word{Text: w.Text[i+1:], Known: w.Known, One: w.One})
			}
		}
	}
}

// toolVariables name programs that the built-in rules of make run.
var toolVariables = []string{"AR", "AS", "LD", "CPP", "FC", "PC", "LEX", "YACC", "LINT", "RM", "GET", "CO", "TEX", "NM", "RANLIB", "STRIP", "GO", "PYTHON", "NODE", "NPM", "GNUMAKEFLAGS"}

// readMake reads targets and variables, of which some name programs.
func readMake(r *reading) {
	for _, w := range r.operands {
		r.harmless(w)
		name, value, ok := strings.Cut(w.Text, "=")
		if !ok {
			continue
		}
		if strings.HasSuffix(name, "!") { // its value is what this command prints
			r.flag(name + "=")
			r.role(roleRun, "", Word{Text: value, Known: w.Known, One: w.One})
		}
		name = strings.TrimRight(name, " \t:?+!")
		if slices.Contains(toolVariables, name) {
			r.flag(name + "=")
		}
		if name == "SHELL" || name == ".SHELLFLAGS" || strings.HasPrefix(name, "MAKE") || Steers(name, Line) || strings.ContainsAny(value, "`$") {
			r.flag(name + "=")
			r.suspect(value)
		}
		if name == "SHELL" {
			r.role(roleRun, "", Word{Text: value, Known: w.Known, One: w.One})
		}
	}
}

// readDockerRun reads an image and a command in it. Folders of ours that it sees
// are read and written.
func readDockerRun(r *reading) {
	for _, s := range r.seen {
		source := ""
		switch s.name {
		case "-v", "--volume":
			source, _, _ = strings.Cut(s.value.Text, ":")
		case "--mount":
			for _, f := range strings.Split(s.value.Text, ",") {
				key, value, _ := strings.Cut(f, "=")
				if key == "source" || key == "src" {
					source = value
				}
			}
		default:
			continue
		}
		if !r.known(s.value) || !strings.ContainsAny(source, "/.~") {
			continue
		}
		r.use.Reads = append(r.use.Reads, source)
		r.use.Writes = append(r.use.Writes, source)
	}
	if len(r.operands) > 1 {
		r.harmless(r.operands[0])
		r.runs(r.operands[1:])
	}
	if entry, ok := r.has("--entrypoint"); ok {
		r.runs(append([]Word{entry}, r.operands[min(1, len(r.operands)):]...))
	}
}

// readRest reads a wrapper whose flags are not told apart from their arguments:
// the command may begin at any of the first operands.
func readRest(r *reading) {
	for i := range min(len(r.operands), 3) {
		r.runs(r.operands[i:])
	}
}

// readTerminal reads a command as tmux and screen take it: one word is a command
// line, several are a program with its arguments.
func readTerminal(r *reading) {
	if len(r.operands) == 1 {
		r.scripts(r.operands)
		return
	}
	r.runs(r.operands)
}

func readMise(r *reading) {
	for _, w := range r.operands {
		r.harmless(w)
	}
}

// readDeclare reads builtins that set variables. A subscript is evaluated, and
// with it what stands in that.
func readDeclare(r *reading) {
	for _, w := range r.operands {
		name, _, assigns := strings.Cut(w.Text, "=")
		if strings.Contains(name, "[") {
			r.flag("a subscript")
		}
		if !w.Known && !(assigns && isName(strings.TrimSuffix(name, "+"))) {
			r.unreadable(w)
		}
	}
}

// readPython reads a script. A module runs by its name, as pip and pytest do.
func readPython(r *reading) {
	if module, ok := r.has("-m"); ok {
		r.runs(append([]Word{module}, r.operands...))
		return
	}
	r.script()
}

// script reads a file that is run, with its arguments.
func (r *reading) script() {
	for i, w := range r.operands {
		if i == 0 {
			r.reads(w)
			continue
		}
		r.harmless(w)
	}
}

// readStrace reads a command, and an output that may be a pipe to another.
func readStrace(r *reading) {
	if out, ok := r.has("-o", "--output"); ok && out.Text != "" && strings.IndexByte("|!", out.Text[0]) >= 0 {
		r.role(roleRun, "", Word{Text: out.Text[1:], Known: out.Known, One: out.One})
	}
	r.runs(r.operands)
}

// readInnerCopy reads a copy from or to a container, whose paths begin with its
// name and a colon.
func readInnerCopy(r *reading) {
	for i, w := range r.operands {
		if _, inner := remoteHost(w.Text); inner && w.Known {
			continue
		}
		if i == 0 {
			r.reads(w)
			continue
		}
		r.writes(w)
	}
}

// readKubectlExec reads a pod, and a command when it stands without dashes.
func readKubectlExec(r *reading) {
	for _, w := range r.operands {
		r.harmless(w)
	}
	if len(r.after) == 0 && len(r.operands) > 1 {
		r.runs(r.operands[1:])
	}
}

// readGofmt reads sources, and writes them with -w.
func readGofmt(r *reading) {
	_, writes := r.has("-w")
	for _, w := range r.operands {
		r.reads(w)
		if writes {
			r.writes(w)
		}
	}
}
