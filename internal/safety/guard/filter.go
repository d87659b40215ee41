package guard

import (
	"errors"
	"io"
	"unicode/utf8"
)

// A filter reads a text with its secrets masked and without what does not show. It
// holds a window of the text, no more.
type filter struct {
	src   io.Reader
	view  view
	find  finder
	from  int    // what is before it in the view was read
	line  int    // the current line of a live view
	again int    // from where it is read again: its start, or that of a secret around that
	chunk []byte // backs src
	raw   []byte // read from src, and not yet in the view
	buf   []byte // backs ready
	outlet
}

const chunkSize = 64 << 10

func newFilter(src io.Reader, s scope) *filter {
	f := &filter{src: src, chunk: make([]byte, chunkSize)}
	f.init(s)
	return f
}

func (f *filter) init(s scope) {
	f.view.exact = s.exact
	f.view.financial, f.find.financial = s.financial, s.financial
}

// kinds returns what was masked so far.
func (f *filter) kinds() []string { return f.view.kinds.sorted() }

// posed reports whether the text has had masks of its own so far.
func (f *filter) posed() bool { return f.find.posed || f.view.posed }

func (f *filter) Read(p []byte) (int, error) { return f.read(p, f.fill) }

// An outlet gives out what has been made ready, and then why there is no more.
type outlet struct {
	ready []byte
	err   error
}

// read has more made ready by fill as long as there is none.
func (o *outlet) read(p []byte, fill func()) (int, error) {
	for len(o.ready) == 0 {
		if o.err != nil {
			return 0, o.err
		}
		fill()
	}
	n := copy(p, o.ready)
	o.ready = o.ready[n:]
	return n, nil
}

// fill makes more of the text ready. After an error of the source nothing of
// what was still undecided is given out.
func (f *filter) fill() {
	n, err := f.src.Read(f.chunk)
	f.err = err
	if err != nil && !errors.Is(err, io.EOF) {
		return
	}
	f.take(f.chunk[:n], err != nil)
}

// take takes more of the source, behind what is raw.
func (f *filter) take(src []byte, atEnd bool) {
	if len(f.raw) > 0 {
		f.raw = append(f.raw, src...)
		src = f.raw
	}
	f.pass(src, atEnd)
}

// pass takes more of the source.
func (f *filter) pass(src []byte, atEnd bool) {
	f.view.back = -1
	f.raw = append(f.raw[:0], f.view.feed(src, atEnd)...)
	f.rewind()
	f.buf = f.advance(f.buf[:0], atEnd)
	f.ready = f.buf
	f.forget()
}

// rewind reads a line again of which something was shown before it was written
// over: it is shown once more, as a line of its own.
func (f *filter) rewind() {
	at := f.view.back
	if !f.view.live || at < 0 || at >= f.from {
		return
	}
	at = min(at, f.again)
	f.from, f.find.floor = at, min(f.find.floor, at)
	f.view.signs = append(f.view.signs, sign{at, "\n"})
}

// advance appends to dst what can be decided on.
func (f *filter) advance(dst []byte, atEnd bool) []byte {
	b := f.view.text[:f.view.final()]
	safe := f.safe(b, atEnd)
	start := f.view.start
	if start != f.line {
		f.line, f.again = start, start
	}
	for f.from < safe {
		s, ok := f.find.find(b, f.from, safe)
		if !ok {
			break
		}
		f.view.found(s.kind)
		dst = s.appendMask(f.shown(dst, b, f.from, s.start))
		f.from = s.end
		if s.start < start && start < s.end {
			f.again = s.start
		}
		safe = f.safe(b, atEnd)
		for len(f.view.signs) > 0 && f.view.signs[0].at < s.end {
			f.view.signs = f.view.signs[1:]
		}
	}
	if f.from < safe {
		dst = f.shown(dst, b, f.from, safe)
		f.from = safe
	}
	if atEnd {
		dst = f.shown(dst, b, f.from, f.from)
	}
	return dst
}

// safe returns how much of b there is such that what is noticed before can be decided
// on.
func (f *filter) safe(b []byte, atEnd bool) int {
	switch {
	case atEnd:
		return len(b)
	case f.view.live:
		return max(len(b)-maxSecret, f.find.open(b, f.from))
	}
	return len(b) - maxSecret
}

// shown appends a part of the view to dst, and the signs up to its end.
func (f *filter) shown(dst, b []byte, from, to int) []byte {
	for len(f.view.signs) > 0 && f.view.signs[0].at <= to {
		s := f.view.signs[0]
		dst = append(append(dst, b[from:s.at]...), s.text...)
		from = s.at
		f.view.signs = f.view.signs[1:]
	}
	return append(dst, b[from:to]...)
}

// forget drops what will not be looked at again.
func (f *filter) forget() {
	v := &f.view
	n := f.from - maxBefore
	if v.live {
		n = min(n, f.again)
	}
	if n <= 0 {
		return
	}
	v.text = append(v.text[:0], v.text[n:]...)
	v.start -= n
	for i := range v.signs {
		v.signs[i].at -= n
	}
	f.from, f.line, f.again = f.from-n, f.line-n, f.again-n
	f.find.floor = max(f.find.floor-n, 0)
}

// Clean returns s without secrets, and without what a terminal would obey.
func Clean(s string) string {
	out, _ := Eval(s, "")
	return out
}

// Eval returns a text as a result of a tool of the group would have it, and the
// kinds of what was masked in it, sorted. It is neither cut nor put between marks.
func Eval(text, group string) (out string, kinds []string) {
	return clean(text, scopeOf(group))
}

func clean(s string, in scope) (out string, kinds []string) {
	if s == "" {
		return "", nil
	}
	f := finder{financial: in.financial}
	if isPlain(s) {
		if _, found := f.find([]byte(s), 0, len(s)); !found {
			return s, nil
		}
	}
	whole := newFilter(nil, in)
	whole.pass([]byte(s), true)
	return string(whole.ready), whole.kinds()
}

// isPlain reports whether s is surely as a reader sees it.
func isPlain(s string) bool {
	for i, r := range s {
		switch {
		case r < ' ' && r != '\n' && r != '\t', r == 0x7f:
			return false
		case r < 0x80:
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return false
			}
		case r <= 0x9f || r == 0x2028 || r == 0x2029 || isShapeless(r) || isJoiner(r):
			return false
		}
	}
	return true
}
