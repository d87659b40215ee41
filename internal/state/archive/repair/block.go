package repair

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// block reads one block of a record of a role, and mends it so that providers
// take it. A block of unknown kind, or in a place where its kind cannot be, is
// kept as text. It reports false for a block that says nothing.
func (c *checker) block(id, role string, raw json.RawMessage) (Block, bool) {
	raw = bytes.TrimSpace(raw)
	var s string
	if json.Unmarshal(raw, &s) == nil && raw[0] == '"' {
		return Text(s), strings.TrimSpace(s) != ""
	}
	f := readFields(raw)
	if f == nil {
		return c.opaque(id, raw), true
	}
	raw = sound(raw)
	b := Block{Type: f.str("type"), Raw: bytes.Clone(raw)}
	switch {
	case b.Type == textBlock && (f["text"] == nil || f["text"][0] == '"'):
		return b, strings.TrimSpace(f.str("text")) != ""
	case b.Type == callBlock && role == assistant && f.str("id") != "":
		return c.call(id, raw, f), true
	case b.Type == resultBlock && role != "" && f.str("tool_use_id") != "":
		return c.result(id, raw, f), true
	case (b.Type == imageBlock || b.Type == documentBlock) && role == user && readFields(f["source"]) != nil:
		return c.media(id, b, f), true
	case b.Type == thinkingBlock && role == assistant && len(f["thinking"]) > 0 && f["thinking"][0] == '"':
		return c.thinking(id, b, f)
	case b.Type == sealedBlock && role == assistant && f.str("data") != "":
		return b, true
	}
	return c.opaque(id, raw), true
}

// opaque keeps a block that is not understood as text.
func (c *checker) opaque(id string, raw json.RawMessage) Block {
	kind := readFields(raw).str("type")
	c.damage(InvalidContent, id, "a block of kind %.40q cannot stand in record %.80q; it was kept as text", kind, id)
	return Text(cut(string(raw), maxOpaque))
}

// sound replaces escaped halves of characters, which providers refuse. raw is JSON.
func sound(raw json.RawMessage) json.RawMessage {
	const escape = len(`\ud800`)
	copied := false
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		switch half(raw[i:]) {
		case 0:
			i++ // what is escaped
			continue
		case 1:
			if half(raw[i+escape:]) == 2 {
				i += 2*escape - 1
				continue
			}
		}
		if !copied {
			raw, copied = bytes.Clone(raw), true
		}
		copy(raw[i:], `\ufffd`)
		i += escape - 1
	}
	return raw
}

// half reports which half of a pair of UTF-16 is escaped at the beginning of JSON:
// 1, 2, or 0 for neither.
func half(b []byte) int {
	if len(b) < len(`\ud800`) || b[0] != '\\' || b[1] != 'u' || b[2]|0x20 != 'd' {
		return 0
	}
	switch b[3] | 0x20 { // lower case
	case '8', '9', 'a', 'b':
		return 1
	case 'c', 'd', 'e', 'f':
		return 2
	}
	return 0
}

// rebuild writes JSON anew: each key once, numbers as they were.
func rebuild(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	again, err := encode(v)
	if err != nil {
		return raw
	}
	return again
}

// call reads a tool_use. One that is fine stays as it is.
func (c *checker) call(id string, raw json.RawMessage, f fields) Block {
	name, callID := f.str("name"), f.str("id")
	input := bytes.TrimSpace(f["input"])
	if fitting(name, 64) == name && fitID(callID) == callID && readFields(input) != nil {
		return Block{callBlock, callID, bytes.Clone(raw)}
	}
	if fit := fitting(name, 64); fit != name {
		c.damage(InvalidContent, id, "a tool of the name %.80q is %q now: providers take no other", name, fit)
		name = fit
	}
	if fit := fitID(callID); fit != callID {
		c.damage(InvalidContent, id, "a call of the ID %.80q is %q now: providers take no other", callID, fit)
		callID = fit
	}
	if readFields(input) == nil {
		var text string
		if json.Unmarshal(input, &text) == nil && readFields([]byte(text)) != nil {
			input = []byte(text)
		} else if len(input) == 0 || string(input) == "null" {
			input = []byte("{}")
		} else {
			input, _ = encode(fields{"input": input})
		}
		c.damage(InvalidContent, id, "the input of call %.80q was no object and is one now", callID)
	}
	return CallOf(callID, name, sound(input))
}

// fitting returns name with what providers take in names: letters, digits, _
// and -, at least one and at most limit of them.
func fitting(name string, limit int) string {
	fit := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if fit == "" {
		return "unknown"
	}
	return fit[:min(len(fit), limit)]
}

// fitID returns the ID of a call as providers take it. Two that differ stay apart.
func fitID(id string) string {
	fit := fitting(id, maxCallID)
	if fit == id {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return fmt.Sprintf("%s_%x", fit[:min(len(fit), maxCallID-9)], sum[:4])
}

// result reads a tool_result. One that is fine stays as it is.
func (c *checker) result(id string, raw json.RawMessage, f fields) Block {
	given := f.str("tool_use_id")
	call := fitID(given) // the call says that its ID was changed
	content, same := c.answer(id, call, f["content"])
	flag := string(f["is_error"])
	if same && call == given && (flag == "" || flag == "false" || flag == "true" && !silent(content)) {
		return Block{resultBlock, call, bytes.Clone(raw)}
	}
	failed := flag == "true"
	if failed && silent(content) {
		c.damage(InvalidContent, id, "the failure of call %.80q said nothing", call)
		content = quote("(no message)")
	}
	raw, _ = encode(struct { // JSON and strings always encode
		Type    string          `json:"type"`
		ID      string          `json:"tool_use_id"`
		Content json.RawMessage `json:"content,omitempty"`
		Failed  bool            `json:"is_error,omitempty"`
	}{resultBlock, call, content, failed})
	return Block{resultBlock, call, raw}
}

// silent reports whether the content of a result is nothing.
func silent(content json.RawMessage) bool {
	return len(content) == 0 || string(content) == `""` || string(content) == "[]"
}

// answer reads the content of a result: a string, or blocks. It reports whether
// that is the same as it was.
func (c *checker) answer(id, call string, content json.RawMessage) (out json.RawMessage, same bool) {
	content = bytes.TrimSpace(content)
	if len(content) == 0 || string(content) == "null" {
		return nil, len(content) == 0
	}
	if content[0] == '"' {
		return sound(content), true // raw is sound already
	}
	var list []json.RawMessage
	if json.Unmarshal(content, &list) != nil {
		c.damage(InvalidContent, id, "the result of call %.80q was neither text nor a list and was kept as text", call)
		return quote(cut(string(content), maxOpaque)), false
	}
	var kept []json.RawMessage
	same = len(list) > 0
	for _, raw := range list {
		f := readFields(raw)
		took := sound(raw)
		switch kind := f.str("type"); {
		case kind == textBlock && strings.TrimSpace(f.str("text")) != "":
		case kind == textBlock:
			took = nil
		case (kind == imageBlock || kind == documentBlock) && readFields(f["source"]) != nil:
			took = c.media(id, Block{Type: kind, Raw: raw}, f).Raw
		default:
			took = c.opaque(id, raw).Raw
		}
		same = same && bytes.Equal(took, raw)
		if took != nil {
			kept = append(kept, took)
		}
	}
	if kept == nil {
		return nil, false
	}
	out, _ = encode(kept)
	return out, same
}
