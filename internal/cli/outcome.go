package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/text"
)

// outcome is what a turn of print mode comes to. It is a fold of events.
type outcome struct {
	session string
	end     agent.TurnEnded
	answer  string // the text of the last answer
	shown   string // and what people see of it
	stop    agent.StopReason
	open    int // calls that run
	cutCall bool
	denied  []denial
	allowed map[string]agent.Call // that have not finished, by ID
	pending []task                // that were not heard of again
	unread  map[string]bool       // inputs that bring what came of the work of agents
	rests   bool                  // the turn has ended, and what agents do for it goes on
	totals  totals                // of the session, this turn included
	apiTime int64                 // milliseconds
	ours    bool                  // our input has entered the conversation, or was dropped
	dropped *agent.InputDropped   // nil = it was not
	aside   *agent.CallDeferred   // with it the turn was left open; nil = it was not
	waited  string                // ID of a call that had been put aside before
	gone    bool                  // its tool is not there any more
	spent   agent.TurnEnded       // usage and cost of the answers so far
}

// denial is a call that was not allowed to run.
type denial struct {
	call   agent.Call
	reason string
	hook   bool // a hook has denied it
}

// task is a call that goes on in the background.
type task struct {
	handle, tool string
	call         agent.Call
	result       agent.Result // by which it was answered as pending
}

// past takes in an event from before the turn.
func (o *outcome) past(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.TurnEnded:
		o.totals.add(b)
	case agent.CallDeferred:
		o.waited = b.Call.ID
	}
}

// answered adds what an answer has used.
func (o *outcome) answered(b agent.ModelAnswered) {
	if o.spent.Usage == (agent.Usage{}) && b.Cost != nil {
		o.spent.Cost = new(agent.Money)
	}
	o.spent.Usage = o.spent.Usage.Add(b.Usage)
	if b.Cost == nil {
		o.spent.Cost = nil
	} else if o.spent.Cost != nil {
		*o.spent.Cost += *b.Cost
	}
	if b.Purpose == "" {
		o.answer, o.shown, o.stop = b.Message.Text(), b.Said(), b.Stop
		o.apiTime += b.Millis
	}
}

// deferred takes in that the turn is left open at a call, and reports whether it is ours.
func (o *outcome) deferred(b agent.CallDeferred, input string) (last bool) {
	o.aside, o.end = &b, o.spent
	o.end.Turn, o.end.Reason, o.end.Steps = b.Turn, agent.EndDone, b.Step
	o.totals.add(o.end)
	return o.ours || input == ""
}

// background takes in what runs on behind the turn.
func (o *outcome) background(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.CallDecided:
		o.allowed[b.Proposal.Call.ID] = b.Proposal.Call
	case agent.CallFinished:
		if b.Result.Status == agent.StatusPending {
			o.pending = append(o.pending, task{b.Result.Handle, b.Tool, o.allowed[b.Result.ID], b.Result})
		}
		delete(o.allowed, b.Result.ID)
	case agent.InputQueued:
		if strings.HasPrefix(b.Input, ofAgents) {
			o.unread[b.Input] = true
		}
	case agent.InputAdded:
		delete(o.unread, b.Input)
	case agent.CallSettled:
		o.pending = slices.DeleteFunc(o.pending, func(t task) bool { return t.handle == b.Handle })
	}
}

// code names how the turn ended for programs.
func (o *outcome) code() string {
	if o.end.Reason == agent.EndFailed && o.end.Fail != "" {
		return string(o.end.Fail)
	}
	return string(o.end.Reason)
}

