package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/kernel/session"
	"dure/internal/state/journal"
)

// told records the runs of hooks with something for the model, as they do.
func told(b plug.Session) func(event string) {
	n := 0
	return func(event string) {
		n++
		_ = b.Record(agent.HookRan{Run: fmt.Sprint("r", n), Event: event, Outcome: agent.HookPassed, Context: "said at " + event})
	}
}

// Each hook has its word at its place, and what it has to say to the model comes before
// the next request.
func TestHooks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1s"`), call("2", "sleep", `"1s"`)), say("one"), say("two"))
		defer r.reg.Shutdown()
		var order []string
		r.hooks = func(b plug.Session) (h plug.Hooks) {
			tell := told(b)
			h.Opened = func(_ context.Context, how string) (string, string) {
				order = append(order, how)
				tell("SessionStart")
				return "", ""
			}
			h.Heard = func(_ context.Context, q agent.InputQueued) (string, *agent.InputDropped) {
				if strings.Contains(q.Text, "secret") {
					return "", &agent.InputDropped{Reason: "not that", By: "hook:test"}
				}
				tell("UserPromptSubmit")
				return strings.ToUpper(q.Text), nil
			}
			h.After = func(_ context.Context, p agent.Proposal, res agent.Result, took time.Duration) (agent.Result, bool) {
				order = append(order, fmt.Sprint("after ", p.Call.ID, " ", took))
				if p.Call.ID == "1" {
					tell("PostToolUse")
					res.Text = "rewritten"
				}
				return res, false
			}
			h.Batch = func(_ context.Context, _ []agent.Call, all []agent.CallFinished) bool {
				order = append(order, fmt.Sprint("batch of ", len(all), ": ", all[0].Result.Text, ", ", all[1].Result.Text))
				return false
			}
			asked := 0
			h.Stopping = func(_ context.Context, said string) (string, string) {
				order = append(order, "stopping at "+said)
				if asked++; asked == 1 {
					return "not yet", "hook:test"
				}
				return "", ""
			}
			h.Ended = func(_ context.Context, b agent.TurnEnded) { order = append(order, "ended "+string(b.Reason)) }
			h.Closing = func(context.Context) { order = append(order, "closing") }
			return h
		}
		s := r.open(agent.Open{})
		settle()
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		r.send(s, agent.Prompt{Text: "the secret"})
		settle()
		r.reg.Shutdown()
		want := text(`
			session.opened
			hook.ran SessionStart
			input.queued go
			turn.started
			hook.ran UserPromptSubmit
			input.added GO
			context.added hook:SessionStart said at SessionStart
			context.added hook:UserPromptSubmit said at UserPromptSubmit
			model.requested
			model.answered
			call.decided allow
			call.decided allow
			call.started
			hook.ran PostToolUse
			call.finished 1
			call.started
			call.finished 2
			context.added hook:PostToolUse said at PostToolUse
			model.requested
			model.answered
			input.added not yet
			model.requested
			model.answered
			turn.ended done
			log.sealed
			input.queued the secret
			turn.started
			input.dropped not that
			turn.ended stopped
			log.sealed
		`)
		if got := r.log(s.Info.ID); got != want {
			t.Errorf("log:\n%s\nwant:\n%s", got, want)
		}
		const hooks = "startup, after 1 1s, after 2 1s, batch of 2: rewritten, slept 1s, stopping at one, stopping at two, ended done, ended stopped, closing"
		if got := strings.Join(order, ", "); got != hooks {
			t.Errorf("hooks:\n%s\nwant:\n%s", got, hooks)
		}
	})
}

// A hook that stops the turn at a result ends it, and what a crash has left untold is
// told when the session goes on.
func TestHooksThatStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"1s"`)), say("again"))
		defer func() { r.reg.Shutdown() }()
		var how []string
		r.hooks = func(b plug.Session) (h plug.Hooks) {
			tell := told(b)
			h.Opened = func(_ context.Context, as string) (string, string) {
				how = append(how, as)
				return "", ""
			}
			h.After = func(_ context.Context, _ agent.Proposal, res agent.Result, _ time.Duration) (agent.Result, bool) {
				tell("PostToolUse")
				return res, true
			}
			return h
		}
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		r.reg.Shutdown()
		r.start()
		s = r.open(agent.Open{Session: s.Info.ID})
		r.send(s, agent.Prompt{Text: "on"})
		settle()
		got := r.log(s.Info.ID)
		_, got, _ = strings.Cut(got, "hook.ran")
		want := text(` PostToolUse
			call.finished 1
			turn.ended stopped
			log.sealed
			session.opened
			context.added hook:PostToolUse said at PostToolUse
			input.added on
			turn.started
			model.requested
			model.answered
			turn.ended done
			log.sealed`)
		if text(got) != want {
			t.Errorf("log:\n%s\nwant:\n%s", got, want)
		}
		if got := strings.Join(how, " "); got != "startup resume" {
			t.Errorf("opened as %s", got)
		}
	})
}

// Reads of one answer are decided on at once, and run beside each other; a person is
// asked about them in their order.
func TestSlowGates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"1s"`), call("2", "sleep", `"2s"`), call("3", "sleep", `"3s"`)), say("done"))
		defer r.reg.Shutdown()
		r.slow = time.Minute
		s := r.open(agent.Open{})
		begun := time.Now()
		r.send(s, agent.Prompt{Text: "go"})
		events := collect(t, s, 0)
		if took := time.Since(begun); took != time.Minute+3*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := len(events); n == 0 {
			t.Error("no events")
		}
		var decided []string
		for _, e := range events {
			if d, ok := e.Body.(agent.CallDecided); ok {
				decided = append(decided, d.Proposal.Call.ID)
			}
		}
		if got := strings.Join(decided, " "); got != "1 2 3" {
			t.Errorf("decided: %s", got)
		}
	})
}

