package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/extend/swarm"
	"dure/internal/kernel/plug"
	"dure/internal/tools/catalog"
)

// deepest is how many sessions may work for each other: one at that depth has no agents
// of its own. The session package has the same limit.
const deepest = 3

// fromAgents is the source of the list of types of agents.
const fromAgents = "agents"

// NeverChild are tools that children do not have: nobody talks with them.
var NeverChild = []string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"}

// A Policy decides about the calls of a session.
type Policy interface {
	Before(agent.Proposal) agent.Decision // as its rules that deny do
	Decide(agent.Proposal) agent.Decision
}

// Session is the agents of one session: what it is itself, and those that work for it.
type Session struct {
	As           swarm.Definition // the type that it runs as; the zero one = none
	Role         Role             // once it is known
	*swarm.Swarm                  // once it is made

	x         *Extension
	b         plug.Session
	types     *swarm.Types
	cat       *catalog.Catalog
	pol       Policy // nil = it only shows its tools
	preloaded func(skills []string) string
}

// Shown is a session that only shows its tools, in a folder.
func (x *Extension) Shown(workdir string) *Session { return &Session{x: x, types: x.Types(workdir)} }

// Session returns the agents of a session that is being opened, with the types of a folder.
// It makes the kind of work what the type of the session says of it, as far as that asks no
// less.
func (x *Extension) Session(b plug.Session, workdir string, work *agent.Profile) (*Session, error) {
	s := &Session{x: x, b: b, types: x.Types(workdir)}
	s.b.Model = nil // it is not open yet
	defer func() { s.b.Model = b.Model }()
	if b.Child != nil {
		work.Effort = cmp.Or(b.Child.Effort, work.Effort)
		work.Mode = narrower(b.Child.Mode, x.cfg.Clamp(b.Parent, work.Mode))
		s.As, _ = s.types.Find(b.Child.Agent) // for its hooks, and the types that it may use
		return s, nil
	}
	name := x.cfg.Runs(&b)
	if name == "" || name == "default" || name == "none" || b.Open.Edit {
		return s, nil
	}
	d, ok := s.types.Find(name)
	if !ok {
		var names []string
		for _, d := range s.types.Usable() {
			names = append(names, d.Name)
		}
		list := strings.Join(names, ", ")
		return s, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("--agent: %q is none of: %s", name, list),
			Fix: "name another one with --agent, or none; dure agents list says what is wrong with the others", Args: map[string]string{"flag": "--agent", "value": name, "wanted": list},
		}
	}
	s.As = d
	work.Effort = cmp.Or(d.Effort, work.Effort)
	if d.Steps > 0 {
		work.Steps = d.Steps
	}
	if !x.cfg.Modelled && b.Open.Model == "" && b.Stored.Model == "" {
		if m, err := s.model(d); err == nil && m != "" {
			work.Model = m
		}
	}
	work.Mode = narrower(d.Mode, work.Mode)
	return s, nil
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

// Kind is the type that the session is of; "" = the usual one.
func (s *Session) Kind() string {
	if c := s.b.Child; c != nil && c.Agent != "" {
		return c.Agent
	}
	return s.As.Name
}

// Hire makes the agents of the session: what their tools are called in a catalog, what
// decides about them, nil = nothing does yet, with which skills they begin, and how they get
// folders of their own.
func (s *Session) Hire(cat *catalog.Catalog, pol Policy, preloaded func(skills []string) string, isolation swarm.Isolation) {
	x, name := s.x, s.x.cfg.Dialect.Name
	s.cat, s.pol, s.preloaded = cat, pol, preloaded
	s.Swarm = swarm.New(swarm.Config{
		Types: s.types, Spawn: s.b.Reach.Spawn, Settle: s.b.Reach.Settle, Past: s.b.Reach.Outcome,
		OutputTool: name("task__output"), StopTool: name("task__stop"), MergeTool: name(swarm.MergeTool), RemoveTool: name(swarm.RemoveTool),
		Child: s.child,
		Model: func(d swarm.Definition) string { id, _ := s.model(d); return id },
		Chain: append(x.chain(s.b.Parent), cmp.Or(s.Kind(), "main")),
		Crewed: slices.ContainsFunc(s.As.Tools, func(name string) bool {
			canonical, _ := cat.Canonical(name)
			return canonical == swarm.CoordinateTool || canonical == swarm.HandoffTool
		}),
		Asks: func(d swarm.Definition) bool {
			return pol != nil && pol.Decide(handing(d.Name)).Verdict == agent.AskUser
		},
		May:        s.may,
		Earlier:    func(ctx context.Context, child string) (string, string, bool) { return x.earlier(ctx, s.b.ID, child) },
		Foreground: x.cfg.Foreground,
		Progressed: func(p agent.CrewProgressed) error { return s.b.Record(p) },
		Tell:       x.Tell, Boss: s.b.Parent,
		Full:      func(ctx context.Context, short string) (string, bool) { return s.full(ctx, short) },
		Isolation: isolation, Follow: x.follow,
	})
}

