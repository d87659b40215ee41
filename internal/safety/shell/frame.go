package shell

import (
	"slices"
)

// frame notes what a loop or a function changes, on any way through it.
type frame struct {
	sets   []set
	taint  []string
	dirs   bool
	modes  bool // set, shopt, voided names
	jumped bool // break, continue or return
}

// set is an assignment in a frame.
type set struct {
	name   string
	number bool
}

func (f *frame) add(g *frame) {
	if f == nil {
		return
	}
	f.sets = append(f.sets, g.sets...)
	f.taint = append(f.taint, g.taint...)
	f.dirs = f.dirs || g.dirs
	f.modes = f.modes || g.modes
	f.jumped = f.jumped || g.jumped
}

// widen forgets what a frame changes: the state holds at any place inside it.
func (st *state) widen(f *frame) *state {
	if st == nil || !f.changes(st) {
		return st
	}
	c := *st
	if f.dirs {
		c.dirs, c.old, c.lost = nil, nil, true
	}
	for _, s := range f.sets {
		b := c.lookup(s.name)
		if v, ok := s.widened(b); ok {
			c.vars = &binding{name: s.name, value: v, fixed: b != nil && b.fixed, next: c.vars}
		}
		if s.name == "IFS" {
			c.noSplit = true
		}
	}
	for _, t := range f.taint {
		if !slices.Contains(c.taint, t) {
			c.taint = append(slices.Clip(c.taint), t)
		}
	}
	if f.modes {
		c.noGlob, c.noSplit, c.voided = true, true, true
		c.args, c.argsKnown = nil, false
	}
	return &c
}

// widened is what is known of a variable that is set any number of times. ok says
// whether that is less than was known of it.
func (s set) widened(was *binding) (v value, ok bool) {
	switch {
	case was != nil && was.value.kind == anybody:
		return value{}, false
	case s.number && (was == nil || was.value.number() || was.value.kind == outside):
		return value{kind: digits}, was == nil || was.value.kind != digits
	}
	return value{kind: anybody}, true
}

func (f *frame) changes(st *state) bool {
	if f.dirs && (st.dirs != nil || !st.lost) || f.modes && !(st.noGlob && st.noSplit && st.voided && !st.argsKnown) {
		return true
	}
	for _, s := range f.sets {
		if _, ok := s.widened(st.lookup(s.name)); ok {
			return true
		}
	}
	for _, t := range f.taint {
		if !slices.Contains(st.taint, t) {
			return true
		}
	}
	return false
}
