package plan

import (
	"strings"
	"unicode"
)

// What makes a request look like much work. docs/guide.md says it.
const (
	muchPoints = 3   // points of a list
	muchWords  = 120 // words; a letter of a script without spaces between words counts as half of one
)

// Complex reports whether a request looks like so much work that it is planned first: it
// has three points of a list or more, or 120 words. It goes by the text alone, so that
// the same request is always taken the same way.
func Complex(text string) bool {
	points, halves := 0, 0
	lines := strings.Split(clean(text), "\n")
	for i, fenced := range fences(lines) {
		if fenced {
			continue
		}
		l := strings.TrimSpace(lines[i])
		if _, ok := numbered(l); ok {
			points++
		} else if _, ok := bulleted(l); ok {
			points++
		}
		for word := range strings.FieldsSeq(l) {
			halves += weight(word)
		}
	}
	return points >= muchPoints || halves >= 2*muchWords
}

// weight is how much a word counts, in halves.
func weight(word string) (n int) {
	for _, r := range word {
		if unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Thai) {
			n++
		}
	}
	return max(n, 2)
}
