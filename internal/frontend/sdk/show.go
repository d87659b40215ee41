package sdk

import (
	"errors"
	"maps"
	"time"

	"dure/agent"
	"dure/internal/frontend/view"
	"dure/internal/state/transcript"
)

// The states of a session that hosts are told of.
const (
	stateIdle    = "idle"
	stateRunning = "running"
	stateAsking  = "requires_action"
)

// show is what messages need to know of the events before them.
type show struct {
	*view.View
	past  int64 // events up to there happened before the host's time
	over  bool  // there are no more
	open  bool  // a turn runs
	model string
	mode  agent.Mode

	sent    map[string]message          // that no turn has yet
	added   map[string]bool             // of those, the ones in the conversation
	known   map[string]bool             // IDs of all messages that the session has
	unread  map[string]bool             // inputs of the session's own that no turn has yet; true = they are in the conversation
	keys    map[string]string           // of running calls: key to ID
	kids    map[string]*child           // sessions of agents, by ID
	tasks   map[string]task             // in the background, by ID
	hooks   map[string]hookRun          // that run, and that the host is told of
	asked   map[string]bool             // calls that somebody was asked about
	refused map[string]permissionDenied // calls that are denied, and have no result yet
	origin  string                      // of the input that the turn answers
	request string                      // the ID of the event of the newest request
	stream  stream

	compacting compacting
	reading    bool  // it is found out what a message is
	first      int64 // the event that took in the first message ever; 0 = none did

	models []agent.ModelInfo // nil = not asked for yet
}

// child is the session of an agent.
type child struct {
	id, call, agent string
	request         string
	view            *view.View    // up to the newest event that was shown
	ended           chan struct{} // closed when it has
	over            bool          // it has
	began           time.Time
	used            used
}

// mark says whose message it is.
func (c *child) mark(s *said) {
	if c == nil {
		return
	}
	if c.call != "" {
		s.Parent = &c.call
	}
	s.Agent, s.AgentID = c.agent, c.id
}

func (s *show) reset(h *Host) {
	*s = show{
		sent: map[string]message{}, added: map[string]bool{}, known: map[string]bool{}, unread: map[string]bool{}, keys: map[string]string{},
		kids: map[string]*child{}, tasks: map[string]task{},
		hooks: map[string]hookRun{}, asked: map[string]bool{}, refused: map[string]permissionDenied{}, model: h.sess.Info.Model, mode: h.prog.Open.Mode,
	}
	if h.prog.Open.Session != "" || h.prog.Open.Fork != "" {
		s.past = h.sess.Info.Head
	}
	s.View = view.New(h.session, view.Limits{Rows: view.OpenOnly})
}

// messageID names an answer.
func (s *show) messageID(from *child) string {
	of := s.request
	if from != nil {
		of = from.request
	}
	return transcript.AnswerID(of)
}

// busy reports whether a turn runs, or is about to.
func (s *show) busy() bool { return s.open || len(s.sent) > 0 || s.compacting.id != "" || s.reading }

// behind reports whether there is more of before the host's time than is known yet.
func (s *show) behind() bool { return s.Seq < s.past }

// said notes that an event has taken a message in.
func (s *show) said(seq int64) {
	if s.first == 0 && seq > 0 {
		s.first = seq
	}
}

