package chat

import (
	"bytes"
	"encoding/json"

	"dure/agent"
	"dure/internal/models/wire"
)

// Nearly every event of a stream differs from the one before it in a single
// string. A template is such an event without that string: one that fits it is
// read without a decoder. Templates are learned from the stream itself, so that
// every server's way of writing has its own.
type template struct {
	prefix, suffix []byte
	kind           agent.BlockType
	slot           int // of a call
}

// templates has one template for text, thinking and the input of calls each.
type templates struct {
	each    [3]template
	learned int // templates made
	used    int // events read with one
	scratch []byte
}

// maxWasted is how many templates may be made more than are used, before a
// server is taken for one whose events differ in everything.
const maxWasted = 32

func kindIndex(kind agent.BlockType) int {
	switch kind {
	case agent.TextBlock:
		return 0
	case agent.ThinkingBlock:
		return 1
	}
	return 2
}

// fast takes in an event that fits a template. It reports false, and has done
// nothing, for everything else.
func (a *answer) fast(data []byte) (bool, error) {
	for i := range a.learned.each {
		t := &a.learned.each[i]
		if t.prefix == nil {
			continue
		}
		rest, ok := bytes.CutPrefix(data, t.prefix)
		if !ok {
			continue
		}
		if a.Scratch, rest, ok = wire.Unquote(a.Scratch[:0], rest); !ok || !bytes.Equal(rest, t.suffix) {
			continue
		}
		call := a.slots[t.slot]
		if t.kind == agent.CallBlock && call == nil {
			continue
		}
		if len(a.Scratch) > 0 {
			a.In.Progress()
		}
		a.learned.used++
		switch t.kind {
		case agent.TextBlock:
			return true, a.say(a.Scratch)
		case agent.ThinkingBlock:
			return true, a.add(agent.ThinkingBlock, a.Scratch)
		}
		return true, a.AppendBytes(call, a.Scratch)
	}
	return false, nil
}

// learn makes a template of an event that added a single string. That the
// string stands where it seems to is tried out: with another one in its place
// the event has to say that one.
func (l *templates) learn(data []byte, c *chunk) {
	kind, slot, said := c.plain()
	if said == "" || l.learned-l.used > maxWasted {
		return
	}
	l.learned++
	for _, name := range memberNames[kindIndex(kind)] {
		i := bytes.Index(data, name)
		if i < 0 {
			continue
		}
		at := i + len(name)
		if rest := data[at:]; len(rest) > 1 && rest[0] == ' ' {
			at++
		}
		if at >= len(data) || data[at] != '"' {
			continue
		}
		at++
		have, suffix, ok := wire.Unquote(l.scratch[:0], data[at:])
		l.scratch = have
		if !ok || string(have) != said {
			continue
		}
		t := template{prefix: bytes.Clone(data[:at]), suffix: bytes.Clone(suffix), kind: kind, slot: slot}
		if t.fits() {
			l.each[kindIndex(kind)] = t
			return
		}
	}
}

var memberNames = [3][][]byte{
	{[]byte(`"content":`)},
	{[]byte(`"reasoning_content":`), []byte(`"reasoning":`), []byte(`"thinking":`)},
	{[]byte(`"arguments":`)},
}

// fits reports whether the string of t is the one that an event of its form adds.
func (t template) fits() bool {
	const other = "another text"
	event := append(bytes.Clone(t.prefix), other+`"`...)
	var c chunk
	if json.Unmarshal(append(event, t.suffix...), &c) != nil {
		return false
	}
	kind, slot, said := c.plain()
	return kind == t.kind && slot == t.slot && said == other
}

// plain returns the string that an event adds, and what it is, when it does
// nothing but that; otherwise "". A piece of a call counts only when its index
// alone says to which call it belongs.
func (c *chunk) plain() (kind agent.BlockType, slot int, said string) {
	if len(c.Choices) != 1 || c.Usage != nil || c.Groq.Usage != nil || given(c.Error) {
		return "", 0, ""
	}
	ch := &c.Choices[0]
	m := &ch.Delta
	if ch.Index != 0 || ch.Finish != "" || ch.Usage != nil || given(ch.Error) || m.Details != nil || m.Refusal != "" || m.Call != nil {
		return "", 0, ""
	}
	found := 0
	if given(m.Content) {
		found++
		kind, said = agent.TextBlock, quoted(m.Content)
	}
	for _, raw := range []json.RawMessage{m.ReasoningContent, m.Reasoning, m.Thinking} {
		if given(raw) {
			found++
			kind, said = agent.ThinkingBlock, quoted(raw)
		}
	}
	for _, t := range m.Calls {
		found++
		kind, said = agent.CallBlock, quoted(t.Function.Input)
		if t.Index == nil || *t.Index < 0 || t.ID != "" || t.Function.Name != "" {
			return "", 0, ""
		}
		slot = *t.Index
	}
	if found != 1 {
		return "", 0, ""
	}
	return kind, slot, said
}

// quoted returns a string, and "" for everything else.
func quoted(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return plain(raw)
}
