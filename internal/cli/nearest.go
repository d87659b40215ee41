package cli

import "strings"

// Nearest returns the candidate that a mistyped word most likely means, or "".
// At most a third of the word may differ.
func Nearest(word string, candidates []string) string {
	const longest = 64 // bytes; nothing that we call by name is longer
	if len(word) > longest {
		return ""
	}
	best, least := "", len(strings.TrimLeft(word, "-/"))/3+1
	for _, c := range candidates {
		if d := distance(word, c); d < least || (d == least && best == "" && d <= 1) {
			best, least = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
