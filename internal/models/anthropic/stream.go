package anthropic

import (
	"bytes"
	"encoding/json"

	"dure/agent"
	"dure/internal/models/sse"
	"dure/internal/models/wire"
)

// answer collects one answer from its events.
type answer struct {
	wire.Answer
	open   wire.Open[wire.Block]
	stop   agent.StopReason
	detail string
}

// event is any event of the stream.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		ID    string `json:"id"`
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		JSON       string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
		StopText   string `json:"stop_sequence"`
		Details    struct {
			Category    string `json:"category"`
			Explanation string `json:"explanation"`
		} `json:"stop_details"`
	} `json:"delta"`
	Usage usage        `json:"usage"`
	Error errorMessage `json:"error"`
}

// usage has the counts that an event reports; they are totals, and a missing
// one stays as it was.
type usage struct {
	Input      *int `json:"input_tokens"`
	Output     *int `json:"output_tokens"`
	CacheRead  *int `json:"cache_read_input_tokens"`
	CacheWrite *int `json:"cache_creation_input_tokens"`
	Creation   struct {
		Hour *int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
}

// Take takes in one event and reports whether it was the last.
func (a *answer) Take(raw sse.Event) (bool, error) {
	data := raw.Data
	if ok, err := a.fast(data); ok {
		return false, err
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil || e.Type == "" {
		return false, a.In.Damaged(api, a.Begun, err)
	}
	if e.Type != "ping" {
		a.In.Progress()
	}
	switch e.Type {
	case "message_start":
		a.Begun, a.ID, a.Model = true, e.Message.ID, e.Message.Model
		return false, a.count(e.Message.Usage)
	case "content_block_start":
		return false, a.start(e.Index, e.Block)
	case "content_block_delta":
		return false, a.delta(e)
	case "content_block_stop":
		return false, a.close(e.Index)
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.stop = agent.StopReason(e.Delta.StopReason)
			a.detail = wire.Or(e.Delta.StopText, wire.Or(e.Delta.Details.Explanation, e.Delta.Details.Category))
		}
		return false, a.count(e.Usage)
	case "message_stop":
		if !a.Begun {
			return false, wire.Protocol("the answer ends without having begun")
		}
		return true, nil
	case "error":
		err := classify(0, e.Error)
		err.RequestID = a.In.RequestID
		return false, err
	}
	return false, nil // pings, and what later versions of the API add
}

func (a *answer) count(u usage) error {
	now := a.Usage
	wire.Total(&now.Input, u.Input)
	wire.Total(&now.Output, u.Output)
	wire.Total(&now.CacheRead, u.CacheRead)
	wire.Total(&now.CacheWrite, u.CacheWrite)
	wire.Total(&now.CacheHour, u.Creation.Hour)
	now.CacheWrite = max(now.CacheWrite, now.CacheHour)
	return a.Count(now)
}

// start opens a block.
func (a *answer) start(index int, raw json.RawMessage) error {
	var c struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(raw, &c); err != nil || c.Type == "" {
		return nil // a block that cannot be read is as good as none
	}
	b, err := a.Add(index, agent.RawBlock)
	if err == nil {
		err = a.Kept.Grow(len(raw))
	}
	if err != nil {
		return err
	}
	b.Raw = bytes.Clone(raw)
	a.open.Put(index, b)
	switch c.Type {
	case "text":
		b.Kind = agent.TextBlock
		return a.Append(b, c.Text)
	case "thinking":
		b.Kind, b.Signature = agent.ThinkingBlock, c.Signature
		b.Raw = nil
		return a.Append(b, c.Thinking)
	case "redacted_thinking":
		b.Kind = agent.ThinkingBlock
	case "tool_use":
		b.Kind, b.Raw = agent.CallBlock, bytes.Clone(c.Input)
		b.ID, b.Tool = a.UniqueID(c.ID, index), a.Request.Canonical(c.Name)
		return a.Emit(agent.Delta{Kind: agent.DeltaCall, Index: index, CallID: b.ID, Tool: b.Tool})
	}
	return nil
}

// delta adds to a block. What belongs to no block, or not to this kind of
// block, is left out.
func (a *answer) delta(e event) error {
	b := a.open.At(e.Index)
	if b == nil {
		return nil
	}
	switch e.Delta.Type {
	case "text_delta":
		if b.Kind == agent.TextBlock {
			return a.Append(b, e.Delta.Text)
		}
	case "thinking_delta":
		if b.Kind == agent.ThinkingBlock {
			return a.Append(b, e.Delta.Thinking)
		}
	case "signature_delta":
		b.Signature = e.Delta.Signature
		return a.Kept.Grow(len(b.Signature))
	case "input_json_delta":
		if b.Kind == agent.CallBlock || b.Kind == agent.RawBlock {
			return a.Append(b, e.Delta.JSON)
		}
	}
	return nil
}

func (a *answer) close(index int) error {
	b := a.open.At(index)
	if b == nil {
		return nil
	}
	a.open.Close(index)
	if b.Kind != agent.CallBlock {
		return nil
	}
	return a.Emit(agent.Delta{Kind: agent.DeltaCallEnd, Index: index, CallID: b.ID})
}

// Finish emits the whole answer.
func (a *answer) Finish() error {
	var blocks []agent.Block
	calls := false
	for i, b := range a.Blocks {
		cut := i == len(a.Blocks)-1 && stoppedShort(a.stop) || a.open.At(b.Index) == b
		if done, ok := finish(b, a.Provider, cut); ok {
			blocks = append(blocks, done)
			calls = calls || b.Kind == agent.CallBlock
		}
	}
	stop := agent.StopEnd
	if calls {
		stop = agent.StopCalls
	}
	return a.Final(blocks, wire.Or(a.stop, stop), a.detail)
}

// stoppedShort reports whether an answer can have been stopped inside a call.
func stoppedShort(s agent.StopReason) bool {
	return s == agent.StopLength || s == agent.StopWindow || s == agent.StopRefusal
}

// finish returns the block, and false when it says nothing.
func finish(b *wire.Block, provider string, cut bool) (agent.Block, bool) {
	text := b.Text.String()
	switch b.Kind {
	case agent.TextBlock:
		return agent.Block{Type: agent.TextBlock, Text: text}, text != ""
	case agent.ThinkingBlock:
		return agent.Block{
			Type: agent.ThinkingBlock, Text: text, Signature: b.Signature, Provider: provider, Raw: b.Raw,
		}, text != "" || b.Signature != "" || b.Raw != nil
	case agent.CallBlock:
		if text == "" && wire.Object(b.Raw) {
			text = string(b.Raw)
			cut = cut && text == "{}"
		}
		c := wire.ToolInput(b.ID, b.Tool, text, cut)
		return agent.Block{Type: agent.CallBlock, Call: &c}, true
	}
	return agent.Block{Type: agent.RawBlock, Provider: provider, Raw: withInput(b.Raw, text)}, true
}

// withInput returns a block of a kind we do not model, with the input that its
// deltas brought.
func withInput(raw json.RawMessage, input string) json.RawMessage {
	var members map[string]json.RawMessage
	if input == "" || !json.Valid([]byte(input)) || json.Unmarshal(raw, &members) != nil {
		return raw
	}
	members["input"] = json.RawMessage(input)
	whole, err := json.Marshal(members)
	if err != nil {
		return raw
	}
	return whole
}

var (
	deltaOpen = []byte(`{"type":"content_block_delta","index":`)
	deltaText = []byte(`,"delta":{"type":"text_delta","text":"`)
	deltaJSON = []byte(`,"delta":{"type":"input_json_delta","partial_json":"`)
	deltaMind = []byte(`,"delta":{"type":"thinking_delta","thinking":"`)
)

// fast takes in a delta that is written the way the API writes it, which is
// nearly every event there is. It reports false, and has done nothing, for
// everything else.
func (a *answer) fast(data []byte) (bool, error) {
	rest, ok := bytes.CutPrefix(data, deltaOpen)
	if !ok {
		return false, nil
	}
	index, digits := 0, 0
	for digits < len(rest) && digits < 6 && rest[digits]-'0' < 10 {
		index = index*10 + int(rest[digits]-'0')
		digits++
	}
	if digits == 0 {
		return false, nil
	}
	b := a.open.At(index)
	if b == nil {
		return false, nil
	}
	open := deltaText
	switch b.Kind {
	case agent.CallBlock:
		open = deltaJSON
	case agent.ThinkingBlock:
		open = deltaMind
	}
	if rest, ok = bytes.CutPrefix(rest[digits:], open); !ok {
		return false, nil
	}
	if a.Scratch, rest, ok = wire.Unquote(a.Scratch[:0], rest); !ok || !closed(rest) {
		return false, nil
	}
	a.In.Progress()
	return true, a.AppendBytes(b, a.Scratch)
}

// closed reports whether s is the end of a delta: two braces, and spaces.
func closed(s []byte) bool {
	braces := 0
	for _, c := range s {
		switch c {
		case '}':
			braces++
		case ' ':
		default:
			return false
		}
	}
	return braces == 2
}
