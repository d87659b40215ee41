// Package policy decides on proposed calls, from rules, a mode and what neither of
// them lowers, and says which stage decided, by which rule, and what would have
// changed it.
//
// It owns the language of rules, the order in which they act, the grants of the
// user and the policy files. It is pure: paths are resolved and names are
// understood by functions that it is given, and what it is not told it takes for
// the worst. [Policy.Before] comes before hooks and has the last word on denials;
// [Policy.After] comes after them and always decides. It runs nothing, reads no
// file and starts no goroutines.
package policy

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"dure/agent"
)

// Config configures a [Policy]. Its functions are called while deciding, from any
// goroutine.
type Config struct {
	Mode agent.Mode // "" = default

	// Allow, Ask and Deny are rules without a source; Rules are those with one. The
	// order of rules never matters.
	Allow, Ask, Deny []string
	Rules            []Rule

	// Canonical understands every spelling of a tool's name; nil understands the
	// names that people know and the canonical ones. Shown is the name under which
	// rules are written back; nil has the names that people know.
	Canonical func(name string) (string, bool)
	Shown     func(canonical string) string

	// Resolve returns an absolute path cleaned and with its links resolved. nil,
	// like an error, puts the path outside of the workspace.
	Resolve func(path string) (given, resolved string, err error)

	// Inside reports whether a path lies in the workspace. nil means that no
	// path does.
	Inside func(path string) bool

	// Own reports whether a file is a tool's own: one that the program keeps for it, in
	// a form of its own. For calls of that tool it is no protected path, and counts as
	// inside of the workspace. tool is canonical, path as Resolve returns it: what it
	// returns has to be the tool's own with links resolved, too. nil = there are none.
	Own func(tool, path string) bool

	// Key is the form in which two names of one file are equal under the rules of
	// the file system. nil compares as it is written.
	Key func(path string) string

	// Settings are paths at which settings and programs of the user stand in the workspace:
	// they, and what is below them, are protected paths. Absolute.
	Settings []string

	Dir   string   // the workspace, which is the current folder too; absolute
	Extra []string // further folders that count as inside; absolute
	Home  string   // absolute; "" = nobody's

	// SafeVars are leading assignments that an allow rule matches past, beside
	// NODE_ENV, NO_COLOR and LANG.
	SafeVars []string

	// PowerShell: what command lines are read by.
	PowerShell bool

	// Confined says how far running commands are confined: full, reduced or none.
	// With none, or a word that nobody knows, every command asks. nil = full.
	Confined func() string

	// ManagedOnly ignores allow rules of other layers than [Managed], also granted
	// ones. DisableBypass refuses mode bypassPermissions.
	ManagedOnly   bool
	DisableBypass bool

	// Groups are verdicts of groups of tools as a whole, in place of the built-in
	// ones. They are reported and decide nothing.
	Groups map[string]agent.Verdict

	// User and Channel are who asks, for rules with such a scope.
	User, Channel string
}

// Policy is safe for concurrent use. A decision sees one state of it, whole.
type Policy struct{ state atomic.Pointer[state] }

// New returns a policy. A rule that cannot be honoured is handled as
// [Policy.Warnings] says; one against a tool that cannot be told is an error.
func New(c Config) (*Policy, error) {
	p := &Policy{}
	return p, p.Update(c)
}

// Update replaces everything but what was granted. On an error it changes nothing.
func (p *Policy) Update(c Config) error {
	for {
		old := p.state.Load()
		var granted []Rule
		if old != nil {
			granted = old.granted
		}
		s, err := compile(c, granted)
		if err != nil {
			return err
		}
		if p.state.CompareAndSwap(old, s) {
			return nil
		}
	}
}

// errManaged is a grant that managed settings do not let count.
var errManaged = errors.New("granting a rule: managed settings let no rules count but their own")

// Grant adds allow rules that the user has agreed to, in the given layer. It takes
// all of them or none, and they stay when the policy is updated.
func (p *Policy) Grant(rules []string, layer Layer) error {
	for {
		old := p.state.Load()
		s, err := old.with(rules, layer)
		if err != nil {
			return err
		}
		if p.state.CompareAndSwap(old, s) {
			return nil
		}
	}
}

