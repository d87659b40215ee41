package enforce

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
)

// Decider decides on the calls of one session. It is safe for concurrent use.
type Decider struct {
	Policy *policy.Policy
	Owned  bool // the session belongs to a user of a server

	x       *Extension
	place   Place
	session string
	parent  string // the session that this one works for

	// from decides in that session: what it has taken over of settings holds here, and
	// nothing else. nil = it works for none in this process.
	from *Decider
	look func() // takes over settings, unless somebody keeps them from the session

	record func(...agent.Body) error // into the log of the session

	granted []string // rules for the session and those that work for it; guarded by x.mu

	mu       sync.Mutex
	settings policy.Config // that are in force
	version  int
	off      []string      // tools and groups that are switched off for the session
	strict   []policy.Rule // of the host
}

// New returns the decider of a session without a parent.
func (x *Extension) New(place Place, session string, mode agent.Mode) (*Decider, error) {
	d := &Decider{x: x, place: place, session: session}
	return d, d.begin(mode)
}

// Open returns the decider of a session that is being opened.
func (x *Extension) Open(s *plug.Session, place Place, mode agent.Mode) (*Decider, error) {
	d := &Decider{x: x, place: place, session: s.ID, parent: s.Parent, from: x.Of(s.Parent), record: func(b ...agent.Body) error { return s.Record(b...) }}
	d.Owned = d.from != nil && d.from.Owned || x.owned(s)
	return d, d.begin(mode)
}

// begin puts in force what is decided by, in a mode.
func (d *Decider) begin(mode agent.Mode) error {
	d.settings, d.version = d.now()
	cfg := d.config()
	cfg.Mode = mode
	pol, err := policy.New(cfg)
	if err != nil {
		return agent.SettingsProblem("permissions", err)
	}
	d.Policy, d.look = pol, d.Refresh
	return d.allowed()
}

// now returns the settings of now, or what the session has taken over that this one works for.
func (d *Decider) now() (policy.Config, int) {
	if d.from == nil {
		return d.x.cfg.Settings()
	}
	d.from.mu.Lock()
	defer d.from.mu.Unlock()
	return d.from.settings, d.from.version
}

// Hold has settings wait for what somebody says of them, in a session that works for none:
// wait calls refresh once they may hold.
func (d *Decider) Hold(wait func(refresh func())) {
	if d.from == nil {
		d.look = func() { wait(d.Refresh) }
	}
}

// switchedOff is why a tool is denied that somebody has switched off.
const switchedOff = "it is switched off for this session"

func (d *Decider) config() policy.Config {
	c := d.place.By(d.settings)
	c.Rules = slices.Clip(c.Rules)
	for _, name := range d.off {
		c.Rules = append(c.Rules, policy.Rule{Text: name, Verdict: agent.Deny, Reason: switchedOff, Source: policy.Source{Layer: policy.Session}})
	}
	c.Rules = append(c.Rules, d.strict...)
	if !d.Owned {
		return c
	}
	for _, path := range d.x.cfg.Private {
		c.Rules = append(c.Rules, policy.Rule{ // users answer what their own sessions ask, and would be asked
			Text: "Read(/" + filepath.Base(path) + ")", Verdict: agent.Deny, Reason: "what is there belongs to all users of the server",
			Source: policy.Source{Layer: policy.Managed, Dir: filepath.Dir(path)},
		})
	}
	return c
}

// allowed puts in force what the user has allowed in this folder for good.
func (d *Decider) allowed() error {
	rules, err := d.x.cfg.Allowed(d.place.Dir)
	if err != nil {
		d.x.cfg.Logger.Warn("reading what was allowed", "folder", d.place.Dir, "error", err)
		return nil // nothing is granted then
	}
	for _, rule := range rules {
		if err := d.Policy.Grant([]string{rule}, policy.Local); err != nil {
			d.x.cfg.Logger.Warn("putting what was allowed in force", "rule", rule, "error", err)
		}
	}
	return nil
}

