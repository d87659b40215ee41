package loop_test

import (
	"context"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/kernel/loop"
)

// What a denial is called says who has denied, and the log keeps it: also where the program
// ends between the decision and the answer. Logs that do not say it go on.
func TestWhatADenialIsCalled(t *testing.T) {
	for code, want := range map[agent.ErrorCode]struct {
		code agent.ErrorCode
		next string
	}{
		"":                       {agent.ErrDenied, "Do not try to get around this."},
		agent.ErrBlockedByHook:   {agent.ErrBlockedByHook, "Do not try to get around this."},
		agent.ErrApprovalTimeout: {agent.ErrApprovalTimeout, "ask again later"},
	} {
		denied := agent.Decision{Verdict: agent.Deny, Reason: "no", Code: code}
		c := call("1", "write", `"0s"`)
		fresh := newRig(t, say("", c), say("done"))
		fresh.cfg.Gate[0].Decide = func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) { return denied, nil }
		asked := newRig(t, say("", c), say("done"))
		asked.cfg.Gate, asked.cfg.Person = nil, func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) { return denied, nil }
		again := newRig(t, say("done"))
		if err := again.store(true, agent.InputAdded{Text: "go"}, agent.TurnStarted{Turn: "t"}, agent.ModelAnswered{Turn: "t", Step: 1, Answer: say("", c)},
			agent.CallDecided{Proposal: agent.Proposal{Call: c, Class: agent.Unsafe}, Decision: denied}); err != nil {
			t.Fatal(err)
		}
		again.cfg.Pending, again.cfg.First = again.state.Open, 2
		for name, r := range map[string]*rig{"gate": fresh, "person": asked, "log": again} {
			run := r.run
			if name == "log" {
				run = func(ctx context.Context) error { _, err := loop.Turn(ctx, r.cfg); return err }
			}
			if err := run(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []agent.Result
			for _, e := range r.log {
				if f, ok := e.Body.(agent.CallFinished); ok {
					got = append(got, f.Result)
				}
			}
			if len(got) != 1 || got[0].Error == nil || got[0].Error.Code != want.code || !strings.Contains(got[0].Text, want.next) {
				t.Errorf("%s, %q: %+v", name, code, got)
			}
		}
	}
}
