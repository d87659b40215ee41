package control

import (
	"cmp"
	"encoding/json"
	"strings"

	"dure/agent"
	"dure/client/protocol"
	"dure/internal/frontend/view"
)

// The bounds of what a message tells, in bytes.
const (
	maxText  = 1 << 20   // of an answer, an input or a result
	maxDiff  = 256 << 10 // of what an edit would change
	maxEvent = 32 << 10  // of an event that is told as it is
)

// fold is what is known of the session, and of the turn that runs.
type fold struct {
	*view.View
	read  []*request // messages of the host that the model has read in the turn
	turns int
	past  bool // of events from before the connection
}

// events tells the host of the session's events.
func (s *session) events() error {
	head := s.sess.Info.Head
	after := head
	if live := s.sess.Info.Status; live == "running" || live == "waiting" {
		after = 0 // what runs, and what is asked, was begun before
	}
	s.fold.View = view.New(s.sess.Info.ID, view.Limits{Rows: view.OpenOnly})
	for e, err := range s.sess.Events(s.life, after) {
		if err != nil {
			return err
		}
		s.fold.past = !e.Live() && e.Seq <= head
		if b, ok := e.Body.(agent.TurnStarted); ok && b.Attempt == 0 { // else it is the turn that it was
			s.fold.Begin()
		}
		s.fold.Apply(e)
		s.event(e)
		if e.Seq == head {
			s.fold.past = false
			for _, a := range s.fold.Asks {
				s.approval(a.Seq, a.ApprovalAsked)
			}
		}
	}
	return nil
}

// event tells of one event.
func (s *session) event(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.Fragment:
		s.token(b)
	case agent.CallOutput:
		s.offer(protocol.TypeToolProgress, protocol.ToolProgressData{ID: b.ID, Text: b.Text})
	case agent.StateChanged: // what it says is said by others
	case agent.InputQueued:
		s.heard(b.Input, e.Seq)
		s.other(e)
	case agent.InputAdded:
		s.heard(b.Input, e.Seq)
		s.readBy(b.Input)
		s.other(e)
	case agent.InputDropped:
		s.dropped(e, b)
	case agent.ModelAnswered:
		s.answered(e, b)
	case agent.CallDecided:
		if b.Decision.Verdict != agent.Allow {
			s.other(e)
		}
	case agent.CallStarted:
		d := protocol.ToolUseStartData{Seq: e.Seq, ID: b.ID, Tool: b.Tool}
		if r := s.fold.Call(b.ID); r != nil {
			d.Input, d.By = within1MiB(r.Call.Input), r.Call.By
		}
		s.put(protocol.TypeToolUseStart, d)
	case agent.CallFinished:
		s.result(e.Seq, b.Result.ID, b.Tool, b.Result, b.Result.Handle, b.Millis)
	case agent.CallSettled:
		s.result(e.Seq, b.ID, b.Tool, b.Result, b.Handle, 0)
	case agent.CallDeferred:
		s.ended(e.Seq, "deferred", b.Reason)
	case agent.TurnEnded:
		if !s.fold.past {
			s.fold.turns++
		}
		s.ended(e.Seq, string(b.Reason), b.Error)
	case agent.ApprovalAsked:
		if !s.fold.past {
			s.approval(e.Seq, b)
		}
	case agent.ApprovalResolved:
		s.resolved(b)
		s.other(e)
	case agent.FilesRewound:
		s.rewound(protocol.Rewound{Files: b.Files, Left: b.Leaves, To: b.Seq})
		s.other(e)
	default:
		s.other(e)
	}
}

// put sends a message about the session. Nobody is told what was before their time.
func (s *session) put(t protocol.Type, payload any) {
	if s.fold.past {
		return
	}
	s.emit(t, "", payload)
}

// emit sends a message when the host has read enough of those before it.
func (s *session) emit(t protocol.Type, id string, payload any) {
	data, err := protocol.Encode(t, id, s.sess.Info.ID, payload)
	if err != nil {
		s.c.send(protocol.TypeError, id, s.sess.Info.ID, s.c.explain("", err))
		return
	}
	s.c.out.put(data, eventRoom)
}

// offer sends a message unless the host reads too slowly: others say it again.
func (s *session) offer(t protocol.Type, payload any) {
	if s.c.host.NoTokens {
		return
	}
	if data, err := protocol.Encode(t, "", s.sess.Info.ID, payload); err == nil {
		s.c.out.offer(data, liveRoom)
	}
}

func (s *session) token(b agent.Fragment) {
	switch b.What {
	case agent.DeltaText, agent.DeltaThinking, agent.DeltaCall, agent.DeltaInput:
		s.offer(protocol.TypeAssistantToken, protocol.TokenData{
			Kind: string(b.What), Text: b.Text, Step: b.Step, Index: b.Index, Call: b.Call, Tool: b.Tool,
		})
	}
}

