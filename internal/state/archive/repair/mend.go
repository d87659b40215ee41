package repair

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// Mended is a conversation that providers take, and what was done to make it one.
type Mended struct {
	Entries     []Entry
	Kept        []string // IDs of the given entries of which something was kept
	Repairs     []string
	Corruptions []Corruption
}

// What is said in the place of what is missing.
const (
	noResult = "[Tool result unavailable]"
	noStart  = "[The beginning of this conversation is missing.]"
)

// Mend makes a conversation of entries whose blocks are sound: every call is
// answered exactly once in the message behind it, and the user begins. Entries
// that are fine stay as they are. IDs of entries must be unique.
func Mend(entries []Entry) Mended {
	m := mender{ids: newNames(), calls: newNames()}
	for _, e := range entries {
		m.ids.used[e.ID] = true
	}
	m.entries = m.ordered(entries)
	m.flatten()
	m.pair()
	m.place()
	m.regroup()
	return m.out
}

// A piece is a block and where it comes from.
type piece struct {
	entry int // -1 = it was made here
	role  string
	Block

	call   int  // of a result: the piece that it answers, or -1
	answer int  // of a call: the piece that answers it, or -1
	gone   bool // left out
}

type mender struct {
	entries []Entry
	pieces  []piece
	flow    []int // pieces in their final order
	ids     names // of entries
	calls   names
	out     Mended
}

func (m *mender) note(kind string, entry int, id, format string, args ...any) {
	n := Corruption{Type: kind, Index: max(entry, 0), ID: id, Description: fmt.Sprintf(format, args...)}
	if entry >= 0 {
		n.Line = m.entries[entry].line
	}
	m.out.Corruptions = append(m.out.Corruptions, n)
}

// ordered returns the entries by time when that puts right what their order in
// the file has wrong: a result before its call, or an answer at the beginning.
func (m *mender) ordered(entries []Entry) []Entry {
	wrong := disorder(entries)
	if wrong == 0 || slices.ContainsFunc(entries, func(e Entry) bool { return e.Time().IsZero() }) {
		return entries
	}
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b Entry) int { return cmp.Compare(a.Time().UnixNano(), b.Time().UnixNano()) })
	if disorder(sorted) >= wrong {
		return entries
	}
	m.entries = sorted
	m.note(Misplaced, -1, "", "records were out of order and stand in the order of their times now")
	return sorted
}

// disorder counts what cannot be in its place.
func disorder(entries []Entry) (n int) {
	if len(entries) > 0 && entries[0].Role == assistant {
		n++
	}
	early, called := map[string]int{}, map[string]bool{}
	for _, e := range entries {
		for _, b := range e.Content {
			switch {
			case b.Type == callBlock:
				n += early[b.ID]
				early[b.ID], called[b.ID] = 0, true
			case b.Type == resultBlock && !called[b.ID]:
				early[b.ID]++
			}
		}
	}
	return n
}

func (m *mender) flatten() {
	for i, e := range m.entries {
		for _, b := range e.Content {
			p := piece{entry: i, role: e.Role, Block: b, call: -1, answer: -1}
			if b.Type == resultBlock {
				p.role = user
			}
			if b.Type == callBlock {
				m.calls.used[b.ID] = true
			}
			m.pieces = append(m.pieces, p)
		}
	}
}

// pair finds the result of every call: the first one behind it, or else one in
// front of it.
func (m *mender) pair() {
	newest := map[string]int{}  // call by ID
	early := map[string][]int{} // results that no call stands in front of
	spoken := 0                 // piece of the newest input
	for i := range m.pieces {
		p := &m.pieces[i]
		switch p.Type {
		case callBlock:
			old, again := newest[p.ID]
			if again && m.pieces[old].answer < 0 && spoken <= old && bytes.Equal(m.pieces[old].Raw, p.Raw) {
				p.gone = true
				m.note(DuplicateEntry, p.entry, p.ID, "call %.80q stands there twice; one was left out", p.ID)
				continue
			}
			newest[p.ID] = i
		case resultBlock:
			if at, ok := newest[p.ID]; ok {
				m.answer(at, i)
			} else {
				early[p.ID] = append(early[p.ID], i)
			}
		default:
			if p.role == user {
				spoken = i
			}
		}
	}
	for i := range m.pieces {
		if p := &m.pieces[i]; p.Type == callBlock && !p.gone {
			for _, r := range early[p.ID] {
				m.answer(i, r)
			}
			delete(early, p.ID)
		}
	}
	m.orphans()
	m.uniqueCalls()
}

// answer takes result for the answer of a call, unless that has one.
func (m *mender) answer(call, result int) {
	c, r := &m.pieces[call], &m.pieces[result]
	if c.answer < 0 {
		c.answer, r.call = result, call
		return
	}
	r.gone = true
	if bytes.Equal(m.pieces[c.answer].Raw, r.Raw) {
		m.out.Repairs = append(m.out.Repairs, duplicate+":"+r.ID)
		m.note(ExtraResult, r.entry, r.ID, "the result of call %.80q stands there twice; one was left out", r.ID)
		return
	}
	m.out.Repairs = append(m.out.Repairs, exactlyOne+":"+r.ID)
	m.note(ExtraResult, r.entry, r.ID, "call %.80q has two results that differ; the first one counts", r.ID)
}

