package mirror

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/state/transcript"
)

// A line is one line of the file: a message of the conversation, or with a Type of its own
// something about the session. Its names are those that programs for agent sessions know.
type line interface {
	key() string // by which it is known to be there
}

// entry is a line of the conversation.
type entry struct {
	Parent   *string         `json:"parentUuid"`
	Logical  string          `json:"logicalParentUuid,omitempty"`
	Side     bool            `json:"isSidechain"`
	UserType string          `json:"userType"`
	Workdir  string          `json:"cwd"`
	Session  string          `json:"sessionId"`
	Version  string          `json:"version"`
	Branch   string          `json:"gitBranch"`
	Agent    string          `json:"agentId,omitempty"`
	Type     string          `json:"type"`
	Subtype  string          `json:"subtype,omitempty"`
	Content  string          `json:"content,omitempty"`
	Compact  *compacted      `json:"compactMetadata,omitempty"`
	Message  *message        `json:"message,omitempty"`
	Meta     bool            `json:"isMeta,omitempty"`
	Summary  bool            `json:"isCompactSummary,omitempty"`
	Screen   bool            `json:"isVisibleInTranscriptOnly,omitempty"`
	Output   json.RawMessage `json:"toolUseResult,omitempty"`
	Request  string          `json:"requestId,omitempty"`
	UUID     string          `json:"uuid"`
	Time     string          `json:"timestamp"`
	Event    string          `json:"event"` // of ours: the session, the number, and the log
}

func (e entry) key() string { return e.UUID }

// about is a line about the session.
type about struct {
	Type    string  `json:"type"` // stands first: readers look for it there
	Title   *string `json:"customTitle,omitempty"`
	Made    *string `json:"aiTitle,omitempty"`
	Tag     *string `json:"tag,omitempty"`
	Session string  `json:"sessionId"`
	Event   string  `json:"event"`
}

func (a about) key() string { return a.Type + " " + a.Event }

type compacted struct {
	Trigger string `json:"trigger"`
	Before  int    `json:"preTokens"`
	After   int    `json:"postTokens,omitempty"`
	Kept    *kept  `json:"preservedMessages,omitempty"`
}

// message is a message as the API has it.
type message struct {
	ID      string  `json:"id,omitempty"`
	Type    string  `json:"type,omitempty"`
	Role    string  `json:"role"`
	Model   string  `json:"model,omitempty"`
	Content any     `json:"content"`
	Stop    *string `json:"stop_reason,omitempty"`
	Usage   *usage  `json:"usage,omitempty"`
}

type usage struct {
	Input      int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Output     int `json:"output_tokens"`
}

// lines returns the lines of an event.
func (m *Mirror) lines(e agent.Event) []line {
	switch b := e.Body.(type) {
	case agent.InputAdded:
		return m.input(e, b)
	case agent.ModelRequested:
		if b.Purpose == "" {
			m.asked = e.ID
		}
	case agent.ModelAnswered:
		if b.Purpose == "" {
			return m.answer(e, b)
		}
	case agent.CallFinished:
		return m.result(e, b)
	case agent.ContextCompacted:
		return m.compacted(e, b)
	case agent.ContextRestored:
		return m.restored(e, b)
	case agent.ConversationRewound:
		if m.rewound(b.To) { // what has made room has not, then
			return []line{m.again(e, m.tail.lines())}
		}
	case agent.SessionOpened:
		if b.ForkOf == "" {
			return m.settings(e, b.Title, b.Named(), nil)
		}
	case agent.SettingsChanged:
		return m.settings(e, b.Title, b.Named(), b.Tags)
	}
	return nil
}

// add makes a line the newest one of the conversation.
func (m *Mirror) add(e agent.Event, uuid string, l entry) entry {
	if m.last != "" && l.Subtype == "" {
		parent := m.last
		l.Parent = &parent
	}
	l.Side, l.UserType, l.Workdir, l.Session, l.Version = m.c.Agent != "", "external", m.c.Workdir, m.c.Session, m.c.Version
	l.Branch, l.Agent = m.c.Branch, m.c.Agent
	l.UUID, l.Time, l.Event = uuid, stamp(e.Time), m.event(e)
	switch k, ok := m.stood[uuid]; {
	case ok: // it is there already
		m.last, m.tail = k.uuid, k.tail
	case l.Subtype != "":
		m.begins(e.Seq, uuid, l.Compact.Kept)
	case l.Summary:
		m.summed(e.Seq, uuid)
	default:
		m.goes(e.Seq, uuid)
	}
	return l
}

func (m *Mirror) event(e agent.Event) string {
	name := fmt.Sprintf("%s:%d", m.owner(), e.Seq)
	if m.c.Log != "" {
		name += ":" + m.c.Log
	}
	return name
}

func (m *Mirror) input(e agent.Event, b agent.InputAdded) []line {
	var content any = b.Text
	if len(b.Parts) > 0 {
		list := blocks(b.Parts, m.c.Shown)
		if b.Text != "" {
			list = slices.Insert(list, 0, transcript.TextPart(b.Text))
		}
		content = list
	} else if b.Text == "" {
		return nil
	}
	l := entry{Type: "user", Message: &message{Role: "user", Content: content}, Meta: b.Origin != ""}
	return []line{m.add(e, transcript.InputID(b.Input, e.ID), l)}
}

