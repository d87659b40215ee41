package programs

import (
	"strings"
	"sync"

	"dure/agent"
)

// Look says what a program does with its arguments. It is safe for concurrent
// use, and takes time in proportion to the length of the arguments.
func Look(c Call) Use {
	if len(c.Args) == 0 {
		return Use{}
	}
	name := c.Args[0]
	if !name.Known {
		return Use{Unreadable: "what " + name.Text + " runs"}
	}
	g, sure := find(name.Text)
	if g == nil {
		return unknownProgram(c.Args)
	}
	r := readings.Get().(*reading)
	seen := r.seen[:0]
	*r = reading{program: baseName(name.Text), seen: seen}
	r.whole(g, c.Args[1:])
	if !sure {
		r.use.Kind, r.use.Transparent = agent.CommandOther, false
	}
	use := r.use
	clear(r.seen)
	if seen = r.seen[:0]; cap(seen) > maxSeen {
		seen = nil
	}
	*r = reading{seen: seen}
	readings.Put(r)
	return use
}

// readings are used again, with room for the flags of a usual command.
var readings = sync.Pool{New: func() any { return &reading{seen: make([]seen, 0, 8)} }}

// maxSeen is for how many flags room is kept.
const maxSeen = 32

// unknownProgram is one that can do anything with what it is given.
func unknownProgram(args []Word) Use {
	for _, w := range args[1:] {
		if !w.Known {
			return Use{Unreadable: "the argument " + w.Text + " of " + args[0].Text}
		}
	}
	return Use{}
}

// find returns the grammar of a program by its name or path. It is sure when
// that is the name of the program as it stands, with no path before it, and
// neither its case nor a suffix left out of account.
func find(name string) (g *grammar, sure bool) {
	x := tables()
	if e := x.exact[name]; e != nil {
		return e.get(), true
	}
	base := baseName(name)
	if e := x.lookup(base); e != nil {
		return e.get(), false
	}
	lower := strings.ToLower(base)
	for _, suffix := range []string{".exe", ".cmd", ".bat", ".com", ".ps1"} {
		lower = strings.TrimSuffix(lower, suffix)
	}
	if e := x.lookup(lower); e != nil {
		return e.get(), false
	}
	return nil, false
}

func (x *index) lookup(name string) *entry {
	if e := x.exact[name]; e != nil {
		return e
	}
	if stem := strings.TrimRight(name, "-.0123456789"); stem != name {
		if e := x.exact[stem]; e != nil {
			return e
		}
	}
	for _, p := range x.prefixes {
		if strings.HasPrefix(name, p.text) {
			return p.entry
		}
	}
	return nil
}

// baseName is what follows the last slash of either kind.
func baseName(name string) string {
	return name[strings.LastIndexAny(name, `/\`)+1:]
}
