package cli

import (
	"strings"
	"testing"
	"time"

	"dure/agent"
)

// What became of plans is told among the decisions, in both languages and for spreadsheets.
func TestAuditShowsPlans(t *testing.T) {
	body := agent.Plan{Steps: []agent.PlanStep{{Text: "=look"}, {Text: "do"}}}
	record := func(seq int64, p agent.PlanRecord, d agent.Decision) agent.DecisionRecord {
		r := agent.DecisionRecord{Session: "s", Seq: seq, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Plan: &p}
		r.Proposal.Call.Tool, r.Decision = planTool, d
		return r
	}
	f := newFake()
	f.answers = map[string]any{"decisions": []agent.DecisionRecord{
		record(1, agent.PlanRecord{ID: "p", What: "proposed", Body: &body}, agent.Decision{}),
		record(2, agent.PlanRecord{ID: "p", What: agent.PlanMove, Step: 2, To: 1, Body: &body}, agent.Decision{By: "user"}),
		record(3, agent.PlanRecord{ID: "p", What: string(agent.PlanAnother)}, agent.Decision{Verdict: agent.Deny, By: "user", Reason: "too\nshort"}),
	}}
	for _, tt := range []struct {
		lang   string
		format AuditFormat
		want   []string
	}{
		{"en", AuditText, []string{"proposed", "a plan, 2 steps", "changed", "step 2 is step 1 now", "another", "too short"}},
		{"ko", AuditText, []string{"제안", "계획, 2단계", "변경", "2단계를 1단계로", "다시", "too short"}},
		{"en", AuditCSV, []string{"1. =look\n2. do", "proposed,,", "changed,user", "regenerate,user"}},
	} {
		c, out := lister(f, tt.lang)
		if err := c.Audit(t.Context(), AuditOptions{Format: tt.format}); err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s, %s: %q is missing:\n%s", tt.lang, tt.format, want, out)
			}
		}
	}
}
