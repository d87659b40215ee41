package sdk

import (
	"encoding/json"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/state/transcript"
)

// outputStyle is the one that there is.
const outputStyle = "default"

// head is what every message has.
type head struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype,omitempty"`
	UUID    string `json:"uuid"`
	Session string `json:"session_id"`
}

func (h *Host) head(kind, subtype, uuid string) head {
	if uuid == "" {
		uuid = newUUID()
	}
	return head{kind, subtype, uuid, h.session}
}

// said is a message of the model or of the user.
type said struct {
	head
	Message   any     `json:"message"`
	Parent    *string `json:"parent_tool_use_id"`
	Replay    bool    `json:"isReplay,omitempty"`
	Synthetic bool    `json:"isSynthetic,omitempty"`
	Result    any     `json:"tool_use_result,omitempty"`
	Error     string  `json:"error,omitempty"`
	RequestID string  `json:"request_id,omitempty"`
	Agent     string  `json:"subagent_type,omitempty"`
	AgentID   string  `json:"agent_id,omitempty"`
	Time      string  `json:"timestamp,omitempty"`
}

// spoken is a message in the form of the Messages API.
type spoken struct {
	ID         string  `json:"id"`
	Type       string  `json:"type"`
	Role       string  `json:"role"`
	Model      string  `json:"model"`
	Content    []any   `json:"content"`
	StopReason *string `json:"stop_reason"`
	StopSeq    *string `json:"stop_sequence"`
	Usage      tokens  `json:"usage"`
}

type userMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// tokens are what was used, in the form of the Messages API.
type tokens struct {
	Input      int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Output     int `json:"output_tokens"`
	Cache      struct {
		Hour int `json:"ephemeral_1h_input_tokens"`
		Five int `json:"ephemeral_5m_input_tokens"`
	} `json:"cache_creation"`
	Server struct {
		Search int `json:"web_search_requests"`
		Fetch  int `json:"web_fetch_requests"`
	} `json:"server_tool_use"`
	Tier string `json:"service_tier"`
}

func tokensOf(u agent.Usage) tokens {
	t := tokens{Input: u.Input, CacheWrite: u.CacheWrite, CacheRead: u.CacheRead, Output: u.Output, Tier: "standard"}
	t.Cache.Hour, t.Cache.Five = u.CacheHour, u.CacheWrite-u.CacheHour
	return t
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// partOf is a block of an answer as hosts read it; nil = they do not.
func (h *Host) partOf(b agent.Block) any {
	switch {
	case b.Type == agent.TextBlock:
		return transcript.TextPart(b.Text)
	case b.Type == agent.ThinkingBlock && len(b.Raw) > 0:
		var raw struct {
			Type string `json:"type"`
			Data string `json:"data"`
		}
		if json.Unmarshal(b.Raw, &raw) != nil || raw.Type != "redacted_thinking" {
			return nil
		}
		return b.Raw
	case b.Type == agent.ThinkingBlock:
		return transcript.ThinkingPart(b)
	case b.Type == agent.CallBlock && b.Call != nil:
		return transcript.CallPart(b.Call.ID, h.prog.Name(b.Call.Tool), objectOf(b.Call.Input))
	}
	return nil
}

// objectOf is an input, which is an object also where it says nothing.
func objectOf(in json.RawMessage) json.RawMessage {
	if len(in) == 0 {
		return json.RawMessage("{}")
	}
	return in
}

// answered shows an answer: one message for each of its blocks, all with the same ID.
func (h *Host) answeredBy(e agent.Event, b agent.ModelAnswered, from *child) {
	id := h.show.messageID(from)
	model := b.Model
	if model == "" {
		model = h.show.model
	}
	type shown struct {
		index int // of the block in the answer, by which its message is called
		part  any
	}
	var parts []shown
	for i, block := range b.Message.Blocks {
		if from != nil && !h.c.Forward && block.Type != agent.CallBlock {
			continue
		}
		if p := h.partOf(block); p != nil {
			parts = append(parts, shown{i, p})
		}
	}
	for i, p := range parts {
		m := spoken{ID: id, Type: "message", Role: "assistant", Model: model, Content: []any{p.part}, Usage: tokensOf(b.Usage)}
		if i == len(parts)-1 {
			stop := string(b.Stop)
			m.StopReason = &stop
		}
		s := said{head: h.head("assistant", "", transcript.MessageID(e.ID, p.index)), Message: m, RequestID: b.RequestID, Time: stamp(e.Time)}
		from.mark(&s)
		h.out.put(s)
	}
}

// finished shows the result of a call.
func (h *Host) finished(e agent.Event, r agent.Result, from *child) {
	p := transcript.ResultPart(r.ID, resultContent(r), r.Failed())
	s := said{
		head: h.head("user", "", transcript.MessageID(e.ID, 0)), Message: userMessage{"user", []any{p}},
		Result: outputOf(r), Time: stamp(e.Time),
	}
	from.mark(&s)
	h.out.put(s)
}

// resultContent is what the model reads of a result.
func resultContent(r agent.Result) any {
	words := r.Unfenced()
	if words == "" && len(r.Output) > 0 {
		words = string(r.Output)
	}
	if len(r.Blocks) == 0 {
		return words
	}
	list := []any{}
	if words != "" {
		list = append(list, transcript.TextPart(words))
	}
	for _, b := range r.Blocks {
		if b.Media != nil {
			list = append(list, transcript.MediaPart(b))
		} else if b.Type == agent.TextBlock {
			list = append(list, transcript.TextPart(b.Text))
		}
	}
	return list
}

// outputOf is what a result says to programs.
func outputOf(r agent.Result) any {
	switch {
	case r.Failed():
		return "Error: " + r.Unfenced()
	case len(r.Output) > 0 && json.Valid(r.Output):
		return r.Output
	}
	return r.Unfenced()
}

// replay sends a message of the user back: it is part of the conversation now.
func (h *Host) replay(e agent.Event, m message) {
	var content any = m.Text
	if m.content != nil {
		content = m.content
	}
	h.out.put(said{
		head: h.head("user", "", transcript.InputID(m.ID, e.ID)), Message: userMessage{"user", content}, Replay: true, Time: stamp(e.Time),
	})
}

// errorKind is a failure of a model in the words of the protocol.
func errorKind(f agent.FailureClass, status int) string {
	switch f {
	case agent.FailAuth:
		return "authentication_failed"
	case agent.FailQuota:
		return "billing_error"
	case agent.FailRate:
		return "rate_limit"
	case agent.FailNotFound:
		return "model_not_found"
	case agent.FailInvalid, agent.FailContext:
		return "invalid_request"
	case agent.FailServer, agent.FailTimeout, agent.FailDown:
		const overloaded = 529
		if status == overloaded {
			return "overloaded"
		}
		return "server_error"
	}
	return "unknown"
}

// serverOf is the server of a tool, as it is called.
func serverOf(tool string) string {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "__")
	return name
}
