package offer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/near"
	"dure/internal/kernel/plug"
	"dure/internal/tools/catalog"
	"dure/internal/tools/kit"
)

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(x.list), plug.Answers(x.switchTool), plug.Storeless(x.lendable)}
}

// find returns the tools of a session that is open, or with "" of one that would begin in the
// working folder, of the usual kind of work.
func (x *Extension) find(session string) (*Session, error) {
	if session == "" {
		work, err := x.cfg.Work("")
		if err != nil {
			return nil, err
		}
		return x.Begin("", work)
	}
	s, err := x.Of(session)
	if err == nil {
		s.Policy.Look()
	}
	return s, err
}

func (x *Extension) list(_ context.Context, q query.ListTools) (r query.ToolReport, err error) {
	s, err := x.find(q.Session)
	if err != nil {
		return r, err
	}
	if q.Tool != "" {
		_, means, err := s.means(q.Tool)
		if err != nil {
			return r, err
		}
		return s.report(means), nil
	}
	r = s.report(s.Tools.List())
	for _, l := range s.Tools.Refused() {
		r.Left = append(r.Left, query.ToolLeft{Name: l.Name, Source: string(l.Source), From: l.From, Why: l.Err.Error()})
	}
	return r, nil
}

// report describes tools, and how each stands.
func (s *Session) report(list []catalog.Entry) query.ToolReport {
	r := query.ToolReport{Tools: []query.ToolInfo{}}
	step, states := s.Step(), map[string]string{}
	for _, t := range step.Specs() {
		states[t.Name] = "on"
	}
	for _, t := range step.Named() {
		states[t.Name] = "named"
	}
	for _, e := range list {
		i := query.ToolInfo{
			Name: e.Spec.Name, Shown: s.Tools.Shown(e.Spec.Name), Description: e.Spec.Description, Input: e.Spec.Input, Group: e.Spec.Group,
			Class: cmp.Or(e.Spec.Class, agent.Unsafe), Risk: cmp.Or(e.Spec.Risk, agent.RiskMedium),
			Source: string(e.Source), From: e.From, State: cmp.Or(states[e.Spec.Name], "off"),
		}
		if e.Own != e.Spec.Name {
			i.Own, i.Before = e.Own, string(catalog.BuiltIn)
			if other, ok := s.Tools.Get(e.Own); ok {
				i.Before = strings.TrimSpace(string(other.Source) + " " + other.From)
			}
		}
		if i.State == "off" {
			s.why(&i, e.Spec)
		}
		r.Tools = append(r.Tools, i)
	}
	return r
}

// why says why the model does not have a tool.
func (s *Session) why(i *query.ToolInfo, t agent.Spec) {
	by, withheld := s.withholds(t)
	switch {
	case withheld && by.Source == "session": // somebody switched it off
		i.Why, i.Rule = "session", by.Rule
	case withheld:
		i.Why, i.Rule, i.At = "rule", by.Rule, by.Source
	case s.has != nil && !s.has(t):
		i.Why = "role"
	case t.Name == catalog.Search:
		i.Why = "none-named"
	default:
		i.Why = "useless"
	}
}

// switchTool takes tools from a session, or gives them back.
func (x *Extension) switchTool(_ context.Context, q query.SwitchTool) (r query.ToolReport, err error) {
	s, err := x.find(q.Session)
	if err != nil {
		return r, err
	}
	name, means, err := s.means(q.Tool)
	if err != nil {
		return r, err
	}
	if err := s.Policy.Switch(name, q.On); err != nil {
		return r, err
	}
	r = s.report(means)
	if q.On && len(r.Tools) == 1 && r.Tools[0].Why == "session" {
		return r, problem(r.Tools[0].Shown, errors.New("its group is switched off"), "/tools enable "+r.Tools[0].Rule)
	}
	return r, nil
}

// means returns the tool, or those of the group, that a spelling means here.
func (s *Session) means(word string) (name string, means []catalog.Entry, err error) {
	name, ok := s.Tools.Canonical(word)
	var names []string
	for _, e := range s.Tools.List() {
		if !ok && strings.EqualFold(s.Tools.Shown(e.Spec.Name), word) {
			name, ok = e.Spec.Name, true
		}
		names = append(names, s.Tools.Shown(e.Spec.Name), e.Spec.Name)
	}
	if means = s.Tools.Meant(name); len(means) > 0 {
		return name, means, nil
	}
	word = kit.Clip(word)
	fix := "dure tools list, or /tools in a session"
	if like := near.Nearest(word, names); like != "" {
		fix = "did you mean " + like + "?"
	}
	return "", nil, problem(word, errors.New("there is no such tool"), fix)
}

func problem(name string, err error, fix string) *agent.Problem {
	return &agent.Problem{
		Code: agent.ProblemTool, Message: fmt.Sprintf("tool %s: %v", name, err), Fix: fix, Err: err,
		Args: map[string]string{"name": name, "error": err.Error(), "fix": fix},
	}
}

// conversational are the groups of tools that mean something within a conversation only:
// they ask its user, hand its work on, keep its lists, or read what it was told.
var conversational = []string{"agents", "memory", "planning", "skills"}

// alone reports whether a tool can be called from outside of a conversation.
func alone(s agent.Spec) bool { return !slices.Contains(conversational, s.Group) }

// lendable returns the tools that others than the program's own model may call.
func (x *Extension) lendable(_ context.Context, q query.ListLendable) ([]agent.Spec, error) {
	work, err := x.cfg.Work("")
	if err != nil {
		return nil, err
	}
	cat, err := x.cfg.Lent(work)
	if err != nil {
		return nil, err
	}
	has, err := x.of(cat, work)
	if err != nil {
		return nil, err
	}
	if len(q.Only) > 0 {
		named, err := named(cat, q.Only)
		if err != nil {
			return nil, err
		}
		has = catalog.Both(has, named)
	}
	return cat.Step(catalog.Both(has, alone)).Specs(), nil
}

// named returns which tools a list names.
func named(cat *catalog.Catalog, only []string) (func(agent.Spec) bool, error) {
	names := map[string]bool{}
	for _, name := range only {
		canonical, ok := cat.Canonical(name)
		known := ok && slices.ContainsFunc(cat.Meant(canonical), func(e catalog.Entry) bool { return alone(e.Spec) })
		if !known {
			fix := "dure prompt --tools lists the tools"
			var all []string
			for _, e := range cat.List() {
				if alone(e.Spec) {
					all = append(all, catalog.Claude.Name(e.Spec.Name))
				}
			}
			if n := near.Nearest(name, all); n != "" {
				fix = "did you mean " + n + "? " + fix
			}
			return nil, &agent.Problem{
				Code: agent.ProblemUsage, Message: fmt.Sprintf("--tools: %q is no tool that can be lent", name), Fix: fix,
				Args: map[string]string{"flag": "--tools", "value": name},
			}
		}
		names[canonical] = true
	}
	return func(s agent.Spec) bool { return names[s.Name] || names["group:"+s.Group] }, nil
}
