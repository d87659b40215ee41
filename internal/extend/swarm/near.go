package swarm

import (
	"strings"

	"dure/internal/base/near"
)

// nearest returns the word that was most likely meant, or "".
func nearest(word string, among []string) (meant string) {
	limit := len(word)/3 + 2
	for _, w := range among {
		if d := near.Distance(strings.ToLower(word), strings.ToLower(w), limit); d < limit {
			limit, meant = d, w
		}
	}
	return meant
}
