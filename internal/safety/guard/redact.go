package guard

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The bounds of a secret with everything that decides whether it is one, in bytes:
// before and from the byte on at which it is noticed.
const (
	maxBefore = 96
	maxSecret = 32 << 10
)

const maskStart = "[redacted:"

// maskForm is the form of every mask: with the kind of what it stands for, and the
// last digits of a number that people know by them.
var maskForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[redacted:[a-z0-9][a-z0-9_-]{0,39}(:[0-9A-Za-z]{4})?\]`)
})

// Masked reports whether a text has a mask in it, in the place of something that
// nobody was shown. It must not get into a file.
func Masked(text string) bool { return maskForm().MatchString(text) }

// A span is a secret in a text.
type span struct {
	start, end int
	kind       string
	tail       [4]byte // last digits that the mask keeps; 0 = none
}

func (s span) appendMask(dst []byte) []byte {
	dst = append(append(dst, maskStart...), s.kind...)
	if s.tail[0] != 0 {
		dst = append(append(dst, ':'), s.tail[:]...)
	}
	return append(dst, ']')
}

// A finder finds secrets in a text, from its start to its end.
type finder struct {
	financial bool // numbers of cards, accounts and people too

	// floor is the end of the last mask or secret: what is before it is not
	// looked at, so that the text with its masks is read the same way again.
	floor int
	posed bool // the text had masks of its own

	scratch [maxBefore]byte // backs before
}

// find returns the first secret in b that is noticed from one place on and before
// another. It looks at no more than maxBefore bytes before the first, and
// maxSecret from the second on.
func (f *finder) find(b []byte, from, limit int) (span, bool) {
	index := index()
	classes := &index.classes
	for i := from; i < limit; {
		class := classes[b[i]]
		if class == 0 {
			i++
			continue
		}
		var s span
		var ok bool
		switch class {
		case digit:
			if !f.inWord(b, i) {
				s, ok = f.number(b, i)
			}
			for !ok && i+1 < limit && isDigit(b[i+1]) {
				i++
			}
		case bracket:
			if n := maskLength(b[i:]); n > 0 {
				i += n
				f.floor, f.posed = i, true
				continue
			}
		case separator:
			s, ok = f.assigned(b, i)
		case letter:
			if i+1 < len(b) && index.pairs[int(b[i])<<8|int(b[i+1])] != 0 {
				s, ok = f.token(b, i)
			}
		}
		if ok {
			f.floor = s.end
			return s, true
		}
		i++
	}
	return span{}, false
}

// maskLength returns the length of the mask at the start of b, or 0.
func maskLength(b []byte) int {
	if !bytes.HasPrefix(b, []byte(maskStart)) {
		return 0
	}
	if at := maskForm().FindIndex(b[:min(len(b), 64)]); at != nil && at[0] == 0 {
		return at[1]
	}
	return 0
}

// token looks for a credential that is known by its first letters.
func (f *finder) token(b []byte, i int) (span, bool) {
	index := index()
	bucket := index.pairs[int(b[i])<<8|int(b[i+1])]
	if bucket == 0 {
		return span{}, false
	}
	for k := range index.buckets[bucket] {
		t := &index.buckets[bucket][k]
		if len(b)-i < len(t.trigger) || string(b[i:i+len(t.trigger)]) != t.trigger || t.financial && !f.financial {
			continue
		}
		if t.word && f.inWord(b, i) {
			continue
		}
		if start, end, ok := t.extent(b[:min(len(b), i+maxSecret)], i); ok {
			s := span{start: start, end: end, kind: t.kind}
			if t.financial {
				s.tail = lastFour(b[start:end])
			}
			return s, true
		}
	}
	return span{}, false
}

// inWord reports whether a letter, digit or _ stands before b[i] that does not end
// an escape: texts in JSON, in source code and in URLs have those before anything.
func (f *finder) inWord(b []byte, i int) bool {
	return i > f.floor && isWord(b[i-1]) && !endsEscape(b[max(f.floor, i-longestEscape):i])
}

// longestEscape bounds what is looked at for the start of an escape, in bytes.
const longestEscape = 16

// endsEscape reports whether b ends with an escape: \n and its like, \x1b, \u001b,
// \033, %3D, or the rest of a colour behind one of them.
func endsEscape(b []byte) bool {
	n := len(b)
	behind := func(sign string, size int, digits *table) bool {
		at := n - size - len(sign)
		return at >= 0 && string(b[at:at+len(sign)]) == sign && run(b[n-size:], digits, size) == size
	}
	switch {
	case n >= 2 && b[n-2] == '\\' && strings.IndexByte("abefnrtv0", b[n-1]) >= 0,
		behind(`\x`, 2, &hexTable), behind(`\u`, 4, &hexTable), behind(`\`, 3, &digitTable), behind("%", 2, &hexTable):
		return true
	case b[n-1] == 'm':
		at := n - 1
		for at > 0 && (isDigit(b[at-1]) || b[at-1] == ';') {
			at--
		}
		return at > 1 && b[at-1] == '[' && endsEscape(b[:at-1])
	}
	return false
}

// before returns what stands before b[i] on its line, in small letters, as far as
// it may be looked at. The next call overwrites it.
func (f *finder) before(b []byte, i int) []byte {
	t := b[max(f.floor, i-maxBefore+8, 0):i]
	if n := bytes.LastIndexByte(t, '\n'); n >= 0 {
		t = t[n+1:]
	}
	out := f.scratch[:len(t)]
	for k, c := range t {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		out[k] = c
	}
	return out
}

// masked returns a text that is complete with its secrets masked, and how many
// there were.
func (v *view) masked(b []byte) (out []byte, n int) {
	f := finder{financial: v.financial}
	pos := 0
	for {
		s, ok := f.find(b, pos, len(b))
		if !ok {
			break
		}
		v.found(s.kind)
		out = s.appendMask(append(out, b[pos:s.start]...))
		pos = s.end
		n++
	}
	v.posed = v.posed || f.posed
	if n == 0 {
		return b, 0
	}
	return append(out, b[pos:]...), n
}

// maskedLines is masked; across reports whether a secret has a line end in it.
func (v *view) maskedLines(b []byte) (out []byte, across bool) {
	if bytes.IndexByte(b, '\n') < 0 {
		return b, false
	}
	f := finder{financial: v.financial}
	for pos := 0; ; {
		s, ok := f.find(b, pos, len(b))
		if !ok {
			return b, false
		}
		if bytes.IndexByte(b[s.start:s.end], '\n') >= 0 {
			break
		}
		pos = s.end
	}
	out, _ = v.masked(b)
	return out, true
}

// kinds is a set of kinds of secrets.
type kinds map[string]bool

func (k *kinds) found(kind string) {
	if *k == nil {
		*k = kinds{}
	}
	(*k)[kind] = true
}

func (k kinds) sorted() []string { return slices.Sorted(maps.Keys(k)) }
