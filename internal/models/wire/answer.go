package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"dure/agent"
	"dure/internal/models/sse"
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

// Answer is an answer in the making. The reader of each dialect embeds one.
type Answer struct {
	Request  agent.Request
	Provider string
	In       *Body
	Emit     Emit

	ID, Model string
	Blocks    []*Block
	IDs       map[string]bool // of calls
	Usage     agent.Usage     // as it was shown last
	Kept      Kept
	Scratch   []byte // of what reads events quickly

	Begun bool // an event of the API came
	Ended bool // the reason for the end came: the stream may stop

	// Foreign is the name of the API when a stream without any event of it is
	// another protocol's, and no answer that was cut.
	Foreign string
}

// A Reader reads the events of an answer.
type Reader interface {
	// Take takes in one event, and reports whether it was the last. io.EOF means
	// that nothing behind the event counts.
	Take(e sse.Event) (done bool, err error)

	// Finish emits the whole answer, or says why there is none.
	Finish() error

	State() *Answer
}

// State returns what every reader embeds.
func (a *Answer) State() *Answer { return a }

// Read reads an answer to its end, and reports whether that came.
func Read(r Reader) (complete bool, err error) {
	a := r.State()
	d := sse.NewDecoder(a.In)
	for seen := false; ; seen = true {
		e, err := d.Next()
		done := false
		if err == nil {
			if done, err = r.Take(e); err != nil && err != io.EOF {
				return false, err
			}
		}
		switch {
		case done, err == io.EOF && a.Ended:
			return true, r.Finish()
		case err == io.EOF && seen && !a.Begun && a.Foreign != "":
			return false, a.In.Damaged(a.Foreign, false, nil)
		case err != nil:
			return false, a.In.Cut(err, seen)
		}
	}
}

// A Block is one block in the making.
type Block struct {
	Index     int
	Kind      agent.BlockType
	Text      strings.Builder // text, thinking, or the JSON of a call's input
	Signature string
	Raw       json.RawMessage
	Done      bool // the provider says that it is complete

	// Of a call.
	ID, Tool string
	Source   string      // its ID as the endpoint says it
	Hidden   bool        // its beginning was not emitted: its name is not known
	Call     *agent.Call // if it came whole
}

// Add begins a block.
func (a *Answer) Add(index int, kind agent.BlockType) (*Block, error) {
	if len(a.Blocks) >= MaxBlocks {
		return nil, Protocol(fmt.Sprintf("the answer has more than %d blocks", MaxBlocks))
	}
	b := &Block{Index: index, Kind: kind}
	a.Blocks = append(a.Blocks, b)
	return b, nil
}

// Append adds text to a block and shows it. What is shown shares memory with what
// is kept.
func (a *Answer) Append(b *Block, text string) error {
	at := b.Text.Len()
	b.Text.WriteString(text)
	return a.grown(b, at)
}

// AppendBytes does the same without a copy.
func (a *Answer) AppendBytes(b *Block, text []byte) error {
	at := b.Text.Len()
	b.Text.Write(text)
	return a.grown(b, at)
}

func (a *Answer) grown(b *Block, at int) error {
	if err := a.Kept.Grow(b.Text.Len() - at); err != nil {
		return err
	}
	return a.Show(b, at)
}

// Show emits what b has from at on.
func (a *Answer) Show(b *Block, at int) error {
	if b.Hidden {
		return nil
	}
	return a.Emit.piece(b.Kind, agent.Delta{Index: b.Index, Text: b.Text.String()[at:], CallID: b.ID})
}

// Count shows the usage unless it is as before.
func (a *Answer) Count(u agent.Usage) error {
	if u == a.Usage {
		return nil
	}
	a.Usage = u
	shown := u
	return a.Emit(agent.Delta{Kind: agent.DeltaUsage, Usage: &shown})
}

// Total takes in a count that is a total, if it was reported.
func Total(to, reported *int) {
	if reported != nil {
		*to = max(*reported, 0)
	}
}

// Final emits the whole answer.
func (a *Answer) Final(blocks []agent.Block, stop agent.StopReason, detail string) error {
	return a.Emit(agent.Delta{Kind: agent.DeltaFinal, Final: &agent.Answer{
		Message: agent.Message{Role: agent.Assistant, Blocks: blocks},
		Stop:    stop, Usage: a.Usage, Detail: detail,
		ID: a.ID, Model: a.Model, RequestID: a.In.RequestID,
	}})
}

// UniqueID returns the ID of a call or, when it is taken, the ID with the first
// number from n on that makes it another. It is taken then.
func (a *Answer) UniqueID(id string, n int) string {
	if a.IDs == nil {
		a.IDs = make(map[string]bool)
	}
	if id == "" {
		id = "call_" + a.ID
	}
	free := id
	for ; a.IDs[free]; n++ {
		free = fmt.Sprintf("%s_%d", id, n)
	}
	a.IDs[free] = true
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

// piece emits more of a block: text, thinking, or the input of a call. Of a block of
// another kind, and without text, it emits nothing.
func (e Emit) piece(kind agent.BlockType, d agent.Delta) error {
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
