package wire

import (
	"fmt"
	"strings"
)

// The bounds of one answer.
const (
	MaxBlocks = 4096
	MaxAnswer = 64 << 20 // bytes of everything that is kept of it
)

// Kept counts the bytes that are kept of an answer.
type Kept int

// Grow counts n more, up to MaxAnswer.
func (k *Kept) Grow(n int) error {
	if *k += Kept(n); *k > MaxAnswer {
		return Protocol(fmt.Sprintf("the answer is larger than %d MiB", MaxAnswer>>20))
	}
	return nil
}

// Another returns an error when an answer that has so many blocks cannot have
// one more.
func Another(blocks int) error {
	if blocks >= MaxBlocks {
		return Protocol(fmt.Sprintf("the answer has more than %d blocks", MaxBlocks))
	}
	return nil
}

// Unique returns id or, when it is taken, id with the first number from n on that
// makes it another. It is taken then.
func Unique(taken map[string]bool, id string, n int) string {
	free := id
	for ; taken[free]; n++ {
		free = fmt.Sprintf("%s_%d", id, n)
	}
	taken[free] = true
	return free
}

// Bound returns at most n bytes of s.
func Bound(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }

// Holds reports whether text has one of the parts in it.
func Holds(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