// event turns an event into messages.
func (h *Host) event(f found) {
	if f.then != nil {
		f.then()
		return
	}
	if f.session != "" {
		h.childEvent(f)
		return
	}
	s := &h.show
	switch {
	case f.err != nil:
		if h.ctx.Err() == nil {
			s.over, h.fatal, h.code = true, f.err, codeFailed
			h.failure(f.err)
		}
		return
	case f.over:
		if s.over = true; h.fatal == nil && !h.closing {
			h.fatal, h.code = errors.New("the session was closed"), codeFailed
			h.failure(h.fatal)
		}
		return
	}
	e := f.event
	old := !e.Live() && e.Seq <= s.past
	if b, ok := e.Body.(agent.TurnStarted); ok && b.Attempt == 0 && !old {
		s.Begin()
	}
	s.Apply(e)
	if !old {
		h.beating()
	}
	defer func() { h.reached.at(s.Seq, s.model) }()
	switch b := e.Body.(type) {
	case agent.InputAdded:
		h.input(e, b)
		s.said(e.Seq)
		s.known[b.Input] = true
	case agent.InputQueued:
		s.said(e.Seq)
		s.known[b.Input] = true
	}
	if old {
		if h.old(e); e.Seq == s.past {
			h.caughtUp()
		}
		return
	}
	switch b := e.Body.(type) {
	case agent.InputQueued, agent.InputAdded, agent.InputDropped, agent.TurnStarted, agent.TurnEnded, agent.CallDeferred:
		h.turning(e)
	case agent.ModelRequested, agent.Fragment, agent.ModelAnswered, agent.ModelFailed:
		h.modelling(e)
	case agent.CallDecided, agent.CallFinished, agent.CallSettled, agent.ChildOpened, agent.ChildEnded:
		h.calling(e)
	case agent.ApprovalAsked:
		s.asked[b.Proposal.Call.ID] = true
		h.setState(stateAsking)
		h.asked(b)
	case agent.ApprovalResolved:
		h.resolved(b)
		h.answered()
	case agent.SettingsChanged:
		h.changed(b)
	case agent.ContextCompacted:
		h.compacted(e, b)
		h.compactOver("")
	case agent.Note:
		if b.Code == "" && b.Text != "" {
			h.compactOver(h.c.Text.Phrase(b.Text)) // the conversation stays as it is
		}
	case agent.HookStarted, agent.HookRan:
		h.hooked(e)
	}
}

// old takes in what happened before the host's time.
func (h *Host) old(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.SessionOpened:
		if b.Mode != "" && h.prog.Open.Mode == "" {
			h.show.mode = b.Mode
		}
	case agent.SettingsChanged:
		if b.Model != "" {
			h.show.model = b.Model
		}
	case agent.ModelRequested:
		if b.Purpose == "" {
			h.show.request = e.ID
		}
	}
}

// turning shows where turns begin and end.
func (h *Host) turning(e agent.Event) {
	s := &h.show
	switch b := e.Body.(type) {
	case agent.InputQueued:
		if b.Origin != "" {
			s.unread[b.Input] = false
		}
	case agent.InputAdded:
		if s.origin = b.Origin; b.Origin != "" && !s.open {
			s.unread[b.Input] = true
		} else {
			delete(s.unread, b.Input)
		}
		m, ours := s.sent[b.Input]
		if !ours {
			break
		}
		if s.added[b.Input] = true; s.open {
			h.taken(b.Input)
		}
		if h.c.Replay {
			h.replay(e, m)
		}
	case agent.InputDropped:
		delete(s.unread, b.Input)
		h.taken(b.Input)
	case agent.TurnStarted:
		s.open = true
		for id := range s.added {
			h.taken(id)
		}
		maps.DeleteFunc(s.unread, func(_ string, added bool) bool { return added })
		h.setState(stateRunning)
		h.out.put(h.beginning())
	case agent.CallDeferred:
		s.open = false
		h.mirrored(e.Seq)
		h.ended(e.Time, s.End())
		h.rest()
	case agent.TurnEnded:
		s.open = false
		for id := range s.added {
			h.taken(id)
		}
		h.unasked("")
		h.mirrored(e.Seq)
		h.ended(e.Time, b)
		s.origin = ""
		h.rest()
	}
}

// taken forgets a message that a turn has.
func (h *Host) taken(id string) {
	delete(h.show.sent, id)
	delete(h.show.added, id)
}

