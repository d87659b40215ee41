//go:build unix

package app_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/state/transcript"
)

// planCrashFlags have every request planned, and edits done unasked after that.
func planCrashFlags() app.Flags {
	return app.Flags{Settings: `{"plan":{"mode":"always"},"permissions":{"defaultMode":"acceptEdits"}}`}
}

// planStory is what the model of a session with plans says. It goes by what was said to
// it last, so that a request that is made again gets the same answer.
func planStory(r script.Request) script.Reply {
	put := func(id, text string) script.Reply {
		return script.Reply{Calls: []script.Call{numbered(id, "ExitPlanMode", fields{"plan": text})}}
	}
	write := func(name string) script.Reply {
		return script.Reply{Calls: []script.Call{numbered("w"+name, "Write", fields{"file_path": name, "content": name})}}
	}
	switch last := strings.TrimSpace(r.Last); {
	case last == "Write b.":
		return put("p1", "1. Write b")
	case strings.Contains(last, "Make another plan"):
		return put("p2", "1. Write b\n2. Rest")
	case last == "Write c.":
		return put("p3", "1. Write c")
	case strings.Contains(last, "Carry it out") && strings.Contains(last, "Write c"):
		return write("c")
	case strings.Contains(last, "Carry it out"):
		return write("b")
	}
	return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
}

func newPlanRun(dir string) (*crashRun, error) {
	r, err := newHistoryRun(dir)
	if err != nil {
		return nil, err
	}
	_ = r.model.Close() // it tells another story
	r.model, err = script.NewServer(script.Script{}, script.Options{Func: planStory})
	return r, err
}

// nextInPlans is what is to be done next, as the log tells; nil = nothing.
func nextInPlans(state *transcript.State, made int) agent.Command {
	p := state.Plan
	if p == nil || p.State != "" {
		switch {
		case !state.Inputs["p1"]:
			return agent.Prompt{ID: "p1", Text: "Write b."}
		case !state.Inputs["p2"]:
			return agent.Prompt{ID: "p2", Text: "Write c."}
		}
		return nil
	}
	switch {
	case made < 3 && p.Edits == 0:
		return agent.ChangePlan{Do: agent.PlanEdit, Step: 1, Text: fmt.Sprintf("Write b, plan %d", made)}
	case made == 1:
		return agent.DecidePlan{Verdict: agent.PlanAnother, Reason: "longer"}
	case made == 3 && state.Turn.Open:
		return agent.Interrupt{} // the third is decided about when nothing waits with it
	}
	return agent.DecidePlan{Verdict: agent.PlanApproved}
}

// followPlans answers what is asked, and does what is left to do each time the session
// waits for it.
func (b *boundaries) followPlans(ctx context.Context, s *client.Session) error {
	state, made := transcript.New(), 0
	for e, err := range s.Events(ctx, 0) {
		if err != nil {
			return err
		}
		if e.Live() {
			continue
		}
		fmt.Printf("e %d %s %s\n", e.Seq, e.ID, e.Kind())
		state.Apply(e)
		if _, ok := e.Body.(agent.PlanProposed); ok {
			made++
		}
		if e.Seq < s.Info.Head {
			continue
		}
		next := nextInPlans(state, made)
		switch e.Body.(type) {
		case agent.TurnEnded, agent.PlanChanged, agent.ApprovalAsked:
		case agent.TurnStarted:
			if len(state.Approvals) == 0 {
				continue
			}
		default:
			if e.Seq > s.Info.Head {
				continue
			}
		}
		if e.Seq == s.Info.Head && (state.Turn.Open || state.Unread || state.Waits(true)) {
			next = agent.Continue{}
		}
		if next == nil {
			return nil
		}
		if err := s.Send(ctx, next); err != nil {
			return err
		}
	}
	return errors.New("the events ended too early")
}

// checkPlans looks at the log, at what became of each plan, and at the files.
func (r *crashRun) checkPlans(ctx context.Context) (v verdict, err error) {
	a, err := app.New(options(r.work(), r.home(), r.model.URL(), planCrashFlags()))
	if err != nil {
		return v, err
	}
	defer a.Close()
	c := a.Client()
	var events []agent.Event
	state := transcript.New()
	for e, err := range c.Attach(crashID).Events(ctx, 0) {
		if err != nil {
			return v, err
		}
		events = append(events, e)
		state.Apply(e)
	}
	v.events = len(events)
	v.problems = slices.Concat(numbering(events), gated(events), verified(ctx, c, crashID), refusals(r.model))
	for seq, was := range r.printed {
		if seq > int64(len(events)) || events[seq-1].ID+" "+events[seq-1].Kind() != was {
			v.fail("event %d (%s) is lost", seq, was)
		}
	}
	var story []string // of the plans, with the calls that change something
	calls := map[string]string{}
	for _, e := range events {
		switch b := e.Body.(type) {
		case agent.PlanProposed:
			calls[b.Plan] = b.Call
			story = append(story, b.Call+" proposed")
		case agent.PlanChanged:
			story = append(story, calls[b.Plan]+" "+b.Do)
		case agent.PlanDecided:
			story = append(story, calls[b.Plan]+" "+string(b.Verdict))
		case agent.CallFinished:
			if strings.HasPrefix(b.Result.ID, "w") {
				story = append(story, b.Result.ID+" "+string(b.Result.Status))
			}
		case agent.InputAdded:
			story = append(story, "> "+strings.SplitN(b.Text, ".", 2)[0])
		}
	}
	want := []string{
		"> Write b", "p1 proposed", "p1 edit", "p1 regenerate", "p2 proposed", "p2 edit", "p2 approved", "wb ok",
		"> Write c", "p3 proposed", "p3 approved", "> I agree to your plan", "wc ok",
	}
	if !slices.Equal(story, want) {
		v.fail("the plans: %q", story)
	}
	if state.Turn.Open || state.Mode != agent.ModeAcceptEdits || state.Plan.State != agent.PlanApproved {
		v.fail("turn open %v, mode %s, plan %q", state.Turn.Open, state.Mode, state.Plan.State)
	}
	entries, err := r.settled()
	if len(entries) != 2 || entries[0].Name() != "b" || entries[1].Name() != "c" {
		v.fail("the workspace has %v", entries)
	}
	return v, err
}

// planRun is one session with plans that dies at a boundary and goes on.
func planRun(ctx context.Context, dir string, p crashPoint) (v verdict, err error) {
	r, err := newPlanRun(dir)
	if err != nil {
		return v, err
	}
	defer r.close()
	r.ask = true
	died, _, err := r.child(childTask{Plans: true, Die: p.n, Torn: p.torn})
	if err != nil {
		return v, err
	}
	if died {
		if again, _, err := r.child(childTask{Plans: true}); again || err != nil {
			return v, fmt.Errorf("resuming: died %v, %w", again, err)
		}
	}
	v, err = r.checkPlans(ctx)
	v.died = died
	return v, err
}

// TestCrashWithPlans kills a session in which plans are changed, wanted anew, approved,
// and approved when their turn is long over: at every boundary, or at some in the short
// form. Each plan has one outcome, and nothing is done before its plan is approved.
func TestCrashWithPlans(t *testing.T) {
	r, err := newPlanRun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r.ask = true
	_, lines, err := r.child(childTask{Plans: true, List: true})
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.checkPlans(t.Context())
	if err = errors.Join(err, r.close()); err != nil || len(v.problems) > 0 {
		t.Fatalf("nobody was killed: %v, %v", err, v.problems)
	}
	killedAt(t, pointsOf(lines), 30, 2, func(dir string, p crashPoint) (verdict, error) { return planRun(t.Context(), dir, p) })
}
