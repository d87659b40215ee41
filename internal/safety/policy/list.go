package policy

import (
	"cmp"
	"slices"

	"dure/agent"
)

// A Listed rule is one that the policy was given, with what became of it.
type Listed struct {
	Rule
	Off  bool   // it does not count
	Note string // why, or what is odd about it; "" = it counts as it stands
}

// Rules returns all rules, the granted ones too: those that deny before those that ask,
// and those before the ones that allow.
func (p *Policy) Rules() []Listed {
	s := p.state.Load()
	var list []Listed
	for _, r := range s.all(s.granted) {
		l := Listed{Rule: r}
		if r.Verdict == agent.Allow && s.ManagedOnly && r.Source.Layer != Managed {
			l.Off, l.Note = true, "managed settings let no rules count but their own"
		} else {
			l.Off, l.Note = s.became(r)
		}
		list = append(list, l)
	}
	rank := map[agent.Verdict]int{agent.Deny: 0, agent.AskUser: 1, agent.Allow: 2}
	slices.SortStableFunc(list, func(a, b Listed) int { return cmp.Compare(rank[a.Verdict], rank[b.Verdict]) })
	return list
}

// Check says what is wrong with a rule before it is given to a policy; "" = nothing.
// unknown: only its tool is not known now.
func (p *Policy) Check(r Rule) (wrong string, unknown bool) {
	_, w, err := p.state.Load().try(r)
	switch {
	case err != nil:
		return err.Error(), false
	case w != nil:
		return w.Text, w.Unknown
	}
	return "", false
}

// became says whether a rule counts, and what is odd about it.
func (s *state) became(r Rule) (off bool, note string) {
	ready, w, err := s.try(r)
	switch {
	case err != nil: // such a rule makes no policy
		return true, err.Error()
	case w != nil:
		note = w.Text
	case ready == nil:
		note = "it is for somebody else"
	}
	return ready == nil, note
}
