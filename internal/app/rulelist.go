package app

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/safety/policy"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// deciderOf returns what decides on the calls of a session, or with "" on those of one in
// the working folder.
func (a *App) deciderOf(session string) (*decider, error) {
	if session != "" {
		t, err := a.typedIn(session)
		if err != nil {
			return nil, err
		}
		t.deciding.look()
		return t.deciding, nil
	}
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir, Extra: a.cfg.AddDirs})
	if err != nil {
		return nil, workspace.Problem(a.opts.Workdir, err)
	}
	cat := catalog.New(catalog.Config{Dialect: catalog.Dialect(a.cfg.Dialect)})
	return a.newDecider(cat, ws, a.opts.Workdir, "", a.cfg.Mode, nil, nil)
}

// listRules returns the permission rules with where they stand, those too that do not
// count.
func (a *App) listRules(q query.ListRules) (query.RuleReport, error) {
	d, err := a.deciderOf(q.Session)
	if err != nil {
		return query.RuleReport{}, err
	}
	r := query.RuleReport{Mode: d.pol.Mode(), Rules: []query.RuleInfo{}}
	for _, l := range d.pol.Rules() {
		r.Rules = append(r.Rules, ruleInfo(l))
	}
	cfg, _, _ := a.permissions.current()
	for _, i := range cfg.Inert {
		if verdict, ok := strings.CutPrefix(i.Key, "permissions."); ok && i.What != "" {
			r.Rules = append(r.Rules, inertRule(i, agent.Verdict(verdict)))
		}
	}
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

// inertRule is a rule of a file that is not in force.
func inertRule(i config.Inert, verdict agent.Verdict) query.RuleInfo {
	why := map[config.Reason]string{
		config.Untrusted: "the folder is not trusted", config.Foreign: "no repository may decide it", config.Locked: "the administrator leaves it to nobody else",
	}[i.Why]
	if !slices.Contains([]agent.Verdict{agent.Allow, agent.AskUser, agent.Deny}, verdict) {
		verdict = agent.Allow // in a list of rules of all kinds; only those that allow are left out
	}
	r := query.RuleInfo{Rule: i.What, Verdict: verdict, Layer: string(i.Origin.Layer), File: i.Origin.Where, Off: true, Note: cmp.Or(why, string(i.Why))}
	for _, to := range []*int{&r.Column, &r.Line} { // file:line:column
		at := strings.LastIndex(r.File, ":")
		n, err := strconv.Atoi(r.File[at+1:])
		if at <= 0 || err != nil {
			break
		}
		r.File, *to = r.File[:at], n
	}
	return r
}

// EditRule adds a rule to the settings of a scope, or takes it out of them, and out of
// what was allowed for good in the folder.
func (a *App) EditRule(ctx context.Context, e query.RuleEdit) (query.RuleEdited, error) {
	d, err := a.deciderOf(e.Session)
	if err != nil {
		return query.RuleEdited{}, err
	}
	e.Rule = strings.TrimSpace(e.Rule)
	if e.Verdict == agent.Pass {
		return a.removeRule(ctx, d, e)
	}
	wrong, unknown := d.pol.Check(policy.Rule{Text: e.Rule, Verdict: e.Verdict})
	if wrong != "" && !unknown {
		return query.RuleEdited{}, &agent.Problem{
			Code: agent.ProblemUsage, Message: strings.TrimPrefix(wrong, "skipped: "), Fix: "write it as in Bash(go test *), Read(~/notes/**) or WebFetch(domain:example.com)",
		}
	}
	c, err := a.SetSetting(ctx, cmp.Or(e.Scope, "local"), "permissions."+string(e.Verdict), e.Rule)
	if err != nil {
		return query.RuleEdited{}, err
	}
	done := query.RuleEdited{Paths: []string{}, Note: wrong}
	if !c.Same {
		done.Paths = append(done.Paths, c.Path)
	}
	r, err := a.listRules(query.ListRules{Session: e.Session})
	for _, have := range r.Rules {
		if have.File != "" && have.Off && have.Rule == e.Rule && have.Verdict == e.Verdict && strings.HasPrefix(have.File, c.Path) {
			done.Off, done.Note = true, have.Note
		}
	}
	return done, err
}

// removeRule takes a rule out of a scope, or with "" of all that may be written.
func (a *App) removeRule(ctx context.Context, d *decider, e query.RuleEdit) (query.RuleEdited, error) {
	done := query.RuleEdited{Paths: []string{}}
	scopes := SettingScopes()
	if e.Scope != "" {
		scopes = []string{e.Scope}
	}
	for _, scope := range scopes {
		for _, list := range []agent.Verdict{agent.Allow, agent.AskUser, agent.Deny} {
			c, err := a.UnsetSetting(ctx, scope, "permissions."+string(list), e.Rule)
			if err != nil {
				return done, err
			}
			if !c.Same && !slices.Contains(done.Paths, c.Path) {
				done.Paths = append(done.Paths, c.Path)
			}
		}
	}
	if e.Scope == "" || e.Scope == string(policy.Local) {
		store := a.grantStore()
		n, err := store.Remove(d.workdir, e.Rule)
		if err != nil {
			return done, err
		}
		if n > 0 {
			done.Paths = append(done.Paths, store.Dir)
		}
		if _, err := d.pol.Revoke([]string{e.Rule}, policy.Local); err != nil {
			return done, err
		}
	}
	r, err := a.listRules(query.ListRules{Session: e.Session})
	for _, have := range r.Rules {
		if have.Rule == e.Rule {
			done.Left = append(done.Left, cmp.Or(have.File, have.Layer))
		}
	}
	return done, err
}
