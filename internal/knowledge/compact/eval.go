package compact

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/state/transcript"
)

// A Case is a conversation to be shortened, one JSON object.
type Case struct {
	ID       json.RawMessage `json:"id"` // goes back as it came
	Messages []CaseEntry     `json:"messages"`

	Window   int        `json:"window"`             // tokens; 0 = not known
	Reserve  int        `json:"reserve,omitempty"`  // default 4,096
	Strategy string     `json:"strategy,omitempty"` // "" = adaptive
	Target   int        `json:"target,omitempty"`   // tokens; default half of the window
	Recent   *int       `json:"preserve_recent,omitempty"`
	Focus    string     `json:"focus,omitempty"`
	Pinned   []CaseFact `json:"pinned,omitempty"`

	// Always has the conversation shortened although it is neither full nor larger than
	// Target.
	Always bool `json:"always,omitempty"`

	// Summary is what the model answers that is asked for one; "" = how long the record
	// is that it was shown. With Fails it answers nothing.
	Summary string `json:"summary,omitempty"`
	Fails   bool   `json:"summary_fails,omitempty"`
}

// CaseFact is a fact that has to be carried on.
type CaseFact struct {
	Kind string `json:"kind"` // goal, rule, plan, todo, decision, fact, file or call
	Text string `json:"text"`
}

// CaseEntry is a message in the neutral form of transcripts. Those of the role system
// stay in any case; those of any other role but assistant are the user's.
type CaseEntry struct {
	ID      json.RawMessage `json:"id"` // a text or a number; none = the position, from 1
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a text, or blocks
}

// Verdict is what became of a case. Messages are named by their IDs.
type Verdict struct {
	ID       json.RawMessage `json:"id"`
	Status   string          `json:"status"` // compacted, unchanged or error
	Error    string          `json:"error,omitempty"`
	Strategy string          `json:"strategy,omitempty"`
	Stages   []string        `json:"stages,omitempty"`
	Before   int             `json:"before"` // estimated tokens
	After    int             `json:"after"`
	Window   Window          `json:"window"` // as it was
	Removed  int             `json:"removed"`
	Kept     []string        `json:"kept"`
	Dropped  []string        `json:"dropped,omitempty"`
	Trimmed  []string        `json:"trimmed,omitempty"` // of those that are kept
	Summary  string          `json:"summary,omitempty"` // what comes in the place of what was dropped
	Pinned   []agent.Pinned  `json:"pinned,omitempty"`
	Entries  []Entry         `json:"entries,omitempty"` // the conversation that comes of it
}

// Entry is a message of the conversation that comes of a case.
type Entry struct {
	ID      string `json:"id"` // "summary" = the one that is new
	Role    string `json:"role"`
	Content any    `json:"content"` // as it came, or blocks
}

// reading is a case with its conversation.
type reading struct {
	Case
	conv Conversation
	at   []int // of each message of the conversation, in the case
}

// Evaluate reads a case and shortens its conversation. One that cannot be read is
// answered with the error.
func Evaluate(ctx context.Context, line []byte) Verdict {
	var r reading
	v := Verdict{ID: json.RawMessage("null"), Status: "error", Kept: []string{}}
	err := json.Unmarshal(line, &r.Case)
	if len(r.ID) > 0 && json.Valid(r.ID) {
		v.ID = r.ID
	}
	if err != nil {
		v.Error = "the case is no JSON object of the right form: " + err.Error()
		return v
	}
	if err := r.read(); err != nil {
		v.Error = err.Error()
		return v
	}
	o := r.options()
	v.Before = r.conv.Fixed
	for _, m := range r.conv.Messages {
		v.Before += NewEstimator("").Message(m.Message)
	}
	v.Window = o.State(v.Before, r.Window)
	v.After, v.Kept, v.Status = v.Before, r.names(0), "unchanged"
	if !v.Window.Needed {
		if !r.Always && (r.Target <= 0 || v.Before <= r.Target) {
			return v
		}
		if r.conv.Trigger = "target"; r.Target <= 0 || v.Before <= r.Target {
			r.conv.Trigger = "manual"
		}
	}
	done, err := New(Config{Options: o, Ask: r.answer}).Compact(ctx, r.conv)
	if err != nil {
		v.Status, v.Error = "error", err.Error()
	}
	if done != nil {
		r.tell(&v, *done)
	}
	return v
}

