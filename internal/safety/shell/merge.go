package shell

import (
	"slices"
)

// merge is what is known where two ways through the text meet.
func merge(a, b *state) *state {
	switch {
	case a == nil || a == b:
		return b
	case b == nil:
		return a
	}
	c := *a
	c.dirs = union(a.dirs, b.dirs)
	c.old = union(a.old, b.old)
	c.lost = a.lost || b.lost || !slices.EqualFunc(a.stack, b.stack, slices.Equal)
	c.vars = mergeVars(a, b)
	for _, t := range b.taint {
		if !slices.Contains(c.taint, t) {
			c.taint = append(slices.Clip(c.taint), t)
		}
	}
	c.defs = mergeDefs(a.defs, b.defs)
	if !b.argsKnown || !slices.Equal(a.args, b.args) {
		c.args, c.argsKnown = nil, false
	}
	c.noSplit = a.noSplit || b.noSplit
	c.noGlob = a.noGlob || b.noGlob
	c.exporting = a.exporting || b.exporting
	c.voided = a.voided || b.voided
	return &c
}

// union keeps the order of a. It is unknown when either is, or when it is large.
func union(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	c := a
	for _, d := range b {
		if !slices.Contains(c, d) {
			c = append(slices.Clip(c), d)
		}
	}
	if len(c) > maxDirs {
		return nil
	}
	return c
}

// maxMerge is how many assignments since two ways parted are told apart.
const maxMerge = 64

func mergeVars(a, b *state) *binding {
	if a.vars == b.vars {
		return a.vars
	}
	names := map[string]bool{}
	tail := sharedTail(a.vars, b.vars, names)
	if len(names) > maxMerge || names[""] {
		return &binding{value: value{kind: anybody}, fixed: true}
	}
	out := tail
	for name := range names {
		x, y := a.lookup(name), b.lookup(name)
		m := binding{name: name, value: value{kind: anybody}, next: out}
		if x != nil && y != nil {
			m.value = meet(x.value, y.value)
		}
		m.fixed = x != nil && x.fixed || y != nil && y.fixed
		out = &m
	}
	return out
}

// sharedTail returns what two lists end with alike, and notes the names before it.
func sharedTail(a, b *binding, names map[string]bool) *binding {
	length := func(l *binding) (n int) {
		for ; l != nil; l = l.next {
			n++
		}
		return n
	}
	for n, m := length(a), length(b); a != b; {
		if n >= m {
			names[a.name] = true
			a, n = a.next, n-1
		} else {
			names[b.name] = true
			b, m = b.next, m-1
		}
	}
	return a
}

func meet(a, b value) value {
	switch {
	case a == b:
		return a
	case a.number() && b.number():
		return value{kind: digits}
	}
	return value{kind: anybody}
}

// mergeDefs returns what two lists end with alike.
func mergeDefs(a, b *definition) *definition {
	for a != b {
		if a.count() >= b.count() {
			a = a.next
		} else {
			b = b.next
		}
	}
	return a
}
