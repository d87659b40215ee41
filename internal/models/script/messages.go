package script

import (
	"bytes"
	"encoding/json"
	"strconv"

	"dure/agent"
)

// messagesAPI is Anthropic Messages.
type messagesAPI struct{}

// messagesKinds are the error types by status.
var messagesKinds = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
	404: "not_found_error", 405: "invalid_request_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error",
	504: "timeout_error", 529: "overloaded_error",
}

func (messagesAPI) refusal(f *failure, id string) []byte {
	return compact(map[string]any{
		"type":       "error",
		"error":      map[string]string{"type": or(f.kind, or(messagesKinds[f.status], "api_error")), "message": f.message},
		"request_id": id,
	})
}

func (messagesAPI) ping(p *player) { p.event("ping", `{"type": "ping"}`) }

func (messagesAPI) trouble(p *player, f *failure) {
	p.event("error", `{"type":"error","error":{"type":%s,"message":%s}}`, quoted(or(f.kind, or(messagesKinds[f.status], "overloaded_error"))), quoted(f.message))
}

func (a messagesAPI) play(p *player, t take) {
	u := t.usage
	p.event("message_start", `{"type":"message_start","message":{"id":"msg_%s","type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,`+
		`"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,`+
		`"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d},"output_tokens":1}}}`,
		t.sum, quoted(t.model), u.Input, u.CacheWrite, u.CacheRead, u.CacheWrite-u.CacheHour, u.CacheHour)
	a.ping(p)
	w := messageWriter{player: p}
	w.blocks(t)

	detail := `"stop_sequence":null`
	switch {
	case t.reply.stop() == agent.StopSequence:
		detail = `"stop_sequence":` + quoted(t.reply.StopText)
	case t.reply.StopText != "":
		detail += `,"stop_details":{"type":"refusal","explanation":` + quoted(t.reply.StopText) + `}`
	}
	p.event("message_delta", `{"type":"message_delta","delta":{"stop_reason":%s,%s},"usage":{"output_tokens":%d}}`, quoted(string(t.reply.stop())), detail, u.Output)
	p.event("message_stop", `{"type":"message_stop"}`)
}

// messageWriter writes content blocks.
type messageWriter struct {
	*player
	index int // of the next block
}

func (w *messageWriter) blocks(t take) {
	if t.reply.Thinking != "" {
		w.open(`{"type":"thinking","thinking":"","signature":""}`)
		w.deltas(w.head(w.index, "thinking_delta", "thinking"), t.reply.Thinking, blockTail)
		w.event("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":%s}}`, w.index, quoted(sign(t.reply.Thinking)))
		w.close()
	}
	if t.reply.Redacted != "" {
		w.open(`{"type":"redacted_thinking","data":` + quoted(t.reply.Redacted) + `}`)
		w.close()
	}
	if t.reply.Text != "" {
		w.open(`{"type":"text","text":""}`)
		w.deltas(w.head(w.index, "text_delta", "text"), t.reply.Text, blockTail)
		w.close()
	}
	made := bytes.Count(t.body, []byte(`"type":"tool_use"`))
	first := w.index
	w.calls(t.reply, calls{
		open: func(i int) {
			w.index = first + i
			w.open(`{"type":"tool_use","id":` + quoted(t.callID("toolu_", made, i)) + `,"name":` + quoted(t.reply.Calls[i].Tool) + `,"input":{}}`)
		},
		input: func(i int, piece string) {
			w.delta(w.head(first+i, "input_json_delta", "partial_json"), piece, blockTail)
		},
		close: func(i int) { w.index = first + i; w.close() },
	})
}

const blockTail = "\"}}\n\n"

// head returns what stands in front of a piece of text.
func (w *messageWriter) head(index int, kind, member string) string {
	return "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":" + strconv.Itoa(index) +
		`,"delta":{"type":"` + kind + `","` + member + `":"`
}

func (w *messageWriter) open(block string) {
	w.event("content_block_start", `{"type":"content_block_start","index":%d,"content_block":%s}`, w.index, block)
}

func (w *messageWriter) close() {
	w.event("content_block_stop", `{"type":"content_block_stop","index":%d}`, w.index)
	w.index++
}

// read takes a request apart. To count its answers quickly the body is not
// parsed: inside a string the quotes would be escaped.
func (messagesAPI) read(_ string, body []byte, quick bool) (prompt, error) {
	if quick {
		return prompt{step: bytes.Count(body, []byte(`"role":"assistant"`))}, nil
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return prompt{}, invalid("the request body is no valid JSON: %v", err)
	}
	if err := m.parse(); err != nil {
		return prompt{}, err
	}
	return prompt{
		step: m.answers(), last: m.last(), model: m.Model,
		check: m.check,
		count: func(c *cache) usage { return c.marked(m.parts(), markPattern(), lookBack) },
	}, nil
}

func (m *message) answers() int {
	n := 0
	for _, t := range m.turns {
		if t.role == "assistant" {
			n++
		}
	}
	return n
}

// last returns the text of the last message: user text and tool results.
func (m *message) last() string {
	if len(m.turns) == 0 {
		return ""
	}
	var text bytes.Buffer
	for _, b := range m.turns[len(m.turns)-1].blocks {
		text.WriteString(b.Text)
		parts, _ := blocks(b.Content) // what is no content has no text
		for _, p := range parts {
			var inner block
			_ = json.Unmarshal(p, &inner)
			text.WriteString(inner.Text)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// parts returns what the cache sees of a request, in order.
func (m *message) parts() []json.RawMessage {
	all := append(append([]json.RawMessage{}, m.Tools...), m.system...)
	for _, t := range m.turns {
		all = append(all, t.raw...)
	}
	return all
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
