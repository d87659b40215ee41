package journal

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// maxLocated bounds the text in which a changed byte is looked for: two lines and
// what is between them, or a snapshot of that size. It needs four times as much
// memory.
const maxLocated = 2 * maxLine

// A single byte that was changed, added or taken out leaves enough of a checksummed
// text to tell which one: from its beginning the checksum runs forward to the byte,
// from what it should come to it runs backward, and only there do the two meet.

// steps are the checksum's table, and the place in it of the entry with each high
// byte: no two have the same.
type steps struct {
	table *crc32.Table
	high  [256]byte
}

var crcSteps = sync.OnceValue(func() *steps {
	s := &steps{table: castagnoli()}
	for i, v := range s.table {
		s.high[v>>24] = byte(i)
	}
	return s
})

// forward returns the checksum's state behind byte b, and back the one before it.
func (s *steps) forward(state uint32, b byte) uint32 {
	return s.table[byte(state)^b] ^ state>>8
}

func (s *steps) back(state uint32, b byte) uint32 {
	x := s.high[state>>24]
	return (state^s.table[x])<<8 | uint32(x^b)
}

// between returns the byte that leads from one state to another, if there is one.
func (s *steps) between(from, to uint32) (byte, bool) {
	x := s.high[to>>24]
	b := x ^ byte(from)
	return b, s.forward(from, b) == to
}

// unedited yields the texts from which text comes by one byte, and which have the
// checksum sum.
func unedited(text []byte, seed, sum uint32, yield func(was []byte)) {
	s, n := crcSteps(), len(text)
	after := make([]uint32, n+1) // the state behind so many bytes
	after[0] = ^seed
	for i, b := range text {
		after[i+1] = s.forward(after[i], b)
	}
	want := ^sum // the state that has to stand before the bytes from i on
	for i := n; ; i-- {
		if b, ok := s.between(after[i], want); ok { // one was taken out
			yield(slices.Concat(text[:i], []byte{b}, text[i:]))
		}
		if i == 0 {
			return
		}
		if after[i-1] == want { // one was added
			yield(slices.Concat(text[:i-1], text[i:]))
		}
		if b, ok := s.between(after[i-1], want); ok && b != text[i-1] { // one was changed
			yield(slices.Concat(text[:i-1], []byte{b}, text[i:]))
		}
		want = s.back(want, text[i-1])
	}
}

// damage is the one line that a changed byte may have made of another one.
type damage struct {
	text  []byte // the file from the beginning of the line on
	at    chain  // how the log stands before it
	lines [][]byte
}

// locateLine returns the place in text of the byte by which the line at its beginning
// is not the one that was written there: ok when it is one byte, and one only that it
// can be. Of several that it can be, which is rare, off is the first. The log stands at
// c before it.
func locateLine(text []byte, c chain) (off int, ok bool) {
	d := damage{text: text, at: c}
	first := bytes.IndexByte(text, '\n')
	raw := text
	if first >= 0 {
		raw = text[:first]
	}
	d.body(raw)
	d.sum(raw)
	d.end()
	if first >= 0 { // it may be the byte in question
		rest, _, _ := bytes.Cut(text[first+1:], []byte("\n"))
		for b := range 256 {
			d.take(slices.Concat(raw, []byte{byte(b)}, rest))
		}
		d.take(slices.Concat(raw, rest))
	}
	if len(d.lines) > 1 {
		d.lines = slices.DeleteFunc(d.lines, func(l []byte) bool { return !d.followed(l) })
	}
	if len(d.lines) == 0 {
		return 0, false
	}
	off = len(text)
	for _, l := range d.lines {
		off = min(off, shared(append(l, '\n'), text))
	}
	return off, len(d.lines) == 1
}

// shared returns how many bytes two texts begin with together.
func shared(x, y []byte) (n int) {
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

// take remembers a line if it is a good one.
func (d *damage) take(raw []byte) {
	if len(raw) >= maxLine || slices.ContainsFunc(d.lines, func(l []byte) bool { return bytes.Equal(l, raw) }) {
		return
	}
	l, err := readLine(raw, d.at.sum)
	if err != nil || d.at.follow(l) != nil || !utf8.Valid(raw) || !json.Valid(raw) {
		return
	}
	if _, err := time.Parse(time.RFC3339Nano, l.time); err == nil {
		d.lines = append(d.lines, slices.Clone(raw))
	}
}

// body looks for a byte in front of the checksum.
func (d *damage) body(raw []byte) {
	body, sum, ok := storedSum(raw)
	if !ok {
		return
	}
	unedited(body, d.at.sum, sum, func(was []byte) { d.take(slices.Concat(was, raw[len(body):])) })
}

// sum looks for a byte in the checksum itself, which may be one too short or too
// long for it.
func (d *damage) sum(raw []byte) {
	for _, n := range []int{len(raw) - sumLen, len(raw) - sumLen - 1, len(raw) - sumLen + 1} {
		if n <= 0 || n > len(raw) {
			continue
		}
		was := append(slices.Clone(raw[:n]), sumMark...)
		was = append(appendSum(was, crc32.Update(d.at.sum, castagnoli(), raw[:n])), `"}`...)
		if oneByte(was, raw) {
			d.take(was)
		}
	}
}

// oneByte reports whether two texts differ by one byte: changed, added, or taken out.
func oneByte(x, y []byte) bool {
	i := shared(x, y)
	return bytes.Equal(x[min(i+1, len(x)):], y[min(i+1, len(y)):]) ||
		bytes.Equal(x[i:], y[min(i+1, len(y)):]) || bytes.Equal(x[min(i+1, len(x)):], y[i:])
}

// end looks for a line that is good up to its newline, which is another byte, or is
// missing, or has one in front of it.
func (d *damage) end() {
	text := d.text[:min(len(d.text), maxLine)]
	for from := 0; ; {
		i := bytes.Index(text[from:], []byte(sumMark))
		if i < 0 {
			return
		}
		from += i + 1
		if n := from - 1 + sumLen; n <= len(text) {
			d.take(text[:n])
		}
	}
}

// followed reports whether the line behind a line in question was written behind it.
func (d *damage) followed(raw []byte) bool {
	l, err := readLine(raw, d.at.sum)
	if err != nil {
		return false
	}
	for _, n := range []int{len(raw) + 1, len(raw), len(raw) + 2} { // where it begins
		if n > len(d.text) {
			continue
		}
		if next, _, ok := bytes.Cut(d.text[n:], []byte("\n")); ok {
			if _, err := readLine(next, l.sum); err == nil {
				return true
			}
		}
	}
	return false
}
