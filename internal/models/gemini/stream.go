package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"dure/agent"
	"dure/internal/models/sse"
	"dure/internal/models/wire"
)

const (
	maxCallID = 40 // bytes of what the ID of an answer gives to the IDs of its calls
)

// answer collects one answer from its chunks.
type answer struct {
	wire.Answer
	usage   agent.Usage
	counts  tokens
	counted bool // usage came

	reason, message string // why it ended
	blocked         bool   // the prompt was
}

// tokens has the counts of the API; they are totals, and a missing one stays as
// it was.
type tokens struct {
	prompt, cached, candidates, thoughts, tools int
}

// chunk is what one event of the stream holds.
type chunk struct {
	Candidates []candidate `json:"candidates"`
	Feedback   struct {
		Reason  string `json:"blockReason"`
		Message string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage *usage `json:"usageMetadata"`
	Model string `json:"modelVersion"`
	ID    string `json:"responseId"`
}

type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []json.RawMessage `json:"parts"`
	} `json:"content"`
	Reason  string `json:"finishReason"`
	Message string `json:"finishMessage"`
}

type usage struct {
	Prompt     *int `json:"promptTokenCount"`
	Cached     *int `json:"cachedContentTokenCount"`
	Candidates *int `json:"candidatesTokenCount"`
	Thoughts   *int `json:"thoughtsTokenCount"`
	Tools      *int `json:"toolUsePromptTokenCount"`
}

// part is one part of a candidate.
type part struct {
	Text      *string       `json:"text"`
	Thought   bool          `json:"thought"`
	Signature string        `json:"thoughtSignature"`
	Call      *functionCall `json:"functionCall"`
}

type functionCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args"`
	Partial   json.RawMessage `json:"partialArgs"`
	Continues bool            `json:"willContinue"`
}

// Document reads an answer that came as one document: a chunk, or a list of them.
func (a *answer) Document(body []byte) error {
	var chunks []json.RawMessage
	if body = bytes.TrimSpace(body); len(body) == 0 || body[0] != '[' {
		chunks = []json.RawMessage{body}
	} else if err := json.Unmarshal(body, &chunks); err != nil {
		return a.In.Damaged(api, false, err)
	}
	for _, c := range chunks {
		if _, err := a.Take(sse.Event{Data: c}); err != nil {
			return err
		}
	}
	if !a.Ended {
		return a.In.Cut(io.EOF, true)
	}
	return a.Finish()
}

// Take takes in one event and reports whether it was the last: the one that
// says why the answer ends, or, when that does not count the tokens, the one
// that does.
func (a *answer) Take(e sse.Event) (bool, error) {
	data := e.Data
	if ok, err := a.fast(data); ok {
		return false, err
	}
	if string(data) == "[DONE]" { // what some proxies end every stream with
		return a.Ended, nil
	}
	if failed := explain(0, data); failed != nil {
		failed.RequestID = wire.Or(a.In.RequestID, a.ID)
		return false, failed
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, a.In.Damaged(api, a.Begun, err)
	}
	if c.Candidates == nil && c.Usage == nil && c.Feedback.Reason == "" && c.ID == "" {
		if !a.Begun {
			return false, a.In.Damaged(api, false, nil)
		}
		return false, nil // what later versions of the API add
	}
	a.Begun = true
	a.ID, a.Model = wire.Or(a.ID, c.ID), wire.Or(a.Model, c.Model)
	for _, candidate := range c.Candidates {
		if candidate.Index != 0 {
			continue // one answer was asked for
		}
		if err := a.candidate(candidate); err != nil {
			return false, err
		}
	}
	if c.Feedback.Reason != "" && len(c.Candidates) == 0 {
		a.In.Progress()
		a.Ended, a.blocked, a.reason, a.message = true, true, c.Feedback.Reason, c.Feedback.Message
	}
	if err := a.count(c.Usage); err != nil {
		return false, err
	}
	return a.Ended && c.Usage != nil, nil
}

func (a *answer) candidate(c candidate) error {
	if len(c.Content.Parts) > 0 || c.Reason != "" {
		a.In.Progress()
	}
	for _, raw := range c.Content.Parts {
		if err := a.part(raw); err != nil {
			return err
		}
	}
	if c.Reason != "" {
		a.Ended, a.reason, a.message = true, c.Reason, c.Message
	}
	return nil
}