// event takes in an event of the turn and reports whether it is the last one.
// input is the prompt that the turn is about; "" = whatever turn comes next.
func (o *outcome) event(e agent.Event, input string) (last bool) {
	o.background(e)
	switch b := e.Body.(type) {
	case agent.InputAdded:
		o.ours = o.ours || b.Input == input
	case agent.InputDropped:
		if b.Input == input {
			o.ours, o.dropped = true, &b
		}
	case agent.ModelAnswered:
		o.answered(b)
	case agent.CallDecided:
		if b.Decision.Verdict != agent.Allow {
			o.denied = append(o.denied, denial{b.Proposal.Call, b.Decision.Reason, strings.HasPrefix(b.Decision.By, "hook:")})
		}
	case agent.CallStarted:
		o.open++
	case agent.CallDeferred:
		return o.deferred(b, input)
	case agent.CallFinished:
		o.gone = o.gone || b.Result.ID == o.waited && b.Result.Error != nil && b.Result.Error.Code == agent.ErrToolNotFound
		o.cutCall = b.Result.Error != nil && b.Result.Error.Code == agent.ErrAborted
	case agent.TurnEnded:
		o.totals.add(b)
		o.end = b
		o.rests = (o.ours || input == "") && b.Reason == agent.EndDone && o.handedOver()
		return (o.ours || input == "") && !o.rests
	case agent.TurnStarted:
		o.rests = false
	}
	return false
}

// ofAgents begins the input that brings what came of the work of an agent.
const ofAgents = "settled:" + agent.ChildHandle

// handedOver reports whether agents still work for the turn, or what came of it is not read:
// another turn follows then. Their own time limits bound that.
func (o *outcome) handedOver() bool {
	return len(o.unread) > 0 || slices.ContainsFunc(o.pending, func(t task) bool { return strings.HasPrefix(t.handle, agent.ChildHandle) })
}

// why says why the turn did not end well, and what to do about it.
func (o *outcome) why(t text.Catalog) (message, fix string) {
	switch o.end.Reason {
	case agent.EndInterrupted:
		return t.Say(text.TurnInterrupted), t.Say(text.Bye, "session", o.session)
	case agent.EndLimit:
		if o.end.Problem == agent.ProblemBudget {
			return turnFault(t, o.end, o.session)
		}
		return t.Say(text.TurnLimit, "n", o.end.Steps), t.Say(text.Bye, "session", o.session)
	case agent.EndRefused:
		return t.Say(text.TurnRefused), ""
	case agent.EndStopped:
		if o.dropped != nil {
			return droppedLine(t, *o.dropped), ""
		}
		return t.Say(text.TurnStopped), ""
	}
	return turnFault(t, o.end, o.session)
}

// resultObject is the outcome as JSON. Its names are those that programs for
// agent sessions know.
type resultObject struct {
	Type           string          `json:"type"`
	Subtype        string          `json:"subtype"`
	IsError        bool            `json:"is_error"`
	DurationMS     int64           `json:"duration_ms"`
	DurationAPIMS  int64           `json:"duration_api_ms"`
	NumTurns       int             `json:"num_turns"` // steps
	Result         string          `json:"result"`
	StopReason     *string         `json:"stop_reason"`
	SessionID      string          `json:"session_id"`
	TotalCostUSD   *float64        `json:"total_cost_usd"` // of the session; null = unknown
	Usage          usageObject     `json:"usage"`          // of the turn
	Denials        []denialObject  `json:"permission_denials"`
	TerminalReason string          `json:"terminal_reason"`
	Deferred       *deferredObject `json:"deferred_tool_use,omitempty"`
	Errors         []string        `json:"errors,omitempty"`
}

type deferredObject struct {
	ID    string          `json:"id"`
	Tool  string          `json:"name"` // canonical
	Input json.RawMessage `json:"input"`
}

type usageObject struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

