package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// runeWidth returns the number of terminal cells of r: 0 for controls, marks
// and the vowels and finals of decomposed Hangul, 2 for wide characters
// (Unicode's East Asian Width W and F), else 1.
func runeWidth(r rune) int {
	switch {
	case r < ' ' || (r >= 0x7f && r < 0xa0):
		return 0
	case r < 0x300:
		return 1
	case (r >= 0x1160 && r <= 0x11ff) || (r >= 0xd7b0 && r <= 0xd7ff):
		return 0
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

const joiner = 0x200d

// Cluster returns the size in bytes and the width in cells of the first
// character of s as a person sees it: a letter with its marks, a syllable of
// decomposed Hangul, a flag, a sequence of emoji. It is 0, 0 for "".
func Cluster(s string) (size, cells int) {
	if s == "" {
		return 0, 0
	}
	first, size := utf8.DecodeRuneInString(s)
	cells = runeWidth(first)
	if first < ' ' {
		return size, cells // a control never joins
	}
	prev, flags := first, isFlag(first)
	for size < len(s) {
		r, n := utf8.DecodeRuneInString(s[size:])
		switch {
		case r < ' ':
			return size, cells
		case runeWidth(r) == 0, prev == joiner, isSkin(r):
		case flags && isFlag(r):
			cells, flags = 2, false
		default:
			return size, cells
		}
		prev = r
		size += n
	}
	return size, cells
}

func isFlag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
func isSkin(r rune) bool { return r >= 0x1f3fb && r <= 0x1f3ff }

// Width returns the number of terminal cells of s, which is one line.
func Width(s string) int {
	total := 0
	for s != "" {
		if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
			if s[0] >= ' ' && s[0] != 0x7f {
				total++
			}
			s = s[1:]
			continue
		}
		n, w := Cluster(s)
		total += w
		s = s[n:]
	}
	return total
}

// Last returns the size in bytes of the last character of s as a person sees
// it.
func Last(s string) int {
	// A character that is longer than this many bytes is cut: nobody types it.
	const longest = 64
	from := max(0, len(s)-longest)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from++
	}
	size := 0
	for rest := s[from:]; rest != ""; rest = rest[size:] {
		size, _ = Cluster(rest)
	}
	return size
}

// Cut shortens s, which is one line, to cells and ends it with an ellipsis when
// something had to go.
func Cut(s string, cells int) string {
	if Width(s) <= cells {
		return s
	}
	if cells <= 0 {
		return ""
	}
	used, end := 0, 0
	for end < len(s) {
		n, w := Cluster(s[end:])
		if used+w > cells-1 {
			break
		}
		used += w
		end += n
	}
	return s[:end] + "…"
}

// Clean makes s harmless for a terminal: controls become visible signs, so that
// no escape sequence survives, and so do the characters that change the
// direction of text. Line feeds stay, tabs become four spaces, carriage returns
// go. One line is what [OneLine] makes of it.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteByte('\n')
		case r == '\t':
			b.WriteString("    ")
		case r == '\r':
		case r < ' ':
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune(0x2421)
		case r >= 0x80 && r < 0xa0, isBidi(r), r == 0x2028, r == 0x2029:
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r) // what is no UTF-8 arrives as U+FFFD
		}
	}
	return b.String()
}

func isClean(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n') || c >= 0x7f {
			return c >= 0x80 && isCleanWide(s[i:])
		}
	}
	return true
}

func isCleanWide(s string) bool {
	for _, r := range s {
		if (r < ' ' && r != '\n') || (r >= 0x7f && r < 0xa0) || r == utf8.RuneError || isBidi(r) || r == 0x2028 || r == 0x2029 {
			return false
		}
	}
	return true
}

// Exact is [Clean] for what a person decides about: carriage returns and
// characters without a shape are shown too, because what is not seen would run.
func Exact(s string) string {
	return Clean(strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return 0x240d // the sign for it
		case isShapeless(r):
			return utf8.RuneError
		}
		return r
	}, s))
}

// isShapeless reports whether a character leaves no mark where it stands: zero
// widths, fillers, tags and variation selectors.
func isShapeless(r rune) bool {
	switch r {
	case 0xad, 0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x3164, 0xfeff, 0xffa0:
		return true
	}
	return r >= 0x180b && r <= 0x180f || r >= 0x200b && r <= 0x200d || r >= 0x2060 && r <= 0x206f ||
		r >= 0xfe00 && r <= 0xfe0f || r >= 0xfff0 && r <= 0xfffb || r >= 0x1bca0 && r <= 0x1bca3 ||
		r >= 0x1d173 && r <= 0x1d17a || r >= 0xe0000 && r <= 0xe0fff
}

func isBidi(r rune) bool {
	return (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) || r == 0x200e || r == 0x200f || r == 0x061c
}

// OneLine makes one harmless line of s: all white space becomes one blank.
func OneLine(s string) string { return Clean(strings.Join(strings.Fields(s), " ")) }

// ExactLine is [OneLine] for what a person decides about, see [Exact].
func ExactLine(s string) string { return Exact(strings.Join(strings.Fields(s), " ")) }

// maxSome is how many names a message has.
const maxSome = 5

// Some is a list of names that a person decides about, on one line: the first of them,
// and how many more there are.
func Some(names []string) string {
	var all []string
	for _, n := range names[:min(len(names), maxSome)] {
		all = append(all, ExactLine(n))
	}
	if more := len(names) - maxSome; more > 0 {
		all = append(all, "… +"+strconv.Itoa(more))
	}
	return strings.Join(all, ", ")
}

// Wrap breaks s, which is one line, into lines of at most cells: at blanks where
// it can, else between characters. It returns at least one line.
func Wrap(s string, cells int) []string {
	cells = max(cells, 2) // the widest character
	var lines []string
	line, width := "", 0
	for word := range strings.SplitSeq(s, " ") {
		w := Width(word)
		if width > 0 && width+1+w > cells {
			lines = append(lines, line)
			line, width = "", 0
		} else if width > 0 {
			line += " "
			width++
		}
		for w > cells-width {
			end, used := 0, 0
			for {
				n, cw := Cluster(word[end:])
				if n == 0 || width+used+cw > cells {
					break
				}
				end, used = end+n, used+cw
			}
			if end == len(word) {
				break
			}
			lines = append(lines, line+word[:end])
			line, width, word = "", 0, word[end:]
			w = Width(word)
		}
		line += word
		width += w
	}
	return append(lines, line)
}
