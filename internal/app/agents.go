package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/skills/use"
	"dure/internal/extend/swarm"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/memory/instruct"
	"dure/internal/safety/policy"
	"dure/internal/safety/policy/enforce"
	"dure/internal/safety/trust/folders"
	"dure/internal/tools/catalog"
)

// fromAgents is the source of the list of types of agents.
const fromAgents = "agents"

// deepest is how many sessions may work for each other: one at that depth has no agents
// of its own. The session package holds to the same bound.
const deepest = 3

// types is what agents there are for the sessions of a folder.
func (a *App) types(workdir string) *swarm.Types {
	places := a.trust.All(workdir, folders.Agents)
	return &swarm.Types{Places: func() []frontmatter.Place { return places }, Named: a.agents, Own: swarm.Presets(), Trust: a.trust.Mark}
}

// crew is the agents of one session: the types that there are, and those that work.
type crew struct {
	*swarm.Swarm
	types *swarm.Types
	tool  string // the name of the tool in the session's dialect
}

func (a *App) newCrew(c toolConfig) *crew {
	dialect, env := catalog.Dialect(a.cfg.Dialect), getenv(a.opts.Environ)
	cfg := swarm.Config{
		Types: c.types, Spawn: c.Reach.Spawn, Settle: c.Reach.Settle, Past: c.Outcome,
		OutputTool: dialect.Name("task__output"), StopTool: dialect.Name("task__stop"),
		Child: func(d swarm.Definition, t swarm.Task) (agent.Child, error) { return a.childFor(c, d, t) },
		Model: func(d swarm.Definition) string { return a.agentModel(c, d) },
		Chain: append(a.members.chain(c.Parent), cmp.Or(childName(c.Child), c.as.Name, "main")),
		Crewed: slices.ContainsFunc(c.as.Tools, func(name string) bool {
			canonical, _ := c.cat.Canonical(name)
			return canonical == swarm.CoordinateTool || canonical == swarm.HandoffTool
		}),
		Asks: func(d swarm.Definition) bool {
			return c.pol != nil && c.pol.Decide(handing(d.Name)).Verdict == agent.AskUser
		},
		May: func(d swarm.Definition) error { return mayHand(c.as, c.pol, d) },
		Earlier: func(ctx context.Context, child string) (string, string, bool) {
			return a.earlier(ctx, c.ID, child)
		},
		Foreground: !slices.Contains([]string{"", "0", "false"}, strings.ToLower(cmp.Or(env("DURE_DISABLE_BACKGROUND_TASKS"), env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")))),
		Progressed: func(p agent.CrewProgressed) error { return c.Record(p) },
		Tell:       a.tell, Boss: c.Parent,
		Full:      func(ctx context.Context, short string) (string, bool) { return a.fullID(ctx, c.ID, short) },
		MergeTool: dialect.Name(swarm.MergeTool), RemoveTool: dialect.Name(swarm.RemoveTool), Isolation: a.isolation(c),
		Follow: a.follow,
	}
	return &crew{swarm.New(cfg), c.types, dialect.Name(swarm.Tool)}
}

// mayHand says why a session that runs as a type, if it is one, cannot hand work to
// another one; nil = it can.
func mayHand(as swarm.Definition, pol *policy.Policy, d swarm.Definition) error {
	if len(as.Types) > 0 && !slices.Contains(as.Types, d.Name) {
		return fmt.Errorf("%s may use %s only", as.Name, strings.Join(as.Types, ", "))
	}
	if why := denied(pol, d.Name); why != "" {
		return errors.New(why)
	}
	return nil
}

// revive has the work of an agent go on that an earlier program has left.
func (c *crew) revive(handle string, p agent.PendingCall) plug.Revival {
	if r := c.Revive(handle, p.Tool, p.Key, p.Input); r != nil {
		return r
	}
	return nil
}

// extra lists the types that the description of the tool does not name.
func (c *crew) extra(tools func(agent.Spec) bool) func(context.Context, plug.Moment) []agent.ContextAdded {
	if !has(tools, swarm.Tool, "agents") {
		return nil
	}
	return func(context.Context, plug.Moment) []agent.ContextAdded {
		text := swarm.List(c.tool, c.Offered())
		if text == "" {
			return nil
		}
		return []agent.ContextAdded{{Source: fromAgents, Title: "agents", Text: text}}
	}
}

// follow reads the log of a session that is open.
func (a *App) follow(ctx context.Context, id string) iter.Seq2[agent.Event, error] {
	a.mu.Lock()
	reg := a.reg
	a.mu.Unlock()
	if w := a.workers.get(id); w != nil {
		return w.events(ctx)
	}
	return reg.Events(ctx, id, 0)
}

// earlier returns the type of a child that a session has had, and its folder.
func (a *App) earlier(ctx context.Context, parent, child string) (kind, dir string, ok bool) {
	if !isChildID(child) {
		return "", "", false
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for e, err := range a.follow(ctx, child) {
		b, opened := e.Body.(agent.SessionOpened)
		return b.Agent, b.Workdir, err == nil && opened && b.Parent == parent
	}
	return "", "", false
}

// fullID returns the child of a session whose ID begins so.
func (a *App) fullID(ctx context.Context, parent, short string) (id string, ok bool) {
	for e, err := range a.store.Read(ctx, parent, 0) {
		if err != nil {
			return "", false
		}
		if b, opened := e.Body.(agent.ChildOpened); opened && strings.HasPrefix(b.Child, short) && b.Child != id {
			if ok {
				return "", false // of two
			}
			id, ok = b.Child, true
		}
	}
	return id, ok
}

// isChildID reports whether a text has the form of the ID of a child session.
func isChildID(id string) bool {
	return len(id) == 33 && id[0] == 'c' && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// neverChild are tools that children do not have: nobody talks with them.
var neverChild = []string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"}

// skillChild returns what a skill's session of a type of agents is opened with.
func (a *App) skillChild(b plug.Session, k *use.Skills, pol *policy.Policy, types *swarm.Types, as swarm.Definition) func(string) (agent.Child, error) {
	return func(kind string) (agent.Child, error) {
		d, ok := types.Find(kind)
		if !ok {
			return agent.Child{}, fmt.Errorf("there is no agent %q", kind)
		}
		if err := mayHand(as, pol, d); err != nil {
			return agent.Child{}, fmt.Errorf("the agent %s: %w", d.Name, err)
		}
		return a.childFor(toolConfig{Session: b, skills: k, pol: pol}, d, swarm.Task{})
	}
}

// childFor returns what a child of a type is opened with.
func (a *App) childFor(c toolConfig, d swarm.Definition, t swarm.Task) (agent.Child, error) {
	child := agent.Child{
		System: d.Prompt, Mode: d.Mode, Effort: d.Effort, Tools: d.Tools, Without: slices.Concat(neverChild, d.Without),
		MaxSteps: d.Steps, Bare: d.Bare,
	}
	switch {
	case d.Tools != nil && len(d.Tools) == 0:
		child.Tools = []string{"none"}
	case d.Tools != nil && d.Memory != "":
		child.Tools = slices.Concat(d.Tools, []string{"memory__read", "memory__append"})
	}
	if d.Powerless {
		w := d.Warnings[0]
		if err := c.Record(agent.Note{Level: "warn", Text: "the agent " + d.Name + ": " + w.Message + "; " + w.Fix}); err != nil {
			return child, err
		}
	}
	child.System = strings.TrimSpace(child.System + c.skills.Preloaded(d.Skills))
	if t.Model == "" {
		var why error
		if child.Model, why = a.modelOfType(c, d); why != nil {
			return child, c.Record(agent.Note{Level: "warn", Text: "the agent " + d.Name + " asks for a model that cannot be asked, and runs with that of the session: " + why.Error()})
		}
		return child, nil
	}
	if strings.EqualFold(t.Model, "inherit") {
		return child, nil
	}
	m, err := a.models.Model(t.Model)
	if err != nil {
		return child, err
	}
	if !a.mayAsk(c, m.Info().ID) {
		return child, errElsewhere(t.Model)
	}
	child.Model = m.Info().ID
	return child, nil
}

// agentModel is the model that a type of agents asks by itself: that of its file, else
// that of the environment; "" = that of the session, which is also taken where the other
// cannot be asked.
func (a *App) agentModel(c toolConfig, d swarm.Definition) string {
	id, _ := a.modelOfType(c, d)
	return id
}

// modelOfType is agentModel, with why the model that is named is not taken.
func (a *App) modelOfType(c toolConfig, d swarm.Definition) (string, error) {
	env := getenv(a.opts.Environ)
	name := cmp.Or(d.Model, env("DURE_SUBAGENT_MODEL"), env("CLAUDE_CODE_SUBAGENT_MODEL"))
	if name == "" || strings.EqualFold(name, "inherit") {
		return "", nil
	}
	m, err := a.models.Model(name)
	if err != nil {
		return "", err
	}
	if d.Model != "" && !a.mayAsk(c, m.Info().ID) {
		return "", errElsewhere(d.Model)
	}
	return m.Info().ID, nil
}

// mayAsk reports whether a model is served by whom the session's own is, or one that the
// settings name: what files and models say sends a conversation to nobody else.
func (a *App) mayAsk(c toolConfig, model string) bool {
	provider := a.models.ServedBy(model)
	names := append([]string{a.cfg.Model, a.cfg.SmallModel}, a.cfg.Fallback...)
	if c.Session.Model != nil {
		names = append(names, c.Session.Model())
	}
	for _, p := range a.cfg.Profiles {
		if p.Model != nil {
			names = append(names, *p.Model)
		}
	}
	return slices.ContainsFunc(names, func(n string) bool { return n != "" && a.models.ServedBy(n) == provider })
}

// errElsewhere is a model that may not be asked, see [App.mayAsk].
func errElsewhere(model string) error {
	return fmt.Errorf("the model %s is served by somebody that the settings do not name; name it there, or leave the model out", model)
}

// asAgent is the type that a session runs as: that of a child, or that of the command
// line, of its log, or of the settings; the zero one = none. It makes the kind of work what the
// type says of it, as far as that asks no less.
func (a *App) asAgent(b plug.Session, types *swarm.Types, work *config.Work) (swarm.Definition, error) {
	name := cmp.Or(a.opts.Flags.Agent, b.Open.Agent, b.Agent, a.cfg.Extend.Agent, a.plugins.Agent(b.Open.Workdir))
	if b.Child != nil {
		work.Effort = cmp.Or(b.Child.Effort, work.Effort)
		work.Mode = narrower(b.Child.Mode, a.policy.Clamp(b.Parent, work.Mode))
		d, _ := types.Find(b.Child.Agent) // for its hooks, and the types that it may use
		return d, nil
	}
	if name == "" || name == instruct.UsualAgent || name == "none" || b.Open.Edit {
		return swarm.Definition{}, nil
	}
	d, ok := types.Find(name)
	if !ok {
		var names []string
		for _, d := range types.Usable() {
			names = append(names, d.Name)
		}
		list := strings.Join(names, ", ")
		return d, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("--agent: %q is none of: %s", name, list),
			Fix: "name another one with --agent, or none; dure agents list says what is wrong with the others", Args: map[string]string{"flag": "--agent", "value": name, "wanted": list},
		}
	}
	work.Effort = cmp.Or(d.Effort, work.Effort)
	if d.Steps > 0 {
		work.Steps = d.Steps
	}
	if a.opts.Flags.Model == "" && b.Open.Model == "" && b.Stored.Model == "" {
		early := b
		early.Model = nil // the session is not open yet
		if m := a.agentModel(toolConfig{Session: early}, d); m != "" {
			work.Model = m
		}
	}
	work.Mode = narrower(d.Mode, work.Mode)
	return d, nil
}

// narrower returns the mode of an agent in a session of another one: its own where that
// lets less happen unasked. A session that accepts edits, or all, does so for its agents
// too, unless they are to plan or not to ask.
func narrower(own, of agent.Mode) agent.Mode {
	if own == "" || !of.Wider(own) || own == agent.ModeDefault {
		return of
	}
	if own == agent.ModeAcceptEdits { // of one that bypasses
		return of
	}
	return own
}

// denied returns why rules deny that work is handed to a type; "" = they do not.
func denied(pol *policy.Policy, kind string) string {
	if pol == nil {
		return ""
	}
	if d := pol.Before(handing(kind)); d.Verdict == agent.Deny {
		return cmp.Or(d.Reason, "a rule denies it")
	}
	return ""
}

// handing is the call by which work is handed to a type.
func handing(kind string) agent.Proposal {
	in, err := json.Marshal(map[string]string{"subagent_type": kind})
	if err != nil {
		panic("app: a name that cannot be encoded: " + err.Error()) // a programmer's mistake
	}
	return agent.Proposal{Call: agent.Call{Tool: swarm.Tool, Input: in}, Class: agent.Read, Group: "agents", Risk: agent.RiskLow}
}

// role is what a session is as an agent.
type role struct {
	name   string
	system string                // in place of the usual instructions; "" = those
	has    func(agent.Spec) bool // nil = all tools
	gives  func(agent.Spec) bool // those that agents of its own may have; nil = all
	parts  map[string][]string   // tools of which it has only a part, with the rules for that
}

// roleOf returns the role of a session: of a child, what it was opened with, and no tool
// that its parent does not have, but for those of servers of its own.
func (a *App) roleOf(cat *catalog.Catalog, b plug.Session, as swarm.Definition, brings func(agent.Spec) bool, d *enforce.Decider) (r role) {
	tools, without := as.Tools, as.Without
	r.name, r.system = as.Name, as.Prompt
	if c := b.Child; c != nil {
		tools, without = c.Tools, c.Without
		r.name, r.system = c.Agent, c.System
	} else if as.Tools != nil && len(as.Tools) == 0 {
		tools = []string{"none"}
	}
	r.has, r.parts = toolsOf(cat, tools)
	if not, _ := toolsOf(cat, without); not != nil {
		r.has = both(r.has, func(s agent.Spec) bool { return !not(s) })
	}
	var of func(agent.Spec) bool
	if b.Child != nil {
		if of = a.members.gives(b.Parent); of != nil {
			r.has = both(r.has, func(s agent.Spec) bool { return of(s) || brings(s) })
		}
	}
	if list := a.upper.lets(b.Parent); list != nil {
		r.has = both(r.has, func(s agent.Spec) bool { return slices.Contains(list, s.Name) })
	}
	r.has = either(r.has, a.opts.Flags.Code.Has(cat, r.name))
	if r.gives = r.has; as.Routes() {
		r.gives = of
	}
	r.has = withForm(b, r.has)
	r.has = both(r.has, d.Gives)
	return r
}

// modelFor returns the models of a session: the one that is asked where nobody names
// another is that of its type.
func (a *App) modelFor(work config.Work, as swarm.Definition) func(string) (agent.Model, error) {
	models := a.models.For(work.Name)
	if as.Name == "" {
		return models
	}
	return func(name string) (agent.Model, error) { return models(cmp.Or(name, work.Model)) }
}

// begins has a new session that runs as an agent begin with what that says first.
func begins(b plug.Session, as swarm.Definition) plug.Hooks {
	if as.Initial == "" || b.Child != nil {
		return plug.Hooks{}
	}
	return plug.Hooks{
		Speaks: func() bool { return true }, // what a person says meanwhile comes behind it
		Opened: func(_ context.Context, how string) (words, by string) {
			if how != "startup" {
				return "", ""
			}
			return strings.TrimSpace(as.Initial), "agent:" + as.Name
		},
	}
}

// changed is a mode if it is another one than before, else "".
func changed(before, mode agent.Mode) agent.Mode {
	if before == mode {
		return ""
	}
	return mode
}

// has reports whether a list of tools, nil = all, has one of a group.
func has(list func(agent.Spec) bool, tool, group string) bool {
	return list == nil || list(agent.Spec{Name: tool, Group: group, Class: agent.Read})
}

// childName is the type of a child; "" = it is none.
func childName(c *agent.Child) string {
	if c == nil {
		return ""
	}
	return c.Agent
}

// either is what one of two lists of tools has; nil is all of the first, and none of the second.
func either(a, b func(agent.Spec) bool) func(agent.Spec) bool {
	if a == nil || b == nil {
		return a
	}
	return func(s agent.Spec) bool { return a(s) || b(s) }
}
