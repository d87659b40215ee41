package policy

import (
	"fmt"
	"slices"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// Lent is the layer of rules that hold for a while: as long as a skill does.
const Lent Layer = "skill"

// Leans reports whether a call is allowed, and would not be without the rules that are
// lent.
func (p *Policy) Leans(prop agent.Proposal) bool {
	s := p.state.Load()
	if !slices.ContainsFunc(s.granted, lentAllow) || s.decide(prop, agent.Decision{}).Verdict != agent.Allow {
		return false
	}
	without, err := s.bare()
	if err != nil {
		return true
	}
	now := *without
	now.Mode = s.Mode // which changes by itself
	return now.decide(prop, agent.Decision{}).Verdict != agent.Allow
}

func lentAllow(r Rule) bool { return r.Source.Layer == Lent && r.Verdict == agent.Allow }

// Lend puts rules in force that allow or deny something for a while, in place of those
// that were lent before: by none, all are taken back. A rule that cannot be read allows
// nothing; one that denies is then taken for the whole tool, as in settings. It returns
// warnings of rules that were not taken as they are. Where managed settings let no
// rules count but their own, nothing is allowed.
func (p *Policy) Lend(rules []plug.Rule) (warnings []string, err error) {
	for {
		old := p.state.Load()
		granted := slices.DeleteFunc(slices.Clone(old.granted), func(r Rule) bool { return r.Source.Layer == Lent })
		if len(rules) == 0 && len(granted) == len(old.granted) {
			return nil, nil
		}
		warnings = nil
		for _, lent := range rules {
			r := Rule{Text: lent.Text, Verdict: lent.Verdict, Reason: lent.Reason, Source: Source{Layer: Lent, Dir: old.Dir}}
			_, w, err := old.try(r)
			switch {
			case err != nil && r.Verdict == agent.Allow:
				warnings = append(warnings, Warning{Rule: r.Text, Source: r.Source, Text: err.Error()}.String())
				continue
			case err != nil:
				return warnings, fmt.Errorf("lending %q: %w", r.Text, err)
			case w != nil:
				warnings = append(warnings, w.String())
			}
			granted = append(granted, r)
		}
		s, err := compile(old.Config, granted)
		if err != nil {
			return warnings, fmt.Errorf("lending rules: %w", err)
		}
		if p.state.CompareAndSwap(old, s) {
			return warnings, nil
		}
	}
}
