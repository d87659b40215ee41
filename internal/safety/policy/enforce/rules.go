package enforce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/safety/policy"
)

// scopes are those whose settings are written.
var scopes = []string{string(policy.User), string(policy.Project), string(policy.Local)}

// listRules returns the permission rules with where they stand, those too that do not
// count.
func (x *Extension) listRules(_ context.Context, q query.ListRules) (query.RuleReport, error) {
	d, err := x.Decider(q.Session)
	if err != nil {
		return query.RuleReport{}, err
	}
	r := query.RuleReport{Mode: d.Policy.Mode(), Rules: []query.RuleInfo{}}
	for _, l := range d.Policy.Rules() {
		r.Rules = append(r.Rules, ruleInfo(l))
	}
	r.Rules = append(r.Rules, x.cfg.Inert()...)
	return r, nil
}

func ruleInfo(l policy.Listed) query.RuleInfo {
	i := query.RuleInfo{
		Rule: l.Written(), Verdict: l.Verdict, Layer: string(l.Source.Layer), File: l.Source.File, Line: l.Source.Line, Column: l.Source.Column,
		Reason: l.Reason, Priority: l.Priority, Off: l.Off, Note: l.Note,
	}
	if l.Source.Layer == policy.Local && l.Source.File == "" {
		i.Layer = "granted"
	}
	if l.Source.Layer == policy.Session && l.Reason == switchedOff {
		i.Layer = "switched"
	}
	if l.Scope.Stage != "" && l.Scope.Stage != "global" {
		i.Scope = strings.TrimSuffix(l.Scope.Stage+":"+l.Scope.Subject, ":")
	}
	return i
}

// editRule adds a rule to the settings of a scope, or takes it out of them, and out of
// what was allowed for good in the folder.
func (x *Extension) editRule(ctx context.Context, e query.RuleEdit) (query.RuleEdited, error) {
	d, err := x.Decider(e.Session)
	if err != nil {
		return query.RuleEdited{}, err
	}
	e.Rule = strings.TrimSpace(e.Rule)
	if e.Verdict == agent.Pass {
		return x.removeRule(ctx, d, e)
	}
	wrong, unknown := d.Policy.Check(policy.Rule{Text: e.Rule, Verdict: e.Verdict})
	if wrong != "" && !unknown {
		return query.RuleEdited{}, &agent.Problem{
			Code: agent.ProblemUsage, Message: strings.TrimPrefix(wrong, "skipped: "), Fix: "write it as in Bash(go test *), Read(~/notes/**) or WebFetch(domain:example.com)",
		}
	}
	path, changed, err := x.cfg.Write(ctx, cmp.Or(e.Scope, "local"), "permissions."+string(e.Verdict), e.Rule, true)
	if err != nil {
		return query.RuleEdited{}, err
	}
	done := query.RuleEdited{Paths: []string{}, Note: wrong}
	if changed {
		done.Paths = append(done.Paths, path)
	}
	r, err := x.listRules(ctx, query.ListRules{Session: e.Session})
	for _, have := range r.Rules {
		if have.File != "" && have.Off && have.Rule == e.Rule && have.Verdict == e.Verdict && strings.HasPrefix(have.File, path) {
			done.Off, done.Note = true, have.Note
		}
	}
	return done, err
}

// removeRule takes a rule out of a scope, or with "" of all that may be written.
func (x *Extension) removeRule(ctx context.Context, d *Decider, e query.RuleEdit) (query.RuleEdited, error) {
	done := query.RuleEdited{Paths: []string{}}
	from := scopes
	if e.Scope != "" {
		from = []string{e.Scope}
	}
	for _, scope := range from {
		for _, list := range []agent.Verdict{agent.Allow, agent.AskUser, agent.Deny} {
			path, changed, err := x.cfg.Write(ctx, scope, "permissions."+string(list), e.Rule, false)
			if err != nil {
				return done, err
			}
			if changed && !slices.Contains(done.Paths, path) {
				done.Paths = append(done.Paths, path)
			}
		}
	}
	if e.Scope == "" || e.Scope == string(policy.Local) {
		path, err := x.cfg.Disallow(d.place.Dir, e.Rule)
		if err != nil {
			return done, err
		}
		if path != "" {
			done.Paths = append(done.Paths, path)
		}
		if _, err := d.Policy.Revoke([]string{e.Rule}, policy.Local); err != nil {
			return done, err
		}
	}
	r, err := x.listRules(ctx, query.ListRules{Session: e.Session})
	for _, have := range r.Rules {
		if have.Rule == e.Rule {
			done.Left = append(done.Left, cmp.Or(have.File, have.Layer))
		}
	}
	return done, err
}

