package repair

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The roles of entries.
const (
	user      = "user"
	assistant = "assistant"
)

// The kinds of block that are understood.
const (
	textBlock     = "text"
	callBlock     = "tool_use"
	resultBlock   = "tool_result"
	imageBlock    = "image"
	documentBlock = "document"
	thinkingBlock = "thinking"
	sealedBlock   = "redacted_thinking"
)

// An Entry is a record of a conversation in the neutral form.
type Entry struct {
	ID        string
	Role      string // user or assistant
	Content   []Block
	Timestamp json.RawMessage // as it was given; nil = none

	// Extra are the other fields of the record, as they were.
	Extra map[string]json.RawMessage

	line int
}

// A Block is a piece of an entry: its JSON, and what is read of it most.
type Block struct {
	Type string
	ID   string // of the call, with tool_use and tool_result
	Raw  json.RawMessage
}

// MarshalJSON writes the block as it was.
func (b Block) MarshalJSON() ([]byte, error) { return b.Raw, nil }

// MarshalJSON writes the record on one line.
func (e Entry) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	field := func(name string, v any) error {
		raw, err := encode(v)
		if err != nil {
			return fmt.Errorf("encoding %s of record %.80q: %w", name, e.ID, err)
		}
		sep := byte(',')
		if out.Len() == 0 {
			sep = '{'
		}
		key, _ := encode(name) // a string always encodes
		out.WriteByte(sep)
		out.Write(key)
		out.WriteByte(':')
		return json.Compact(&out, raw)
	}
	content := make([]json.RawMessage, len(e.Content))
	for i, b := range e.Content {
		content[i] = b.Raw
	}
	for _, err := range []error{field("id", e.ID), field("role", e.Role), field("content", content)} {
		if err != nil {
			return nil, err
		}
	}
	if e.Timestamp != nil {
		if err := field("timestamp", e.Timestamp); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extra)) {
		if err := field(name, e.Extra[name]); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// Time returns when the record was made, or the zero time; so it is for what no
// clock has said: before 1970, or behind 2200. A number counts milliseconds since 1970.
func (e Entry) Time() time.Time {
	var s string
	if json.Unmarshal(e.Timestamp, &s) == nil {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil || t.Year() < 1970 || t.Year() > 2200 {
			return time.Time{}
		}
		return t.UTC()
	}
	var ms int64
	if json.Unmarshal(e.Timestamp, &ms) == nil && ms > 0 && ms < 7_258_118_400_000 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

// encode writes v as JSON without escaping what only HTML needs escaped.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Text returns a block of text.
func Text(s string) Block {
	quoted, _ := encode(s) // a string always encodes
	return Block{Type: textBlock, Raw: slices.Concat([]byte(`{"type":"text","text":`), quoted, []byte(`}`))}
}

// CallOf returns a block that calls a tool. input is JSON.
func CallOf(id, name string, input json.RawMessage) Block {
	raw, err := encode(struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}{callBlock, id, name, input})
	if err != nil {
		return CallOf(id, name, json.RawMessage(`{}`))
	}
	return Block{Type: callBlock, ID: id, Raw: raw}
}

// ResultOf returns a block that answers a call.
func ResultOf(id, text string, failed bool) Block {
	raw, _ := encode(struct { // strings and a bool always encode
		Type    string `json:"type"`
		ID      string `json:"tool_use_id"`
		Content string `json:"content"`
		Failed  bool   `json:"is_error,omitempty"`
	}{resultBlock, id, text, failed})
	return Block{Type: resultBlock, ID: id, Raw: raw}
}

// rename returns the block for a call of another ID.
func (b Block) rename(id string) Block {
	var o map[string]json.RawMessage
	if json.Unmarshal(b.Raw, &o) != nil {
		return b
	}
	key := "id"
	if b.Type == resultBlock {
		key = "tool_use_id"
	}
	o[key], _ = encode(id)
	raw, err := encode(o)
	if err != nil {
		return b
	}
	return Block{b.Type, id, raw}
}
