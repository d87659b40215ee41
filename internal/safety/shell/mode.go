package shell

import (
	"strings"
)

// set follows set: modes that change nothing here, those that do, and parameters.
func (w *walker) set(st *state, args argv) *state {
	for i := 0; i < len(args.list); i++ {
		a := args.list[i]
		switch {
		case !a.Known && i == 0 && !a.One, !a.Known && a.One && i == 0:
			w.unreadable("what set changes")
			return st.with(func(c *state) { c.argsKnown = false })
		case a.Text == "--" || a.Text == "-" || !strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "+"):
			rest := args.list[i:]
			if a.Text == "--" || a.Text == "-" {
				rest = rest[1:]
			}
			w.notes(func(f *frame) { f.modes = true })
			return st.with(func(c *state) { c.args, c.argsKnown = rest, true })
		case a.Text == "-o" || a.Text == "+o":
			if i++; i < len(args.list) {
				st = w.mode(st, args.list[i].Text, a.Text == "-o")
			}
		default:
			for k, c := range a.Text[1:] {
				if c == 'o' && k == len(a.Text)-2 {
					if i++; i < len(args.list) {
						st = w.mode(st, args.list[i].Text, a.Text[0] == '-')
					}
					continue
				}
				st = w.letter(st, c)
			}
		}
	}
	return st
}

func (w *walker) letter(st *state, c rune) *state {
	switch c {
	case 'e', 'u', 'x', 'v', 'h', 'm', 'b', 'C', 'E', 'T', 'B', 'H', 'p':
		return st
	case 'f':
		return w.mode(st, "noglob", true)
	case 'a':
		return w.mode(st, "allexport", true)
	}
	return w.mode(st, string(c), true)
}

// mode follows a mode of the shell that is switched on or off.
func (w *walker) mode(st *state, name string, on bool) *state {
	switch strings.ToLower(strings.ReplaceAll(name, "_", "")) {
	case "errexit", "nounset", "pipefail", "xtrace", "verbose", "noclobber", "errtrace", "functrace", "monitor", "notify", "hashall", "braceexpand",
		"histexpand", "history", "emacs", "vi", "interactivecomments", "inheriterrexit", "checkwinsize", "cmdhist", "histappend", "failglob", "promptvars":
		return st
	case "noglob", "nullglob", "globstar", "dotglob", "nocaseglob", "globasciiranges", "nomatch":
		w.notes(func(f *frame) { f.modes = true })
		return st.with(func(c *state) { c.noGlob = true })
	case "allexport":
		w.notes(func(f *frame) { f.modes = true })
		return st.with(func(c *state) { c.exporting = c.exporting || on })
	}
	w.unreadable("how the shell reads what follows: " + name)
	return st
}

func (w *walker) shopt(st *state, args argv) *state {
	for _, a := range args.list {
		if !a.Known {
			w.unreadable("what shopt changes")
		} else if !strings.HasPrefix(a.Text, "-") {
			st = w.mode(st, a.Text, true)
		}
	}
	return st
}

func (w *walker) shift(st *state, args argv) *state {
	w.notes(func(f *frame) { f.modes = true })
	n := 1
	if len(args.list) > 0 {
		n = -1
		if t := args.list[0].Text; len(t) == 1 && t[0] >= '0' && t[0] <= '9' {
			n = int(t[0] - '0')
		}
	}
	return st.with(func(c *state) {
		switch {
		case n < 0:
			c.args, c.argsKnown = nil, false
		case c.argsKnown && n <= len(c.args):
			c.args = c.args[n:]
		}
	})
}
