// Package policy decides on proposed calls from rules and a mode, and says which
// stage decided and why.
//
// It is pure: paths are resolved and names are understood by functions that it
// is given. What it is not told it takes for the worst. [Policy.Before] comes
// before hooks and has the last word on denials; [Policy.After] comes after them
// and always decides. It starts no goroutines.
package policy

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"dure/agent"
)

// Config configures a [Policy].
type Config struct {
	Mode agent.Mode // "" = default

	// Rules on whole tools, see parseRule. A deny anywhere beats an ask, and an
	// ask beats an allow.
	Allow, Ask, Deny []string

	// Canonical understands every spelling of a tool's name. nil understands
	// none but the canonical one.
	Canonical func(name string) (string, bool)

	// Resolve returns an absolute path cleaned and with its links resolved. nil,
	// like an error, puts the path outside of the workspace.
	Resolve func(path string) (given, resolved string, err error)

	// Inside reports whether a path lies in the workspace. nil means that no
	// path does.
	Inside func(path string) bool
}

// Policy is safe for concurrent use. A decision sees one state of it, whole.
type Policy struct{ state atomic.Pointer[state] }

// state never changes.
type state struct {
	Config
	allow, ask, deny []rule
}

// New returns a policy, or an error for the first rule that it cannot honour.
func New(c Config) (*Policy, error) {
	p := &Policy{}
	return p, p.Update(c)
}

// Update replaces everything. On an error it changes nothing.
func (p *Policy) Update(c Config) error {
	if c.Mode == "" {
		c.Mode = agent.ModeDefault
	}
	if err := checkMode(c.Mode); err != nil {
		return err
	}
	s := &state{Config: c}
	for _, list := range []struct {
		name  string
		texts []string
		rules *[]rule
	}{{"allow", c.Allow, &s.allow}, {"ask", c.Ask, &s.ask}, {"deny", c.Deny, &s.deny}} {
		for _, text := range list.texts {
			r, err := parseRule(text, list.name == "allow", c.Canonical)
			if err != nil {
				return fmt.Errorf("reading %s rule %q: %w", list.name, text, err)
			}
			*list.rules = append(*list.rules, r)
		}
	}
	p.state.Store(s)
	return nil
}

// SetMode changes the mode from the next decision on.
func (p *Policy) SetMode(m agent.Mode) error {
	if err := checkMode(m); err != nil {
		return err
	}
	for {
		old := p.state.Load()
		s := *old
		s.Mode = m
		if p.state.CompareAndSwap(old, &s) {
			return nil
		}
	}
}

// Mode returns the current mode.
func (p *Policy) Mode() agent.Mode { return p.state.Load().Mode }

// Unknown returns the rules whose tool nobody knows now. They take effect if
// such a tool appears.
func (p *Policy) Unknown() []string {
	s := p.state.Load()
	var texts []string
	for _, r := range slices.Concat(s.deny, s.ask, s.allow) {
		if r.unknown {
			texts = append(texts, r.text)
		}
	}
	return texts
}

func checkMode(m agent.Mode) error {
	if _, ok := table[rowCommand][m]; !ok {
		return fmt.Errorf("unknown permission mode %q", m)
	}
	return nil
}

// Before denies what no hook and no mode may allow: what the hard denials name,
// and what a deny rule matches. Otherwise it passes.
func (p *Policy) Before(prop agent.Proposal) agent.Decision {
	s := p.state.Load()
	var t trace
	t.add(opinion("hard", agent.Deny, forbidden(prop)), "policy")
	t.add(s.match("deny", agent.Deny, s.deny, prop), "rule")
	return t.decision()
}

// After decides what is left when the stages before it have said soFar. A denial
// of theirs stands; what they ask or allow counts between the ask rules and the
// allow rules. The trace has this method's stages only.
func (p *Policy) After(prop agent.Proposal, soFar agent.Decision) agent.Decision {
	if soFar.Verdict == agent.Deny {
		return agent.Decision{Verdict: agent.Deny, Reason: soFar.Reason, By: soFar.By, Stop: soFar.Stop}
	}
	s := p.state.Load()
	l := s.look(prop)
	var t trace
	t.add(l.floor(s.Mode), "floor")
	t.add(s.match("ask", agent.AskUser, s.ask, prop), "rule")
	t.settle(soFar)
	t.add(s.allowed(l), "rule")
	t.add(opinion("read-only", agent.Allow, l.harmless()), "read-only")
	t.add(l.mode(s.Mode), "mode")
	d := t.decision()
	if d.Verdict == agent.AskUser && s.Mode == agent.ModeDontAsk {
		d.Verdict, d.By = agent.Deny, "mode"
		d.Reason += " (mode dontAsk: nobody is asked)"
	}
	return d
}

// forbidden is the place of the hard denials. What it says holds in every mode.
func forbidden(p agent.Proposal) string {
	e := p.Effects
	for _, list := range append([][]string{e.Reads, e.Writes, e.Hosts}, e.Runs...) {
		for _, s := range list {
			if strings.ContainsRune(s, 0) {
				return "what the call would touch contains a NUL character"
			}
		}
	}
	return ""
}

func (s *state) match(stage string, v agent.Verdict, rules []rule, p agent.Proposal) agent.Opinion {
	for _, r := range rules {
		if r.matches(p, s.Canonical) {
			return agent.Opinion{Stage: stage, Verdict: v, Reason: fmt.Sprintf("%s rule %s", stage, r.text), Source: r.text}
		}
	}
	return agent.Opinion{Stage: stage}
}

// allowed asks the allow rules. They never allow what cannot be told.
func (s *state) allowed(l look) agent.Opinion {
	o := s.match("allow", agent.Allow, s.allow, l.Proposal)
	if o.Verdict == agent.Allow && l.Effects.Unreadable != "" {
		return agent.Opinion{Stage: "allow", Reason: "no rule allows what cannot be read: " + l.Effects.Unreadable, Source: o.Source}
	}
	return o
}

// opinion has the verdict if there is a reason for it.
func opinion(stage string, v agent.Verdict, reason string) agent.Opinion {
	if reason == "" {
		return agent.Opinion{Stage: stage}
	}
	return agent.Opinion{Stage: stage, Verdict: v, Reason: reason}
}

// trace collects what all stages say. The first opinion decides.
type trace struct {
	decided  agent.Decision
	opinions []agent.Opinion
}

func (t *trace) add(o agent.Opinion, by string) {
	t.opinions = append(t.opinions, o)
	if t.decided.Verdict == agent.Pass && o.Verdict != agent.Pass {
		t.decided = agent.Decision{Verdict: o.Verdict, Reason: o.Reason, By: by}
	}
}

// settle takes over what was decided elsewhere, unless something is decided.
func (t *trace) settle(d agent.Decision) {
	if t.decided.Verdict == agent.Pass && d.Verdict != agent.Pass {
		t.decided = agent.Decision{Verdict: d.Verdict, Reason: d.Reason, By: d.By}
	}
}

func (t *trace) decision() agent.Decision {
	d := t.decided
	d.Trace = t.opinions
	return d
}
