package audit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/safety/guard"
	"dure/internal/state/archive"
	"dure/internal/state/archive/audit"
	"dure/internal/state/journal"
	"dure/internal/state/plan"
	"dure/internal/tools/catalog"
)

// kept makes a session with events.
func kept(t *testing.T, store *journal.Local, m agent.SessionInfo, events ...agent.Body) {
	t.Helper()
	ctx := t.Context()
	if err := store.Create(ctx, journal.Meta{SessionInfo: m}); err != nil {
		t.Fatal(err)
	}
	lease, err := store.Acquire(ctx, m.ID, journal.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	list := []agent.Event{{Body: agent.SessionOpened{Session: m.ID, Parent: m.Parent, Workdir: m.Workdir}}}
	for _, b := range events {
		list = append(list, agent.Event{Body: b})
	}
	if _, err := lease.Append(ctx, journal.Batch{Events: list, Seal: true}); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(ctx, journal.Done, journal.Meta{}); err != nil {
		t.Fatal(err)
	}
}

func extension(store *journal.Local) *audit.Extension {
	return audit.New(audit.Config{
		Logs: func() archive.Logs { return store }, Mask: guard.MaskValue[[]agent.DecisionRecord], Canonical: catalog.New(catalog.Config{}).Canonical,
	})
}

// What became of plans stands among the decisions for who asks for it, and is picked as
// they are.
func TestAuditOfPlans(t *testing.T) {
	t.Parallel()
	store, err := journal.NewLocal(journal.LocalOptions{Dir: t.TempDir(), Durability: journal.DurabilityOS})
	if err != nil {
		t.Fatal(err)
	}
	steps := func(all ...string) (p agent.Plan) {
		for _, s := range all {
			p.Steps = append(p.Steps, agent.PlanStep{Text: s})
		}
		return p
	}
	kept(
		t, store, agent.SessionInfo{ID: "s", Workdir: "/work"},
		agent.PlanProposed{Plan: "pl", Call: "c", Text: "1. a", Body: steps("a", "use ghp_abcdefghijklmnopqrstuvwxyz0123456789")},
		agent.PlanChanged{Plan: "pl", Do: agent.PlanEdit, Step: 1, By: "user", Body: steps("b")},
		agent.PlanDecided{Plan: "pl", Verdict: agent.PlanAnother, By: "user", Reason: "too short"},
		agent.CallDecided{Proposal: agent.Proposal{Call: agent.Call{ID: "c", Tool: "plan__exit"}}, Decision: agent.Decision{Verdict: agent.Deny, By: "user"}},
		agent.PlanDecided{Plan: "pl", Verdict: agent.PlanApproved, By: "hook:x"},
	)
	defer store.Close()
	x := extension(store)
	const proposed, changed, another, approved = "2 proposed  ", "3 edit user ", "4 regenerate user deny", "6 approved hook:x allow"
	for _, tt := range []struct {
		query query.ListDecisions
		want  []string
	}{
		{query.ListDecisions{}, []string{"5 call user deny"}},
		{query.ListDecisions{Plans: true}, []string{proposed, changed, another, "5 call user deny", approved}},
		{query.ListDecisions{Plans: true, Tool: "ExitPlanMode", Verdict: agent.Allow}, []string{approved}},
		{query.ListDecisions{Plans: true, By: "user", Limit: 2}, []string{another, "5 call user deny"}},
		{query.ListDecisions{Plans: true, Tool: "Bash"}, nil},
	} {
		answer, err := x.Answers()[0].Do(t.Context(), tt.query)
		if err != nil {
			t.Fatal(err)
		}
		list := answer.([]agent.DecisionRecord)
		var got []string
		for _, r := range list {
			what := "call"
			if r.Plan != nil {
				what = r.Plan.What
			}
			if r.Proposal.Call.ID != "c" || r.Plan != nil && r.Plan.Body != nil && strings.Contains(plan.Render(*r.Plan.Body), "ghp_abcdefghijklmnopqrstuvwxyz0123456789") {
				t.Errorf("%+v", r)
			}
			got = append(got, fmt.Sprintf("%d %s %s %s", r.Seq, what, r.Decision.By, r.Decision.Verdict))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v:\n%q, want\n%q", tt.query, got, tt.want)
		}
	}
}

// What the calls of children and of their children were answered stands with their
// decisions, though a person was asked in the log of the first session.
func TestAuditOfChildren(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	store, err := journal.NewLocal(journal.LocalOptions{Dir: t.TempDir(), Durability: journal.DurabilityOS, Now: func() time.Time {
		at = at.Add(time.Second)
		return at
	}})
	if err != nil {
		t.Fatal(err)
	}
	prop := func(who, command string) agent.Proposal {
		return agent.Proposal{Call: agent.Call{ID: "1", Tool: "bash__exec", Input: json.RawMessage(strconv.Quote(command))}, Agent: who}
	}
	by := func(v agent.Verdict, who, why string) agent.Decision {
		return agent.Decision{Verdict: v, By: who, Reason: why}
	}
	kept(
		t, store, agent.SessionInfo{ID: "front", Workdir: "/work"},
		agent.ApprovalAsked{ID: "q1", Proposal: prop("tester", "make"), Child: "child"},
		agent.ApprovalResolved{ID: "q1", Decision: by(agent.Allow, "user", ""), Remember: agent.RememberSession, Rules: []string{"Bash(make)"}},
		agent.ApprovalAsked{ID: "q2", Proposal: prop("helper", "make x"), Child: "child"},
		agent.ApprovalResolved{ID: "q2", Decision: by(agent.Deny, "user", "not now")},
		agent.ApprovalAsked{ID: "q3", Proposal: prop("", "make")},
		agent.ApprovalResolved{ID: "q3", Decision: by(agent.Deny, "user", "mine")},
		agent.CallDecided{Proposal: prop("", "make"), Decision: by(agent.Deny, "user", "mine")},
	)
	kept(
		t, store, agent.SessionInfo{ID: "child", Parent: "front", Workdir: "/work"},
		agent.CallDecided{Proposal: prop("tester", "ls"), Decision: by(agent.Allow, "read-only", "")},
		agent.CallDecided{Proposal: prop("tester", "make"), Decision: by(agent.Allow, "user", "")},
	)
	kept(
		t, store, agent.SessionInfo{ID: "grandchild", Parent: "child", Workdir: "/work"},
		agent.CallDecided{Proposal: prop("helper", "make x"), Decision: by(agent.Deny, "user", "not now")},
		agent.CallDecided{Proposal: prop("helper", "make x"), Decision: by(agent.Deny, "user", "not now")}, // nobody was asked again
	)
	defer store.Close()
	x := extension(store)
	for _, tt := range []struct {
		query query.ListDecisions
		want  []string
	}{
		{query.ListDecisions{}, []string{
			"front : deny mine q3", "child tester: allow  ", "child tester: allow  q1 session [Bash(make)]",
			"grandchild helper: deny not now q2", "grandchild helper: deny not now ",
		}},
		{query.ListDecisions{Session: "grandchild", Limit: 1}, []string{"grandchild helper: deny not now "}},
		{query.ListDecisions{Session: "child", By: "user"}, []string{"child tester: allow  q1 session [Bash(make)]"}},
		{query.ListDecisions{By: "nobody"}, nil},
	} {
		answer, err := x.Answers()[0].Do(t.Context(), tt.query)
		if err != nil {
			t.Fatal(err)
		}
		list := answer.([]agent.DecisionRecord)
		var got []string
		for _, r := range list {
			line := fmt.Sprintf("%s %s: %s %s ", r.Session, r.Proposal.Agent, r.Decision.Verdict, r.Decision.Reason)
			if r.Answer != nil {
				if line += r.Answer.ID; r.Answer.Remember != "" {
					line += fmt.Sprintf(" %s %v", r.Answer.Remember, r.Answer.Rules)
				}
			}
			got = append(got, line)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v:\n%q, want\n%q", tt.query, got, tt.want)
		}
	}
}
