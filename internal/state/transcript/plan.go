package transcript

import "dure/agent"

// Plan is a plan as far as it has come.
type Plan struct {
	Seq   int64             `json:"seq"` // of the event that proposed it
	ID    string            `json:"id"`
	Call  string            `json:"call,omitempty"`
	Ask   string            `json:"ask,omitempty"` // the question about the call
	Text  string            `json:"text"`          // as the model wrote it
	Was   agent.Plan        `json:"was"`           // what was read out of that
	Body  agent.Plan        `json:"body"`          // what it is by now
	Edits int               `json:"edits,omitempty"`
	State agent.PlanVerdict `json:"state,omitempty"` // "" = it waits for a decision

	// Again is how many plans in front of this one were to be made anew, in a row.
	Again int `json:"again,omitempty"`
}

// moded takes over a permission mode, and keeps the one that held before plan mode.
func (s *State) moded(m agent.Mode) {
	if m == agent.ModePlan && s.Mode != agent.ModePlan {
		s.Before = s.Mode
	}
	s.Lapsed = s.Lapsed && m == ""
	s.Mode = or(m, s.Mode)
}

// planned folds what is said about plans. What is said about one that is not at hand any
// more changes nothing.
func (s *State) planned(e agent.Event) {
	s.Planned = e.Seq
	switch b := e.Body.(type) {
	case agent.PlanProposed:
		again := 0
		if s.Plan != nil && s.Plan.State == agent.PlanAnother {
			again = s.Plan.Again + 1
		}
		s.Plan = &Plan{Seq: e.Seq, ID: b.Plan, Call: b.Call, Ask: b.Ask, Text: b.Text, Was: b.Body, Body: b.Body, Again: again}
	case agent.PlanChanged:
		if p := s.Plan; p != nil && p.ID == b.Plan {
			next := *p // what was handed out stays as it is
			next.Body, next.Edits = b.Body, p.Edits+1
			s.Plan = &next
		}
	case agent.PlanDecided:
		if p := s.Plan; p != nil && p.ID == b.Plan {
			next := *p
			next.State = b.Verdict
			s.Plan = &next
			if b.Verdict == agent.PlanApproved {
				s.Agreed = &next
			}
		}
		if s.Agreed != nil && s.Agreed.ID == b.Plan && b.Verdict != agent.PlanApproved {
			s.Agreed = nil
		}
	}
}
