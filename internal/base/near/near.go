// Package near says how far a word is from the one that may have been meant, and which
// one of some that probably is. It starts no goroutines.
package near

import "strings"

// longest is how many bytes of each word are compared: nothing that has a name
// here needs more, and the effort grows with the product.
const longest = 255

// Distance counts the bytes to insert, delete, replace or swap with their
// neighbour that make b of a, up to limit; no limit is at most 0. Of each word it
// compares the first 255 bytes.
func Distance(a, b string, limit int) int {
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	if limit > 0 && max(len(a), len(b))-min(len(a), len(b)) >= limit {
		return limit
	}
	older, before, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range before {
		before[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			changed := before[j]
			if a[i] != b[j] {
				changed++
			}
			row[j+1] = min(changed, row[j]+1, before[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
		older, before, row = before, row, older
	}
	if limit > 0 {
		return min(before[len(b)], limit)
	}
	return before[len(b)]
}

// Nearest returns the candidate that a mistyped word most likely means, or "".
// At most a third of the word may differ.
func Nearest(word string, candidates []string) string {
	const longest = 64 // bytes; nothing that we call by name is longer
	if len(word) > longest {
		return ""
	}
	best, least := "", len(strings.TrimLeft(word, "-/"))/3+1
	for _, c := range candidates {
		if d := Distance(word, c, 0); d < least || (d == least && best == "" && d <= 1) {
			best, least = c, d
		}
	}
	return best
}
