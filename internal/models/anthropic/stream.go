package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"dure/agent"
	"dure/internal/models/sse"
	"dure/internal/models/wire"
)

// answer collects one answer from its events.
type answer struct {
	req      agent.Request
	provider string
	in       *wire.Body
	emit     wire.Emit

	id, model string
	blocks    []*block
	open      wire.Open[block]
	ids       map[string]bool // of calls
	kept      wire.Kept
	scratch   []byte

	usage  agent.Usage
	stop   agent.StopReason
	detail string

	seen     bool // anything came
	begun    bool // message_start came
	complete bool // message_stop came
}

// block is one block in the making.
type block struct {
	index     int
	kind      agent.BlockType
	text      strings.Builder // text, thinking, or the JSON of a call's input
	signature string
	id, tool  string
	raw       json.RawMessage // as it began
	input     json.RawMessage // as it began
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

// read takes in events until the answer is complete.
func (a *answer) read() error {
	a.ids = make(map[string]bool)
	d := sse.NewDecoder(a.in)
	for {
		e, err := d.Next()
		if err != nil {
			return a.in.Cut(err, a.seen)
		}
		a.seen = true
		done, err := a.take(e.Data)
		if err != nil {
			return err
		}
		if done {
			a.complete = true
			return a.finish()
		}
	}
}

// take takes in one event and reports whether it was the last.
func (a *answer) take(data []byte) (bool, error) {
	if ok, err := a.fast(data); ok {
		return false, err
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil || e.Type == "" {
		return false, a.in.Damaged(api, a.begun, err)
	}
	if e.Type != "ping" {
		a.in.Progress()
	}
	switch e.Type {
	case "message_start":
		a.begun, a.id, a.model = true, e.Message.ID, e.Message.Model
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
		if !a.begun {
			return false, wire.Protocol("the answer ends without having begun")
		}
		return true, nil
	case "error":
		err := classify(0, e.Error)
		err.RequestID = a.in.RequestID
		return false, err
	}
	return false, nil // pings, and what later versions of the API add
}

func (a *answer) count(u usage) error {
	set := func(to *int, from *int) {
		if from != nil {
			*to = max(*from, 0)
		}
	}
	before := a.usage
	set(&a.usage.Input, u.Input)
	set(&a.usage.Output, u.Output)
	set(&a.usage.CacheRead, u.CacheRead)
	set(&a.usage.CacheWrite, u.CacheWrite)
	set(&a.usage.CacheHour, u.Creation.Hour)
	a.usage.CacheWrite = max(a.usage.CacheWrite, a.usage.CacheHour)
	if a.usage == before {
		return nil
	}
	now := a.usage
	return a.emit(agent.Delta{Kind: agent.DeltaUsage, Usage: &now})
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
	if err := wire.Another(len(a.blocks)); err != nil {
		return err
	}
	if err := a.kept.Grow(len(raw)); err != nil {
		return err
	}
	b := &block{index: index, kind: agent.RawBlock, raw: bytes.Clone(raw)}
	a.blocks = append(a.blocks, b)
	a.open.Put(index, b)
	switch c.Type {
	case "text":
		b.kind = agent.TextBlock
		return a.append(b, c.Text)
	case "thinking":
		b.kind, b.signature = agent.ThinkingBlock, c.Signature
		b.raw = nil
		return a.append(b, c.Thinking)
	case "redacted_thinking":
		b.kind = agent.ThinkingBlock
	case "tool_use":
		b.kind, b.input = agent.CallBlock, bytes.Clone(c.Input)
		b.id, b.tool = a.uniqueID(c.ID, index), a.req.Canonical(c.Name)
		return a.emit(agent.Delta{Kind: agent.DeltaCall, Index: index, CallID: b.id, Tool: b.tool})
	}
	return nil
}

// uniqueID returns id, or one that no other call of the answer has.
func (a *answer) uniqueID(id string, index int) string {
	if id == "" {
		id = "call_" + a.id
	}
	return wire.Unique(a.ids, id, index)
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
		if b.kind == agent.TextBlock {
			return a.append(b, e.Delta.Text)
		}
	case "thinking_delta":
		if b.kind == agent.ThinkingBlock {
			return a.append(b, e.Delta.Thinking)
		}
	case "signature_delta":
		b.signature = e.Delta.Signature
		return a.kept.Grow(len(b.signature))
	case "input_json_delta":
		if b.kind == agent.CallBlock || b.kind == agent.RawBlock {
			return a.append(b, e.Delta.JSON)
		}
	}
	return nil
}

// append adds text to a block and shows it. What is shown shares memory with
// what is kept.
func (a *answer) append(b *block, text string) error {
	at := b.text.Len()
	b.text.WriteString(text)
	return a.show(b, at)
}

// show emits what b has from at on.
func (a *answer) show(b *block, at int) error {
	text := b.text.String()[at:]
	if err := a.kept.Grow(len(text)); err != nil {
		return err
	}
	return a.emit.Piece(b.kind, agent.Delta{Index: b.index, Text: text, CallID: b.id})
}

func (a *answer) close(index int) error {
	b := a.open.At(index)
	if b == nil {
		return nil
	}
	a.open.Close(index)
	if b.kind != agent.CallBlock {
		return nil
	}
	return a.emit(agent.Delta{Kind: agent.DeltaCallEnd, Index: index, CallID: b.id})
}

// finish emits the whole answer.
func (a *answer) finish() error {
	final := &agent.Answer{
		Message: agent.Message{Role: agent.Assistant},
		Stop:    a.stop, Usage: a.usage, Detail: a.detail,
		ID: a.id, Model: a.model, RequestID: a.in.RequestID,
	}
	calls := false
	for i, b := range a.blocks {
		cut := i == len(a.blocks)-1 && stoppedShort(a.stop) || a.open.At(b.index) == b
		if done, ok := b.finish(a.provider, cut); ok {
			final.Message.Blocks = append(final.Message.Blocks, done)
			calls = calls || b.kind == agent.CallBlock
		}
	}
	if final.Stop == "" {
		final.Stop = agent.StopEnd
		if calls {
			final.Stop = agent.StopCalls
		}
	}
	return a.emit(agent.Delta{Kind: agent.DeltaFinal, Final: final})
}

// stoppedShort reports whether an answer can have been stopped inside a call.
func stoppedShort(s agent.StopReason) bool {
	return s == agent.StopLength || s == agent.StopWindow || s == agent.StopRefusal
}

// finish returns the block, and false when it says nothing.
func (b *block) finish(provider string, cut bool) (agent.Block, bool) {
	text := b.text.String()
	switch b.kind {
	case agent.TextBlock:
		return agent.Block{Type: agent.TextBlock, Text: text}, text != ""
	case agent.ThinkingBlock:
		return agent.Block{
			Type: agent.ThinkingBlock, Text: text, Signature: b.signature, Provider: provider, Raw: b.raw,
		}, text != "" || b.signature != "" || b.raw != nil
	case agent.CallBlock:
		if text == "" && wire.Object(b.input) {
			text = string(b.input)
			cut = cut && text == "{}"
		}
		c := wire.ToolInput(b.id, b.tool, text, cut)
		return agent.Block{Type: agent.CallBlock, Call: &c}, true
	}
	return agent.Block{Type: agent.RawBlock, Provider: provider, Raw: withInput(b.raw, text)}, true
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
	switch b.kind {
	case agent.CallBlock:
		open = deltaJSON
	case agent.ThinkingBlock:
		open = deltaMind
	}
	if rest, ok = bytes.CutPrefix(rest[digits:], open); !ok {
		return false, nil
	}
	if a.scratch, rest, ok = wire.Unquote(a.scratch[:0], rest); !ok || !closed(rest) {
		return false, nil
	}
	a.in.Progress()
	at := b.text.Len()
	b.text.Write(a.scratch)
	return true, a.show(b, at)
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
