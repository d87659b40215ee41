package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/safety/policy"
)

// maxHostRules bounds the rules that an embedding program may have hold for a session.
const maxHostRules = 1000

// errRuleScope is a place where no rules of the embedding program stand.
var errRuleScope = errors.New("rules can hold for session, user, project and local")

// switchedOff is why a tool is denied that somebody has switched off.
const switchedOff = "it is switched off for this session"

// ChangeRules changes the rules of a session that is open, and of those that work for it: at
// once, and all of them or none. Rules that deny or ask are held for as long as it is open, and
// with a scope they are written into the settings of that too; what others have written there is
// not for this to take away. Of rules that allow, only those are taken away that were allowed
// for good.
func (a *App) ChangeRules(ctx context.Context, session string, c query.RuleChange) error {
	file := c.Scope != "" && c.Scope != string(policy.Session)
	if file && !slices.Contains([]string{string(policy.User), string(policy.Project), string(policy.Local)}, c.Scope) {
		return errRuleScope
	}
	if file {
		if err := a.writes(c.Scope); err != nil {
			return err
		}
	}
	if c.Verdict == agent.Allow {
		return a.disallow(ctx, session, c, file)
	}
	if c.Verdict != agent.Deny && c.Verdict != agent.AskUser {
		return fmt.Errorf("there are no rules that say %q", c.Verdict)
	}
	if err := a.members.restrict(session, c); err != nil {
		return err
	}
	if !file || c.Change == query.RulesRemoved {
		return nil
	}
	for _, rule := range c.Rules {
		if _, err := a.EditRule(ctx, query.RuleEdit{Session: session, Rule: rule, Verdict: c.Verdict, Scope: c.Scope}); err != nil {
			return fmt.Errorf("%s holds for this session, and is not written: %w", rule, err)
		}
	}
	return nil
}

// writes reports why the embedding program cannot write settings of a scope: they do not count
// in this run.
func (a *App) writes(scope string) error {
	if only := a.settingsSource().Only; only != nil && !slices.Contains(only, config.Layer(scope)) {
		return fmt.Errorf("the settings of the scope %q do not count in this run", scope)
	}
	return nil
}

// SaveSetting writes a setting into the file of a scope, on behalf of the embedding program.
func (a *App) SaveSetting(ctx context.Context, scope, key, value string) error {
	if err := a.writes(scope); err != nil {
		return err
	}
	_, err := a.SetSetting(ctx, scope, key, value)
	return err
}

// Below is an error where a path is no folder below those that a session works in.
func (a *App) Below(session, path string) error {
	d := a.members.decider(session)
	if d == nil {
		return notOpen(session)
	}
	given, resolved, err := d.ws.Resolve(path)
	if err != nil {
		return err
	}
	if i, err := os.Stat(resolved); err != nil || !i.IsDir() {
		return fmt.Errorf("%s is no folder", given)
	}
	for _, dir := range append([]string{d.ws.Root()}, a.cfg.AddDirs...) {
		if _, root, err := d.ws.Resolve(dir); err == nil {
			dir = root
		}
		if dir = filepath.Clean(dir); dir != resolved && isWithin(dir, resolved) {
			return nil
		}
	}
	return fmt.Errorf("%s is not below the folders of this session", given)
}

// disallow takes away what was allowed for good in the folder, and what a scope allows.
func (a *App) disallow(ctx context.Context, session string, c query.RuleChange, file bool) error {
	d := a.members.decider(session)
	switch {
	case d == nil:
		return notOpen(session)
	case !file || c.Change != query.RulesRemoved:
		return errors.New("rules that allow are taken away here, where they were allowed for good")
	}
	for _, rule := range c.Rules {
		if _, err := a.UnsetSetting(ctx, c.Scope, "permissions.allow", rule); err != nil {
			return err
		}
		if _, err := a.grantStore().Remove(d.workdir, rule); err != nil {
			return err
		}
	}
	_, err := d.pol.Revoke(c.Rules, policy.Local)
	return err
}

// restrict has rules that deny or ask hold for a session and for those that work for it, or
// takes those away that were added so.
func (m *members) restrict(id string, c query.RuleChange) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.all[id]
	if one == nil {
		return notOpen(id)
	}
	if err := one.d.restrict(c); err != nil {
		return err
	}
	var failed error
	m.below(id, func(one *member) {
		if err := one.d.restrict(c); err != nil && failed == nil {
			failed = err
		}
	})
	return failed
}

// restrict changes what the embedding program forbids in a session. What cannot be read leaves
// all as it was.
func (d *decider) restrict(c query.RuleChange) error {
	var next []policy.Rule
	rule := func(text string) policy.Rule {
		return policy.Rule{Text: text, Verdict: c.Verdict, Source: policy.Source{Layer: policy.Session, Dir: d.workdir}}
	}
	for _, text := range c.Rules {
		if wrong, unknown := d.pol.Check(rule(text)); wrong != "" && !unknown && c.Change != query.RulesRemoved {
			return fmt.Errorf("%q: %s", text, wrong)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.strict {
		gone := r.Verdict == c.Verdict && (c.Change == query.RulesReplaced || slices.Contains(c.Rules, r.Text))
		if !gone {
			next = append(next, r)
		}
	}
	if c.Change != query.RulesRemoved {
		for _, text := range c.Rules {
			next = append(next, rule(text))
		}
	}
	if len(next) > maxHostRules {
		return fmt.Errorf("these are %d rules; %d are the most", len(next), maxHostRules)
	}
	was := d.strict
	d.strict = next
	err := d.update()
	if err != nil {
		d.strict = was
	}
	return err
}

// restricted are the rules that the embedding program has added to a session.
func (d *decider) restricted() []policy.Rule {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.strict)
}

// heeded takes over what the embedding program has forbidden where the session works.
func (d *decider) heeded(rules []policy.Rule) error {
	if len(rules) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.strict = rules
	return d.update()
}

// FolderRule is the rule by which a session may read what is below a folder.
func (a *App) FolderRule(session, dir string) (string, error) {
	d := a.members.decider(session)
	if d == nil {
		return "", notOpen(session)
	}
	if strings.TrimSpace(dir) == "" || strings.ContainsRune(dir, 0) {
		return "", errors.New("a folder has to have a path")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(d.workdir, dir)
	}
	return d.pol.FolderRule(filepath.Clean(dir)), nil
}
