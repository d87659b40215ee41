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
	req      agent.Request
	provider string
	writes   bool // what is written to the cache has a price of its own
	in       *wire.Body
	emit     wire.Emit

	id, model string
	blocks    []*block
	open      wire.Open[block]
	ids       map[string]bool // of calls
	kept      wire.Kept
	scratch   []byte

	usage   *agent.Usage
	stop    agent.StopReason
	refused string // what the model said instead

	begun    bool // an event of this API came
	complete bool // the last event came
}

// block is one item in the making.
type block struct {
	index    int
	kind     agent.BlockType
	text     strings.Builder // text, thinking, or the JSON of a call's input
	id, tool string
	raw      json.RawMessage // the item, as it was last seen
	done     bool            // the item is complete
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

// read takes in events until the answer is complete.
func (a *answer) read() error {
	d := sse.NewDecoder(a.in)
	seen := false
	for {
		e, err := d.Next()
		if err == nil && string(e.Data) == "[DONE]" { // how another API ends
			err = io.EOF
		}
		if err == io.EOF && seen && !a.begun {
			return a.in.Damaged(api, false, err)
		}
		if err != nil {
			return a.in.Cut(err, seen)
		}
		seen = true
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
	e, err := decode(data)
	if err != nil {
		return false, a.in.Damaged(api, a.begun, err)
	}
	if e.Type == "" || e.Type == "error" {
		return false, a.wrong(e)
	}
	a.begun = a.begun || strings.HasPrefix(e.Type, "response.")
	switch e.Type {
	case "response.in_progress", "response.queued", "keepalive", "ping": // signs of life
	default:
		a.in.Progress()
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
		if b := a.open.At(e.Index); b != nil && b.kind == agent.ThinkingBlock && b.text.Len() > 0 {
			return false, a.append(b, "\n\n")
		}
	case "response.function_call_arguments.done":
		if b := a.open.At(e.Index); b != nil && b.kind == agent.CallBlock {
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
		return a.in.Damaged(api, a.begun, nil)
	}
	err := classify(0, said)
	err.Message = wire.Or(err.Message, "the provider gave up in the middle of its answer")
	err.RequestID = a.in.RequestID
	return err
}

func (a *answer) heading(raw json.RawMessage) {
	var r response
	_ = json.Unmarshal(raw, &r) // a name at most
	a.id, a.model = wire.Or(r.ID, a.id), wire.Or(r.Model, a.model)
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
	if b == nil || b.kind != kind {
		return nil
	}
	piece := text(e.Delta)
	if e.Type == "response.refusal.delta" {
		a.refused = clipped(a.refused + piece)
	}
	return a.append(b, piece)
}

// clipped bounds what is kept of a refusal beside the text itself.
func clipped(s string) string {
	return wire.Bound(s, wire.MaxMessage)
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

// agree brings a block in line with what the provider says it is as a whole:
// what was missing at its end is shown, what was different is replaced.
func (a *answer) agree(b *block, whole string) error {
	now := b.text.String()
	switch {
	case whole == "" || whole == now:
		return nil
	case strings.HasPrefix(whole, now):
		return a.append(b, whole[len(now):])
	}
	b.text.Reset()
	b.text.WriteString(whole)
	return a.kept.Grow(len(whole))
}

// finish emits the whole answer.
func (a *answer) finish() error {
	final := &agent.Answer{
		Message: agent.Message{Role: agent.Assistant}, Stop: a.stop, Detail: a.refused,
		ID: a.id, Model: a.model, RequestID: a.in.RequestID,
	}
	slices.SortStableFunc(a.blocks, func(x, y *block) int { return cmp.Compare(x.index, y.index) })
	calls := false
	for i, b := range a.blocks {
		cut := !b.done || i == len(a.blocks)-1 && a.stop != agent.StopEnd
		if done, ok := b.finish(a.provider, cut); ok {
			final.Message.Blocks = append(final.Message.Blocks, done)
			calls = calls || b.kind == agent.CallBlock
		}
	}
	switch {
	case final.Stop != agent.StopEnd:
	case calls:
		final.Stop = agent.StopCalls
	case a.refused != "":
		final.Stop = agent.StopRefusal
	}
	if a.usage != nil {
		final.Usage = *a.usage
		if err := a.emit(agent.Delta{Kind: agent.DeltaUsage, Usage: a.usage}); err != nil {
			return err
		}
	}
	return a.emit(agent.Delta{Kind: agent.DeltaFinal, Final: final})
}

// finish returns the block, and false when it says nothing.
func (b *block) finish(provider string, cut bool) (agent.Block, bool) {
	text := b.text.String()
	switch b.kind {
	case agent.TextBlock:
		done := agent.Block{Type: agent.TextBlock, Text: text}
		if b.raw != nil {
			done.Provider, done.Raw = provider, b.raw
		}
		return done, text != ""
	case agent.ThinkingBlock:
		return agent.Block{Type: agent.ThinkingBlock, Text: text, Provider: provider, Raw: b.raw}, text != "" || b.raw != nil
	case agent.CallBlock:
		c := wire.ToolInput(b.id, b.tool, text, cut)
		return agent.Block{Type: agent.CallBlock, Call: &c}, true
	}
	// What was never whole cannot go back.
	return agent.Block{Type: agent.RawBlock, Provider: provider, Raw: b.raw}, b.done
}
