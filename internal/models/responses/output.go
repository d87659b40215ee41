package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

// output is an item of an answer.
type output struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Phase  string `json:"phase"`

	CallID string `json:"call_id"`
	Name   string `json:"name"`

	// Arguments is a string; some endpoints write the object itself.
	Arguments json.RawMessage `json:"arguments"`

	Content []part `json:"content"`
	Summary []part `json:"summary"`
}

// part is a part of what an item says.
type part struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// said returns the whole text of an item.
func (o output) said() string {
	parts, between := o.Content, ""
	if o.Type == "reasoning" {
		between = "\n\n"
		if len(o.Summary) > 0 {
			parts = o.Summary
		}
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text + p.Refusal
	}
	return strings.Join(texts, between)
}

// input returns the input of a call as text.
func (o output) input() string {
	if wire.Object(o.Arguments) {
		return string(o.Arguments)
	}
	return text(o.Arguments)
}

// kind returns what becomes of an item.
func (o output) kind() agent.BlockType {
	switch o.Type {
	case "message":
		return agent.TextBlock
	case "reasoning":
		return agent.ThinkingBlock
	case "function_call":
		return agent.CallBlock
	}
	return agent.RawBlock
}

// start opens an item.
func (a *answer) start(index int, raw json.RawMessage) error {
	o, ok := readOutput(raw)
	if !ok {
		return nil // an item that cannot be read is as good as none
	}
	_, err := a.begin(index, o, raw)
	return err
}

func readOutput(raw json.RawMessage) (output, bool) {
	var o output
	err := json.Unmarshal(raw, &o)
	if err != nil && o.Type != "" && o.kind() == agent.RawBlock {
		return output{Type: o.Type}, true // it is not read anyway
	}
	return o, err == nil && o.Type != ""
}

// begin opens an item that could be read.
func (a *answer) begin(index int, o output, raw json.RawMessage) (*wire.Block, error) {
	b, err := a.add(index, o.kind())
	if err != nil {
		return nil, err
	}
	switch b.Kind {
	case agent.CallBlock:
		b.ID, b.Tool = a.UniqueID(o.CallID, index), a.Request.Canonical(o.Name)
		if err := a.Emit(agent.Delta{Kind: agent.DeltaCall, Index: index, CallID: b.ID, Tool: b.Tool}); err != nil {
			return nil, err
		}
		return b, a.agree(b, o.input())
	case agent.RawBlock:
		b.Raw = bytes.Clone(raw)
		return b, a.Kept.Grow(len(raw))
	}
	return b, a.agree(b, o.said())
}

// add opens a block.
func (a *answer) add(index int, kind agent.BlockType) (*wire.Block, error) {
	b, err := a.Add(index, kind)
	if err != nil {
		return nil, err
	}
	a.open.Put(index, b)
	return b, nil
}

// done closes an item, which is now whole. One that nobody announced is taken
// as it is.
func (a *answer) done(index int, raw json.RawMessage) error {
	o, ok := readOutput(raw)
	if !ok {
		return nil
	}
	b := a.open.At(index)
	if b == nil || b.Kind != o.kind() {
		var err error
		if b, err = a.begin(index, o, raw); err != nil {
			return err
		}
	}
	a.open.Close(index)
	b.Done = o.Status != "incomplete"
	return a.close(b, o, raw)
}

// close takes in the whole item.
func (a *answer) close(b *wire.Block, o output, raw json.RawMessage) error {
	switch b.Kind {
	case agent.TextBlock:
		for _, p := range o.Content {
			if p.Refusal != "" {
				a.refused = clipped(p.Refusal)
			}
		}
		if kept, err := json.Marshal(said{o.Phase}); err == nil && o.Phase != "" {
			b.Raw = kept
		}
		return a.agree(b, o.said())
	case agent.CallBlock:
		if err := a.agree(b, o.input()); err != nil {
			return err
		}
		return a.Emit(agent.Delta{Kind: agent.DeltaCallEnd, Index: b.Index, CallID: b.ID})
	case agent.ThinkingBlock:
		if b.Text.Len() == 0 {
			if err := a.Append(b, o.said()); err != nil {
				return err
			}
		}
	}
	b.Raw = bytes.Clone(raw)
	return a.Kept.Grow(len(raw))
}

// end takes in how the answer ended.
func (a *answer) end(how string, raw json.RawMessage) error {
	var r response
	if err := json.Unmarshal(raw, &r); err != nil {
		return a.In.Damaged(api, a.Begun, err)
	}
	a.ID, a.Model = wire.Or(r.ID, a.ID), wire.Or(r.Model, a.Model)
	if how == "failed" || how == "cancelled" {
		return a.wrong(event{Type: "error", Error: r.Error})
	}
	if err := a.missing(r.Output); err != nil {
		return err
	}
	a.stop = agent.StopEnd
	if how == "incomplete" || r.Status == "incomplete" {
		a.stop = shortOf(r.Incomplete.Reason)
		if a.stop == agent.StopRefusal {
			a.refused = wire.Or(a.refused, r.Incomplete.Reason)
		}
	}
	if r.Usage != nil {
		a.counted = r.Usage.count(a.writes)
	}
	return nil
}

// missing takes from the whole output what the events left out: everything, or
// items that were never done.
func (a *answer) missing(raw json.RawMessage) error {
	all := len(a.Blocks) == 0
	if !all && a.open.Len() == 0 {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil
	}
	for i, item := range items {
		if all || a.open.At(i) != nil {
			if err := a.done(i, item); err != nil {
				return err
			}
		}
	}
	return nil
}

// shortOf returns why an answer is not complete. A reason that is new is kept
// as it is.
func shortOf(reason string) agent.StopReason {
	switch reason {
	case "max_output_tokens", "":
		return agent.StopLength
	case "content_filter":
		return agent.StopRefusal
	}
	return agent.StopReason(clipped(reason))
}

// count returns the tokens, each of them once. What was written to the cache is
// input like any other where that costs nothing more.
func (u usage) count(writes bool) *agent.Usage {
	read, written := max(u.InputDetails.Cached, 0), 0
	if writes {
		written = max(u.InputDetails.Written, 0)
	}
	return &agent.Usage{
		Input: max(u.Input-read-written, 0), Output: max(u.Output, 0),
		CacheRead: read, CacheWrite: written,
	}
}

// Document reads an answer that came as one document.
func (a *answer) Document(body []byte) error {
	var r struct {
		Object string `json:"object"`
		Status string `json:"status"`
	}
	if err := json.Unmarshal(body, &r); err != nil || r.Object != "response" {
		return wire.Protocol("the endpoint answered with something else than " + api + "; check the base URL")
	}
	if r.Status != "completed" && r.Status != "incomplete" {
		return a.In.Damaged(api, true, fmt.Errorf("the answer has the status %q", clipped(r.Status)))
	}
	if err := a.end(r.Status, body); err != nil {
		return err
	}
	return a.Finish()
}
