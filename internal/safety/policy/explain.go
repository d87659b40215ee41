package policy

import (
	"fmt"
	"strings"

	"dure/agent"
)

// Explanation is a decision in parts.
type Explanation struct {
	Decision agent.Decision `json:"decision"`
	Pieces   []Piece        `json:"pieces,omitempty"` // what the allow rules, the harmless set and the mode say
	Offers   []agent.Choice `json:"offers,omitempty"` // what would allow it from now on
}

// Piece is a part of a call that is allowed or not on its own.
type Piece struct {
	What    string        `json:"what"`
	Verdict agent.Verdict `json:"verdict"`
	By      string        `json:"by"` // rule, read-only or mode
	Rule    string        `json:"rule,omitempty"`
	Source  string        `json:"source,omitempty"`
}

// Explain takes a decision apart. The decision is told as it was made; its pieces
// are judged by the policy as it is, in what the decision says that it knew.
func (p *Policy) Explain(prop agent.Proposal, d agent.Decision) Explanation {
	s := p.state.Load()
	if d.Basis != nil {
		if old, err := s.in(d.Basis); err == nil {
			s = old
		}
	}
	_, pieces := s.explain(prop)
	return Explanation{Decision: d, Pieces: pieces, Offers: p.Suggest(prop)}
}

// explain decides, and says what became of each piece of the call.
func (s *state) explain(prop agent.Proposal) (agent.Decision, []Piece) {
	l := look{s: s, Proposal: prop}
	sum := l.weigh(true)
	pieces := make([]Piece, len(sum.pieces))
	for i, p := range sum.pieces {
		pieces[i] = Piece{What: "it " + p.what(), Verdict: p.verdict, By: p.by}
		if p.rule != nil {
			pieces[i].Rule, pieces[i].Source = p.rule.text, p.rule.source
		}
	}
	return s.decide(prop, agent.Decision{}), pieces
}

// String writes an explanation for a terminal, one line for each stage.
func (e Explanation) String() string {
	var b strings.Builder
	d := e.Decision
	fmt.Fprintf(&b, "%s by %s: %s\n", d.Verdict, d.By, d.Reason)
	for _, o := range d.Trace {
		fmt.Fprintf(&b, "  %-15s %-5s %s", o.Stage, word(o.Verdict), o.Reason)
		if o.Rule != "" && o.Source != "" {
			fmt.Fprintf(&b, " (%s)", o.Source)
		}
		b.WriteByte('\n')
	}
	for _, p := range e.Pieces {
		fmt.Fprintf(&b, "  %s: %s by %s", p.What, p.Verdict, p.By)
		if p.Rule != "" {
			fmt.Fprintf(&b, " %s", p.Rule)
		}
		b.WriteByte('\n')
	}
	if d.Flip != "" {
		fmt.Fprintf(&b, "otherwise: %s\n", d.Flip)
	}
	return b.String()
}

func word(v agent.Verdict) string {
	if v == agent.Pass {
		return "-"
	}
	return string(v)
}
