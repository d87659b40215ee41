package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine is a text as one line of at most n bytes, without signs that act.
func OneLine(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), 4*n)], ""))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > n {
		text = text[:n]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
	}
	return text
}