// answer has a line for each block: that is how they come. All have the name of the answer,
// and the last one the reason why it ended.
func (m *Mirror) answer(e agent.Event, b agent.ModelAnswered) (out []line) {
	id := transcript.AnswerID(cmp.Or(m.asked, e.ID)) // what was taken over has no requests
	var last *message
	used := &usage{b.Usage.Input, b.Usage.CacheWrite, b.Usage.CacheRead, b.Usage.Output}
	for i, block := range b.Message.Blocks {
		part := blockOf(block, m.c.Shown)
		if part == nil {
			continue
		}
		if block.Type == agent.CallBlock {
			m.calls[block.Call.ID] = true
		}
		last = &message{ID: id, Type: "message", Role: "assistant", Model: b.Model, Content: []any{part}, Usage: used}
		out = append(out, m.add(e, transcript.MessageID(e.ID, i), entry{Type: "assistant", Request: b.RequestID, Message: last}))
	}
	if last != nil {
		stop := string(b.Stop)
		last.Stop = &stop
	}
	return out
}

// result is the answer to a call of the conversation; those of capabilities are none of it.
func (m *Mirror) result(e agent.Event, b agent.CallFinished) []line {
	uuid := transcript.MessageID(e.ID, 0)
	if !m.calls[b.Result.ID] && !m.seen[uuid] {
		return nil
	}
	delete(m.calls, b.Result.ID)
	r := b.Result
	text := r.Text
	if text == "" {
		text = string(r.Output)
	}
	var content any = text
	if more := blocks(r.Blocks, m.c.Shown); len(more) > 0 {
		if text != "" {
			more = slices.Insert(more, 0, transcript.TextPart(text))
		}
		content = more
	}
	output := r.Output
	if output == nil {
		output, _ = json.Marshal(text) // a string always encodes
	}
	l := entry{Type: "user", Message: &message{Role: "user", Content: []any{transcript.ResultPart(r.ID, content, r.Failed())}}, Output: output}
	return []line{m.add(e, uuid, l)}
}

// compacted begins the conversation anew, with what stands for its beginning, and what stays
// of it behind that. One that only shortens results changes none of its lines.
func (m *Mirror) compacted(e agent.Event, b agent.ContextCompacted) []line {
	if b.Messages == 0 && len(b.Head) == 0 {
		return nil
	}
	trigger := "auto"
	if b.Trigger == "manual" {
		trigger = b.Trigger
	}
	var said []string
	for _, h := range b.Head {
		if text := h.Text(); text != "" {
			said = append(said, text)
		}
	}
	begin, sum := transcript.MessageID(e.ID, 0), transcript.MessageID(e.ID, 1)
	stays := &kept{Anchor: begin, UUIDs: m.behind(b.Through)}
	if len(said) > 0 {
		stays.Anchor = sum
	}
	out := []line{m.boundary(e, "Conversation compacted", compacted{trigger, b.Before, b.After, stays})}
	if len(said) == 0 {
		return out
	}
	return append(out, m.add(e, sum, entry{
		Type: "user", Summary: true, Screen: true, Message: &message{Role: "user", Content: strings.Join(said, "\n\n")},
	}))
}

// restored begins the conversation with all of it that there was before a compaction.
func (m *Mirror) restored(e agent.Event, b agent.ContextRestored) []line {
	before, since := m.around(b.Of)
	return []line{m.again(e, slices.Concat(before, since))}
}

// again begins the conversation with lines that are there.
func (m *Mirror) again(e agent.Event, list []string) line {
	return m.boundary(e, "Conversation restored", compacted{Trigger: "manual", Kept: &kept{transcript.MessageID(e.ID, 0), list}})
}

// boundary is where the conversation begins anew.
func (m *Mirror) boundary(e agent.Event, words string, c compacted) line {
	if len(c.Kept.UUIDs) == 0 {
		c.Kept = nil
	}
	return m.add(e, transcript.MessageID(e.ID, 0), entry{Type: "system", Subtype: "compact_boundary", Content: words, Logical: m.last, Compact: &c})
}

// settings are what the session is called, and kept under. Readers know one tag: it is written
// when it has become another one, and not when something else of the tags has, as what a host
// has written since would have no effect then.
func (m *Mirror) settings(e agent.Event, title string, named bool, tags *[]string) (out []line) {
	if m.c.Agent != "" || e.Seq < m.head { // it is there
		return nil
	}
	switch {
	case title == "":
	case named:
		out = append(out, about{Type: "custom-title", Title: &title, Session: m.c.Session, Event: m.event(e)})
	default:
		out = append(out, about{Type: "ai-title", Made: &title, Session: m.c.Session, Event: m.event(e)})
	}
	if tags == nil {
		return out
	}
	if tag := transcript.Tag(*tags); tag != m.tag {
		m.tag = tag
		out = append(out, about{Type: "tag", Tag: &tag, Session: m.c.Session, Event: m.event(e)})
	}
	return out
}

func blocks(list []agent.Block, shown func(string) string) []any {
	var out []any
	for _, b := range list {
		if part := blockOf(b, shown); part != nil {
			out = append(out, part)
		}
	}
	return out
}

// blockOf is a block as the API has it; nil for one that only its provider can read, unless
// that is the one whose form this is.
func blockOf(b agent.Block, shown func(string) string) any {
	switch b.Type {
	case agent.TextBlock:
		return transcript.TextPart(b.Text)
	case agent.ThinkingBlock:
		if len(b.Raw) > 0 && b.Provider == "anthropic" {
			return b.Raw
		}
		return transcript.ThinkingPart(b)
	case agent.CallBlock:
		name := b.Call.Tool
		if shown != nil {
			name = shown(name)
		}
		return transcript.CallPart(b.Call.ID, name, b.Call.Input)
	case agent.ImageBlock, agent.DocumentBlock:
		if b.Media != nil {
			return transcript.MediaPart(b)
		}
	case agent.RawBlock:
		if b.Provider == "anthropic" && json.Valid(b.Raw) {
			return b.Raw
		}
	}
	return nil
}
