package transcript

import (
	"encoding/json"

	"dure/agent"
)

// The functions below return parts of messages in the form of the Messages API, for programs
// that know messages by UUIDs.

// TextPart is a text.
func TextPart(text string) any {
	return struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", text}
}

// ThinkingPart is what a model thought.
func ThinkingPart(b agent.Block) any {
	return struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}{"thinking", b.Text, b.Signature}
}

// CallPart is a call of a tool that these programs know by name.
func CallPart(id, name string, input json.RawMessage) any {
	return struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}{"tool_use", id, name, input}
}

// ResultPart is the result of a call.
func ResultPart(call string, content any, failed bool) any {
	return struct {
		Type    string `json:"type"`
		Call    string `json:"tool_use_id"`
		Content any    `json:"content"`
		Failed  bool   `json:"is_error,omitempty"`
	}{"tool_result", call, content, failed}
}

// MediaPart is an image or a document. Its block has media.
func MediaPart(b agent.Block) any {
	type source struct {
		Type  string `json:"type"` // base64 or url
		Media string `json:"media_type,omitempty"`
		Data  []byte `json:"data,omitempty"`
		URL   string `json:"url,omitempty"`
	}
	s := source{Type: "base64", Media: b.Media.Type, Data: b.Media.Data}
	if len(s.Data) == 0 {
		s = source{Type: "url", URL: b.Media.URL}
	}
	return struct {
		Type   string `json:"type"`
		Source source `json:"source"`
	}{string(b.Type), s}
}
