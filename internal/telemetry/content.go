package telemetry

import (
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

// messages are those of a conversation, as the conventions have them. Each text is cleaned
// of secrets, and together they stay within a bound.
type messages struct {
	list   []any
	used   int // bytes
	on     bool
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

func (m *messages) user(text string) {
	if !m.on || text == "" || m.used >= maxContent {
		return
	}
	m.add("user", fields{{"type", "text"}, {"content", m.bounded(text)}})
}

func (m *messages) result(r agent.Result) {
	if !m.on || m.used >= maxContent {
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
	out := messages{on: m.on, redact: m.redact}
	if !m.on {
		return out
	}
	parts := []any{}
	for _, b := range a.Blocks {
		switch {
		case b.Type == agent.TextBlock:
			parts = append(parts, fields{{"type", "text"}, {"content", out.bounded(b.Text)}})
		case b.Type == agent.CallBlock && b.Call != nil:
			input := string(b.Call.Input)
			if !json.Valid(b.Call.Input) {
				input = "{}"
			}
			parts = append(parts, fields{{"type", "tool_call"}, {"id", b.Call.ID}, {"name", b.Call.Tool}, {"arguments", out.bounded(input)}})
		}
	}
	finish := finishes[stop]
	if finish == "" {
		finish = clip(string(stop), maxAttr)
	}
	out.list = append(out.list, fields{{"role", "assistant"}, {"parts", parts}, {"finish_reason", finish}})
	return out
}