// Tools are the tools by which the session hands work to agents.
func (s *Session) Tools() []agent.Tool {
	if s.b.Depth >= deepest {
		return nil
	}
	return append([]agent.Tool{s.Tool(), s.Coordinator(), s.Handoff(), s.Messenger()}, s.TreeTools()...)
}

// Points are what agents add to the session, with the stages of the gate that its type has.
func (s *Session) Points(stages []plug.Stage) plug.Points {
	s.x.mu.Lock()
	s.x.open[s.b.ID] = s
	s.x.mu.Unlock()
	p := plug.Points{Gate: plug.Gate{Bounds: stages}, Revive: s.Revive, Close: func() {
		s.x.mu.Lock()
		delete(s.x.open, s.b.ID)
		s.x.mu.Unlock()
		s.Close()
	}}
	if s.As.Initial != "" && s.b.Child == nil {
		p.Hooks.Speaks = func() bool { return true } // what a person says meanwhile comes behind it
		p.Hooks.Opened = func(_ context.Context, how string) (words, by string) {
			if how != "startup" {
				return "", ""
			}
			return strings.TrimSpace(s.As.Initial), "agent:" + s.As.Name
		}
	}
	if has := s.Role.Has; has == nil || has(agent.Spec{Name: swarm.Tool, Group: "agents", Class: agent.Read}) {
		p.Extra = s.extra
	}
	return p
}

// extra lists the types that the description of the tool does not name.
func (s *Session) extra(context.Context, plug.Moment) []agent.ContextAdded {
	text := swarm.List(s.x.cfg.Dialect.Name(swarm.Tool), s.Offered())
	if text == "" {
		return nil
	}
	return []agent.ContextAdded{{Source: fromAgents, Title: "agents", Text: text}}
}

// may says why the session cannot hand work to a type; nil = it can.
func (s *Session) may(d swarm.Definition) error {
	if len(s.As.Types) > 0 && !slices.Contains(s.As.Types, d.Name) {
		return fmt.Errorf("%s may use %s only", s.As.Name, strings.Join(s.As.Types, ", "))
	}
	if s.pol == nil {
		return nil
	}
	if d := s.pol.Before(handing(d.Name)); d.Verdict == agent.Deny {
		return errors.New(cmp.Or(d.Reason, "a rule denies it"))
	}
	return nil
}

// handing is the call by which work is handed to a type.
func handing(kind string) agent.Proposal {
	in, err := json.Marshal(map[string]string{"subagent_type": kind})
	if err != nil {
		panic("agents: a name that cannot be encoded: " + err.Error()) // a programmer's mistake
	}
	return agent.Proposal{Call: agent.Call{Tool: swarm.Tool, Input: in}, Class: agent.Read, Group: "agents", Risk: agent.RiskLow}
}

// SkillChild returns what a skill's session of a type is opened with.
func (s *Session) SkillChild(kind string) (agent.Child, error) {
	d, ok := s.types.Find(kind)
	if !ok {
		return agent.Child{}, fmt.Errorf("there is no agent %q", kind)
	}
	if err := s.may(d); err != nil {
		return agent.Child{}, fmt.Errorf("the agent %s: %w", d.Name, err)
	}
	return s.child(d, swarm.Task{})
}

// child returns what a child of a type is opened with.
func (s *Session) child(d swarm.Definition, t swarm.Task) (agent.Child, error) {
	child := agent.Child{
		System: d.Prompt, Mode: d.Mode, Effort: d.Effort, Tools: d.Tools, Without: slices.Concat(NeverChild, d.Without),
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
		if err := s.b.Record(agent.Note{Level: "warn", Text: "the agent " + d.Name + ": " + w.Message + "; " + w.Fix}); err != nil {
			return child, err
		}
	}
	child.System = strings.TrimSpace(child.System + s.preloaded(d.Skills))
	if t.Model == "" {
		var why error
		if child.Model, why = s.model(d); why != nil {
			return child, s.b.Record(agent.Note{Level: "warn", Text: "the agent " + d.Name + " asks for a model that cannot be asked, and runs with that of the session: " + why.Error()})
		}
		return child, nil
	}
	if strings.EqualFold(t.Model, "inherit") {
		return child, nil
	}
	var err error
	child.Model, err = s.x.cfg.Model(t.Model, &s.b)
	return child, err
}

// model is the model that a type of agents asks by itself: that of its file, else the default
// one; "" = that of the session, which is also taken where the other cannot be asked: the
// error says why.
func (s *Session) model(d swarm.Definition) (string, error) {
	name, of := d.Model, &s.b
	if name == "" {
		name, of = s.x.cfg.Default, nil
	}
	if name == "" || strings.EqualFold(name, "inherit") {
		return "", nil
	}
	return s.x.cfg.Model(name, of)
}
