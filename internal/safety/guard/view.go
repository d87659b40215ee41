package guard

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// maxLine bounds a line that is written over, in bytes. A longer one is taken in
// pieces of that size, so that memory stays bounded whatever comes.
const (
	maxLine     = 32 << 10
	maxLiveLine = 4 << 10 // in a live view
)

// What moves within a line, as it stands in a line until its end is known. No
// other control characters are in a view.
const (
	opReturn    = '\r'
	opLeft      = '\b'
	opRight     = 0x0e
	opClearEnd  = 0x0f
	opClearLine = 0x10
	opClearHead = 0x11
)

// ops are the bytes of all of them.
const ops = "\r\b\x0e\x0f\x10\x11"

// maxMove bounds one movement within a line, in columns.
const maxMove = 100

// A view is a text as a reader sees it who sees everything and is moved by
// nothing: it has no control characters but newline and tab, no terminal
// sequences and no characters without a shape, and is UTF-8. Where its source is
// cut does not matter.
//
// A line that writes over itself is as a terminal shows it in the end. In an exact
// view nothing is written over; what is left out has a sign instead, in signs.
//
// A live view is read before the end of its lines is known. Where lines that were
// read are written over then, is in back.
type view struct {
	exact     bool
	live      bool
	financial bool // of the finder of secrets in lines that are written over
	posed     bool // such lines had masks of their own
	kinds          // of what was masked

	text  []byte // the view; it is final before start
	start int    // of the current line
	over  bool   // the current line has operations
	back  int    // of a live view: the first line that got operations; -1 = none
	last  rune   // the last character of text
	held  rune   // one that depends on its neighbours; 0 = none
	signs []sign
}

// A sign stands for what was left out before text[at].
type sign struct {
	at   int
	text string
}

// feed adds to the view, and returns what of src cannot be decided on yet. At the
// end of the text it decides on everything.
func (v *view) feed(src []byte, atEnd bool) (rest []byte) {
	for len(src) > 0 {
		if n := plainRun(src); n > 0 {
			v.decide(rune(src[0]))
			v.add(src[:n])
			v.last = rune(src[n-1])
			src = src[n:]
			continue
		}
		n := v.step(src, atEnd)
		if n == 0 {
			return src
		}
		src = src[n:]
	}
	if atEnd {
		v.decide(0)
		v.endLine()
	}
	return nil
}

// final returns how much of the text will not change; in a live view, unless it is
// written over.
func (v *view) final() int {
	if v.exact || v.live && !v.over {
		return len(v.text)
	}
	return v.start
}

// plainRun counts the bytes at the start of b that are as they look.
func plainRun(b []byte) int {
	for i, c := range b {
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			continue
		}
		return i
	}
	return len(b)
}

// add appends what is as it looks.
func (v *view) add(p []byte) {
	if v.over {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			i = len(p)
		}
		v.text = append(v.text, p[:i]...)
		v.bound()
		if p = p[i:]; len(p) == 0 {
			return
		}
		v.endLine()
	}
	v.text = append(v.text, p...)
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		v.start = len(v.text) - len(p) + i + 1
	}
	v.bound()
}

// bound keeps the current line within its limit.
func (v *view) bound() {
	most := maxLine
	if v.live {
		most = maxLiveLine
	}
	for len(v.text)-v.start > most {
		cut := v.start + most
		for !utf8.RuneStart(v.text[cut]) {
			cut--
		}
		if !v.over {
			v.start = cut
			continue
		}
		rest := bytes.Clone(v.text[cut:])
		v.text = v.text[:cut]
		v.endLine()
		v.text = append(v.text, rest...)
		v.over = bytes.ContainsAny(rest, ops)
	}
}

// endLine writes the current line as it is in the end.
func (v *view) endLine() {
	if v.over {
		v.text = append(v.text[:v.start], v.settled(v.text[v.start:])...)
		v.over = false
	}
	v.start = len(v.text)
}

// operate adds an operation n times.
func (v *view) operate(op byte, n int) {
	v.decide(0)
	v.last = 0
	if v.over = true; v.back < 0 {
		v.back = v.start
	}
	for range min(n, maxMove) {
		v.text = append(v.text, op)
	}
	v.bound()
}

// leave leaves b out.
func (v *view) leave(b []byte) {
	if !v.exact {
		return
	}
	v.decide(0)
	s := ""
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		s += shape(r)
		b = b[n:]
	}
	v.signs = append(v.signs, sign{len(v.text), s})
}