// read makes a conversation of the entries.
func (r *reading) read() error {
	if r.Strategy != Adaptive && !slices.Contains(Strategies, r.Strategy) {
		return fmt.Errorf("there is no strategy %q, but %s", r.Strategy, strings.Join(Strategies, ", "))
	}
	if r.Window < 0 || r.Target < 0 || r.Reserve < 0 {
		return errors.New("window, target and reserve are no less than 0")
	}
	r.conv = Conversation{Window: r.Window, Focus: r.Focus, Trigger: "auto", Through: int64(len(r.Messages))}
	for i, e := range r.Messages {
		m, err := e.message()
		if err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
		if e.Role == "system" {
			r.conv.Fixed += NewEstimator("").Message(m)
			continue
		}
		r.conv.Messages = append(r.conv.Messages, agent.Timed{Seq: int64(i + 1), Message: m})
		r.at = append(r.at, i)
	}
	for _, f := range r.Pinned {
		if !slices.Contains(kinds, f.Kind) {
			return fmt.Errorf("there is no kind %q of what is pinned, but %s", f.Kind, strings.Join(kinds, ", "))
		}
		r.conv.Facts = append(r.conv.Facts, Pin(f.Kind, f.Text, 0))
	}
	return nil
}

// name is what a message of the case is called.
func (r *reading) name(i int) string {
	var text string
	switch id := r.Messages[i].ID; {
	case json.Unmarshal(id, &text) == nil && text != "":
		return text
	case len(id) > 0 && text == "" && string(id) != "null" && string(id) != `""`:
		return string(id)
	}
	return fmt.Sprint(i + 1)
}

// names are the messages that are there once the first n of the conversation are gone.
func (r *reading) names(n int) []string {
	list := []string{}
	for i := range r.Messages {
		if r.Messages[i].Role == "system" || !slices.Contains(r.at[:n], i) {
			list = append(list, r.name(i))
		}
	}
	return list
}

// tell says what was done.
func (r *reading) tell(v *Verdict, done agent.ContextCompacted) {
	v.Status, v.Strategy, v.Stages, v.Pinned = "compacted", done.Strategy, done.Stages, done.Pinned
	v.After, v.Removed, v.Kept = done.After, done.Messages, r.names(done.Messages)
	for _, i := range r.at[:done.Messages] {
		v.Dropped = append(v.Dropped, r.name(i))
	}
	texts := map[int]map[string]string{}
	for _, t := range done.Trimmed {
		i := r.at[done.Messages+t.Message]
		texts[i] = t.Texts
		v.Trimmed = append(v.Trimmed, r.name(i))
	}
	head := len(done.Head) > 0
	for i, e := range r.Messages {
		if e.Role != "system" && head {
			v.Summary, head = done.Head[0].Text(), false
			v.Entries = append(v.Entries, Entry{ID: "summary", Role: string(agent.User), Content: v.Summary})
		}
		if e.Role != "system" && slices.Contains(r.at[:done.Messages], i) {
			continue
		}
		entry := Entry{ID: r.name(i), Role: e.Role, Content: e.Content}
		if texts[i] != nil {
			m, _ := e.message() // it was read before
			entry.Content = neutral(transcript.Trim(m, texts[i]))
		}
		v.Entries = append(v.Entries, entry)
	}
}

