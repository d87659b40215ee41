package chat

import (
	"fmt"
	"slices"

	"dure/agent"
	"dure/internal/models/wire"
)

// What is said where the conversation does not say anything.
const (
	beginning  = "(Earlier messages are left out.)"                         // in front of an answer that stands first
	understood = "I have read the results."                                 // where a server needs an answer between results and user
	unanswered = "Error: the call was interrupted; its outcome is unknown." // of a call without a result
)

// talk is the messages of a request in the making. Whatever the conversation
// is, a call is followed by its result, no result is without a call, and user
// and assistant take turns.
type talk struct {
	wire.Payload
	encoder *encoder
	first   bool // nothing stands in the list yet
	begun   bool // somebody other than the system has spoken

	said, heard []*segment // the answer, and what followed it, that are not written yet
	calls       []piece    // of the answer

	made map[string]bool // IDs of all calls
}

var (
	stringOpen  = []byte(`{"role":"user","content":"`)
	stringClose = []byte(`"}`)
	partsOpen   = []byte(`{"role":"user","content":[`)
	partsClose  = []byte(`]}`)
	paragraph   = []byte(`\n\n`)
)

// addMessages adds the messages, and the tail at the end of the last one of the
// user. An answer that is to be continued takes no tail.
func (t *talk) addMessages(messages []*segment, tail string) {
	for _, s := range messages {
		switch {
		case s.role == agent.Assistant && s.says():
			if t.void() {
				t.heard = t.heard[:0]
			} else {
				t.flush("")
			}
			t.said = append(t.said, s)
			t.calls = s.calls // none before it has any: those are written
		case s.role == agent.User && (len(s.content) > 0 || len(s.results) > 0):
			t.heard = append(t.heard, s)
		}
	}
	if t.void() && len(t.said) > 0 {
		tail = ""
	}
	t.flush(tail)
}

// void reports whether nothing that can be sent has followed the answer.
func (t *talk) void() bool {
	if len(t.calls) > 0 {
		return false
	}
	for _, s := range t.heard {
		if len(s.content) > 0 {
			return false
		}
	}
	return true
}

// flush writes the answer, the results of its calls, and what the user said.
func (t *talk) flush(tail string) {
	if len(t.said) > 0 {
		if !t.begun {
			t.user([][]byte{t.words(beginning)})
		}
		whole := t.said[0].whole
		if t.rename() || len(t.said) > 1 {
			whole = t.encoder.answer(t.said, t.calls)
		}
		t.item()
		t.Add(whole)
	}
	t.results()
	var contents [][]byte
	for _, s := range t.heard {
		if len(s.content) > 0 {
			contents = append(contents, s.content)
		}
	}
	if !wire.Blank(tail) {
		contents = append(contents, t.words(tail))
	}
	if len(contents) > 0 {
		if len(t.calls) > 0 && t.encoder.compat.Bridge {
			t.item()
			t.Add(append(wire.Quote([]byte(`{"role":"assistant","content":`), understood), '}'))
		}
		t.user(contents)
	}
	t.said, t.heard, t.calls = t.said[:0], t.heard[:0], nil
}

// rename gives the calls IDs that no earlier call has, and reports whether it
// had to: some servers count from 0 with every answer.
func (t *talk) rename() bool {
	renamed := false
	for i, c := range t.calls {
		if t.made[c.wire] {
			if !renamed {
				t.calls = slices.Clone(t.calls)
			}
			renamed = true
			for n := len(t.made); t.made[c.wire]; n++ {
				c = c.renamed(callOpen, t.encoder.callID(fmt.Sprintf("%s#%d", c.id, n)))
			}
			t.calls[i] = c
		}
		t.made[c.wire] = true
	}
	return renamed
}

// results writes one result for each call that waits for it: the first that has
// its ID. One that is missing is made up, and says so.
func (t *talk) results() {
	at, in := 0, 0 // results mostly come in the order of the calls
	for _, c := range t.calls {
		for in < len(t.heard) && at >= len(t.heard[in].results) {
			at, in = 0, in+1
		}
		var r piece
		if in < len(t.heard) && t.heard[in].results[at].id == c.id {
			r = t.heard[in].results[at]
			at++
		} else {
			r = t.find(c.id)
		}
		if r.wire != c.wire {
			r = r.renamed(resultOpen, c.wire)
		}
		t.item()
		t.Add(r.data)
	}
}

// find returns the first result with an ID, or one that says there is none.
func (t *talk) find(id string) piece {
	for _, s := range t.heard {
		for _, p := range s.results {
			if p.id == id {
				return p
			}
		}
	}
	p := t.encoder.piece(resultOpen, id)
	p.data = append(wire.Quote(append(p.data, `,"content":`...), unanswered), '}')
	return p
}

// user writes a message of the user.
func (t *talk) user(contents [][]byte) {
	open, between, closing := stringOpen, paragraph, stringClose
	if t.encoder.parts() {
		open, between, closing = partsOpen, comma, partsClose
	}
	t.item()
	t.Add(open)
	for i, c := range contents {
		if i > 0 {
			t.Add(between)
		}
		t.Add(c)
	}
	t.Add(closing)
}

// words returns text as the content of a user's message.
func (t *talk) words(text string) []byte { return appendText(nil, text, t.encoder.parts()) }

// item separates a message from the one in front of it.
func (t *talk) item() {
	if !t.first {
		t.Add(comma)
	}
	t.first = false
	t.begun = true
}
