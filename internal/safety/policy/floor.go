package policy

import (
	"path"
	"slices"
	"strings"

	"dure/agent"
)

// floor says why a call is put to the user whatever rules and hooks say, or "".
func (l *look) floor() string {
	e := &l.Effects
	switch {
	case e.Unparsed != "":
		return "it cannot be reviewed: " + e.Unparsed
	case e.User:
		return "the call needs the user's answer"
	case e.Transactional:
		return "the call is transactional: each one is approved on its own"
	}
	for i := range e.Commands {
		if why := l.critical(&e.Commands[i]); why != "" {
			return why
		}
	}
	for i := range l.all {
		if at := &l.all[i]; at.removed && l.s.vital(at) {
			return "it removes " + printable(at.path)
		}
	}
	if l.s.Mode != agent.ModeBypass {
		if at := l.protected(); at != "" {
			return printable(at) + " is a protected path"
		}
	}
	return ""
}

// protected returns a protected path that the call writes: as it is given, or as
// what it resolves to.
func (l *look) protected() string {
	for i := range l.all {
		at := &l.all[i]
		if at.write && !at.own && (isProtected(at.path) || at.given != at.path && isProtected(at.given) ||
			at.resolved != at.given && isProtected(at.resolved) || l.s.turns(at) || l.s.sets(at)) {
			return at.path
		}
	}
	for i := range l.Effects.Commands {
		if p := protectedOutput(&l.Effects.Commands[i]); p != "" {
			return p
		}
	}
	return ""
}

// sets reports whether a path is one at which settings of the user stand.
func (s *state) sets(at *place) bool {
	return slices.ContainsFunc(s.settings, func(kept string) bool {
		for _, p := range []string{at.given, at.resolved} {
			if rest, ok := strings.CutPrefix(p, kept); ok && (rest == "" || rest[0] == '/') {
				return true
			}
		}
		return false
	})
}

// turns reports whether a path turns the workspace itself into a repository of git,
// which then believes the settings beside it.
func (s *state) turns(at *place) bool {
	for _, p := range []string{at.given, at.resolved} {
		if strings.EqualFold(path.Base(p), "HEAD") && slices.Contains(s.whole, path.Dir(p)) {
			return true
		}
	}
	return false
}

// The ends of names of flags whose value is written, and what such a name has in it
// when it is about what is left alone.
var (
	outputFlags = []string{"out", "output", "dest", "destination", "target", "prefix", "report", "profile", "log", "logfile", "trace", "export", "dump", "dir", "directory", "report-file", "output-file", "log-file", "outfile", "outputfile"}
	otherFlags  = []string{"exclude", "ignore", "skip", "include", "filter", "config", "input"}
)

// protectedOutput returns a protected path that a flag of a command names, where the
// flag is called as those are that say where to write. It is for programs of which
// that is not known.
func protectedOutput(c *agent.SimpleCommand) string {
	for i, word := range c.Argv {
		if c.Kind != agent.CommandOther || i == 0 || len(word) < 3 || word[0] != '-' {
			continue
		}
		name, value, joined := strings.Cut(strings.ToLower(word), "=")
		if !joined && i+1 < len(c.Argv) {
			value = c.Argv[i+1]
		}
		if isProtected(value) && hasEnd(name, outputFlags) && !slices.ContainsFunc(otherFlags, func(w string) bool { return strings.Contains(name, w) }) {
			return value
		}
	}
	for i := range c.Runs {
		if p := protectedOutput(&c.Runs[i]); p != "" {
			return p
		}
	}
	return ""
}

func hasEnd(s string, ends []string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(s, end) })
}

// critical says why what a command removes is put to the user, as its words show
// it.
func (l *look) critical(c *agent.SimpleCommand) string {
	if c.Critical != "" {
		return c.Critical
	}
	if len(c.Removes) > 0 {
		for _, word := range c.Argv[min(1, len(c.Argv)):] {
			if l.s.sweeps(word, c.Dir) {
				return "it removes all of " + printable(word)
			}
		}
	}
	for i := range c.Runs {
		if why := l.critical(&c.Runs[i]); why != "" {
			return why
		}
	}
	return ""
}

// sweeps reports whether a word is everything in a folder that is vital, or that
// counts as the workspace.
func (s *state) sweeps(word, dir string) bool {
	name := path.Base(word)
	if name != "*" && name != ".*" && name != "**" && name != "{*,.*}" {
		return false
	}
	folder := strings.TrimSuffix(word, name)
	if dir == "" {
		dir = s.Dir
	}
	switch {
	case strings.HasPrefix(folder, "~/"):
		folder = s.Home + folder[1:]
	case !path.IsAbs(slashed(folder)):
		folder = dir + "/" + folder
	}
	folder = s.keyed(path.Clean(slashed(folder)))
	return slices.Contains(s.whole, folder) || folder == "/"
}

// vital reports whether a path must not go: the root, what is directly below it,
// the home folder, and the workspace with all that it lies in.
func (s *state) vital(at *place) bool {
	return s.vitalPath(at.path, at.given) || s.vitalPath(at.path, at.resolved)
}

func (s *state) vitalPath(raw, p string) bool {
	p = strings.TrimSuffix(p, "/")
	depth := strings.Count(p, "/")
	if slashed(raw) != raw { // a drive of Windows is as the root
		depth--
	}
	if depth <= 1 {
		return true
	}
	for _, v := range s.kept {
		if strings.HasPrefix(v, p) && (len(v) == len(p) || v[len(p)] == '/') {
			return true
		}
	}
	return false
}

// unconfined says why commands are put to the user where nothing confines them.
func (l *look) unconfined() string {
	e := &l.Effects
	if len(e.Commands) == 0 && (len(e.Runs) == 0 || l.Class == agent.Read) || l.s.Mode == agent.ModeBypass {
		return ""
	}
	if level := l.s.confined(); level == "full" || level == "reduced" { // which may have to be found out
		return ""
	}
	return "nothing confines commands here"
}