// shape shows a character that has no shape of its own.
func shape(r rune) string {
	switch {
	case r < ' ':
		return string(0x2400 + r)
	case r == 0x7f:
		return "␡"
	case r < 0x7f:
		return string(r)
	}
	return fmt.Sprintf("⟨U+%04X⟩", r)
}

// step takes what is not plain at the start of src, and returns its length; 0 =
// it needs more of the text.
func (v *view) step(src []byte, atEnd bool) int {
	switch c := src[0]; {
	case c >= utf8.RuneSelf:
		return v.wide(src, atEnd)
	case c == esc:
		return v.escape(src, atEnd)
	case c == '\r' && len(src) == 1 && !atEnd:
		return 0
	case c == '\r' && len(src) > 1 && src[1] == '\n', c == '\r' && !v.exact && len(src) > 1 && src[1] == '\r':
		return 1
	case c == '\r' && !v.exact:
		v.operate(opReturn, 1)
	case c == '\b' && !v.exact:
		v.operate(opLeft, 1)
	default:
		v.leave(src[:1])
	}
	return 1
}

// escape takes a terminal sequence, or what begins none; 0 = it needs more of the
// text.
func (v *view) escape(src []byte, atEnd bool) int {
	const introducer = 2 // bytes, in both forms
	if !atEnd && len(src) < introducer {
		return 0
	}
	n, kind := 1, byte(0)
	if src[0] != esc { // U+009B for an escape and [, and so on
		n, kind = introducer, src[1]-0x40
	} else if len(src) > 1 {
		kind = src[1]
	}
	m, ok, more := sequence(kind, src[min(introducer, len(src)):min(len(src), lookahead)])
	if more && !atEnd && len(src) <= lookahead {
		return 0
	}
	if ok {
		n = introducer + m
		if kind == '[' && !v.exact {
			v.moves(src[introducer:n])
			return n
		}
	}
	v.leave(src[:n])
	return n
}

// moves adds what a control sequence does within its line.
func (v *view) moves(control []byte) {
	n, given := 0, false
	for _, c := range control[:len(control)-1] {
		if !isDigit(c) || n > 1000 {
			break
		}
		n, given = n*10+int(c-'0'), true
	}
	switch control[len(control)-1] {
	case 'C':
		v.operate(opRight, max(n, 1))
	case 'D':
		v.operate(opLeft, max(n, 1))
	case 'G':
		v.operate(opReturn, 1)
		v.operate(opRight, max(n, 1)-1)
	case 'K':
		op := byte(opClearEnd)
		if given && n == 1 {
			op = opClearHead
		} else if given && n == 2 {
			op = opClearLine
		}
		v.operate(op, 1)
	}
}

// wide takes a character beyond ASCII.
func (v *view) wide(src []byte, atEnd bool) int {
	if !atEnd && !utf8.FullRune(src) {
		return 0
	}
	r, n := utf8.DecodeRune(src)
	switch {
	case r == utf8.RuneError && n == 1:
		v.keep(utf8.RuneError)
	case r <= 0x9f:
		switch r {
		case 0x90, 0x98, 0x9b, 0x9d, 0x9e, 0x9f:
			return v.escape(src, atEnd)
		}
		v.leave(src[:n])
	case r == 0x2028 || r == 0x2029:
		if v.exact {
			v.leave(src[:n])
			break
		}
		v.decide('\n')
		v.add([]byte{'\n'})
		v.last = '\n'
	case isTag(r) && v.last == blackFlag:
		if !atEnd && len(src) < flagBytes {
			return 0
		}
		if size := flag(src); size > 0 {
			v.text = append(v.text, src[:size]...)
			v.last = 0
			v.bound()
			return size
		}
		v.leave(src[:n])
	case isJoiner(r):
		v.decide(r)
		v.held = r
	case isShapeless(r):
		v.leave(src[:n])
	default:
		v.keep(r)
	}
	return n
}

// keep adds a character.
func (v *view) keep(r rune) {
	v.decide(r)
	v.text = utf8.AppendRune(v.text, r)
	v.last = r
	v.bound()
}

// decide keeps the character that was held if it has work to do between its
// neighbours; next is 0 at the end.
func (v *view) decide(next rune) {
	r := v.held
	if r == 0 {
		return
	}
	v.held = 0
	if joins(v.last, r, next) {
		v.text = utf8.AppendRune(v.text, r)
		v.last = r
		v.bound()
		return
	}
	v.leave(utf8.AppendRune(nil, r))
}
