package app

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/near"
	"dure/internal/extend/mcp/servers"
	"dure/internal/safety/policy"
	"dure/internal/safety/policy/enforce"
	"dure/internal/tools/catalog"
)

// toolsIn is what can be told of the tools of a session.
type toolsIn struct {
	cat *catalog.Catalog
	has func(agent.Spec) bool // nil = all
	d   *enforce.Decider
}

// toolsOfSession returns the tools of a session that is open, or with "" of one that would
// begin in the working folder, of the usual kind of work.
func (a *App) toolsOfSession(session string) (t toolsIn, err error) {
	if session != "" {
		if t, ok := a.members.tools(session); ok {
			t.d.Look()
			return t, nil
		}
		return t, agent.NotOpen(session)
	}
	w, err := a.work(a.cfg.Profile)
	if err != nil {
		return t, err
	}
	ws, err := a.workspace()
	if err != nil {
		return t, err
	}
	if t.cat, t.has, err = a.offeredTools(ws, w); err != nil {
		return t, err
	}
	t.d, err = a.policy.New(a.place(t.cat, ws, a.opts.Workdir, nil), "", a.cfg.Mode)
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
	step, states := t.cat.Step(catalog.Both(t.has, t.d.Gives)), map[string]string{}
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
	by, withheld := t.d.Withholds(s)
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
	if err := t.d.Switch(name, q.On); err != nil {
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

func toolProblem(name string, err error, fix string) *agent.Problem {
	return &agent.Problem{
		Code: agent.ProblemTool, Message: fmt.Sprintf("tool %s: %v", name, err), Fix: fix, Err: err,
		Args: map[string]string{"name": name, "error": err.Error(), "fix": fix},
	}
}
