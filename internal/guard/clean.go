package guard

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// The bounds of terminal sequences. A longer one is text behind a lone escape.
const (
	maxControl = 256       // bytes of a control sequence
	maxString  = 4 << 10   // bytes of a string for the terminal, such as a title
	lookahead  = maxString // bytes that are enough to decide on a sequence
)

const (
	esc        = 0x1b
	visibleEsc = "␛" // what an exact text has instead

	// introducers begin a sequence alone, as an escape and the character 0x40
	// below do.
	introducers = "\u0090\u0098\u009b\u009d\u009e\u009f"
)

// Clean returns s without terminal sequences, control characters and secrets, as
// output may be shown while it arrives.
func Clean(s string) string { return clean(s, false) }

func clean(s string, exact bool) string {
	if isClean(s, exact) {
		return s
	}
	b, _ := neutralise(nil, []byte(s), true, exact)
	if exact {
		return string(b)
	}
	out, _, _ := redact(nil, b, 0, true)
	return string(out)
}

// isClean reports whether there is surely nothing to take out of s. It is quick,
// and may be wrong in the safe direction.
func isClean(s string, exact bool) bool {
	ascii := true
	for i := range len(s) {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '\n' || c == '\t' || c >= ' ' && c != 0x7f:
		case !exact || c == esc:
			return false
		}
	}
	if !ascii && (!utf8.ValidString(s) || hasC1(s)) {
		return false
	}
	return exact || !hasTrigger(s)
}

// hasC1 reports whether s has control characters from U+0080 to U+009F.
func hasC1(s string) bool {
	for {
		i := strings.IndexByte(s, 0xc2)
		if i < 0 || i+1 >= len(s) {
			return false
		}
		if s[i+1] < 0xa0 {
			return true
		}
		s = s[i+2:]
	}
}

// neutralise appends src to dst without what a terminal would obey, and returns
// what it cannot decide on yet; at the end of the text it decides on everything.
// Where src is cut does not matter.
//
// A text that need not be exact loses terminal sequences and control characters
// but newline and tab; a carriage return ends a line. Of an exact one only the
// escape character, in all its forms, is made visible. Bytes that are no UTF-8
// become U+FFFD in both.
func neutralise(dst, src []byte, atEnd, exact bool) (out, rest []byte) {
	for len(src) > 0 {
		n := harmless(src, exact)
		dst, src = append(dst, src[:n]...), src[n:]
		if len(src) == 0 {
			break
		}
		switch c := src[0]; {
		case c >= utf8.RuneSelf:
			if !atEnd && !utf8.FullRune(src) {
				return dst, src
			}
			r, size := utf8.DecodeRune(src)
			switch {
			case r == utf8.RuneError && size == 1:
				dst = append(dst, "\uFFFD"...)
			case exact && r <= 0x9f && strings.ContainsRune(introducers, r):
				dst = append(append(dst, visibleEsc...), byte(r-0x40))
			case r > 0x9f || exact:
				dst = append(dst, src[:size]...)
			}
			src = src[size:]
		case exact:
			if c == esc {
				dst = append(dst, visibleEsc...)
			} else {
				dst = append(dst, c)
			}
			src = src[1:]
		case c == esc:
			if !atEnd && len(src) <= lookahead {
				return dst, src
			}
			src = src[sequence(src[:min(len(src), lookahead+1)]):]
		case c == '\r':
			if !atEnd && len(src) == 1 {
				return dst, src
			}
			if len(src) == 1 || src[1] != '\n' && src[1] != '\r' {
				dst = append(dst, '\n')
			}
			src = src[1:]
		default:
			src = src[1:]
		}
	}
	return dst, nil
}

// harmless returns how many bytes from the start need no look.
func harmless(b []byte, exact bool) int {
	for i, c := range b {
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || exact && c < utf8.RuneSelf && c != esc {
			continue
		}
		return i
	}
	return len(b)
}

// sequence returns the length of the terminal sequence at the start of b, which
// begins with an escape. A sequence that does not end within bounds is just that.
func sequence(b []byte) int {
	if len(b) < 2 {
		return 1
	}
	switch b[1] {
	case '[':
		for i := 2; i < min(len(b), maxControl); i++ {
			switch c := b[i]; {
			case c >= 0x40 && c <= 0x7e:
				return i + 1
			case c < 0x20 || c > 0x3f:
				return 1
			}
		}
		return 1
	case ']', 'P', 'X', '^', '_':
		for i := 2; i < len(b); i++ {
			switch {
			case b[i] == '\a' && b[1] == ']':
				return i + 1
			case b[i] == '\\' && b[i-1] == esc:
				return i + 1
			}
		}
		return 1
	}
	for i := 1; i < min(len(b), maxControl); i++ {
		switch c := b[i]; {
		case c >= 0x30 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x2f:
			return 1
		}
	}
	return 1
}

// isBinary reports whether an output that begins with b is no text.
func isBinary(b []byte) bool {
	if bytes.IndexByte(b, 0) >= 0 {
		return true
	}
	odd := 0
	for rest := b; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 && (len(rest) >= utf8.UTFMax || utf8.FullRune(rest)) ||
			r < ' ' && !strings.ContainsRune("\n\r\t\b\f\a\x1b", r) {
			odd++
		}
		rest = rest[size:]
	}
	return odd*10 > len(b)*3 // more than 30 percent
}

// kindOf names a well-known format, with a comma before it.
func kindOf(b []byte) string {
	for _, k := range []struct{ magic, name string }{
		{"\x89PNG", "PNG image"},
		{"\xff\xd8\xff", "JPEG image"},
		{"GIF8", "GIF image"},
		{"%PDF", "PDF document"},
		{"PK\x03\x04", "zip archive"},
		{"\x1f\x8b", "gzip data"},
		{"BZh", "bzip2 data"},
		{"\xfd7zXZ", "xz data"},
		{"\x28\xb5\x2f\xfd", "zstd data"},
		{"\x7fELF", "ELF program"},
		{"MZ", "Windows program"},
		{"\xcf\xfa\xed\xfe", "Mach-O program"},
		{"SQLite format 3", "SQLite database"},
		{"\xff\xfe", "UTF-16 text"},
		{"\xfe\xff", "UTF-16 text"},
	} {
		if bytes.HasPrefix(b, []byte(k.magic)) {
			return ", " + k.name
		}
	}
	return ""
}