// Who has a word on a change of the model may refuse it, whichever way it comes.
func TestSwitching(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		defer r.reg.Shutdown()
		r.others = map[string]agent.ModelInfo{"big": {ID: "big"}, "bad": {ID: "bad"}}
		var order []string
		r.hooks = func(plug.Session) (h plug.Hooks) {
			h.Switching = func(_ context.Context, from, to string) error {
				if to == "bad" {
					return errors.New("not that one")
				}
				return nil
			}
			h.Switched = func(_ context.Context, from, to string) { order = append(order, to) }
			return h
		}
		s := r.open(agent.Open{})
		if err := s.Send(t.Context(), agent.Change{Model: "bad"}); err == nil || !strings.Contains(err.Error(), "not that one") {
			t.Errorf("err = %v", err)
		}
		r.send(s, agent.Change{Model: "big"})
		for _, model := range []string{"bad", "other"} {
			body, err := agent.EncodeCommand(agent.Change{Model: model})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.store.Post(t.Context(), s.Info.ID, session.LaneMain, journal.Msg{ID: model, Kind: "change", Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		settle()
		if got := strings.Join(order, " "); got != "big script" {
			t.Errorf("switched to %s", got)
		}
		if got := r.log(s.Info.ID); strings.Count(got, "settings.changed") != 2 || !strings.Contains(got, "note") {
			t.Errorf("log:\n%s", got)
		}
	})
}

// Where hooks have something to say to some input alone, the rest of it goes its usual
// way.
func TestTakes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("one"), say("two"))
		defer r.reg.Shutdown()
		r.hooks = func(plug.Session) plug.Hooks {
			return plug.Hooks{
				Screens: func() bool { return false },
				Takes:   func(q agent.InputQueued) bool { return strings.HasPrefix(q.Text, "/") },
				Heard: func(_ context.Context, q agent.InputQueued) (string, *agent.InputDropped) {
					if q.Text == "/no" {
						return "", &agent.InputDropped{Reason: "not that", By: "command:no"}
					}
					return strings.ToUpper(q.Text), nil
				},
			}
		}
		s := r.open(agent.Open{})
		settle()
		for _, text := range []string{"go", "/on", "/no"} {
			r.send(s, agent.Prompt{Text: text})
			settle()
		}
		r.reg.Shutdown()
		want := text(`
			session.opened
			input.added go
			turn.started
			model.requested
			model.answered
			turn.ended done
			log.sealed
			input.queued /on
			turn.started
			input.added /ON
			model.requested
			model.answered
			turn.ended done
			log.sealed
			input.queued /no
			turn.started
			input.dropped not that
			turn.ended stopped
			log.sealed
		`)
		if got := r.log(s.Info.ID); got != want {
			t.Errorf("log:\n%s\nwant:\n%s", got, want)
		}
	})
}

// What a hook says at the beginning of a session comes before what a person says, however
// long the hook takes.
func TestWordsOfTheBeginning(t *testing.T) {
	for _, takes := range []time.Duration{0, time.Second} {
		bubble(t, func(t *testing.T) {
			r := newRig(t, say("both read"))
			defer r.reg.Shutdown()
			r.hooks = func(plug.Session) (h plug.Hooks) {
				h.Speaks = func() bool { return true }
				h.Opened = func(context.Context, string) (string, string) {
					if takes > 0 {
						<-time.After(takes)
					}
					return "first words", "hook:test"
				}
				return h
			}
			s := r.open(agent.Open{})
			r.send(s, agent.Prompt{Text: "go"})
			settle()
			got := r.log(s.Info.ID)
			first, second := strings.Index(got, "input.added first words"), strings.Index(got, "input.added go")
			if first < 0 || second < first || strings.Count(got, "model.requested") != 1 || !strings.Contains(got, "turn.ended done") {
				t.Errorf("with a hook that takes %v:\n%s", takes, got)
			}
		})
	}
}