// Revoke takes rules back that were granted in a layer, and returns how many there were.
func (p *Policy) Revoke(rules []string, layer Layer) (int, error) {
	for {
		old := p.state.Load()
		kept := slices.DeleteFunc(slices.Clone(old.granted), func(r Rule) bool {
			return r.Source.Layer == layer && slices.Contains(rules, r.Text)
		})
		n := len(old.granted) - len(kept)
		if n == 0 {
			return 0, nil
		}
		s, err := compile(old.Config, kept)
		if err != nil {
			return 0, fmt.Errorf("taking rules back: %w", err)
		}
		if p.state.CompareAndSwap(old, s) {
			return n, nil
		}
	}
}

// Grantable returns why [Policy.Grant] would refuse rules; nil = it would not.
func (p *Policy) Grantable(rules []string, remember string) error {
	layer := Session
	if remember == agent.RememberAlways {
		layer = Local
	}
	_, err := p.state.Load().with(rules, layer)
	return err
}

// with is the state with more rules granted.
func (s *state) with(rules []string, layer Layer) (*state, error) {
	if s.ManagedOnly && layer != Managed {
		return nil, errManaged
	}
	granted := slices.Clip(s.granted)
	for _, text := range rules {
		r := Rule{Text: text, Verdict: agent.Allow, Source: Source{Layer: layer, Dir: s.Dir}}
		switch _, w, err := s.try(r); {
		case err != nil:
			return nil, fmt.Errorf("granting %q: %w", text, err)
		case w != nil && !w.Unknown:
			return nil, fmt.Errorf("granting %q: %s", text, w.Text)
		}
		if !slices.ContainsFunc(granted, func(g Rule) bool { return g.Text == r.Text && g.Source == r.Source }) {
			granted = append(granted, r)
		}
	}
	next, err := compile(s.Config, granted)
	if err != nil {
		return nil, fmt.Errorf("granting: %w", err)
	}
	return next, nil
}

// SetMode changes the mode from the next decision on.
func (p *Policy) SetMode(m agent.Mode) error {
	if err := checkMode(m); err != nil {
		return err
	}
	for {
		old := p.state.Load()
		if m == agent.ModeBypass && old.DisableBypass {
			return errBypass
		}
		s := *old
		s.Mode = m
		if p.state.CompareAndSwap(old, &s) {
			return nil
		}
	}
}

var errBypass = errors.New("mode bypassPermissions is disabled by managed settings")

// Mode returns the current mode.
func (p *Policy) Mode() agent.Mode { return p.state.Load().Mode }

// Hash names the rules of the policy, the granted ones too.
func (p *Policy) Hash() string { return p.state.Load().hash }

// Warnings says what became of rules that could not be taken as they stand.
func (p *Policy) Warnings() []Warning { return p.state.Load().warnings }

// DeniesRead reports whether deny rules keep a path from being read, for tools that
// find paths only while they run.
func (p *Policy) DeniesRead(path string) bool {
	return p.state.Load().denies(agent.Effects{Reads: []string{path}})
}

// DeniesEdit reports whether deny rules keep a path from being changed.
func (p *Policy) DeniesEdit(path string) bool {
	return p.state.Load().denies(agent.Effects{Writes: []string{path}})
}

func (s *state) denies(e agent.Effects) bool {
	if len(s.deny.paths) == 0 {
		return false
	}
	l := look{s: s, Proposal: agent.Proposal{Effects: e}}
	s.deny.places(&l, &l.words)
	return l.words.sole != nil
}

// Withholds returns the rule that denies every call of a tool, whatever its input: a model
// that has the tool could do nothing with it. A rule that stands in for one that cannot be
// read withholds nothing: its reason is for the model to read, until somebody mends it.
func (p *Policy) Withholds(tool, group string) (by agent.Opinion, ok bool) {
	s := p.state.Load()
	if s.deny.count == 0 {
		return by, false
	}
	l := look{s: s, Proposal: agent.Proposal{Call: agent.Call{Tool: tool}, Group: group}}
	var w words
	s.deny.whole(&l, &w)
	r := w.strictest()
	if r == nil || r.broken {
		return by, false
	}
	return r.opinion(""), true
}

// DeniedPaths returns the absolute paths, in the form of [Config.Key] with slashes,
// that deny rules name without a wildcard, each with all that is below it: those
// that are not to be read, and those that are not to be changed, which has the
// former too.
func (p *Policy) DeniedPaths() (reads, edits []string) {
	for _, r := range p.state.Load().deny.paths {
		for _, at := range r.path.named() {
			if edits = append(edits, at); r.about == aboutRead {
				reads = append(reads, at)
			}
		}
	}
	return reads, edits
}

