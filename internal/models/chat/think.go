package chat

import (
	"bytes"
	"encoding/json"
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

// think takes in thinking. Servers that give it under two names give the same.
func (a *answer) think(m message) error {
	thought := ""
	for _, raw := range []json.RawMessage{m.ReasoningContent, m.Reasoning, m.Thinking} {
		if thought == "" && given(raw) {
			thought = text(raw)
		}
	}
	for _, raw := range m.Details {
		t, err := a.detail(raw)
		if err != nil {
			return err
		}
		if thought == "" {
			thought = t
		}
	}
	return a.add(agent.ThinkingBlock, []byte(thought))
}

// details is a list of reasoning_details in the making. It belongs to the
// thinking block that was open when it began.
type details struct {
	at   *wire.Block
	each []*detail
}

type detail struct {
	members map[string]json.RawMessage
	grows   string // the member whose text comes in pieces
	text    strings.Builder
}

// detail takes in a piece of the list and returns its text. A piece with the
// type and the index of the last one continues it.
func (a *answer) detail(raw json.RawMessage) (string, error) {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return "", nil
	}
	grows := ""
	for _, name := range []string{"text", "summary"} {
		if given(m[name]) && m[name][0] == '"' {
			grows = name
		}
	}
	piece := ""
	if grows != "" {
		piece = plain(m[grows])
	}
	if !a.keepDetails {
		return piece, nil
	}
	if err := a.Kept.Grow(len(raw)); err != nil {
		return "", err
	}
	if a.details.at == nil {
		if a.last == nil || a.last.Kind != agent.ThinkingBlock {
			if _, err := a.open(agent.ThinkingBlock); err != nil {
				return "", err
			}
		}
		a.details.at = a.last
	}
	a.details.add(m, grows, piece)
	return piece, nil
}

func (l *details) add(m map[string]json.RawMessage, grows, piece string) {
	var d *detail
	if n := len(l.each); n > 0 && l.each[n-1].continued(m, grows) {
		d = l.each[n-1]
	} else {
		d = &detail{members: map[string]json.RawMessage{}}
		l.each = append(l.each, d)
	}
	for name, value := range m {
		if _, known := d.members[name]; !known || given(value) {
			d.members[name] = value
		}
	}
	if grows != "" {
		d.grows = grows
		d.text.WriteString(piece)
	}
}

// continued reports whether m is the next piece of d.
func (d *detail) continued(m map[string]json.RawMessage, grows string) bool {
	return string(d.members["type"]) == string(m["type"]) && string(d.members["index"]) == string(m["index"]) &&
		d.grows != "" && (grows == "" || grows == d.grows) && !given(m["data"])
}

// list returns the whole list, as it goes back.
func (l *details) list() json.RawMessage {
	list := make([]map[string]json.RawMessage, 0, len(l.each))
	for _, d := range l.each {
		if d.grows != "" {
			text, err := json.Marshal(d.text.String())
			if err != nil {
				continue // not reached: a string always encodes
			}
			d.members[d.grows] = text
		}
		list = append(list, d.members)
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil // not reached: the members were read from JSON
	}
	return raw
}

var (
	thinkOpen  = []byte("<think>")
	thinkClose = []byte("</think>")
)

const maxIndent = 64 // bytes of space in front of <think>

// tags tells thinking from text in an answer that begins with <think>. While it
// is not known which of both a piece is, it is held back: no more than a tag.
type tags struct {
	on     bool // there may still be a tag to come
	inside bool
	after  bool // space behind the closing tag is left out
	held   []byte
}

// split gives text on as what it is.
func (t *tags) split(text []byte, give func(agent.BlockType, []byte) error) error {
	t.held = append(t.held, text...)
	if !t.inside && !t.after {
		start := bytes.TrimLeft(t.held, " \t\r\n")
		switch {
		case len(t.held)-len(start) > maxIndent:
			return t.flush(give)
		case len(start) < len(thinkOpen) && bytes.HasPrefix(thinkOpen, start):
			return nil
		case !bytes.HasPrefix(start, thinkOpen):
			return t.flush(give)
		}
		t.inside, t.held = true, start[len(thinkOpen):]
	}
	if t.inside {
		thought, rest, closed := bytes.Cut(t.held, thinkClose)
		if !closed {
			keep := begun(t.held, thinkClose)
			thought, rest = t.held[:len(t.held)-keep], t.held[len(t.held)-keep:]
		}
		err := give(agent.ThinkingBlock, thought)
		t.held = append([]byte(nil), rest...)
		if err != nil || !closed {
			return err
		}
		t.inside, t.after = false, true
	}
	if t.held = bytes.TrimLeft(t.held, " \t\r\n"); len(t.held) == 0 {
		return nil
	}
	return t.flush(give)
}

// flush gives on what was held back, and looks for no more tags.
func (t *tags) flush(give func(agent.BlockType, []byte) error) error {
	held, kind := t.held, agent.TextBlock
	if t.inside {
		kind = agent.ThinkingBlock
	}
	*t = tags{}
	return give(kind, held)
}

// begun returns how many of the last bytes of text may be the beginning of tag.
func begun(text, tag []byte) int {
	for n := min(len(tag)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, tag[:n]) {
			return n
		}
	}
	return 0
}
