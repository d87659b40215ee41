package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// function is one definition of a function, and the text that it stands in.
type function struct {
	decl    *syntax.FuncDecl
	src     string
	dialect dialect
	called  *bool
}

type callFrame struct {
	name   string
	forks  int
	locals []string // variables that end with the call
}

func (w *walker) funcDecl(st *state, d *syntax.FuncDecl) *state {
	names := funcNames(d)
	if len(names) == 0 { // zsh runs it at once
		w.unreadable("what a function without a name is given")
		return w.stmt(st, d.Body).any()
	}
	if d.RsrvWord {
		w.differs("function")
	}
	for _, name := range names {
		if strings.HasPrefix(name, "command_not_found_handle") {
			w.unreadable("which names lead to " + name)
		}
		st = st.with(func(c *state) { c.defs = &definition{name, st.defs, 1 + st.defs.count()} })
	}
	return st
}

// uncalled follows the functions that nothing calls: their bodies count too.
func (w *walker) uncalled() {
	names := make([]string, 0, len(w.funcs))
	for name := range w.funcs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, f := range w.funcs[name] {
			if !*f.called && !w.spent {
				w.follow((&state{}).nowhere(), name, f)
			}
		}
	}
}

// follow follows the body of a function.
func (w *walker) follow(st *state, name string, f function) *state {
	*f.called = true
	inner := 0
	for _, c := range w.calls {
		if c.name == name {
			inner++
			if w.forks > c.forks {
				w.destroys("a function that starts itself over and over")
			}
		}
	}
	if inner > 1 {
		return st.nowhere()
	}
	if inner > 0 {
		st = st.nowhere()
	}
	src, d, parent := w.src, w.dialect, w.frame
	fr := &frame{}
	w.src, w.dialect, w.frame = f.src, f.dialect, fr
	w.calls = append(w.calls, callFrame{name: name, forks: w.forks})
	w.bodies++
	end := w.stmt(st, f.decl.Body).any()
	w.bodies--
	locals := w.calls[len(w.calls)-1].locals
	w.calls = w.calls[:len(w.calls)-1]
	w.src, w.dialect, w.frame = src, d, parent
	parent.add(fr)
	if fr.jumped {
		end = merge(end, st).widen(fr)
	}
	if end == nil {
		return nil
	}
	for _, n := range locals {
		b := binding{name: n, next: end.vars}
		if was := st.lookup(n); was != nil {
			b.value, b.fixed = was.value, was.fixed
		}
		end = end.with(func(c *state) { c.vars = &b })
	}
	return end
}
