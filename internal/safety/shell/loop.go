package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"dure/agent"
)

// mark is how far the listing is, so that a loop can be followed again.
type mark struct {
	out []agent.SimpleCommand
	eff agent.Effects
}

func (w *walker) mark() mark { return mark{*w.out, w.eff} }

func (w *walker) reset(m mark) {
	unparsed := w.eff.Unparsed
	w.eff = m.eff
	*w.out = m.out
	if w.eff.Unparsed == "" {
		w.eff.Unparsed = unparsed
	}
}

// maxPasses is how often a loop is followed until nothing it changes matters.
const maxPasses = 4

// loop follows a body that runs any number of times. It is followed once with
// what is known before; when it changes that, again without it.
func (w *walker) loop(st *state, body func(*state) *state) *state {
	parent := w.frame
	for pass := 1; ; pass++ {
		m, dirty, changed := w.mark(), w.dirty, len(w.changed)
		globbed := w.globbed
		f := &frame{}
		w.frame, w.globbed = f, false
		end := body(st)
		if w.globbed && len(w.changed) > changed {
			w.dirty = true
		}
		again := f.changes(st) || !dirty && w.dirty && w.globbed
		w.frame, w.globbed = parent, globbed || w.globbed
		if !again || w.spent {
			parent.add(f)
			return merge(st, end.widen(f))
		}
		if pass == maxPasses {
			w.unreadable("what a loop does after its first turn")
			parent.add(f)
			return merge(st, end).widen(f).nowhere()
		}
		w.reset(m)
		st = st.widen(f)
	}
}

func (w *walker) forClause(st *state, c *syntax.ForClause) *state {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		w.differs("for ((")
		l := c.Loop.(*syntax.CStyleLoop)
		st = w.arith(st, l.Init)
		return w.loop(st, func(st *state) *state {
			st = w.arith(st, l.Cond)
			return w.arith(orElse(w.list(st, c.Do).any(), st), l.Post)
		})
	}
	name := iter.Name.Value
	var items argv
	if iter.InPos.IsValid() {
		items = w.words(st, iter.Items)
	} else if st.argsKnown {
		items.list = st.args
	} else {
		items.add("$@", false, false, 0)
	}
	if c.Select {
		w.differs("select")
	} else if end, ok := w.unroll(st, name, items, c.Do); ok {
		return end
	}
	numbers := items.allNumbers()
	return w.loop(st, func(st *state) *state {
		v := value{kind: anybody}
		if numbers {
			v.kind = digits
		}
		return w.list(w.assign(st, name, "$"+name, v, false), c.Do).any()
	})
}

// unroll follows a loop item by item, when that is exact and not too much.
func (w *walker) unroll(st *state, name string, items argv, do []*syntax.Stmt) (*state, bool) {
	if !items.known() || len(items.list) > maxUnroll {
		return nil, false
	}
	m, parent, steps := w.mark(), w.frame, w.steps
	f := &frame{}
	w.frame = f
	defer func() { w.frame = parent }()
	at := st
	for i, item := range items.list {
		at = w.assign(at, name, item.Text, value{kind: literal, text: item.Text}, false)
		next := w.list(at, do).any()
		small := (w.steps-steps)*len(items.list) <= 256
		if i == 0 && !small || f.jumped || next == nil || w.spent {
			w.reset(m)
			return nil, false
		}
		at = next
	}
	parent.add(f)
	return at, true
}

func (w *walker) caseClause(st *state, c *syntax.CaseClause) *state {
	w.value(st, c.Word)
	out := st
	var through *state
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			w.visit(st, p)
		}
		end := w.list(merge(st, through), item.Stmts).any()
		if through = nil; item.Op != syntax.Break {
			through = end
		}
		out = merge(out, end)
	}
	return out
}
