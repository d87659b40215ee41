package shell

import (
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/safety/shell/programs"
)

// maxHints is how often a text is found in a text that is looked through.
const maxHints = 3

// upstream is what a pipe has before its last command, as far as it may tell what
// that reads.
type upstream struct {
	commands []agent.SimpleCommand
	told     []string
}

func (u upstream) and(commands []agent.SimpleCommand, told []string) upstream {
	if len(commands) == 0 && len(told) == 0 {
		return u
	}
	return upstream{commands, told}
}

// text is what the commands of a pipe print and are told, a line each. It is no
// more than a guess.
func (u upstream) text() string {
	var b strings.Builder
	for i := range u.commands {
		argv := u.commands[i].Argv
		switch argv[0] {
		case "echo":
			args := argv[1:]
			for len(args) > 0 && strings.HasPrefix(args[0], "-") {
				args = args[1:]
			}
			b.WriteString(strings.Join(args, " ") + "\n")
		case "printf":
			for _, a := range argv[1:] {
				b.WriteString(strings.TrimLeft(a, "%sbq- ") + "\n")
			}
		}
	}
	for _, t := range u.told {
		b.WriteString(t + "\n")
	}
	return b.String()
}

// inputs looks at what a program reads as its input, when that is a program to it.
func (w *walker) inputs(st *state, j job, use programs.Use, sc *agent.SimpleCommand) {
	name := j.list[0].Text
	runs := interpreter(name) && len(use.Scripts) == 0 && !scripted(j.list)
	switch {
	case len(w.streamed) > 0 && interpreter(name) && j.streams():
		w.overheard(name, upstream{commands: w.streamed}.text(), sc)
	case j.in != nil && j.in.input:
		if runs {
			w.input(st, j, sc)
		} else if use.Talks {
			w.overheard(name, j.in.script, sc)
		}
	case w.piped && (runs || use.Talks):
		if text := w.upstream.text(); text != "" {
			w.overheard(name, text, sc)
		}
	}
}

// streams says whether an argument is a substitution like <(…).
func (j *job) streams() bool {
	return slices.ContainsFunc(j.marks, func(m wordMark) bool { return m&(pipeIn|pipeOut) != 0 })
}

// overheard lists what may be commands in the input of a program. They serve rules
// that forbid something.
func (w *walker) overheard(name, text string, sc *agent.SimpleCommand) {
	if text == "" {
		return
	}
	base := name[strings.LastIndexByte(name, '/')+1:]
	line := shellLike(base)
	switch base {
	case "ssh", "make", "gmake":
		line = true
	case "crontab":
		line = true
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			lines[i] = strings.TrimLeft(l, "*/,-0123456789 \t")
		}
		text = strings.Join(lines, "\n")
	}
	w.hinted([]programs.Hint{{Text: text, Line: line}}, sc)
}

// shellLike says whether a program reads command lines of a shell that is read
// here.
func shellLike(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	switch name {
	case "at", "batch", "source", ".":
		return true
	}
	return dialectOf(name) != dialectOther
}

// hinted lists what looks like a command in texts in other languages.
func (w *walker) hinted(hints []programs.Hint, sc *agent.SimpleCommand) {
	if len(hints) == 0 {
		return
	}
	known := w.eff.Unreadable
	done := true
	w.hints++
	w.into(&sc.Runs, func() {
		for _, h := range hints {
			if w.hints > maxHints {
				done = false
				return
			}
			if h.Line {
				w.glimpse(h.Text)
			}
			done = h.Seek(w.glimpse, w.guess) && done
		}
	})
	w.hints--
	w.eff.Unreadable = known
	if !done {
		w.unreadable("what a text for " + sc.Argv[0] + " runs")
	}
}

// guess lists the words of what may be a command.
func (w *walker) guess(words []string) {
	argv := argv{list: make([]programs.Word, len(words))}
	for i, text := range words {
		argv.list[i] = programs.Word{Text: text, Known: true}
	}
	w.glimpsed(argv)
}

// primes lists what variables name for programs to run, with the command that
// sees them first.
func (w *walker) primes(sc *agent.SimpleCommand) {
	hints := make([]programs.Hint, len(w.primed))
	for i, text := range w.primed {
		hints[i] = programs.Hint{Text: strings.TrimLeft(text, "|-!"), Line: true}
	}
	w.primed = nil
	w.hinted(hints, sc)
}

// namesProgram says whether a variable has the command line of a program that
// others run.
func namesProgram(name string) bool {
	switch name {
	case "LESSOPEN", "LESSCLOSE", "BROWSER", "VISUAL", "MAKEFLAGS", "GNUMAKEFLAGS", "CC", "CXX", "LD", "AR", "GIT_SSH", "VIMINIT", "EXINIT",
		"GIT_EXTERNAL_DIFF", "FZF_DEFAULT_OPTS", "SHELL", "RUSTC_WRAPPER", "GIT_CONFIG_PARAMETERS", "TAR_OPTIONS", "PERL5DB", "PERL5OPT":
		return true
	}
	for _, end := range [...]string{"PAGER", "EDITOR", "COMMAND", "ASKPASS", "_RSH"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
}