// Look takes over settings that have changed, unless somebody keeps them from the session.
func (d *Decider) Look() { d.look() }

// Refresh takes over settings that have changed. The mode stays the session's.
func (d *Decider) Refresh() {
	if d.from != nil {
		d.from.look()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	settings, version := d.now()
	if version == d.version {
		return
	}
	d.settings, d.version = settings, version
	if err := d.update(); err != nil {
		d.x.cfg.Logger.Warn("taking over settings", "error", err)
	}
}

// update puts in force what has changed. mu is held.
func (d *Decider) update() error {
	cfg := d.config()
	if cfg.Mode = d.Policy.Mode(); cfg.Mode == agent.ModeBypass && cfg.DisableBypass {
		cfg.Mode = agent.ModeDefault
	}
	return d.Policy.Update(cfg)
}

// Attach adds the policy to the gate of the session. Settings that have changed hold for each
// call that is decided on, and not only from the next turn.
func (d *Decider) Attach(_ context.Context, s *plug.Session) (plug.Points, error) {
	return plug.Points{
		Gate: plug.Gate{
			Rules: plug.Stage{Name: "policy.before", Decide: func(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
				d.look()
				if err := d.x.cfg.Ready(s); err != nil {
					return agent.Decision{}, err
				}
				return d.Policy.Before(p), nil
			}},
			Verdict: plug.Stage{Name: "policy.after", Decide: func(_ context.Context, p agent.Proposal, soFar agent.Decision) (agent.Decision, error) {
				return d.Policy.After(p, soFar), nil
			}},
			Parent: d.x.cfg.Parent(s),
		},
		Hooks: plug.Hooks{Spoken: d.Look}, // before the turn that was asked for
		Permissions: plug.Permissions{
			SetMode: d.SetMode, Grant: d.Grant, Revoke: d.Revoke,
			Offer: func(_ context.Context, p agent.Proposal, _ agent.Decision) ([]agent.Choice, string) {
				return d.Policy.Suggest(p), d.place.Preview(p.Call)
			},
		},
	}, nil
}

// Name returns the name of the extension.
func (d *Decider) Name() string { return d.x.Name() }

// Only returns stages that deny calls of tools of which an agent has only a part, but for that
// part and what is harmless anyway. parts are rules by tool.
func (d *Decider) Only(parts map[string][]string) ([]plug.Stage, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	cfg := d.config()
	cfg.Mode, cfg.Rules, cfg.ManagedOnly = agent.ModeDontAsk, nil, false
	for _, tool := range slices.Sorted(maps.Keys(parts)) {
		for _, rule := range parts[tool] {
			cfg.Rules = append(cfg.Rules, policy.Rule{Text: rule, Verdict: agent.Allow, Source: policy.Source{Layer: policy.Flags}})
		}
	}
	only, err := policy.New(cfg)
	if err != nil {
		return nil, agent.SettingsProblem("agents", err)
	}
	return []plug.Stage{{Name: "agent.tools", Decide: func(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
		rules, part := parts[p.Call.Tool]
		if !part || only.Decide(p).Verdict == agent.Allow {
			return agent.Decision{}, nil
		}
		return agent.Decision{Verdict: agent.Deny, Reason: "this agent has only " + strings.Join(rules, ", ")}, nil
	}}}, nil
}

// Switch switches a tool or a group off or on, and remembers it with the session.
func (d *Decider) Switch(name string, on bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	off := slices.DeleteFunc(slices.Clone(d.off), func(n string) bool { return n == name })
	if !on {
		off = append(off, name)
	}
	if len(off) != len(d.off) {
		if err := d.record(agent.ToolsSwitched{Tool: name, On: on}); err != nil {
			return err
		}
	}
	d.off = off
	return d.update()
}

// Withholds returns the rule by which a session has no call of a tool, whoever it works for
// says so.
func (d *Decider) Withholds(s agent.Spec) (by agent.Opinion, ok bool) {
	for ; d != nil; d = d.from {
		if by, ok = d.Policy.Withholds(s.Name, s.Group); ok {
			return by, true
		}
	}
	return by, false
}

// Gives reports whether the model has a tool at all, as far as rules say it.
func (d *Decider) Gives(s agent.Spec) bool {
	_, off := d.Withholds(s)
	return !off
}

// Join takes the session in, once it comes about: with what is switched off in it, and what
// was granted and forbidden in the session that it works for.
func (d *Decider) Join(off []string) error {
	d.mu.Lock()
	d.off = off
	var err error
	if len(off) > 0 {
		err = d.update()
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	d.x.mu.Lock()
	defer d.x.mu.Unlock()
	if up := d.x.open[d.parent]; up != nil {
		if d.granted = slices.Clone(up.granted); len(d.granted) > 0 {
			err = d.Policy.Grant(d.granted, policy.Session)
		}
		if err != nil {
			return fmt.Errorf("granting an agent what its session was granted: %w", err)
		}
		if err := d.inherit(up); err != nil {
			return fmt.Errorf("forbidding an agent what its session must not do: %w", err)
		}
	}
	d.x.open[d.session] = d
	return nil
}

// inherit takes over what the host has forbidden in the session that this one works for.
func (d *Decider) inherit(up *Decider) error {
	up.mu.Lock()
	rules := slices.Clone(up.strict)
	up.mu.Unlock()
	if len(rules) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.strict = rules
	return d.update()
}

// Leave takes the session out.
func (d *Decider) Leave() {
	d.x.mu.Lock()
	defer d.x.mu.Unlock()
	delete(d.x.open, d.session)
}

// family calls f for the session, if it is open, and then for all that work for it, and
// returns the first error.
func (d *Decider) family(f func(*Decider) error) (failed error) {
	d.x.mu.Lock()
	defer d.x.mu.Unlock()
	each := func(one *Decider) {
		if err := f(one); err != nil && failed == nil {
			failed = err
		}
	}
	if one := d.x.open[d.session]; one != nil {
		each(one)
	}
	d.x.below(d.session, each)
	return failed
}

// SetMode sets the mode of the session, which is no wider than that of the one that it works
// for. Those that work for it keep theirs where it is narrower.
func (d *Decider) SetMode(mode agent.Mode) error {
	d.x.mu.Lock()
	up := d.x.open[d.parent]
	if d.x.open[d.session] == nil {
		up = nil
	}
	d.x.mu.Unlock()
	if up != nil && mode.Wider(up.Policy.Mode()) {
		return fmt.Errorf("the session works for another one, and has no wider mode than that: %s is one", mode)
	}
	if err := d.Policy.SetMode(mode); err != nil {
		return err
	}
	return d.family(func(one *Decider) error {
		if one == d || !one.Policy.Mode().Wider(mode) {
			return nil
		}
		return one.Policy.SetMode(mode)
	})
}

// Grant has what the user allows hold, for the session and those that work for it, or in the
// folder for good.
func (d *Decider) Grant(remember string, rules []string) error {
	layer := policy.Session
	if remember == agent.RememberAlways {
		layer = policy.Local
	}
	if err := d.Policy.Grant(rules, layer); err != nil {
		return err
	}
	if remember == agent.RememberAlways {
		if err := d.x.cfg.Allow(d.place.Dir, d.session, rules); err != nil {
			return err
		}
	}
	return d.family(func(one *Decider) error {
		one.granted = append(one.granted, rules...)
		if one == d {
			return nil
		}
		return one.Policy.Grant(rules, policy.Session)
	})
}

// Revoke takes back what was allowed for the session, from those too that work for it.
func (d *Decider) Revoke(c agent.Revoke) error {
	_, failed := d.Policy.Revoke(c.Rules, policy.Session)
	err := d.family(func(one *Decider) error {
		one.granted = slices.DeleteFunc(slices.Clone(one.granted), func(r string) bool { return slices.Contains(c.Rules, r) })
		_, err := one.Policy.Revoke(c.Rules, policy.Session)
		return err
	})
	if failed == nil {
		failed = err
	}
	return failed
}
