package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
	"dure/internal/state/journal"
	"dure/internal/tools/catalog"
)

// members are the sessions that are open, as far as their children depend on them: a
// child has no tool that its parent has not, no wider mode, and what is allowed for the
// session of one holds for the other. It is safe for concurrent use.
type members struct {
	mu  sync.Mutex
	all map[string]*member // by session
}

type member struct {
	parent string
	name   string                // of its type; "" = it is of none
	has    func(agent.Spec) bool // its tools; nil = all
	gives  func(agent.Spec) bool // the tools that children may have; nil = all
	tell   func(ctx context.Context, id, text, by string) error
	d      *decider
	pol    *policy.Policy // of d
	rules  []string       // that were granted for the session
}

// join takes a session in, and gives it what was granted to its parent.
func (m *members) join(id string, one *member) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.all[one.parent]
	if p != nil && len(p.rules) > 0 {
		one.rules = slices.Clone(p.rules)
		if err := one.pol.Grant(one.rules, policy.Session); err != nil {
			return fmt.Errorf("granting an agent what its session was granted: %w", err)
		}
	}
	if p != nil {
		if err := one.d.heeded(p.d.restricted()); err != nil {
			return fmt.Errorf("forbidding an agent what its session must not do: %w", err)
		}
	}
	if m.all == nil {
		m.all = map[string]*member{}
	}
	m.all[id] = one
	return nil
}

// decider decides in an open session; nil = it is not open.
func (m *members) decider(id string) *decider {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[id]; one != nil {
		return one.d
	}
	return nil
}

// tell puts a text of another agent before the model of an open session, as a person would be
// shown it.
func (m *members) tell(shown func(string) string) func(ctx context.Context, session, id, text, by string) error {
	return func(ctx context.Context, session, id, text, by string) error {
		m.mu.Lock()
		one := m.all[session]
		m.mu.Unlock()
		if one == nil || one.tell == nil {
			return journal.ErrClosed
		}
		return one.tell(ctx, id, shown(text), by)
	}
}

func (m *members) leave(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, id)
}

// gives returns which tools the children of an open session may have; nil = all.
func (m *members) gives(id string) func(agent.Spec) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[id]; one != nil {
		return one.gives
	}
	return nil
}

// tools returns what can be told of the tools of an open session.
func (m *members) tools(id string) (toolsIn, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[id]; one != nil {
		return toolsIn{one.d.cat, one.has, one.d}, true
	}
	return toolsIn{}, false
}

// chain returns the types that a session and those that it works for are of, from the
// top.
func (m *members) chain(id string) (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for one := m.all[id]; one != nil; one = m.all[one.parent] {
		names = append(names, cmp.Or(one.name, "main"))
	}
	slices.Reverse(names)
	return names
}

// clamp returns a mode, or that of an open session if it is narrower.
func (m *members) clamp(id string, mode agent.Mode) agent.Mode {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[id]; one != nil && slices.Index(restraint, one.pol.Mode()) < slices.Index(restraint, mode) {
		return one.pol.Mode()
	}
	return mode
}

// wider reports whether a mode lets more happen unasked than that of the session which
// this one works for.
func (m *members) wider(id string, mode agent.Mode) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.all[id]
	if one == nil || m.all[one.parent] == nil {
		return false
	}
	return slices.Index(restraint, m.all[one.parent].pol.Mode()) < slices.Index(restraint, mode)
}

// below calls f for all that work for a session, each behind the one that it works for.
// mu is held.
func (m *members) below(id string, f func(*member)) {
	for _, child := range slices.Sorted(maps.Keys(m.all)) {
		if one := m.all[child]; one.parent == id {
			f(one)
			m.below(child, f)
		}
	}
}

