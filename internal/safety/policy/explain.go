package policy

import (
	"dure/agent"
	"dure/agent/query"
)

// Explain takes a decision apart. The decision is told as it was made; its pieces
// are judged by the policy as it is, in what the decision says that it knew.
func (p *Policy) Explain(prop agent.Proposal, d agent.Decision) query.Explanation {
	s := p.state.Load()
	if d.Basis != nil {
		if old, err := s.in(d.Basis); err == nil {
			s = old
		}
	}
	_, pieces := s.explain(prop)
	return query.Explanation{Decision: d, Pieces: pieces, Offers: p.Suggest(prop)}
}

// explain decides, and says what became of each piece of the call.
func (s *state) explain(prop agent.Proposal) (agent.Decision, []query.DecisionPiece) {
	l := look{s: s, Proposal: prop}
	sum := l.weigh(true)
	pieces := make([]query.DecisionPiece, len(sum.pieces))
	for i, p := range sum.pieces {
		pieces[i] = query.DecisionPiece{What: "it " + p.what(), Verdict: p.verdict, By: p.by}
		if p.rule != nil {
			pieces[i].Rule, pieces[i].Source = p.rule.text, p.rule.source
		}
	}
	return s.decide(prop, agent.Decision{}), pieces
}
