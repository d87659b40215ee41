package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

const (
	noSlot  = -1 // of a call whose endpoint numbers nothing
	oldSlot = -2 // of the one call of the older form

	maxChecks = 64 // of whether a call is complete, in one answer
)

// toolCall is a call, or a piece of one.
type toolCall struct {
	Index    *int     `json:"index"`
	ID       string   `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"arguments"`
}

// input returns the piece of JSON that a function has: mostly in a string, of
// some servers as the object itself.
func (f function) input() []byte {
	switch {
	case len(f.Input) == 0 || string(f.Input) == "null":
		return nil
	case f.Input[0] == '"':
		return []byte(plain(f.Input))
	}
	return f.Input
}

// call takes in a piece of a call, or begins one.
func (a *answer) call(t toolCall) error {
	slot := noSlot
	if t.Index != nil {
		slot = *t.Index
	}
	input := t.Function.input()
	b := a.continued(slot, t.ID, t.Function.Name, input)
	if b == nil {
		if t.ID == "" && t.Function.Name == "" && len(bytes.TrimSpace(input)) == 0 {
			return nil // the piece of nothing
		}
		var err error
		if b, err = a.begin(slot, t.ID); err != nil {
			return err
		}
	}
	if b.Hidden && t.Function.Name != "" {
		if err := a.name(b, t.Function.Name); err != nil {
			return err
		}
	}
	if len(input) == 0 {
		return nil
	}
	return a.AppendBytes(b, input)
}

// continued returns the call that a piece belongs to, or nil when it is the
// first of another one. The ID decides where there is one, then the index, then
// what came last: servers give every call the index 0, or none, repeat the name
// with every piece, and give the ID only once or never.
func (a *answer) continued(slot int, id, name string, input []byte) *wire.Block {
	at := a.slots[slot]
	last := a.newest
	switch {
	case id != "":
		if at != nil && (at.Source == id || at.Source == "" && !a.another(at, name, input)) {
			a.knows(at, id, slot)
			return at
		}
		return a.known[origin{id, slot}]
	case at != nil && slot != noSlot:
		if a.another(at, name, input) {
			return nil
		}
		return at
	case last != nil && (name == "" || slot == noSlot && !a.another(last, name, input)):
		return last
	}
	return nil
}

// another reports whether a piece with a name and without an ID begins another
// call than b: it has another name, or b is complete already.
func (a *answer) another(b *wire.Block, name string, input []byte) bool {
	if name == "" || b.Hidden {
		return false
	}
	if b.Tool != a.canonical(name) {
		return true
	}
	have := strings.TrimSpace(b.Text.String())
	if !strings.HasSuffix(have, "}") || !wire.Object(input) || a.checks == maxChecks {
		return false
	}
	a.checks++
	return json.Valid([]byte(have))
}

// begin begins a call.
func (a *answer) begin(slot int, source string) (*wire.Block, error) {
	b, err := a.open(agent.CallBlock)
	if err != nil {
		return nil, err
	}
	if err := a.Kept.Grow(len(source)); err != nil {
		return nil, err
	}
	b.ID, b.Hidden, a.newest = a.callID(source), true, b
	if a.slots == nil {
		a.slots, a.known = make(map[int]*wire.Block), make(map[origin]*wire.Block)
	}
	a.slots[slot] = b
	a.knows(b, source, slot)
	return b, nil
}

// origin is how an endpoint names a call.
type origin struct {
	id   string
	slot int
}

// knows keeps how the endpoint names a call. Pieces with the ID and no index
// mean the last call that has it.
func (a *answer) knows(b *wire.Block, id string, slot int) {
	if id == "" || b.Source == id {
		return
	}
	b.Source = id
	a.known[origin{id, slot}], a.known[origin{id, noSlot}] = b, b
}

// name shows a call whose name is known now, with what has come of its input.
func (a *answer) name(b *wire.Block, name string) error {
	if err := a.Kept.Grow(len(name)); err != nil {
		return err
	}
	b.Tool, b.Hidden = a.canonical(name), false
	if err := a.Emit(agent.Delta{Kind: agent.DeltaCall, Index: b.Index, CallID: b.ID, Tool: b.Tool}); err != nil {
		return err
	}
	return a.Show(b, 0)
}

// canonical returns the tool that the model means by a name, which it may know
// only in the form that the API takes.
func (a *answer) canonical(name string) string {
	name = word(name)
	if c := a.Request.Canonical(name); c != name {
		return c
	}
	for _, tool := range a.Request.Tools {
		if wire.ToolName(a.Request.Presented(tool.Name)) == name {
			return tool.Name
		}
	}
	return name
}

// callID returns id, or one that no other call of the conversation has:
// servers count from 0 with every answer.
func (a *answer) callID(id string) string {
	if a.IDs == nil {
		a.IDs = make(map[string]bool)
		for _, m := range a.Request.Messages {
			for _, b := range m.Blocks {
				if b.Call != nil {
					a.IDs[b.Call.ID] = true
				}
			}
		}
	}
	id = wire.Or(word(id), fmt.Sprintf("call_%d", len(a.Request.Messages)))
	return a.UniqueID(id, len(a.Request.Messages)+len(a.Blocks))
}

// closeCalls says that the calls are complete. One that never got a name is
// shown as unknown, for the model to read that there is no such tool.
func (a *answer) closeCalls() error {
	for _, b := range a.Blocks {
		if b.Kind != agent.CallBlock {
			continue
		}
		if b.Hidden {
			if err := a.name(b, "unknown"); err != nil {
				return err
			}
		}
		if err := a.Emit(agent.Delta{Kind: agent.DeltaCallEnd, Index: b.Index, CallID: b.ID}); err != nil {
			return err
		}
	}
	return nil
}
