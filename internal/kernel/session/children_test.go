package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"dure/agent"
)

// A child that has ended goes on with another task: it knows what was said before. A
// session that is no child of this one does not.
func TestAChildGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("first"), say("second"), say("own"))
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		spawn := r.reach.Spawn
		out, err := spawn(t.Context(), agent.Child{Prompt: "one", Key: "a"})
		if err != nil {
			t.Fatal(err)
		}
		opened := ""
		again, err := spawn(t.Context(), agent.Child{Prompt: "two", Key: "b", Resume: out.Session, Opened: func(id string) { opened = id }})
		if err != nil || again.Session != out.Session || again.Text != "second" || opened != out.Session || len(r.model.asked[1].Messages) != 3 {
			t.Errorf("it went on as %+v, %v, with %d messages", again, err, len(r.model.asked[1].Messages))
		}
		// The same key does not run it once more, as after a crash.
		if last, err := spawn(t.Context(), agent.Child{Prompt: "two", Key: "b", Resume: out.Session}); err != nil || last.Text != "second" {
			t.Errorf("again: %+v, %v", last, err)
		}
		other := r.open(agent.Open{})
		if _, err := r.reach.Spawn(t.Context(), agent.Child{Prompt: "three", Key: "c", Resume: out.Session}); err == nil || !strings.Contains(err.Error(), "is no child of "+other.Info.ID) {
			t.Errorf("a child of another session: %v", err)
		}
		if log := r.log(s.Info.ID); strings.Count(log, "child.opened") != 3 || strings.Count(log, "child.ended") != 3 {
			t.Errorf("log:\n%s", log)
		}
	})
}

// Children are three deep at most, and twenty at once, whoever asks for them.
func TestHowManyChildren(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		defer r.reg.Shutdown()
		for range 10 {
			r.model.answers = append(r.model.answers, say("", call("1", "sleep", `{}`)))
		}
		r.deep = true
		said := ""
		r.tools["sleep"] = tool{"sleep", agent.Read, func(ctx context.Context, _ agent.ToolContext, _ agent.Call) (agent.Result, error) {
			spawn := r.reach.Spawn // of the session that was opened last, which is the one that calls
			_, err := spawn(ctx, agent.Child{Prompt: "deeper", Key: agent.CallEnvOf(ctx).Key})
			if te, ok := errors.AsType[*agent.ToolError](err); ok {
				said = te.Message
			}
			return agent.Result{}, errors.New("enough")
		}}
		r.send(r.open(agent.Open{}), agent.Prompt{Text: "go"})
		settle()
		if said != "agents cannot have agents of their own 4 deep" || len(r.built) != 3 {
			t.Errorf("%d children, and then %q", len(r.built), said)
		}
	})
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		defer r.reg.Shutdown()
		wait := func(ctx context.Context) any { <-ctx.Done(); return ctx.Err() }
		for range 30 {
			r.model.answers = append(r.model.answers, wait)
		}
		r.open(agent.Open{})
		spawn := r.reach.Spawn
		for i := range 20 {
			if _, err := spawn(t.Context(), agent.Child{Prompt: "wait", Key: fmt.Sprint(i), Background: true}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := spawn(t.Context(), agent.Child{Prompt: "wait", Key: "more"})
		te, ok := errors.AsType[*agent.ToolError](err)
		if !ok || te.Message != "20 agents run already, and no more can at once" {
			t.Errorf("one more: %v", err)
		}
		if _, err = spawn(t.Context(), agent.Child{Prompt: "wait", Key: "1"}); err == nil || !strings.Contains(err.Error(), "still runs") {
			t.Errorf("the same again: %v", err)
		}
	})
}

// A child that is told something when it has just ended either hears it, and then does what
// it is told before it ends, or whoever tells it knows that it did not.
func TestAChildIsToldAtItsEnd(t *testing.T) {
	heard := 0
	for range 200 {
		bubble(t, func(t *testing.T) {
			r := newRig(t, say("first"), say("second"))
			defer r.reg.Shutdown()
			r.open(agent.Open{})
			spawn := r.reach.Spawn
			var told error
			over := make(chan struct{})
			out, err := spawn(t.Context(), agent.Child{Prompt: "one", Key: "a", Opened: func(id string) {
				go func() {
					defer close(over)
					for e, err := range r.reg.Events(t.Context(), id, 0) {
						if _, ended := e.Body.(agent.TurnEnded); ended || err != nil {
							break
						}
					}
					if told = r.tell(t.Context(), "said", "one more", "agent:x"); told == nil {
						_ = r.tell(t.Context(), "said", "one more", "agent:x") // nothing more is said, or nobody is there
					}
				}()
			}})
			<-over
			want := "first"
			if told == nil {
				want = "second"
				heard++
			}
			if err != nil || out.Text != want || out.Reason != agent.EndDone {
				t.Errorf("told %v, it ended as %+v, %v", told, out, err)
			}
		})
	}
	t.Logf("heard %d times", heard)
}

// A child whose own agents still work when its turn ends is not taken as finished: it ends
// when it has heard of all of them.
func TestAChildWaitsForItsAgents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `{}`), call("2", "write", `{}`)), say("handed over"), say("one is back"), say("all is back"))
		defer r.reg.Shutdown()
		r.deep = true
		r.tools["write"] = tool{"write", agent.Read, func(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			return agent.Result{Status: agent.StatusPending, Handle: agent.ChildHandle + c.ID, Text: "it works"}, nil
		}}
		r.open(agent.Open{})
		spawn := r.reach.Spawn
		ended := make(chan agent.Outcome, 1)
		go func() {
			out, _ := spawn(t.Context(), agent.Child{Prompt: "one", Key: "a"})
			ended <- out
		}()
		settle()
		for i := range 2 {
			select {
			case out := <-ended:
				t.Fatalf("it has ended before %d of its agents: %+v", 2-i, out)
			default:
			}
			if err := r.reach.Settle(t.Context(), agent.Settlement{Handle: fmt.Sprint(agent.ChildHandle, i+1), Result: agent.OK("done")}); err != nil {
				t.Fatal(err)
			}
			settle()
		}
		select {
		case out := <-ended:
			if out.Text != "all is back" || out.Reason != agent.EndDone {
				t.Errorf("%+v", out)
			}
		default:
			t.Error("it does not end")
		}
	})
}
