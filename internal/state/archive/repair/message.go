package repair

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"dure/agent"
)

// EntryOf returns a message in the neutral form, without an ID.
func EntryOf(m agent.Message) Entry {
	e := Entry{Role: string(m.Role)}
	for _, b := range m.Blocks {
		if n, ok := blockOf(b); ok {
			e.Content = append(e.Content, n)
		}
	}
	return e
}

func blockOf(b agent.Block) (Block, bool) {
	switch {
	case b.Type == agent.TextBlock:
		return Text(b.Text), strings.TrimSpace(b.Text) != ""
	case b.Type == agent.CallBlock && b.Call != nil:
		return CallOf(fitID(b.Call.ID), fitting(b.Call.Tool, 64), b.Call.Input), true
	case b.Type == agent.ResultBlock && b.Result != nil:
		return resultOf(*b.Result), true
	case (b.Type == agent.ImageBlock || b.Type == agent.DocumentBlock) && b.Media != nil:
		return mediaOf(b), true
	case b.Type == agent.ThinkingBlock && b.Text != "":
		raw, _ := encode(struct { // strings always encode
			Type      string `json:"type"`
			Thinking  string `json:"thinking"`
			Signature string `json:"signature,omitempty"`
		}{thinkingBlock, b.Text, b.Signature})
		return Block{Type: thinkingBlock, Raw: raw}, true
	}
	return Block{}, false // for one provider alone
}

func resultOf(r agent.Result) Block {
	text := r.Text
	if text == "" {
		text = string(r.Output)
	}
	if text == "" && r.Failed() {
		text = "(no message)"
	}
	id := fitID(r.ID)
	if len(r.Blocks) == 0 {
		return ResultOf(id, text, r.Failed())
	}
	var content []Block
	if strings.TrimSpace(text) != "" {
		content = append(content, Text(text))
	}
	for _, b := range r.Blocks {
		if n, ok := blockOf(b); ok {
			content = append(content, n)
		}
	}
	raw, err := encode(struct {
		Type    string  `json:"type"`
		ID      string  `json:"tool_use_id"`
		Content []Block `json:"content"`
		Failed  bool    `json:"is_error,omitempty"`
	}{resultBlock, id, content, r.Failed()})
	if err != nil {
		return ResultOf(id, text, r.Failed())
	}
	return Block{resultBlock, id, raw}
}

// A source is where the bytes of an image or a document are.
type source struct {
	Type  string `json:"type"` // base64 or url
	Media string `json:"media_type,omitempty"`
	Data  string `json:"data,omitempty"`
	URL   string `json:"url,omitempty"`
}

func mediaOf(b agent.Block) Block {
	s := source{Type: "base64", Media: b.Media.Type, Data: base64.StdEncoding.EncodeToString(b.Media.Data)}
	if len(b.Media.Data) == 0 && b.Media.URL != "" {
		s = source{Type: "url", URL: b.Media.URL}
	}
	raw, _ := encode(struct { // strings always encode
		Type   string `json:"type"`
		Source source `json:"source"`
	}{string(b.Type), s})
	return Block{Type: string(b.Type), Raw: raw}
}

// Message returns an entry as a message. tool gives a tool its canonical name;
// nil leaves names as they are. provider names who signed the thinking.
func (e Entry) Message(tool func(name string) string, provider string) agent.Message {
	m := agent.Message{Role: agent.Role(e.Role)}
	for _, b := range e.Content {
		if block, ok := b.block(tool, provider); ok {
			m.Blocks = append(m.Blocks, block)
		}
	}
	return m
}

func (b Block) block(tool func(string) string, provider string) (agent.Block, bool) {
	f := readFields(b.Raw)
	switch b.Type {
	case textBlock:
		return agent.Block{Type: agent.TextBlock, Text: f.str("text")}, true
	case callBlock:
		name := f.str("name")
		if tool != nil {
			name = tool(name)
		}
		return agent.Block{Type: agent.CallBlock, Call: &agent.Call{ID: b.ID, Tool: name, Input: f["input"]}}, true
	case resultBlock:
		r := b.result(f, provider)
		return agent.Block{Type: agent.ResultBlock, Result: &r}, true
	case imageBlock, documentBlock:
		return media(b.Type, f)
	case thinkingBlock:
		t := agent.Block{Type: agent.ThinkingBlock, Text: f.str("thinking"), Signature: f.str("signature")}
		if t.Signature != "" {
			t.Provider = provider
		}
		return t, t.Text != "" || t.Signature != ""
	}
	return agent.Block{}, false // sealed thinking: nobody else can read it
}

func (b Block) result(f fields, provider string) agent.Result {
	r := agent.Result{ID: b.ID, Status: agent.StatusOK}
	if string(f["is_error"]) == "true" {
		r.Status = agent.StatusError
	}
	if text := f.str("content"); text != "" {
		r.Text = text
	}
	var list []fields
	if json.Unmarshal(f["content"], &list) == nil {
		for _, part := range list {
			kind := part.str("type")
			if kind == textBlock {
				r.Text += part.str("text")
			} else if m, ok := media(kind, part); ok {
				r.Blocks = append(r.Blocks, m)
			}
		}
	}
	if r.Failed() {
		r.Error = &agent.ToolError{Code: agent.ErrTool, Message: r.Text}
	}
	return r
}

// media reads an image or a document. What cannot be read is named in a text.
func media(kind string, f fields) (agent.Block, bool) {
	var s source
	if err := json.Unmarshal(f["source"], &s); err != nil {
		return agent.Block{}, false
	}
	if s.Type == "url" {
		return agent.Block{Type: agent.BlockType(kind), Media: &agent.Media{Type: s.Media, URL: s.URL}}, true
	}
	if s.Type == "text" {
		return agent.Block{Type: agent.TextBlock, Text: s.Data}, strings.TrimSpace(s.Data) != ""
	}
	data, err := base64.StdEncoding.DecodeString(s.Data)
	if err != nil || len(data) == 0 {
		return agent.Block{Type: agent.TextBlock, Text: "[" + kind + " that cannot be read]"}, true
	}
	return agent.Block{Type: agent.BlockType(kind), Media: &agent.Media{Type: s.Media, Data: data}}, true
}
