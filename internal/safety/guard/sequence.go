package guard

// The bounds of terminal sequences. A longer one is text behind a lone escape.
const (
	maxControl = 256       // bytes of a control sequence
	lookahead  = 4<<10 + 8 // bytes that are enough to decide on a sequence
)

const esc = 0x1b

// sequence returns the length of what a terminal takes for the rest of a sequence
// of a kind; b is what stands behind its introducer. A sequence that is not ended
// within bounds is none: what it says is shown. more = it depends on what comes
// behind b.
func sequence(kind byte, b []byte) (n int, ok, more bool) {
	switch kind {
	case '[':
		return control(b, 0x40, 0x3f)
	case ']', 'P', 'X', '^', '_':
		return controlString(kind, b)
	}
	if kind >= 0x30 && kind <= 0x7e {
		return 0, true, false
	}
	if kind < 0x20 || kind > 0x2f {
		return 0, false, false
	}
	return control(b, 0x30, 0x2f)
}

// control returns the length of a sequence that ends with a byte from least on;
// before it stand bytes up to most.
func control(b []byte, least, most byte) (n int, ok, more bool) {
	for i, c := range b[:min(len(b), maxControl)] {
		switch {
		case c >= least && c <= 0x7e:
			return i + 1, true, false
		case c < 0x20 || c > most:
			return 0, false, false
		}
	}
	return 0, false, len(b) < maxControl
}

// controlString returns the length of a string for the terminal, such as a title:
// up to BEL, ST in one of its two forms, or what cancels it.
func controlString(kind byte, b []byte) (n int, ok, more bool) {
	for i, c := range b {
		last := i+1 == len(b)
		switch {
		case c == '\a' && kind == ']', c == 0x18, c == 0x1a:
			return i + 1, true, false
		case c == esc:
			if !last && b[i+1] == '\\' {
				return i + 2, true, false
			}
			return 0, false, last
		case c == 0xc2 && !last && b[i+1] == 0x9c:
			return i + 2, true, false
		case c == '\n' && kind != 'P':
			return 0, false, false
		}
	}
	return 0, false, true
}
