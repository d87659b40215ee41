package cli

import (
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
	"dure/internal/state/transcript"
)

// outcome is what a turn of print mode comes to. It is a fold of events.
type outcome struct {
	*transcript.Results
	session string
	allowed map[string]agent.Call // that have not finished, by ID
	pending []task                // that were not heard of again
	unread  map[string]bool       // inputs that bring what came of the work of agents
	rests   bool                  // the turn has ended, and what agents do for it goes on
	begun   bool                  // something has happened since we came
	ours    bool                  // our input has entered the conversation, or was dropped
	dropped *agent.InputDropped   // nil = it was not
}

// task is a call that goes on in the background.
type task struct {
	handle, tool string
	call         agent.Call
	result       agent.Result // by which it was answered as pending
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
	end := o.End()
	switch {
	case end.Problem == agent.ProblemForm, end.Problem == agent.ProblemBudget:
		return string(end.Problem)
	case end.Reason == agent.EndFailed && end.Fail != "":
		return string(end.Fail)
	}
	return string(end.Reason)
}

// event takes in an event of the turn and reports whether it is the last one.
// input is the prompt that the turn is about; "" = whatever turn comes next.
func (o *outcome) event(e agent.Event, input string) (last bool) {
	if !o.begun {
		o.begun = true
		o.Begin()
	}
	o.background(e)
	o.Apply(e)
	switch b := e.Body.(type) {
	case agent.InputAdded:
		o.ours = o.ours || b.Input == input
	case agent.InputDropped:
		if b.Input == input {
			o.ours, o.dropped = true, &b
		}
	case agent.CallDeferred:
		return o.ours || input == ""
	case agent.TurnEnded:
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
	end := o.End()
	switch end.Reason {
	case agent.EndInterrupted:
		return t.Say(text.TurnInterrupted), t.Say(text.Bye, "session", o.session)
	case agent.EndLimit:
		if end.Problem == agent.ProblemBudget {
			return turnFault(t, end, o.session)
		}
		return t.Say(text.TurnLimit, "n", end.Steps), t.Say(text.Bye, "session", o.session)
	case agent.EndRefused:
		return t.Say(text.TurnRefused), ""
	case agent.EndStopped:
		if o.dropped != nil {
			return droppedLine(t, *o.dropped), ""
		}
		return t.Say(text.TurnStopped), ""
	}
	return turnFault(t, end, o.session)
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