type denialObject struct {
	Tool  string          `json:"tool_name"` // canonical
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// object returns the outcome as JSON has it. A failure of the model's service
// is told in the result, as success that is an error: that is what programs
// expect.
func (o *outcome) object(t text.Catalog, took time.Duration) resultObject {
	u := o.end.Usage
	r := resultObject{
		Type: "result", Subtype: "success", Result: o.answer, SessionID: o.session,
		DurationMS: took.Milliseconds(), DurationAPIMS: o.apiTime, NumTurns: o.end.Steps,
		Usage:   usageObject{u.Input, u.Output, u.CacheRead, u.CacheWrite},
		Denials: []denialObject{}, TerminalReason: "completed",
	}
	if o.stop != "" {
		s := string(o.stop)
		r.StopReason = &s
	}
	if !o.totals.unknown {
		d := o.totals.cost.Dollars()
		r.TotalCostUSD = &d
	}
	for _, d := range o.denied {
		r.Denials = append(r.Denials, denialObject{d.call.Tool, d.call.ID, d.call.Input})
	}
	switch {
	case o.aside != nil:
		stop := "tool_deferred"
		c := o.aside.Call
		r.StopReason, r.TerminalReason, r.Deferred = &stop, stop, &deferredObject{c.ID, c.Tool, c.Input}
		return r
	case o.gone:
		r.IsError, r.TerminalReason = true, "tool_deferred_unavailable"
	}
	if o.end.Reason == agent.EndDone {
		return r
	}
	r.IsError = true
	message, _ := o.why(t)
	r.Errors = []string{message}
	switch o.end.Reason {
	case agent.EndLimit:
		if o.end.Problem == agent.ProblemBudget {
			r.Subtype, r.TerminalReason = "error_max_budget_usd", "max_budget"
			break
		}
		r.Subtype, r.TerminalReason = "error_max_turns", "max_turns"
	case agent.EndFailed:
		r.Result, r.TerminalReason = message, "api_error"
		if o.end.Fail == agent.FailContext {
			r.TerminalReason = "prompt_too_long"
		}
		if o.end.Fail == "" {
			r.Subtype, r.TerminalReason = "error_during_execution", "turn_setup_failed"
		}
	case agent.EndInterrupted:
		r.Subtype, r.TerminalReason = "error_during_execution", "aborted_streaming"
		if o.cutCall {
			r.TerminalReason = "aborted_tools"
		}
	case agent.EndRefused:
		r.TerminalReason = "completed"
	default:
		r.Subtype, r.TerminalReason = "error_during_execution", "hook_stopped"
	}
	return r
}

// progress is a line on a terminal that says what goes on, from the first
// second on.
type progress struct {
	c       *CLI
	on      bool
	columns func() int
	began   time.Time
	step    int
	doing   string
	shown   bool
}

func (p *progress) event(e agent.Event) {
	if !p.on {
		return
	}
	if p.began.IsZero() {
		p.began = p.c.Now()
	}
	switch b := e.Body.(type) {
	case agent.ModelRequested:
		p.step, p.doing = b.Step, p.c.Text.Say(text.Waiting)
	case agent.Fragment:
		if b.What == agent.DeltaThinking {
			p.doing = p.c.Text.Say(text.Thinking)
		} else if b.What == agent.DeltaText {
			p.doing = p.c.Text.Say(text.Answering)
		}
	case agent.HookStarted:
		if !b.Async {
			p.doing = hookDoes(p.c.Text, b)
		}
	case agent.CallStarted:
		p.doing = toolName(b.Tool)
	case agent.ModelFailed:
		p.doing, _ = p.c.Text.Failure(b.Class, "")
	}
}

func (p *progress) draw() {
	if !p.on || p.began.IsZero() {
		return
	}
	line := took(p.c.Now().Sub(p.began).Truncate(time.Second)) + " · " + p.c.Text.Say(text.PrintStep, "n", p.step) + " · " + p.doing
	cols := p.columns()
	if cols <= 0 {
		cols = 80
	}
	p.shown = true
	p.c.Err.Write([]byte("\r\x1b[K" + text.Cut(line, cols-1))) //nolint:errcheck // nothing depends on it
}

func (p *progress) erase() {
	if p.shown {
		p.shown = false
		p.c.Err.Write([]byte("\r\x1b[K")) //nolint:errcheck // nothing depends on it
	}
}
