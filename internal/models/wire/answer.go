package wire

import (
	"fmt"
	"strings"

	"dure/agent"
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

// Open are the blocks of an answer that may still grow, by the index that the
// provider gives them.
type Open[B any] struct {
	blocks map[int]*B
	index  int // of last
	last   *B  // nearly always what the next delta is for too
}

// Put opens a block.
func (o *Open[B]) Put(index int, b *B) {
	if o.blocks == nil {
		o.blocks = make(map[int]*B)
	}
	o.blocks[index], o.index, o.last = b, index, b
}

// At returns the block with an index; nil = none is open.
func (o *Open[B]) At(index int) *B {
	if o.last == nil || o.index != index {
		b := o.blocks[index]
		if b == nil {
			return nil
		}
		o.index, o.last = index, b
	}
	return o.last
}

// Close closes the block with an index, if there is one.
func (o *Open[B]) Close(index int) {
	delete(o.blocks, index)
	o.last = nil
}

// Len returns how many blocks are open.
func (o *Open[B]) Len() int { return len(o.blocks) }

// Piece emits more of a block: text, thinking, or the input of a call. Of a block of
// another kind, and without text, it emits nothing.
func (e Emit) Piece(kind agent.BlockType, d agent.Delta) error {
	switch {
	case d.Text == "":
		return nil
	case kind == agent.TextBlock:
		d.Kind = agent.DeltaText
	case kind == agent.ThinkingBlock:
		d.Kind = agent.DeltaThinking
	case kind == agent.CallBlock:
		d.Kind = agent.DeltaInput
	default:
		return nil
	}
	return e(d)
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
