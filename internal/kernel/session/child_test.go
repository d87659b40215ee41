package session_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/client"
)

func TestChildren(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `{}`)), say("child's answer"), say("parent's answer"))
		defer r.reg.Shutdown()
		var out agent.Outcome
		var spawn agent.Spawn
		r.tools["write"] = tool{"write", agent.Idempotent, func(ctx context.Context, _ agent.ToolContext, _ agent.Call) (agent.Result, error) {
			var err error
			out, err = spawn(ctx, agent.Child{Prompt: "do it", Key: agent.CallEnvOf(ctx).Key})
			return agent.OK(out.Text), err
		}}
		s := r.open(agent.Open{})
		spawn = r.reach.Spawn
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		if out.Text != "child's answer" || out.Reason != agent.EndDone {
			t.Errorf("outcome %+v", out)
		}
		if log := r.log(out.Session); !strings.Contains(log, "input.added do it") {
			t.Errorf("child's log:\n%s", log)
		}
		// The same key finds the same child, and does not run it again.
		again, err := spawn(t.Context(), agent.Child{Prompt: "do it", Key: keyOf(r, s.Info.ID)})
		if err != nil || again.Session != out.Session || again.Text != out.Text {
			t.Errorf("again: %+v, %v", again, err)
		}
		log := r.log(s.Info.ID)
		if !strings.Contains(log, "child.opened\nchild.ended\ncall.finished 1") || len(r.model.asked) != 3 {
			t.Errorf("%d requests; log:\n%s", len(r.model.asked), log)
		}
	})
}

func keyOf(r *rig, id string) (key string) {
	for e := range r.store.Read(context.Background(), id, 0) {
		if b, ok := e.Body.(agent.CallStarted); ok {
			key = b.Key
		}
	}
	return key
}

// asked returns the questions in a log, in order.
func (r *rig) asked(id string) (ids []string) {
	for e := range r.store.Read(context.Background(), id, 0) {
		if a, ok := e.Body.(agent.ApprovalAsked); ok {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// A yes to one call of a child is none to another, whatever IDs the model gives
// them: not to a later call of the child, nor to a call of another child.
func TestAYesIsForOneCallOfAChild(t *testing.T) {
	bubble(t, func(t *testing.T) {
		same := call("1", "write", `"1s"`)
		r := newRig(t, say("", call("0", "sleep", `{}`)),
			say("", same), say("", same), say("first child"), say("", same), say("second child"), say("parent"))
		defer r.reg.Shutdown()
		r.tools["sleep"] = tool{"sleep", agent.Idempotent, func(ctx context.Context, _ agent.ToolContext, _ agent.Call) (agent.Result, error) {
			spawn := r.reach.Spawn
			for _, key := range []string{"a", "b"} {
				if _, err := spawn(ctx, agent.Child{Prompt: "do it", Key: key}); err != nil {
					return agent.Result{}, err
				}
			}
			return agent.OK("both"), nil
		}}
		s := r.open(agent.Open{Approver: true})
		r.person = func(p agent.Proposal) bool { return p.Call.Tool == "write" }
		r.send(s, agent.Prompt{Text: "go"})
		for n := 1; n <= 3; n++ {
			ids := r.asked(s.Info.ID)
			if len(ids) != n {
				t.Fatalf("after %d answers %d calls were asked about", n-1, len(ids))
			}
			r.send(s, agent.Resolve{ID: ids[n-1], Decision: agent.Decision{Verdict: agent.Allow}})
			time.Sleep(2 * time.Second) // less than the limit of the call that waits
			synctest.Wait()
		}
		if log := r.log(s.Info.ID); !strings.HasSuffix(log, "turn.ended done\nlog.sealed") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// A child has its parent's mode and model as they are now; a mode that was not
// taken over when the parent was resumed is not handed down either.
func TestAChildInheritsWhatHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("a"), say("b"), say("c"))
		s := r.open(agent.Open{Mode: agent.ModeBypass})
		spawn := func(key string) {
			if _, err := r.reach.Spawn(t.Context(), agent.Child{Prompt: "do it", Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		spawn("a")
		r.send(s, agent.Change{Mode: agent.ModePlan})
		spawn("b")
		r.send(s, agent.Change{Mode: agent.ModeBypass})
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.open(agent.Open{Session: s.Info.ID})
		defer r.reg.Shutdown()
		spawn("c")
		var modes []agent.Mode
		for _, o := range r.built {
			modes = append(modes, o.Mode)
			if o.Model != "script" {
				t.Errorf("a child was built with the model %q", o.Model)
			}
		}
		if want := []agent.Mode{agent.ModeBypass, agent.ModePlan, ""}; !slices.Equal(modes, want) {
			t.Errorf("modes %q, want %q", modes, want)
		}
	})
}

// A child that cannot be started is recorded as ended, and nothing of it stays
// open.
func TestAChildThatCannotStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		for _, c := range []agent.Child{{Key: "no prompt"}, {Key: "no model", Prompt: "do it", Model: "nosuch"}} {
			out, err := r.reach.Spawn(t.Context(), c)
			if err == nil || out.Reason != agent.EndFailed {
				t.Errorf("%s: %+v, %v", c.Key, out, err)
			}
		}
		if log := r.log(s.Info.ID); !strings.HasSuffix(log, "child.opened\nchild.ended\nchild.opened\nchild.ended") {
			t.Errorf("log:\n%s", log)
		}
		list, err := client.Query[agent.SessionList](t.Context(), client.New(r.reg), agent.ListSessions{})
		for _, info := range list.Sessions {
			if info.ID != s.Info.ID && info.Status == "running" {
				t.Errorf("%s is still open", info.ID)
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// The question of a child in the background stays open when a turn of its parent
// ends, and its answer arrives.
func TestAQuestionOfAChildInTheBackground(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1s"`)), say("parent"), say("child"))
		defer r.reg.Shutdown()
		r.allow = false
		s := r.open(agent.Open{Approver: true})
		out, err := r.reach.Spawn(t.Context(), agent.Child{Prompt: "do it", Key: "a", Background: true})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.send(s, agent.Prompt{Text: "go"}) // a turn that ends at once
		ids := r.asked(s.Info.ID)
		if len(ids) != 1 {
			t.Fatalf("asked %q", ids)
		}
		r.send(s, agent.Resolve{ID: ids[0], Decision: agent.Decision{Verdict: agent.Allow}})
		settle()
		if log := r.log(s.Info.ID); !strings.HasSuffix(log, "approval.resolved\nchild.ended") {
			t.Errorf("log:\n%s", log)
		}
		if log := r.log(out.Session); !strings.HasSuffix(log, "turn.ended done\nlog.sealed") {
			t.Errorf("child's log:\n%s", log)
		}
	})
}