func (m *mender) orphans() {
	for i := range m.pieces {
		if r := &m.pieces[i]; r.Type == resultBlock && !r.gone && r.call < 0 {
			r.gone = true
			m.out.Repairs = append(m.out.Repairs, orphan+":"+r.ID)
			m.note(OrphanResult, r.entry, r.ID, "a result of call %.80q was left out: there is no such call", r.ID)
		}
	}
}

// uniqueCalls gives a call whose ID an earlier one has another, and its result
// with it.
func (m *mender) uniqueCalls() {
	made := map[string]bool{}
	for i := range m.pieces {
		c := &m.pieces[i]
		if c.Type != callBlock || c.gone {
			continue
		}
		if made[c.ID] {
			id := m.calls.free(cut(c.ID, maxCallID-12))
			m.note(InvalidContent, c.entry, c.ID, "the ID %.80q of a call was used before; it is %q now", c.ID, id)
			c.Block = c.rename(id)
			if c.answer >= 0 {
				r := &m.pieces[c.answer]
				r.Block = r.rename(id)
			}
		}
		made[c.ID] = true
	}
}

// place puts the results of all calls of a message behind that message, and in
// front of whatever else follows.
func (m *mender) place() {
	given := len(m.pieces)
	var open []int // calls of the message so far
	for i := range given {
		p := m.pieces[i]
		switch {
		case p.gone:
		case p.Type == resultBlock:
			if slices.Contains(open, p.call) {
				m.settle(open)
				open = nil
			}
		case p.role == assistant:
			if !m.awaited(open, i) {
				m.settle(open)
				open = nil
			}
			m.flow = append(m.flow, i)
			if p.Type == callBlock {
				open = append(open, i)
			}
		default:
			m.settle(open)
			open = nil
			m.flow = append(m.flow, i)
		}
	}
	m.settle(open)
	m.moved()
}

// awaited reports whether piece i may be of the same message as the calls in
// front of it: it is of the same record, or a result of them stands behind it.
func (m *mender) awaited(calls []int, i int) bool {
	return slices.ContainsFunc(calls, func(c int) bool {
		return m.pieces[c].entry == m.pieces[i].entry || m.pieces[c].answer > i
	})
}

// settle answers calls: with their results in the order in which these stand,
// and with failures for those that have none.
func (m *mender) settle(calls []int) {
	var results, missing []int
	for _, c := range calls {
		if a := m.pieces[c].answer; a >= 0 {
			results = append(results, a)
		} else {
			missing = append(missing, c)
		}
	}
	slices.Sort(results)
	m.flow = append(m.flow, results...)
	for _, c := range missing {
		id := m.pieces[c].ID
		m.out.Repairs = append(m.out.Repairs, synthesized+":"+id)
		m.note(MissingResult, m.pieces[c].entry, id, "call %.80q had no result; a failure stands in its place", id)
		m.pieces = append(m.pieces, piece{entry: -1, role: user, Block: ResultOf(id, noResult, true), call: c, answer: -1})
		m.flow = append(m.flow, len(m.pieces)-1)
	}
}

// moved notes the results that do not stand where they stood: those that come
// behind a piece that stood behind them, and those that have overtaken one.
func (m *mender) moved() {
	highest, told := -1, map[int]bool{}
	for _, i := range m.flow {
		if m.pieces[i].entry < 0 {
			continue
		}
		if i < highest {
			at := i
			if m.pieces[i].Type != resultBlock {
				at = highest
			}
			if r := m.pieces[at]; r.Type == resultBlock && !told[at] {
				told[at] = true
				m.note(Misplaced, r.entry, r.ID, "the result of call %.80q stands behind its call now", r.ID)
			}
		}
		highest = max(highest, i)
	}
}

// regroup makes entries of the pieces again.
func (m *mender) regroup() {
	var prev *Entry
	from := -2 // the given entry that prev is of
	parts := map[int]bool{}
	for _, i := range m.flow {
		p := m.pieces[i]
		if len(m.out.Entries) == 0 && p.role == assistant {
			m.begin()
		}
		if prev != nil && p.role == prev.Role && (p.entry == from || p.entry < 0 && prev.answers()) {
			prev.Content = append(prev.Content, p.Block)
			continue
		}
		m.out.Entries = append(m.out.Entries, m.entry(p, parts))
		prev, from = &m.out.Entries[len(m.out.Entries)-1], p.entry
	}
	for i, e := range m.entries {
		if parts[i] {
			m.out.Kept = append(m.out.Kept, e.ID)
		}
	}
}

// answers reports whether the entry ends with a result: one that is made up for a
// call of the same message stands behind it, as the message has to hold them all.
func (e *Entry) answers() bool { return e.Content[len(e.Content)-1].Type == resultBlock }

// begin lets the user begin.
func (m *mender) begin() {
	m.note(InvalidRole, -1, "", "the conversation began with an answer; a line of the user stands in front of it now")
	m.out.Entries = append(m.out.Entries, Entry{ID: m.ids.free("beginning"), Role: user, Content: []Block{Text(noStart)}})
}

// entry returns a new entry that begins with p. The first part of a record has
// the record's ID.
func (m *mender) entry(p piece, parts map[int]bool) Entry {
	if p.entry < 0 {
		return Entry{ID: m.ids.free("result-" + p.ID), Role: p.role, Content: []Block{p.Block}}
	}
	e := m.entries[p.entry]
	e.Role, e.Content = p.role, []Block{p.Block}
	if parts[p.entry] {
		e.ID = m.ids.free(e.ID)
	}
	parts[p.entry] = true
	return e
}
