package telemetry

import (
	"bytes"
	"encoding/json"

	"dure/agent"
)

// Content says whether what is said is told, and where. It is not, unless somebody asks.
type Content int

// Where content is told.
const (
	ContentNone   Content = 0
	ContentSpans  Content = 1
	ContentEvents Content = 2
	ContentBoth   Content = ContentSpans | ContentEvents
)

func (c Content) spans() bool  { return c&ContentSpans != 0 }
func (c Content) events() bool { return c&ContentEvents != 0 }

// Parts are kinds of content. None of them stands for all.
type Parts int

// The kinds of content.
const (
	PartPrompts Parts = 1 << iota // what users say
	PartAnswers                   // what models say
	PartInputs                    // what calls of tools are made with
	PartResults                   // what tools answer
	partRest                      // what hooks, other sessions and the program itself say to models
)

func (p Parts) has(one Parts) bool { return p == 0 || p&one != 0 }

// inputPart is the kind of content that an input is, by where it comes from.
func inputPart(origin string) Parts {
	if origin == "" {
		return PartPrompts
	}
	return partRest
}

// messages are those of a conversation, as the conventions have them. Each text is cleaned
// of secrets, and together they stay within a bound.
type messages struct {
	list   []any
	used   int // bytes
	on     bool
	parts  Parts // that are told
	redact func(string) string
}

func (m *messages) clear() { m.list, m.used = nil, 0 }

// peek returns the messages as they are now.
func (m *messages) peek() messages { return messages{list: m.list[:len(m.list):len(m.list)]} }

// bounded cuts a text to what is left of the bound.
func (m *messages) bounded(s string) string {
	s = clip(m.redact(s), max(0, maxContent-m.used))
	m.used += len(s)
	return s
}

func (m *messages) add(role string, parts ...any) {
	m.list = append(m.list, fields{{"role", role}, {"parts", parts}})
}

func (m *messages) user(text string, part Parts) {
	if !m.on || !m.parts.has(part) || text == "" || m.used >= maxContent {
		return
	}
	m.add("user", fields{{"type", "text"}, {"content", m.bounded(text)}})
}

func (m *messages) result(r agent.Result) {
	if !m.on || !m.parts.has(PartResults) || m.used >= maxContent {
		return
	}
	m.add("tool", fields{{"type", "tool_call_response"}, {"id", r.ID}, {"response", m.bounded(r.Unfenced())}})
}

// finishes are the reasons for which answers end, in the words of the conventions.
var finishes = map[agent.StopReason]string{
	agent.StopEnd: "stop", agent.StopCalls: "tool_call", agent.StopLength: "length",
	agent.StopSequence: "stop", agent.StopRefusal: "content_filter", agent.StopWindow: "length",
}

// answer returns an answer of a model.
func (m *messages) answer(a agent.Message, stop agent.StopReason) messages {
	out := messages{on: m.on, parts: m.parts, redact: m.redact}
	if !m.on {
		return out
	}
	parts := []any{}
	for _, b := range a.Blocks {
		switch {
		case b.Type == agent.TextBlock && m.parts.has(PartAnswers):
			parts = append(parts, fields{{"type", "text"}, {"content", out.bounded(b.Text)}})
		case b.Type == agent.CallBlock && b.Call != nil && m.parts.has(PartInputs):
			input := "{}"
			if json.Valid(b.Call.Input) {
				input = unescaped(b.Call.Input)
			}
			parts = append(parts, fields{{"type", "tool_call"}, {"id", b.Call.ID}, {"name", b.Call.Tool}, {"arguments", out.bounded(input)}})
		}
	}
	if len(parts) == 0 && m.parts != 0 {
		return out // it has nothing of what is told
	}
	finish := finishes[stop]
	if finish == "" {
		finish = clip(string(stop), maxAttr)
	}
	out.list = append(out.list, fields{{"role", "assistant"}, {"parts", parts}, {"finish_reason", finish}})
	return out
}

// unescaped is JSON in which characters stand for themselves, as far as they can: secrets are
// found by how they are written.
func unescaped(data []byte) string {
	if !bytes.Contains(data, []byte(`\u`)) {
		return string(data)
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(data)
	}
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return string(data)
	}
	return string(bytes.TrimSpace(plain.Bytes()))
}
