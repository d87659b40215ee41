package guard

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

// mask is what stands for a secret.
func mask(name string) string { return "[redacted:" + name + "]" }

// hasTrigger reports whether s could have a secret.
func hasTrigger(s string) bool {
	for i := range secrets {
		if strings.Contains(s, secrets[i].trigger) {
			return true
		}
	}
	return false
}

// redact appends b from b[from] on to dst with secrets masked. Before the end of
// the text it leaves the last maxSecret bytes for later; rest begins with a byte
// that was dealt with, which the next call needs for context, and next is then
// what it has to give for from. Where b is cut does not matter.
func redact(dst, b []byte, from int, atEnd bool) (out, rest []byte, next int) {
	safe := len(b) // triggers before it can be decided on
	if !atEnd {
		safe -= maxSecret
	}
	if safe <= from {
		if atEnd {
			return dst, nil, 0
		}
		return dst, b, from
	}
	pos := from
	for at := newTriggers(b, from, safe); ; {
		which, i := at.first()
		if which < 0 {
			break
		}
		start, end, ok := secrets[which].extent(b, i)
		if !ok {
			at.advance(which, i+1)
			continue
		}
		dst = append(dst, b[pos:start]...)
		dst = append(dst, mask(secrets[which].name)...)
		pos = end
		at.skip(end)
	}
	if pos < safe {
		dst = append(dst, b[pos:safe]...)
		pos = safe
	}
	if atEnd {
		return dst, nil, 0
	}
	return dst, b[pos-1:], 1
}

// triggers finds the triggers that begin before limit, in order.
type triggers struct {
	b     []byte
	limit int
	next  []int // of each secret; limit = no more
}

func newTriggers(b []byte, from, limit int) *triggers {
	t := &triggers{b: b, limit: limit, next: make([]int, len(secrets))}
	for k := range t.next {
		t.advance(k, from)
	}
	return t
}

// first returns the secret whose trigger is next, and where; or -1.
func (t *triggers) first() (which, at int) {
	which, at = -1, t.limit
	for k, i := range t.next {
		if i < at {
			which, at = k, i
		}
	}
	return which, at
}

// advance moves a secret to its next trigger at or behind from.
func (t *triggers) advance(k, from int) {
	t.next[k] = t.limit
	if from >= t.limit {
		return
	}
	end := min(len(t.b), t.limit+len(secrets[k].trigger)-1)
	if i := bytes.Index(t.b[from:end], secrets[k].bytes); i >= 0 {
		t.next[k] = from + i
	}
}

// skip moves all secrets behind what was masked.
func (t *triggers) skip(to int) {
	for k, i := range t.next {
		if i < to {
			t.advance(k, to)
		}
	}
}

// filter reads a cleaned text. It holds a window of the text, no more.
type filter struct {
	src   io.Reader
	exact bool
	chunk []byte
	raw   []byte // read, and not yet neutralised
	plain []byte // neutralised, and not yet redacted
	from  int    // bytes at the start of plain that are only context
	buf   []byte // backs ready
	ready []byte // clean
	err   error
}

const chunkSize = 64 << 10

func newFilter(src io.Reader, exact bool) *filter {
	return &filter{src: src, exact: exact, chunk: make([]byte, chunkSize)}
}

func (f *filter) Read(p []byte) (int, error) {
	for len(f.ready) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.fill()
	}
	n := copy(p, f.ready)
	f.ready = f.ready[n:]
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
	atEnd := err != nil
	f.raw = append(f.raw, f.chunk[:n]...)
	var rest []byte
	f.plain, rest = neutralise(f.plain, f.raw, atEnd, f.exact)
	f.raw = append(f.raw[:0], rest...)
	if f.exact {
		f.buf = append(f.buf[:0], f.plain...)
		f.plain = f.plain[:0]
	} else {
		f.buf, rest, f.from = redact(f.buf[:0], f.plain, f.from, atEnd)
		f.plain = append(f.plain[:0], rest...)
	}
	f.ready = f.buf
}