// mode sets the mode of a session. Those that work for it keep theirs where it is
// narrower.
func (m *members) mode(id string, set func(agent.Mode) error) func(agent.Mode) error {
	return func(mode agent.Mode) error {
		if m.wider(id, mode) {
			return fmt.Errorf("the session works for another one, and has no wider mode than that: %s is one", mode)
		}
		if err := set(mode); err != nil {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		var failed error
		m.below(id, func(one *member) {
			if slices.Index(restraint, mode) < slices.Index(restraint, one.pol.Mode()) && failed == nil {
				failed = one.pol.SetMode(mode)
			}
		})
		return failed
	}
}

// grant makes what is allowed for a session hold for those that work for it.
func (m *members) grant(id string, grant func(string, []string) error) func(string, []string) error {
	return func(remember string, rules []string) error {
		if err := grant(remember, rules); err != nil {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		var failed error
		give := func(one *member) {
			one.rules = append(one.rules, rules...)
		}
		if one := m.all[id]; one != nil {
			give(one)
		}
		m.below(id, func(one *member) {
			give(one)
			if err := one.pol.Grant(rules, policy.Session); err != nil && failed == nil {
				failed = err
			}
		})
		return failed
	}
}

// revoke takes back what was allowed for a session, from those too that work for it.
func (m *members) revoke(id string, own *policy.Policy) func(agent.Revoke) error {
	return func(c agent.Revoke) error {
		rules := c.Rules
		_, failed := own.Revoke(rules, policy.Session)
		m.mu.Lock()
		defer m.mu.Unlock()
		take := func(one *member) {
			one.rules = slices.DeleteFunc(slices.Clone(one.rules), func(r string) bool { return slices.Contains(rules, r) })
			if _, err := one.pol.Revoke(rules, policy.Session); err != nil && failed == nil {
				failed = err
			}
		}
		if one := m.all[id]; one != nil {
			take(one)
		}
		m.below(id, take)
		return failed
	}
}

// toolsOf returns which tools a list of names means, nil = all; and those of which it
// has only a part, as in Bash(git diff *), with the rules for that.
func toolsOf(cat *catalog.Catalog, names []string) (has func(agent.Spec) bool, parts map[string][]string) {
	if len(names) == 0 {
		return nil, nil
	}
	wanted, prefixes := map[string]bool{}, []string{}
	whole := map[string]bool{}
	for _, entry := range names {
		name, _, part := strings.Cut(entry, "(")
		canonical, ok := cat.Canonical(name)
		if !ok {
			canonical = name
		}
		if server, ok := strings.CutPrefix(canonical, "mcp__"); ok && (!strings.Contains(server, "__") || strings.HasSuffix(server, "__*")) {
			prefixes = append(prefixes, "mcp__"+strings.TrimSuffix(server, "__*")+"__")
		}
		wanted[canonical] = true
		if part {
			if parts == nil {
				parts = map[string][]string{}
			}
			parts[canonical] = append(parts[canonical], entry)
		} else {
			whole[canonical] = true
		}
	}
	maps.DeleteFunc(parts, func(tool string, _ []string) bool { return whole[tool] })
	return func(s agent.Spec) bool {
		return wanted[s.Name] || wanted["group:"+s.Group] || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s.Name, p) })
	}, parts
}

// both is what two lists of tools have in common; nil = all.
func both(a, b func(agent.Spec) bool) func(agent.Spec) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(s agent.Spec) bool { return a(s) && b(s) }
}

// enlist takes a session in, and returns the stages of its gate that are its type's own.
func (a *App) enlist(b plug.Session, d *decider, who role) ([]plug.Stage, error) {
	stages, err := d.partsStage(who.parts)
	if err == nil {
		err = d.without(b)
	}
	if err != nil {
		return nil, err
	}
	return stages, a.members.join(b.ID, &member{parent: b.Parent, name: who.name, has: who.has, gives: who.gives, tell: b.Tell, d: d, pol: d.pol})
}

// partsStage denies calls of tools of which an agent has only a part, but for that part
// and what is harmless anyway.
func (d *decider) partsStage(parts map[string][]string) ([]plug.Stage, error) {
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
		return nil, settingsProblem("agents", err)
	}
	return []plug.Stage{{Name: "agent.tools", Decide: func(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
		rules, part := parts[p.Call.Tool]
		if !part || only.Decide(p).Verdict == agent.Allow {
			return agent.Decision{}, nil
		}
		return agent.Decision{Verdict: agent.Deny, Reason: "this agent has only " + strings.Join(rules, ", ")}, nil
	}}}, nil
}