// neutral is a message with results as blocks of the neutral form.
func neutral(m agent.Message) (blocks []map[string]any) {
	for _, b := range m.Blocks {
		switch {
		case b.Result != nil:
			block := map[string]any{"type": "tool_result", "tool_use_id": b.Result.ID, "content": b.Result.Text}
			if b.Result.Failed() {
				block["is_error"] = true
			}
			blocks = append(blocks, block)
		case b.Call != nil:
			blocks = append(blocks, map[string]any{"type": "tool_use", "id": b.Call.ID, "name": b.Call.Tool, "input": b.Call.Input})
		default:
			blocks = append(blocks, map[string]any{"type": "text", "text": b.Text})
		}
	}
	return blocks
}

func (c Case) options() Options {
	o := Options{Strategy: c.Strategy, Reserve: c.Reserve, Tokens: c.Target}
	if c.Recent != nil {
		if o.Recent = *c.Recent; o.Recent == 0 {
			o.Recent = -1
		}
	}
	return o
}

// answer is the model of a case.
func (c Case) answer(_ context.Context, q agent.Question) (agent.Answer, error) {
	if c.Fails {
		return agent.Answer{}, errors.New("the model of the case fails")
	}
	text := c.Summary
	if text == "" {
		text = fmt.Sprintf("A record of %d bytes.", len(q.Messages[0].Text()))
	}
	m := agent.UserText(text)
	m.Role = agent.Assistant
	return agent.Answer{Message: m, Stop: agent.StopEnd}, nil
}

// message reads an entry. What it does not know becomes text.
func (e CaseEntry) message() (agent.Message, error) {
	m := agent.Message{Role: agent.User}
	if e.Role == string(agent.Assistant) {
		m.Role = agent.Assistant
	}
	var text string
	if json.Unmarshal(e.Content, &text) == nil {
		m.Blocks = []agent.Block{{Type: agent.TextBlock, Text: text}}
		return m, nil
	}
	var blocks []caseBlock
	if err := json.Unmarshal(e.Content, &blocks); err != nil {
		return m, fmt.Errorf("its content is neither a text nor a list of blocks: %w", err)
	}
	for _, b := range blocks {
		m.Blocks = append(m.Blocks, b.block())
	}
	if len(m.Blocks) == 0 {
		return m, errors.New("it says nothing")
	}
	return m, nil
}

// caseBlock is a block in the neutral form.
type caseBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    struct {
		Type string `json:"media_type"`
		Data string `json:"data"`
	} `json:"source"`
}

func (b caseBlock) block() agent.Block {
	switch b.Type {
	case "tool_use":
		if len(b.Input) == 0 {
			b.Input = json.RawMessage("{}")
		}
		return agent.Block{Type: agent.CallBlock, Call: &agent.Call{ID: b.ID, Tool: b.Name, Input: b.Input}}
	case "tool_result":
		return agent.Block{Type: agent.ResultBlock, Result: b.result()}
	case "thinking":
		return agent.Block{Type: agent.ThinkingBlock, Text: b.Thinking}
	case "image", "document":
		data, err := base64.StdEncoding.DecodeString(b.Source.Data)
		if err != nil { // as long as it is
			data = make([]byte, len(b.Source.Data)*3/4)
		}
		return agent.Block{Type: agent.BlockType(b.Type), Media: &agent.Media{Type: b.Source.Type, Data: data}}
	}
	return agent.Block{Type: agent.TextBlock, Text: b.Text}
}

// result reads a result, whose content is a text or blocks.
func (b caseBlock) result() *agent.Result {
	r := &agent.Result{ID: b.ToolUseID, Status: agent.StatusOK}
	if b.IsError {
		r.Status = agent.StatusError
	}
	if json.Unmarshal(b.Content, &r.Text) == nil {
		return r
	}
	var parts []caseBlock
	if json.Unmarshal(b.Content, &parts) != nil {
		r.Text = string(b.Content)
		return r
	}
	for _, part := range parts {
		if block := part.block(); block.Media != nil {
			r.Blocks = append(r.Blocks, block)
		} else {
			r.Text += block.Text
		}
	}
	return r
}
