package app

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/near"
	"dure/internal/extend/mcp/servers"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// toolsIn is what can be told of the tools of a session.
type toolsIn struct {
	cat *catalog.Catalog
	has func(agent.Spec) bool // nil = all
	d   *decider
}

// toolsOfSession returns the tools of a session that is open, or with "" of one that would
// begin in the working folder, of the usual kind of work.
func (a *App) toolsOfSession(session string) (t toolsIn, err error) {
	if session != "" {
		if t, ok := a.members.tools(session); ok {
			t.d.look()
			return t, nil
		}
		return t, notOpen(session)
	}
	w, err := a.work(a.cfg.Profile)
	if err != nil {
		return t, err
	}
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir, Extra: a.cfg.AddDirs})
	if err != nil {
		return t, workspace.Problem(a.opts.Workdir, err)
	}
	if t.cat, t.has, err = a.offeredTools(ws, w); err != nil {
		return t, err
	}
	t.d, err = a.newDecider(t.cat, ws, a.opts.Workdir, "", a.cfg.Mode, nil, nil)
	return t, err
}

// listTools returns the tools of a session with how it stands with each.
func (a *App) listTools(q query.ListTools) (query.ToolReport, error) {
	t, err := a.toolsOfSession(q.Session)
	if err != nil {
		return query.ToolReport{}, err
	}
	if q.Tool != "" {
		_, means, err := t.means(q.Tool)
		if err != nil {
			return query.ToolReport{}, err
		}
		return t.report(means), nil
	}
	r := t.report(t.cat.List())
	for _, l := range t.cat.Refused() {
		r.Left = append(r.Left, query.ToolLeft{Name: l.Name, Source: string(l.Source), From: l.From, Why: l.Err.Error()})
	}
	return r, nil
}

// report is what is told of tools.
func (t toolsIn) report(list []catalog.Entry) query.ToolReport {
	r := query.ToolReport{Tools: []query.ToolInfo{}}
	step, states := t.cat.Step(both(t.has, t.d.gives)), map[string]string{}
	for _, s := range step.Specs() {
		states[s.Name] = "on"
	}
	for _, s := range step.Named() {
		states[s.Name] = "named"
	}
	for _, e := range list {
		i := query.ToolInfo{
			Name: e.Spec.Name, Shown: t.cat.Shown(e.Spec.Name), Description: e.Spec.Description, Input: e.Spec.Input, Group: e.Spec.Group,
			Class: cmp.Or(e.Spec.Class, agent.Unsafe), Risk: cmp.Or(e.Spec.Risk, agent.RiskMedium),
			Source: string(e.Source), From: e.From, State: cmp.Or(states[e.Spec.Name], "off"),
		}
		if e.Own != e.Spec.Name {
			i.Own, i.Before = e.Own, string(catalog.BuiltIn)
			if other, ok := t.cat.Get(e.Own); ok {
				i.Before = strings.TrimSpace(string(other.Source) + " " + other.From)
			}
		}
		if i.State == "off" {
			t.why(&i, e.Spec)
		}
		r.Tools = append(r.Tools, i)
	}
	return r
}

// why says why the model does not have a tool.
func (t toolsIn) why(i *query.ToolInfo, s agent.Spec) {
	by, withheld := t.d.withholds(s)
	switch {
	case withheld && by.Source == string(policy.Session):
		i.Why, i.Rule = "session", by.Rule
	case withheld:
		i.Why, i.Rule, i.At = "rule", by.Rule, by.Source
	case t.has != nil && !t.has(s):
		i.Why = "role"
	case s.Name == catalog.Search:
		i.Why = "none-named"
	default:
		i.Why = "useless"
	}
}

// switchTool takes tools from a session, or gives them back.
func (a *App) switchTool(q query.SwitchTool) (query.ToolReport, error) {
	t, err := a.toolsOfSession(q.Session)
	if err != nil {
		return query.ToolReport{}, err
	}
	name, means, err := t.means(q.Tool)
	if err != nil {
		return query.ToolReport{}, err
	}
	if err := t.d.switchTool(name, q.On); err != nil {
		return query.ToolReport{}, err
	}
	r := t.report(means)
	if q.On && len(r.Tools) == 1 && r.Tools[0].Why == "session" {
		return r, toolProblem(r.Tools[0].Shown, errors.New("its group is switched off"), "/tools enable "+r.Tools[0].Rule)
	}
	return r, nil
}

// means returns the tool, or those of the group, that a spelling means here.
func (t toolsIn) means(word string) (name string, means []catalog.Entry, err error) {
	name, ok := t.cat.Canonical(word)
	var names []string
	for _, e := range t.cat.List() {
		if !ok && strings.EqualFold(t.cat.Shown(e.Spec.Name), word) {
			name, ok = e.Spec.Name, true
		}
		names = append(names, t.cat.Shown(e.Spec.Name), e.Spec.Name)
	}
	if means = t.cat.Meant(name); len(means) > 0 {
		return name, means, nil
	}
	word = servers.Clip(word)
	fix := "dure tools list, or /tools in a session"
	if like := near.Nearest(word, names); like != "" {
		fix = "did you mean " + like + "?"
	}
	return "", nil, toolProblem(word, errors.New("there is no such tool"), fix)
}

// switchTool switches a tool or a group off or on, and remembers it with the session.
func (d *decider) switchTool(name string, on bool) error {
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

// without takes what is switched off in a session from it, and remembers there what will be.
func (d *decider) without(b plug.Session) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.record, d.off = b.Record, b.Off; len(d.off) == 0 {
		return nil
	}
	return d.update()
}

// withholds returns the rule by which a session has no call of a tool, whoever it works for
// says so.
func (d *decider) withholds(s agent.Spec) (by agent.Opinion, ok bool) {
	for ; d != nil; d = d.from {
		if by, ok = d.pol.Withholds(s.Name, s.Group); ok {
			return by, true
		}
	}
	return by, false
}

// gives reports whether the model has a tool at all, as far as rules say it.
func (d *decider) gives(s agent.Spec) bool {
	_, off := d.withholds(s)
	return !off
}

// refused says of a tool that is not offered which rule withholds it.
func (d *decider) refused(e *agent.ToolError, name string) *agent.ToolError {
	canonical, _ := d.cat.Canonical(name)
	tool, ok := d.cat.Get(canonical)
	if !ok || e.Code != agent.ErrNotInCatalog {
		return e
	}
	if by, ok := d.withholds(tool.Spec); ok {
		e.Message += ": " + by.Reason
	}
	return e
}

func toolProblem(name string, err error, fix string) *agent.Problem {
	return &agent.Problem{
		Code: agent.ProblemTool, Message: fmt.Sprintf("tool %s: %v", name, err), Fix: fix, Err: err,
		Args: map[string]string{"name": name, "error": err.Error(), "fix": fix},
	}
}
