package chat

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"dure/agent"
	"dure/internal/models/sse"
	"dure/internal/models/wire"
)

const (
	maxWord = 200 // bytes of a name or an ID that an endpoint gives
)

// answer collects one answer from its events.
type answer struct {
	wire.Answer
	keepDetails bool

	last    *wire.Block
	newest  *wire.Block            // the call that began last
	slots   map[int]*wire.Block    // the call that an index stands for now
	known   map[origin]*wire.Block // calls by their IDs
	checks  int                    // how often the end of a call had to be looked for
	tags    tags
	details details
	learned templates

	stop    string // as the endpoint says it; "" = it has not ended
	refusal strings.Builder
}

// chunk is an event of the stream, or the whole answer of an endpoint that does
// not stream.
type chunk struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Groq    struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`
}

type choice struct {
	Index   int             `json:"index"`
	Delta   message         `json:"delta"`
	Message message         `json:"message"` // of a whole answer
	Finish  string          `json:"finish_reason"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// message is what was said, or a piece of it. What differs between servers in
// its type is raw.
type message struct {
	Content          json.RawMessage   `json:"content"`
	ReasoningContent json.RawMessage   `json:"reasoning_content"`
	Reasoning        json.RawMessage   `json:"reasoning"`
	Thinking         json.RawMessage   `json:"thinking"`
	Details          []json.RawMessage `json:"reasoning_details"`
	Refusal          string            `json:"refusal"`
	Calls            []toolCall        `json:"tool_calls"`
	Call             *function         `json:"function_call"` // how there was one call before there were many
}

// Take takes in one event. The answer ends with [DONE], or with the clean end of a
// stream that has said why it ended.
func (a *answer) Take(e sse.Event) (bool, error) {
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0:
		return false, nil
	case string(data) == "[DONE]":
		if !a.Ended && !a.Begun {
			return false, a.In.Damaged(api, false, nil)
		}
		return false, io.EOF
	case string(e.Name) == "error":
		return false, a.failed(data)
	}
	return false, a.take(data, false)
}

// Document reads an answer that came as one document, or as a stream that says
// it is one.
func (a *answer) Document(body []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("data:")) {
		stream := wire.NewBody(bytes.NewReader(body))
		stream.RequestID = a.In.RequestID
		a.In = stream
		_, err := wire.Read(a)
		return err
	}
	if err := a.take(body, true); err != nil {
		return err
	}
	if !a.Begun {
		return wire.Protocol("the endpoint answers with something else than " + api + "; check the base URL")
	}
	return a.Finish()
}

// failed returns the error that an event is.
func (a *answer) failed(data []byte) error {
	s, ok := explanation(data)
	if !ok {
		s = said{message: string(data)}
	}
	err := classify(0, s)
	err.RequestID = a.In.RequestID
	return err
}

// take takes in one event. What is unknown in it is left out.
func (a *answer) take(data []byte, whole bool) error {
	if ok, err := a.fast(data); ok {
		return err
	}
	var c chunk
	if err := json.Unmarshal(data, &c); !wire.Object(data) || !decoded(err) {
		return a.In.Damaged(api, a.Begun, err)
	}
	if c.Choices == nil || given(c.Error) {
		if _, ok := explanation(data); ok {
			return a.failed(data)
		}
	}
	if c.Choices != nil || strings.HasPrefix(c.Object, "chat.completion") {
		a.Begun = true
	}
	a.ID, a.Model = wire.Or(a.ID, word(c.ID)), wire.Or(a.Model, word(c.Model))
	before, counted, stop := a.Kept, a.Usage, a.stop
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue // nobody asked for several answers
		}
		if err := a.choose(ch, whole); err != nil {
			return err
		}
	}
	for _, u := range []*usage{c.Groq.Usage, c.Usage} {
		if err := a.count(u); err != nil {
			return err
		}
	}
	if a.Kept > before || a.Usage != counted || a.stop != stop {
		a.In.Progress()
		if !whole {
			a.learned.learn(data, &c)
		}
	}
	return nil
}

// choose takes in a piece of the answer.
func (a *answer) choose(ch choice, whole bool) error {
	if given(ch.Error) {
		return a.failed([]byte(`{"error":` + string(ch.Error) + `}`))
	}
	m := ch.Delta
	if whole {
		m = ch.Message
	}
	if err := a.think(m); err != nil {
		return err
	}
	if err := a.content(m.Content); err != nil {
		return err
	}
	if m.Refusal != "" {
		a.refusal.WriteString(m.Refusal)
		if err := a.add(agent.TextBlock, []byte(m.Refusal)); err != nil {
			return err
		}
	}
	for _, t := range m.Calls {
		if err := a.call(t); err != nil {
			return err
		}
	}
	if m.Call != nil {
		slot := oldSlot
		if err := a.call(toolCall{Index: &slot, Function: *m.Call}); err != nil {
			return err
		}
	}
	if err := a.count(ch.Usage); err != nil {
		return err
	}
	switch ch.Finish {
	case "error", "abort", "insufficient_system_resource":
		return &agent.ModelError{
			Class: agent.FailServer, Code: ch.Finish, RequestID: a.In.RequestID,
			Message: "the endpoint broke the answer off",
		}
	}
	a.stop = wire.Or(word(ch.Finish), a.stop)
	a.Ended = a.stop != ""
	return nil
}

// word bounds a name or an ID.
func word(s string) string { return wire.Bound(s, maxWord) }

// content takes in text: a string, or a list of parts.
func (a *answer) content(raw json.RawMessage) error {
	if !given(raw) {
		return nil
	}
	if raw[0] == '"' {
		return a.say([]byte(plain(raw)))
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if !decoded(json.Unmarshal(raw, &parts)) {
		return nil
	}
	for _, p := range parts {
		var err error
		switch p.Type {
		case "text", "output_text":
			err = a.say([]byte(p.Text))
		case "thinking", "reasoning":
			err = a.add(agent.ThinkingBlock, []byte(wire.Or(text(p.Thinking), p.Text)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// text returns a string, or the texts of a list of parts.
func text(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] == '"' {
		var s string
		_ = json.Unmarshal(raw, &s) // what is no string says nothing
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // what can be read of it counts
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// say adds text, from which thinking may have to be told apart.
func (a *answer) say(text []byte) error {
	if a.tags.on {
		return a.tags.split(text, a.add)
	}
	return a.add(agent.TextBlock, text)
}

// add adds text or thinking and shows it.
func (a *answer) add(kind agent.BlockType, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	b := a.last
	if b == nil || b.Kind != kind {
		var err error
		if b, err = a.open(kind); err != nil {
			return err
		}
	}
	return a.AppendBytes(b, text)
}

// open begins a block.
func (a *answer) open(kind agent.BlockType) (*wire.Block, error) {
	b, err := a.Add(len(a.Blocks), kind)
	if err == nil {
		a.last = b
	}
	return b, err
}