// maxHostRules limits the rules that a host may add to a session.
const maxHostRules = 1000

// changeRules changes the rules of a session that is open, and of those that work for it: at
// once, and all of them or none. Rules that deny or ask are in force for as long as it is open,
// and with a scope they are written into the settings of that too; what others have written
// there is not for a host to take away. Of rules that allow, only those are taken away that
// were allowed for good.
func (x *Extension) changeRules(ctx context.Context, c query.RuleChange) (query.RuleEdited, error) {
	var done query.RuleEdited
	file := c.Scope != "" && c.Scope != string(policy.Session)
	if file && !slices.Contains(scopes, c.Scope) {
		return done, errors.New("rules can hold for session, user, project and local")
	}
	if file {
		if err := x.cfg.Writable(c.Scope); err != nil {
			return done, err
		}
	}
	if c.Verdict != agent.Allow && c.Verdict != agent.Deny && c.Verdict != agent.AskUser {
		return done, fmt.Errorf("there are no rules that say %q", c.Verdict)
	}
	d := x.Of(c.Session)
	if d == nil {
		return done, agent.NotOpen(c.Session)
	}
	if c.Verdict == agent.Allow {
		return done, x.disallow(ctx, d, c, file)
	}
	if err := d.restrictAll(c); err != nil || !file || c.Change == query.RulesRemoved {
		return done, err
	}
	for _, rule := range c.Rules {
		if _, err := x.editRule(ctx, query.RuleEdit{Session: c.Session, Rule: rule, Verdict: c.Verdict, Scope: c.Scope}); err != nil {
			return done, fmt.Errorf("%s holds for this session, and is not written: %w", rule, err)
		}
	}
	return done, nil
}

// disallow takes away what was allowed for good in the folder, and what a scope allows.
func (x *Extension) disallow(ctx context.Context, d *Decider, c query.RuleChange, file bool) error {
	if !file || c.Change != query.RulesRemoved {
		return errors.New("rules that allow are taken away here, where they were allowed for good")
	}
	for _, rule := range c.Rules {
		if _, _, err := x.cfg.Write(ctx, c.Scope, "permissions.allow", rule, false); err != nil {
			return err
		}
		if _, err := x.cfg.Disallow(d.place.Dir, rule); err != nil {
			return err
		}
	}
	_, err := d.Policy.Revoke(c.Rules, policy.Local)
	return err
}

// restrictAll restricts the session, and if it can be, all that work for it.
func (d *Decider) restrictAll(c query.RuleChange) error {
	var refused bool
	return d.family(func(one *Decider) error {
		if refused {
			return nil
		}
		err := one.restrict(c)
		refused = err != nil && one == d
		return err
	})
}

// restrict changes what the host forbids in a session. What cannot be read leaves all as it
// was.
func (d *Decider) restrict(c query.RuleChange) error {
	rule := func(text string) policy.Rule {
		return policy.Rule{Text: text, Verdict: c.Verdict, Source: policy.Source{Layer: policy.Session, Dir: d.place.Dir}}
	}
	for _, text := range c.Rules {
		if wrong, unknown := d.Policy.Check(rule(text)); wrong != "" && !unknown && c.Change != query.RulesRemoved {
			return fmt.Errorf("%q: %s", text, wrong)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(d.strict), func(r policy.Rule) bool {
		return r.Verdict == c.Verdict && (c.Change == query.RulesReplaced || slices.Contains(c.Rules, r.Text))
	})
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

// folderRule returns the rule by which a session may read what is below a folder.
func (x *Extension) folderRule(_ context.Context, q query.FolderRule) (string, error) {
	d := x.Of(q.Session)
	if d == nil {
		return "", agent.NotOpen(q.Session)
	}
	dir := q.Dir
	if strings.TrimSpace(dir) == "" || strings.ContainsRune(dir, 0) {
		return "", &agent.Problem{Code: agent.ProblemUsage, Message: "a folder has to have a path", Fix: "name the folder"}
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(d.place.Dir, dir)
	}
	return d.Policy.FolderRule(filepath.Clean(dir)), nil
}
