package cli

import (
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view"
)

// outcome is what a turn of print mode comes to.
type outcome struct {
	*view.View
	session string
	after   int64               // events up to there happened before our time
	rests   bool                // the turn has ended, and what agents do for it goes on
	begun   bool                // something has happened since we came
	ours    bool                // our input has entered the conversation, or was dropped
	dropped *agent.InputDropped // nil = it was not
}

// pending are the calls that go on in the background and were made in our time.
func (o *outcome) pending() []view.Task {
	at := slices.IndexFunc(o.Tasks, func(t view.Task) bool { return t.Seq > o.after })
	if at < 0 {
		return nil
	}
	return o.Tasks[at:]
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

// handedOver reports whether agents still work for the turn, or what came of it is not read:
// another turn follows then. Their own time limits limit that.
func (o *outcome) handedOver() bool {
	const ofAgents = "settled:" + agent.ChildHandle // begins the input that brings what came of their work
	unread := func(q view.Queued) bool { return q.Seq > o.after && strings.HasPrefix(q.Input, ofAgents) }
	works := func(t view.Task) bool { return strings.HasPrefix(t.Handle, agent.ChildHandle) }
	return slices.ContainsFunc(o.Queue, unread) || slices.ContainsFunc(o.pending(), works)
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
	turn    view.Turn
	shown   bool
}

func (p *progress) event(t view.Turn) {
	if p.began.IsZero() {
		p.began = p.c.Now()
	}
	p.turn = t
}

// doing says what goes on.
func (p *progress) doing() string {
	switch d := p.turn.Doing; d.What {
	case view.Answering:
		return p.c.Text.Say(text.Answering)
	case view.Failing:
		why, _ := p.c.Text.Failure(d.Class, "")
		return why
	default:
		return doing(p.c.Text, d)
	}
}

func (p *progress) draw() {
	if !p.on || p.began.IsZero() {
		return
	}
	line := took(p.c.Now().Sub(p.began).Truncate(time.Second)) + " · " + p.c.Text.Say(text.PrintStep, "n", p.turn.Step) + " · " + p.doing()
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