// other tells of an event that no other message is for.
func (s *session) other(e agent.Event) {
	data, err := json.Marshal(e.Body)
	if u, ok := e.Body.(agent.Unknown); ok {
		data, err = u.Raw, nil
	}
	if err != nil || len(data) > maxEvent || len(data) == 0 || data[0] != '{' {
		data = nil
	}
	s.put(protocol.TypeNotification, protocol.NotificationData{Kind: "event", Event: e.Kind(), Seq: e.Seq, Data: data})
}

// heard notes where a message of the host has come into the log.
func (s *session) heard(input string, seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.waiting[input]
	if r == nil {
		return
	}
	if _, known := s.said[r.ID]; known {
		return
	}
	s.said[r.ID] = seq - 1
	if s.lines = append(s.lines, r.ID); len(s.lines) > maxSaid {
		delete(s.said, s.lines[0])
		s.lines = s.lines[1:]
	}
}

// readBy notes that the model reads a message of the host in this turn.
func (s *session) readBy(input string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.waiting[input]; r != nil {
		delete(s.waiting, input)
		s.fold.read = append(s.fold.read, r)
	}
}

// dropped tells that a message of the host will not be read.
func (s *session) dropped(e agent.Event, b agent.InputDropped) {
	s.mu.Lock()
	r := s.waiting[b.Input]
	delete(s.waiting, b.Input)
	s.mu.Unlock()
	if r == nil {
		s.other(e)
		return
	}
	s.c.answer(r, protocol.TypeSessionResult, s.sess.Info.ID, protocol.SessionResultData{Seq: e.Seq, Status: "dropped", Error: b.Reason, Turns: s.fold.turns})
}

func (s *session) answered(e agent.Event, b agent.ModelAnswered) {
	if b.Purpose != "" { // no part of the conversation
		s.other(agent.Event{Seq: e.Seq, Body: agent.ModelAnswered{Turn: b.Turn, Step: b.Step, Purpose: b.Purpose, Answer: agent.Answer{Usage: b.Usage}, Cost: b.Cost, Millis: b.Millis}})
		return
	}
	m := protocol.AssistantMessageData{Seq: e.Seq, Model: b.Model, StopReason: string(b.Stop), Usage: usageOf(b.Usage), Cost: dollars(b.Cost)}
	m.Text, m.Truncated = cut(b.Said(), maxText)
	m.Thinking, _ = cut(b.Message.Thought(), maxText)
	for _, c := range b.Message.Calls() {
		m.Calls = append(m.Calls, protocol.Call{ID: c.ID, Tool: c.Tool, Input: within1MiB(c.Input)})
	}
	s.put(protocol.TypeAssistantMessage, m)
}

func (s *session) result(seq int64, id, tool string, r agent.Result, handle string, millis int64) {
	d := protocol.ToolResultData{Seq: seq, ID: id, Tool: tool, Status: string(r.Status), Output: within1MiB(r.Output), Handle: handle, Duration: millis}
	d.Text, d.Truncated = cut(r.Text, maxText)
	if r.Error != nil {
		d.Code = string(r.Error.Code)
	}
	s.put(protocol.TypeToolResult, d)
}

// ended tells what a turn has come to, to each message of the host that was read in it.
func (s *session) ended(seq int64, status, why string) {
	end := s.fold.End()
	d := protocol.SessionResultData{
		Seq: seq, Turn: end.Turn, Status: status, Error: why, Code: cmp.Or(string(end.Problem), string(end.Fail)),
		Usage: usageOf(end.Usage), Cost: dollars(end.Cost), Steps: end.Steps, Turns: s.fold.turns, Duration: end.Millis,
	}
	d.Text, d.Truncated = cut(s.fold.Shown(), maxText)
	for _, no := range s.fold.Denied() {
		d.Denials = append(d.Denials, protocol.Denial{ID: no.Call.ID, Tool: no.Call.Tool, By: no.By, Reason: no.Reason})
	}
	asked := s.fold.read
	s.fold.read = nil
	if len(asked) == 0 {
		s.put(protocol.TypeSessionResult, d)
	}
	for _, r := range asked {
		if s.c.answered(r) {
			s.emit(protocol.TypeSessionResult, r.ID, d)
		}
	}
}

func (s *session) rewound(r protocol.Rewound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back != nil && !s.fold.past {
		s.back <- r // it has room for one
		s.back = nil
	}
}

func usageOf(u agent.Usage) protocol.Usage {
	return protocol.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
}

func dollars(m *agent.Money) *float64 {
	if m == nil {
		return nil
	}
	d := m.Dollars()
	return &d
}

// cut returns the beginning of a text, and whether there is more.
func cut(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	return strings.ToValidUTF8(text[:most], ""), true
}

// within1MiB is what is not too long to be told.
func within1MiB(data json.RawMessage) json.RawMessage {
	if len(data) > maxText {
		return nil
	}
	return data
}
