//go:build unix

package app_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/kernel/plug"
	"dure/internal/models/script"
)

// Limit is a complete capability: it limits the commands of a session, tells the model how
// many are left, and answers how many ran. CONTRIBUTING.md explains it.
type Limit struct {
	Commands int64
	ran      atomic.Int64 // of all sessions
}

// Ran asks how many commands ran in all sessions. The answer is an int64.
type Ran struct{}

func (Ran) Query() string { return "example_ran" }

func (l *Limit) Name() string { return "limit" }

// Attach adds the limit to a session.
func (l *Limit) Attach(_ context.Context, s *plug.Session) (plug.Points, error) {
	left := l.Commands // the state of one session lives here, and needs no map
	stage := plug.Stage{Name: "limit", Decide: func(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
		if p.Call.Tool != "bash__exec" || atomic.LoadInt64(&left) > 0 {
			return agent.Decision{}, nil // it says nothing, and the next stage is asked
		}
		return agent.Decision{Verdict: agent.Deny, Reason: fmt.Sprintf("session %s has run %d commands", s.ID, l.Commands)}, nil
	}}
	count := func(t agent.Tool, next plug.Run) plug.Run {
		if t.Spec().Name != "bash__exec" {
			return next
		}
		return func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
			l.ran.Add(1)
			atomic.AddInt64(&left, -1)
			return next(ctx, tc, c)
		}
	}
	tell := func(context.Context, plug.Moment) []agent.ContextAdded {
		text := fmt.Sprintf("You may run %d more commands.", atomic.LoadInt64(&left))
		return []agent.ContextAdded{{Source: "limit", Title: "limit", Text: text}} // said again only when it changes
	}
	return plug.Points{Gate: plug.Gate{Bounds: []plug.Stage{stage}}, Wrap: []plug.Wrap{count}, Extra: tell}, nil
}

// Answers returns the queries that the capability answers.
func (l *Limit) Answers() []plug.Answer {
	return []plug.Answer{plug.Answers(func(context.Context, Ran) (int64, error) { return l.ran.Load(), nil })}
}

// Second wants a place of which there is one.
type Second struct{ plug.Points }

func (Second) Name() string { return "second" }

func (s Second) Attach(context.Context, *plug.Session) (plug.Points, error) { return s.Points, nil }

// A session is not opened if two capabilities want the same place.
func TestPlacesOfOne(t *testing.T) {
	t.Parallel()
	allow := plug.Stage{Name: "second", Decide: func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) {
		return agent.Decision{Verdict: agent.Allow}, nil
	}}
	rewind := func(context.Context, agent.Rewind) (agent.FilesRewound, error) { return agent.FilesRewound{}, nil }
	for name, points := range map[string]plug.Points{
		"rules":   {Gate: plug.Gate{Rules: allow}},
		"verdict": {Gate: plug.Gate{Verdict: allow}},
		"undo":    {Undo: plug.Undo{Rewind: rewind}},
	} {
		w := newWorld(t, says(), script.Options{})
		o := options(w.work, w.home, w.model.URL(), app.Flags{})
		o.More = []plug.Extension{Second{points}}
		if _, err := w.program(o).Client().Open(t.Context(), agent.Open{}); err == nil || !strings.Contains(err.Error(), "second: ") {
			t.Errorf("%s: opening the session came to %v", name, err)
		}
	}
}

// Of two capabilities that answer the same query, none is left to chance.
func TestTwoAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(), script.Options{})
	o := options(w.work, w.home, w.model.URL(), app.Flags{})
	o.More = []plug.Extension{&Limit{}, &Limit{}}
	if _, err := app.New(o); err == nil || !strings.Contains(err.Error(), "example_ran") {
		t.Errorf("building the program came to %v", err)
	}
}

func TestACapabilityOfOnesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(
		answer("b1", "Bash", fields{"command": "echo one"}), answer("b2", "Bash", fields{"command": "echo two"}), script.Reply{Text: "Done."},
	), script.Options{})
	o := options(w.work, w.home, w.model.URL(), app.Flags{Skip: true})
	o.More = []plug.Extension{&Limit{Commands: 1}}
	a := w.program(o)
	k := w.talkTo(a, agent.Open{})
	k.turn("Run them.")
	if one, two := k.result("b1"), k.result("b2"); one.Failed() || two.Error == nil || two.Error.Code != agent.ErrDenied {
		t.Errorf("the first command came to %+v and the second to %+v", one, two)
	}
	ran, err := client.Query[int64](t.Context(), k.Client, Ran{})
	if err != nil || ran != 1 {
		t.Errorf("%v commands ran, %v", ran, err)
	}
}