// Unknown returns the rules whose tool nobody knows now. They take effect if
// such a tool appears.
func (p *Policy) Unknown() []string {
	var texts []string
	for _, w := range p.state.Load().warnings {
		if w.Unknown {
			texts = append(texts, w.Rule)
		}
	}
	return texts
}

func checkMode(m agent.Mode) error {
	if _, ok := modeRow(rowCommand, m); !ok {
		return fmt.Errorf("unknown permission mode %q", m)
	}
	return nil
}

// Before denies what no hook and no mode may allow: what the hard denials name,
// and what a deny rule matches. Otherwise it passes.
func (p *Policy) Before(prop agent.Proposal) agent.Decision {
	return p.state.Load().before(prop)
}

// After decides what is left when the stages before it have said soFar. A denial
// of theirs stands; what they ask or allow counts between the ask rules and the
// allow rules. The trace has this method's stages only.
func (p *Policy) After(prop agent.Proposal, soFar agent.Decision) agent.Decision {
	s := p.state.Load()
	return s.after(&look{s: s, Proposal: prop}, soFar, make([]agent.Opinion, 0, afterStages))
}

// Decide is what both halves say together when nobody stands between them.
func (p *Policy) Decide(prop agent.Proposal) agent.Decision {
	return p.state.Load().decide(prop, agent.Decision{})
}

func (s *state) decide(prop agent.Proposal, soFar agent.Decision) agent.Decision {
	l := look{s: s, Proposal: prop}
	b := s.refuse(&l, make([]agent.Opinion, 0, beforeStages+afterStages))
	if b.Verdict != agent.Pass {
		return b
	}
	l.words = words{}
	d := s.after(&l, soFar, b.Trace[len(b.Trace):])
	d.Trace = append(b.Trace, d.Trace...) // which is where it stands already
	return d
}

// How many opinions either half has.
const (
	beforeStages = 2
	afterStages  = 6 + len(stageNames)
)

func (s *state) before(prop agent.Proposal) agent.Decision {
	return s.refuse(&look{s: s, Proposal: prop}, make([]agent.Opinion, 0, beforeStages))
}

// refuse and after add what they have to say to a trace that is empty.
func (s *state) refuse(l *look, room []agent.Opinion) agent.Decision {
	t := trace{opinions: room}
	t.add(opinion("hard", agent.Deny, forbidden(l.Proposal)), "policy")
	s.deny.collect(l, &l.words)
	t.add(l.words.opinion("deny"), "rule")
	d := t.decision()
	if d.Verdict == agent.Deny {
		denied := without(&l.words)
		s.ask.collect(l, &l.words)
		d.Trace = s.appendStages(d.Trace, l)
		d.Flip, d.Basis = denied, l.basis()
	}
	return d
}

func (s *state) after(l *look, soFar agent.Decision, room []agent.Opinion) agent.Decision {
	if soFar.Verdict == agent.Deny {
		return agent.Decision{Verdict: agent.Deny, Reason: soFar.Reason, By: soFar.By, Stop: soFar.Stop}
	}
	l.gather()
	t := trace{opinions: room}
	t.add(opinion("floors", agent.AskUser, l.floor()), "floor")
	t.add(opinion("confinement", agent.AskUser, l.unconfined()), "confinement")
	s.ask.collect(l, &l.words)
	t.add(l.words.opinion("ask"), "rule")
	asked := l.words
	t.settle(soFar)
	sum := l.weigh(false)
	t.add(sum.allow(), "rule")
	t.add(sum.readOnly(), "read-only")
	t.add(sum.mode(s.Mode), "mode")
	t.opinions = s.appendStages(t.opinions, l)
	d := t.decision()
	if d.Verdict == agent.AskUser {
		d.Flip = l.flip(d, &asked, sum)
		if s.Mode == agent.ModeDontAsk {
			d.Verdict, d.By = agent.Deny, "mode"
			d.Reason += " (mode dontAsk: nobody is asked)"
		}
	} else if d.Verdict == agent.Deny {
		d.Flip = l.flip(d, &asked, sum)
	}
	d.Basis = l.basis()
	return d
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
		t.decided = agent.Decision{Verdict: o.Verdict, Reason: o.Reason, By: by, Rule: o.Rule}
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
