package guard

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"
)

// settled returns what a terminal shows of a line with operations in the end.
//
// A part of a secret must not stay because something was written over the rest of
// it: each part of the line, as it was before it was written over, has its secrets
// masked first. A secret over several parts leaves the parts as lines.
func (v *view) settled(line []byte) []byte {
	all := bytes.ReplaceAll(without(line, ops[1:]), []byte{opReturn}, []byte{'\n'})
	if masked, across := v.maskedLines(all); across {
		return masked
	}
	var e lineEditor
	for i, part := range bytes.Split(line, []byte{opReturn}) {
		if i > 0 {
			e.at = 0
		}
		if masked, n := v.masked(without(part, ops)); n > 0 {
			part = masked
		}
		e.write(part)
	}
	var again view // what shaped its neighbours may have others now
	again.feed(e.bytes(), true)
	return again.text
}

// without returns b without the bytes of a set.
func without(b []byte, set string) []byte {
	if !bytes.ContainsAny(b, set) {
		return b
	}
	return bytes.Map(func(r rune) rune {
		if r < utf8.RuneSelf && bytes.IndexByte([]byte(set), byte(r)) >= 0 {
			return -1
		}
		return r
	}, b)
}

// A lineEditor is one line of a terminal. A character that takes two columns has
// its bytes in the first and nothing in the second.
type lineEditor struct {
	columns [][]byte
	at      int
}

var blank = []byte{' '}

func (e *lineEditor) write(b []byte) {
	for len(b) > 0 {
		switch c := b[0]; c {
		case opReturn:
			e.at = 0
		case opLeft:
			e.at = max(e.at-1, 0)
		case opRight:
			e.at = min(e.at+1, maxLine)
		case opClearEnd:
			e.columns = e.columns[:min(e.at, len(e.columns))]
		case opClearLine:
			e.columns = e.columns[:0]
		case opClearHead:
			for i := range min(e.at+1, len(e.columns)) {
				e.columns[i] = blank
			}
		default:
			_, n := utf8.DecodeRune(b)
			e.put(b[:n])
			b = b[n:]
			continue
		}
		b = b[1:]
	}
}

// put writes a character over what is in its columns.
func (e *lineEditor) put(char []byte) {
	r, _ := utf8.DecodeRune(char)
	wide := columnsOf(r)
	if wide == 0 {
		if i := min(e.at, len(e.columns)) - 1; i >= 0 {
			for i > 0 && len(e.columns[i]) == 0 {
				i--
			}
			e.columns[i] = append(slices.Clone(e.columns[i]), char...)
			return
		}
		wide = 1
	}
	for len(e.columns) < e.at+wide {
		e.columns = append(e.columns, blank)
	}
	if e.at > 0 && len(e.columns[e.at]) == 0 {
		e.columns[e.at-1] = blank // half of a wide one is gone
	}
	if next := e.at + wide; next < len(e.columns) && len(e.columns[next]) == 0 {
		e.columns[next] = blank
	}
	e.columns[e.at] = char
	if wide == 2 {
		e.columns[e.at+1] = nil
	}
	e.at += wide
}

func (e *lineEditor) bytes() []byte { return bytes.Join(e.columns, nil) }

// columnsOf returns how many columns of a terminal a character takes.
func columnsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || r >= 0x1160 && r <= 0x11ff:
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf && r != 0x303f, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
