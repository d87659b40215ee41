package responses

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/models/sse"
	"dure/internal/models/wire"
)

// answer collects one answer from its events.
type answer struct {
	wire.Answer
	writes  bool // what is written to the cache has a price of its own
	open    wire.Open[wire.Block]
	counted *agent.Usage
	stop    agent.StopReason
	refused string // what the model said instead
}

// event is any event of the stream. What has another form in events that nobody
// reads yet is left as it is.
type event struct {
	Type  string          `json:"type"`
	Index int             `json:"output_index"`
	Part  int             `json:"summary_index"`
	Delta json.RawMessage `json:"delta"`
	Item  json.RawMessage `json:"item"`

	Arguments json.RawMessage `json:"arguments"`
	Response  json.RawMessage `json:"response"`

	Code    json.RawMessage `json:"code"`
	Message json.RawMessage `json:"message"`
	Error   json.RawMessage `json:"error"`
}

// response is the answer as events report it. Its output is only read when the
// events did not tell.
type response struct {
	ID         string          `json:"id"`
	Model      string          `json:"model"`
	Status     string          `json:"status"`
	Output     json.RawMessage `json:"output"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *usage `json:"usage"`
}

// usage counts tokens; the details are parts of the sums.
type usage struct {
	Input        int `json:"input_tokens"`
	Output       int `json:"output_tokens"`
	InputDetails struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
}

// Take takes in one event and reports whether it was the last.
func (a *answer) Take(raw sse.Event) (bool, error) {
	data := raw.Data
	if string(data) == "[DONE]" { // how another API ends
		return false, io.EOF
	}
	if ok, err := a.fast(data); ok {
		return false, err
	}
	e, err := decode(data)
	if err != nil {
		return false, a.In.Damaged(api, a.Begun, err)
	}
	if e.Type == "" || e.Type == "error" {
		return false, a.wrong(e)
	}
	a.Begun = a.Begun || strings.HasPrefix(e.Type, "response.")
	switch e.Type {
	case "response.in_progress", "response.queued", "keepalive", "ping": // signs of life
	default:
		a.In.Progress()
	}
	switch e.Type {
	case "response.created", "response.in_progress", "response.queued":
		a.heading(e.Response)
	case "response.output_item.added":
		return false, a.start(e.Index, e.Item)
	case "response.output_item.done":
		return false, a.done(e.Index, e.Item)
	case "response.output_text.delta", "response.refusal.delta":
		return false, a.delta(e, agent.TextBlock)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return false, a.delta(e, agent.ThinkingBlock)
	case "response.function_call_arguments.delta":
		return false, a.delta(e, agent.CallBlock)
	case "response.reasoning_summary_part.added":
		if b := a.open.At(e.Index); b != nil && b.Kind == agent.ThinkingBlock && b.Text.Len() > 0 {
			return false, a.Append(b, "\n\n")
		}
	case "response.function_call_arguments.done":
		if b := a.open.At(e.Index); b != nil && b.Kind == agent.CallBlock {
			return false, a.agree(b, text(e.Arguments))
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return true, a.end(strings.TrimPrefix(e.Type, "response."), e.Response)
	}
	return false, nil // what later versions of the API add
}

// decode reads an event. One of a kind that nobody reads need not have the form
// of the others.
func decode(data []byte) (event, error) {
	var e event
	err := json.Unmarshal(data, &e)
	if err != nil {
		var name struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(data, &name) == nil && name.Type != "" && !known(name.Type) {
			return event{Type: name.Type}, nil
		}
	}
	return e, err
}

// known reports whether events of a type are read.
func known(kind string) bool {
	switch kind {
	case "error", "response.created", "response.completed", "response.incomplete", "response.failed", "response.cancelled",
		"response.output_item.added", "response.output_item.done", "response.output_text.delta", "response.refusal.delta",
		"response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.reasoning_summary_part.added",
		"response.function_call_arguments.delta", "response.function_call_arguments.done":
		return true
	}
	return false
}

// text returns a JSON string, or "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // then it is no text
	return s
}

// wrong returns the error that an event is: the API's, in one object or two, or
// that it is another protocol's.
func (a *answer) wrong(e event) error {
	said, ok := readError(e.Error)
	if !ok {
		said = errorMessage{Code: e.Code, Message: text(e.Message)}
		ok = e.Type == "error"
	}
	if !ok {
		return a.In.Damaged(api, a.Begun, nil)
	}
	err := classify(0, said)
	err.Message = wire.Or(err.Message, "the provider gave up in the middle of its answer")
	err.RequestID = a.In.RequestID
	return err
}

func (a *answer) heading(raw json.RawMessage) {
	var r response
	_ = json.Unmarshal(raw, &r) // a name at most
	a.ID, a.Model = wire.Or(r.ID, a.ID), wire.Or(r.Model, a.Model)
}

// delta adds to the item that an event is for. What belongs to no item, or not
// to this kind of item, is left out; a text needs no announcement.
func (a *answer) delta(e event, kind agent.BlockType) error {
	b := a.open.At(e.Index)
	if b == nil && kind == agent.TextBlock {
		var err error
		if b, err = a.add(e.Index, kind); err != nil {
			return err
		}
	}
	if b == nil || b.Kind != kind {
		return nil
	}
	piece := text(e.Delta)
	if e.Type == "response.refusal.delta" {
		a.refused = clipped(a.refused + piece)
	}
	return a.Append(b, piece)
}

// clipped bounds what is kept of a refusal beside the text itself.
func clipped(s string) string {
	return wire.Bound(s, wire.MaxMessage)
}

// agree brings a block in line with what the provider says it is as a whole:
// what was missing at its end is shown, what was different is replaced.
func (a *answer) agree(b *wire.Block, whole string) error {
	now := b.Text.String()
	switch {
	case whole == "" || whole == now:
		return nil
	case strings.HasPrefix(whole, now):
		return a.Append(b, whole[len(now):])
	}
	b.Text.Reset()
	b.Text.WriteString(whole)
	return a.Kept.Grow(len(whole))
}

// Finish emits the whole answer.
func (a *answer) Finish() error {
	slices.SortStableFunc(a.Blocks, func(x, y *wire.Block) int { return cmp.Compare(x.Index, y.Index) })
	var blocks []agent.Block
	calls := false
	for i, b := range a.Blocks {
		cut := !b.Done || i == len(a.Blocks)-1 && a.stop != agent.StopEnd
		if done, ok := finish(b, a.Provider, cut); ok {
			blocks = append(blocks, done)
			calls = calls || b.Kind == agent.CallBlock
		}
	}
	stop := a.stop
	switch {
	case stop != agent.StopEnd:
	case calls:
		stop = agent.StopCalls
	case a.refused != "":
		stop = agent.StopRefusal
	}
	if a.counted != nil {
		a.Usage = *a.counted
		if err := a.Emit(agent.Delta{Kind: agent.DeltaUsage, Usage: a.counted}); err != nil {
			return err
		}
	}
	return a.Final(blocks, stop, a.refused)
}

// finish returns the block, and false when it says nothing.
func finish(b *wire.Block, provider string, cut bool) (agent.Block, bool) {
	text := b.Text.String()
	switch b.Kind {
	case agent.TextBlock:
		done := agent.Block{Type: agent.TextBlock, Text: text}
		if b.Raw != nil {
			done.Provider, done.Raw = provider, b.Raw
		}
		return done, text != ""
	case agent.ThinkingBlock:
		return agent.Block{Type: agent.ThinkingBlock, Text: text, Provider: provider, Raw: b.Raw}, text != "" || b.Raw != nil
	case agent.CallBlock:
		c := wire.ToolInput(b.ID, b.Tool, text, cut)
		return agent.Block{Type: agent.CallBlock, Call: &c}, true
	}
	// What was never whole cannot go back.
	return agent.Block{Type: agent.RawBlock, Provider: provider, Raw: b.Raw}, b.Done
}
