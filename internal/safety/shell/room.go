package shell

import (
	"slices"
	"sync"

	"dure/agent"
	"dure/internal/safety/shell/programs"
)

// walkers are used again, with what they have room for: one takes as much memory as
// a short reading.
var walkers = sync.Pool{New: func() any { return new(walker) }}

// room is memory of a walker that nothing refers to once it is done.
type room struct {
	top   []agent.SimpleCommand  // the commands of the text itself
	spare []*agent.SimpleCommand // for those that are being followed
	words []programs.Word        // what is left of a block for words
	block []programs.Word
}

// The limits of what is kept for the next reading, in number.
const (
	maxTop   = 1024
	maxSpare = 16
	maxWords = 256
)

// free hands a walker back. Nothing of the text stays in it.
func (w *walker) free() {
	r := w.room
	clear(r.top)
	if r.top = r.top[:0]; cap(r.top) > maxTop {
		r.top = nil
	}
	if len(r.spare) > maxSpare {
		r.spare = nil
	}
	clear(r.block[:len(r.block)-len(r.words)])
	r.words = r.block
	*w = walker{room: r}
	walkers.Put(w)
}

// add lists a command.
func (w *walker) add(sc agent.SimpleCommand) {
	if n := len(*w.out); n == cap(*w.out) && n >= 16 {
		*w.out = slices.Grow(*w.out, 2*n) // they are large, and moving them takes long
	}
	*w.out = append(*w.out, sc)
}

// spared returns an empty command, and used takes it back.
func (r *room) spared() *agent.SimpleCommand {
	if n := len(r.spare); n > 0 {
		sc := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return sc
	}
	return new(agent.SimpleCommand)
}

func (r *room) used(sc *agent.SimpleCommand) {
	*sc = agent.SimpleCommand{}
	r.spare = append(r.spare, sc)
}

// list returns an empty list with room for n words.
func (r *room) list(n int) []programs.Word {
	if n > len(r.words) {
		if len(r.block) > 0 || n > maxWords {
			return make([]programs.Word, 0, n)
		}
		r.block = make([]programs.Word, maxWords)
		r.words = r.block
	}
	list := r.words[:0:n]
	r.words = r.words[n:]
	return list
}
