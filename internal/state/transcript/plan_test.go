package transcript_test

import (
	"testing"

	"dure/agent"
	"dure/internal/state/transcript"
)

func steps(texts ...string) (p agent.Plan) {
	for _, t := range texts {
		p.Steps = append(p.Steps, agent.PlanStep{Text: t})
	}
	return p
}

// What the fold knows of plans after a log: the newest with its steps and its state, how
// many were made anew before it, and the one that was agreed to.
func TestPlans(t *testing.T) {
	one := agent.PlanProposed{Plan: "p1", Text: "1. a", Body: steps("a")}
	two := agent.PlanProposed{Plan: "p2", Text: "1. b", Body: steps("b")}
	edit := agent.PlanChanged{Plan: "p1", Body: steps("A"), Do: agent.PlanEdit, Step: 1}
	decide := func(id string, v agent.PlanVerdict) agent.PlanDecided { return agent.PlanDecided{Plan: id, Verdict: v} }
	for name, tt := range map[string]struct {
		log            []agent.Body
		newest, agreed string
		again          int
	}{
		"proposed":              {log: []agent.Body{one}, newest: "p1 a "},
		"changed":               {log: []agent.Body{one, edit}, newest: "p1 A "},
		"approved":              {log: []agent.Body{one, edit, decide("p1", agent.PlanApproved)}, newest: "p1 A approved", agreed: "p1 A approved"},
		"made anew":             {log: []agent.Body{one, decide("p1", agent.PlanAnother), two}, newest: "p2 b ", again: 1},
		"a newer one waits":     {log: []agent.Body{one, decide("p1", agent.PlanApproved), two}, newest: "p2 b ", agreed: "p1 a approved"},
		"taken back":            {log: []agent.Body{one, decide("p1", agent.PlanApproved), decide("p1", agent.PlanRejected)}, newest: "p1 a rejected"},
		"of another":            {log: []agent.Body{two, edit, decide("p1", agent.PlanApproved)}, newest: "p2 b "},
		"rewound":               {log: []agent.Body{one, decide("p1", agent.PlanApproved), edit, two, agent.ConversationRewound{To: 2}}, newest: "p1 a approved", agreed: "p1 a approved"},
		"rewound to before all": {log: []agent.Body{agent.InputAdded{Input: "i", Text: "x"}, one, agent.ConversationRewound{To: 1}}},
	} {
		s := foldLog(transcript.New(), logOf(tt.log), 0)
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		if got := planIs(s.Plan); got != tt.newest {
			t.Errorf("%s: the newest is %q", name, got)
		}
		if got := planIs(s.Agreed); got != tt.agreed {
			t.Errorf("%s: agreed to is %q", name, got)
		}
		if s.Plan != nil && s.Plan.Again != tt.again {
			t.Errorf("%s: %d were made anew", name, s.Plan.Again)
		}
	}
}

func planIs(p *transcript.Plan) string {
	if p == nil {
		return ""
	}
	return p.ID + " " + p.Body.Steps[0].Text + " " + string(p.State)
}

// The mode that held before plan mode is known as long as plan mode lasts.
func TestModeBeforeThePlan(t *testing.T) {
	mode := func(m agent.Mode) agent.SettingsChanged { return agent.SettingsChanged{Mode: m} }
	s := fold(mode(agent.ModeAcceptEdits), mode(agent.ModePlan), mode(agent.ModePlan))
	if s.Before != agent.ModeAcceptEdits {
		t.Errorf("before it was %q", s.Before)
	}
}