// modelling shows what the model is asked and says.
func (h *Host) modelling(e agent.Event) {
	s := &h.show
	switch b := e.Body.(type) {
	case agent.ModelRequested:
		if b.Purpose != "" {
			break
		}
		s.request = e.ID
		if h.c.Partial {
			h.stream().begin(b.Model, s.messageID(nil), e.Time)
		}
	case agent.Fragment:
		if h.c.Partial && s.request != "" {
			h.stream().fragment(b)
		}
	case agent.ModelAnswered:
		if b.Purpose != "" {
			break
		}
		if b.Model != "" {
			s.model = b.Model
		}
		if h.c.Partial {
			h.stream().complete(b)
		}
		h.answeredBy(e, b, nil)
		if h.c.Partial {
			h.stream().end(b)
		}
	case agent.ModelFailed:
		if b.Purpose != "" {
			break
		}
		h.stream().drop()
		if b.Retry {
			h.retries(b)
		}
	}
}

// calling shows calls, and the work that goes on for them.
func (h *Host) calling(e agent.Event) {
	s := &h.show
	switch b := e.Body.(type) {
	case agent.CallDecided:
		c := b.Proposal.Call
		s.keys[b.Key] = c.ID
		h.refused(b)
	case agent.CallFinished:
		h.denies(b.Result, nil)
		delete(s.asked, b.Result.ID)
		h.finished(e, b.Result, nil)
		if b.Result.Status == agent.StatusPending {
			h.goesOn(b)
		}
	case agent.CallSettled:
		s.unread["settled:"+b.Handle] = false
		h.settled(b)
	case agent.ChildOpened:
		h.childOpened(b)
	case agent.ChildEnded:
		h.childEnded(b)
	}
}

// changed shows that settings of the session have.
func (h *Host) changed(b agent.SettingsChanged) {
	if b.Model != "" {
		h.show.model = b.Model
	}
	if b.Mode != "" && b.Mode != h.show.mode {
		h.show.mode = b.Mode
		h.out.put(status{head: h.head("system", "status", ""), Mode: string(b.Mode)})
	}
}

// status says what the session is about.
type status struct {
	head
	Status  *string `json:"status"`
	Mode    string  `json:"permissionMode,omitempty"`
	Compact string  `json:"compact_result,omitempty"`
	Wrong   string  `json:"compact_error,omitempty"`
}

// compacted shows that the beginning of the conversation has made room.
func (h *Host) compacted(e agent.Event, b agent.ContextCompacted) {
	if h.show.compacting.id == "" { // else it was told
		busy := "compacting"
		h.out.put(status{head: h.head("system", "status", ""), Status: &busy})
	}
	type meta struct {
		Trigger string `json:"trigger"`
		Before  int    `json:"pre_tokens"`
		After   int    `json:"post_tokens"`
	}
	trigger := "auto"
	if b.Trigger == "manual" {
		trigger = "manual"
	}
	h.out.put(struct {
		head
		Meta meta `json:"compact_metadata"`
	}{h.head("system", "compact_boundary", transcript.MessageID(e.ID, 0)), meta{trigger, b.Before, b.After}})
	h.out.put(status{head: h.head("system", "status", ""), Compact: "success"})
}

// retries shows that a request is made again.
func (h *Host) retries(b agent.ModelFailed) {
	var code *int
	if b.Status != 0 {
		code = &b.Status
	}
	h.out.put(struct {
		head
		Attempt int    `json:"attempt"`
		Most    int    `json:"max_retries"`
		Delay   int64  `json:"retry_delay_ms"`
		Status  *int   `json:"error_status"`
		Error   string `json:"error"`
	}{h.head("system", "api_retry", ""), b.Attempt, max(h.prog.Retries, b.Attempt), b.Delay, code, errorKind(b.Class, b.Status)})
}

// setState tells of the state of the session, if hosts want to know.
func (h *Host) setState(state string) {
	if h.state == state {
		return
	}
	if h.state = state; h.c.States {
		h.out.put(struct {
			head
			State string `json:"state"`
		}{h.head("system", "session_state_changed", ""), state})
	}
}
