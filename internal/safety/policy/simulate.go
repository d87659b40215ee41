package policy

import (
	"errors"
	"path"
	"strings"

	"dure/agent"
)

// A Flip is a recorded call that a policy would decide in another way.
type Flip struct {
	Decided agent.CallDecided
	Was     agent.Verdict // what the policy of then said, before a person did
	Now     agent.Decision
}

// Simulate decides recorded calls again, by the rules of c and with what the
// policy knew then: mode, folders, links, confinement. Hooks say what they said.
// Calls without that knowledge, such as those that a hook has denied, are only
// counted. The rules that decided flip nothing.
func Simulate(decided []agent.CallDecided, c Config) (flips []Flip, skipped int, err error) {
	s, err := compile(c, nil)
	if err != nil {
		return nil, 0, err
	}
	for _, old := range decided {
		if old.Decision.Basis == nil {
			skipped++
			continue
		}
		f, err := s.again(old)
		if err != nil {
			return nil, skipped, err
		}
		if f.Now.Verdict != f.Was {
			flips = append(flips, f)
		}
	}
	return flips, skipped, nil
}

// Again decides one recorded call again, as [Simulate] does, by the rules in force
// and what was granted. A call without what the policy knew then is an error.
func (p *Policy) Again(old agent.CallDecided) (Flip, error) {
	if old.Decision.Basis == nil {
		return Flip{}, errNoBasis
	}
	return p.state.Load().again(old)
}

var errNoBasis = errors.New("what the policy knew is not recorded")

func (s *state) again(old agent.CallDecided) (Flip, error) {
	then, err := s.in(old.Decision.Basis)
	if err != nil {
		return Flip{}, err
	}
	was, hook := recorded(old.Decision)
	return Flip{old, was, then.decide(old.Proposal, hook)}, nil
}

// recorded returns what the policy said in a recorded decision, and what was said
// between its halves.
func recorded(d agent.Decision) (was agent.Verdict, between agent.Decision) {
	for _, o := range d.Trace {
		if !own(o.Stage) && o.Verdict != agent.Pass {
			between = agent.Decision{Verdict: o.Verdict, Reason: o.Reason, By: o.Stage}
		}
	}
	switch d.By {
	case "policy", "rule", "floor", "confinement", "read-only", "mode":
		return d.Verdict, between
	}
	if between.Verdict != agent.Pass && between.By == d.By {
		return d.Verdict, between
	}
	return agent.AskUser, between // a person was asked, or nobody was there
}

// own reports whether a stage of a trace is one of the policy's.
func own(stage string) bool {
	switch stage {
	case "hard", "deny", "floors", "confinement", "ask", "allow", "read-only", "mode":
		return true
	}
	for _, name := range stageNames {
		if name == stage {
			return true
		}
	}
	return false
}

// in returns the rules of a policy in what another knew. Where links lead is
// asked of the record and not of the disk.
func (s *state) in(b *agent.Basis) (*state, error) {
	if err := checkMode(b.Mode); err != nil {
		return nil, err
	}
	c := s.Config
	c.Mode, c.Home, c.Confined = b.Mode, b.Home, func() string { return b.Confined }
	c.DisableBypass = false
	c.Dir, c.Extra = "", nil
	links := map[string]string{}
	for i := 0; i+1 < len(b.Roots); i += 2 {
		if links[b.Roots[i]] = b.Roots[i+1]; i == 0 {
			c.Dir = b.Roots[0]
		} else {
			c.Extra = append(c.Extra, b.Roots[i])
		}
	}
	for from, to := range b.Links {
		links[from] = to
	}
	c.Resolve = func(p string) (string, string, error) {
		to, ok := links[p]
		switch {
		case !ok:
			return p, p, nil
		case to == "":
			return "", "", errNotResolved
		}
		return cleaned(p), to, nil
	}
	roots := make([]string, len(b.Roots))
	for i, r := range b.Roots {
		roots[i] = s.keyed(slashed(r))
	}
	c.Inside = func(p string) bool {
		p = s.keyed(slashed(p))
		for _, r := range roots {
			if p == r || strings.HasPrefix(p, strings.TrimSuffix(r, "/")+"/") {
				return true
			}
		}
		return false
	}
	return compile(c, s.granted)
}

var errNotResolved = errors.New("it was not resolved when the call was decided")

// cleaned cleans a path of any system.
func cleaned(p string) string {
	if slashed(p) != p {
		return p
	}
	return path.Clean(p)
}