// part takes in one part. One that cannot be read is as good as none.
func (a *answer) part(raw json.RawMessage) error {
	var p part
	if json.Unmarshal(raw, &p) != nil {
		return nil
	}
	kind := agent.TextBlock
	if p.Thought {
		kind = agent.ThinkingBlock
	}
	switch {
	case p.Call != nil:
		return a.call(*p.Call, p.Signature)
	case p.Text != nil:
		return a.append(kind, *p.Text, p.Signature)
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members) // it is an object: it could be read
	delete(members, "thought")
	delete(members, "thoughtSignature")
	switch {
	case foreign(raw):
		b, err := a.open(agent.RawBlock, len(raw))
		if err == nil {
			b.Raw = bytes.Clone(raw)
		}
		return err
	case len(members) == 0:
		return a.append(kind, "", p.Signature)
	}
	return nil
}

// open begins a block of n bytes.
func (a *answer) open(kind agent.BlockType, n int) (*wire.Block, error) {
	b, err := a.Add(len(a.Blocks), kind)
	if err == nil {
		err = a.Kept.Grow(n)
	}
	return b, err
}

// append adds text, or thinking, to the last block when it is of the kind. A
// part with a signature is a block of its own: that belongs to it alone.
func (a *answer) append(kind agent.BlockType, text, signature string) error {
	if text == "" && signature == "" {
		return nil
	}
	b, err := a.last(kind, signature)
	if err != nil {
		return err
	}
	return a.Append(b, text)
}

// last returns the block that text of the kind goes to.
func (a *answer) last(kind agent.BlockType, signature string) (*wire.Block, error) {
	if n := len(a.Blocks); n > 0 && signature == "" {
		if b := a.Blocks[n-1]; b.Kind == kind && b.Signature == "" {
			return b, nil
		}
	}
	b, err := a.open(kind, len(signature))
	if err == nil {
		b.Signature = signature
	}
	return b, err
}

// call takes in a call, which comes whole.
func (a *answer) call(f functionCall, signature string) error {
	if f.Continues || len(f.Partial) > 0 {
		return wire.Protocol("the endpoint streams the arguments of calls in pieces, which was not asked for")
	}
	args := strings.ToValidUTF8(string(f.Args), "\ufffd")
	if args == "null" {
		args = ""
	}
	c := wire.ToolInput(a.callID(f.ID), canonical(a.Request, f.Name), args, false)
	return a.made(c, signature)
}

// made adds a call and shows it.
func (a *answer) made(c agent.Call, signature string) error {
	b, err := a.open(agent.CallBlock, len(c.Input)+len(c.Raw)+len(signature))
	if err != nil {
		return err
	}
	b.Call, b.Signature = &c, signature
	text := string(c.Input)
	if c.Invalid != "" {
		text = c.Raw
	}
	for _, d := range []agent.Delta{
		{Kind: agent.DeltaCall, Tool: c.Tool},
		{Kind: agent.DeltaInput, Text: text},
		{Kind: agent.DeltaCallEnd},
	} {
		if d.Index, d.CallID = b.Index, c.ID; d.Kind == agent.DeltaInput && d.Text == "" {
			continue
		}
		if err := a.Emit(d); err != nil {
			return err
		}
	}
	return nil
}

// callID returns id or, without one, one that this answer to this request
// always gives. No other call of the answer has it.
func (a *answer) callID(id string) string {
	if id == "" {
		of := wire.Plain(a.ID[:min(len(a.ID), maxCallID)])
		id = "call_" + wire.Or(of, fmt.Sprint(len(a.Request.Messages))) + fmt.Sprint("_", len(a.IDs))
	}
	return a.UniqueID(id, len(a.IDs))
}

// count takes in totals, and shows the first ones.
func (a *answer) count(u *usage) error {
	if u == nil {
		return nil
	}
	wire.Total(&a.counts.prompt, u.Prompt)
	wire.Total(&a.counts.cached, u.Cached)
	wire.Total(&a.counts.candidates, u.Candidates)
	wire.Total(&a.counts.thoughts, u.Thoughts)
	wire.Total(&a.counts.tools, u.Tools)
	return a.counting()
}

// counting brings the usage in line with the counts of the API, whose prompt
// includes what was read from the cache.
func (a *answer) counting() error {
	t := a.counts
	cached := min(t.cached, t.prompt)
	a.usage = agent.Usage{Input: t.prompt - cached + t.tools, CacheRead: cached, Output: t.candidates + t.thoughts}
	if a.counted || t.prompt == 0 {
		return nil
	}
	a.counted = true
	return a.Count(a.usage)
}
