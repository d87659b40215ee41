package cli

import (
	"strings"

	"dure/internal/near"
)

// Nearest returns the candidate that a mistyped word most likely means, or "".
// At most a third of the word may differ.
func Nearest(word string, candidates []string) string {
	const longest = 64 // bytes; nothing that we call by name is longer
	if len(word) > longest {
		return ""
	}
	best, least := "", len(strings.TrimLeft(word, "-/"))/3+1
	for _, c := range candidates {
		if d := near.Distance(word, c, 0); d < least || (d == least && best == "" && d <= 1) {
			best, least = c, d
		}
	}
	return best
}
