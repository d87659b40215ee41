package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"dure/agent"
	"dure/internal/base/near"
	"dure/internal/kernel/session"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// conversational are the groups of tools that mean something within a conversation only:
// they ask its user, hand its work on, keep its lists, or read what it was told.
var conversational = []string{"agents", "memory", "planning", "skills"}

// lendable reports whether a tool can be called from outside of a conversation.
func lendable(s agent.Spec) bool { return !slices.Contains(conversational, s.Group) }

// LendableTools describes the tools that others than the program's own model may call: all
// that the settings offer for the kind of work, or of them those that only names, in any
// spelling, or with group:NAME. Nothing is started.
func (a *App) LendableTools(only []string) ([]agent.Spec, error) {
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir})
	if err != nil {
		return nil, workspace.Problem(a.opts.Workdir, err)
	}
	cat := catalog.New(catalog.Config{Dialect: catalog.Dialect(a.cfg.Dialect)})
	box := sandbox.New(sandbox.Config{})
	work, err := a.work(a.cfg.Profile)
	if err != nil {
		return nil, err
	}
	set, err := a.tools(toolConfig{cat: cat, ws: ws, tracker: ws.NewTracker(nil), box: box, profile: work.Name, find: finder(ws)})
	if err != nil {
		return nil, err
	}
	defer func() {
		set.close()
		if err := box.Close(); err != nil {
			a.opts.Logger.Debug("closing the process box", "error", err)
		}
	}()
	has, err := a.offered(cat, work)
	if err != nil {
		return nil, err
	}
	named, err := namedTools(cat, only)
	if err != nil {
		return nil, err
	}
	return cat.Step(catalog.Both(has, catalog.Both(named, lendable))).Specs(), nil
}

// namedTools returns which tools are named; nil = all.
func namedTools(cat *catalog.Catalog, only []string) (func(agent.Spec) bool, error) {
	if len(only) == 0 {
		return nil, nil
	}
	names := map[string]bool{}
	for _, name := range only {
		canonical, ok := cat.Canonical(name)
		known := ok && slices.ContainsFunc(cat.Meant(canonical), func(e catalog.Entry) bool { return lendable(e.Spec) })
		if !known {
			fix := "dure prompt --tools lists the tools"
			var all []string
			for _, e := range cat.List() {
				if lendable(e.Spec) {
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

// Lent is a session whose tools somebody outside of it calls. Each call is decided on,
// guarded and logged as one of the model's. It is safe for concurrent use.
type Lent struct {
	id    string
	app   *App
	reg   *session.Registry
	reach agent.Reach
	alone chan struct{} // holds one value while a call runs that changes something
}

// Lend opens a session whose tools may be called from outside. With asks somebody answers
// what it asks for; without, what would have to be asked for is denied.
func (a *App) Lend(ctx context.Context, title string, asks bool) (*Lent, error) {
	reg, err := a.open()
	if err != nil {
		return nil, err
	}
	info, err := a.telemetry.Open(ctx, reg.Open, agent.Open{Title: title, Workdir: a.opts.Workdir, Mode: a.cfg.Mode, Lend: true, Approver: asks, Ready: true})
	if err != nil {
		return nil, err
	}
	return &Lent{id: info.ID, app: a, reg: reg, reach: reg.Reach(info.ID), alone: make(chan struct{}, 1)}, nil
}

// ID is that of the session.
func (l *Lent) ID() string { return l.id }

// Call calls a tool. What can change something runs alone; reads run beside each other.
func (l *Lent) Call(ctx context.Context, id, origin string, tool agent.Spec, input []byte) (agent.Result, error) {
	if tool.Class != agent.Read {
		select {
		case l.alone <- struct{}{}:
			defer func() { <-l.alone }()
		case <-ctx.Done():
			return agent.Result{}, context.Cause(ctx)
		}
	}
	return l.reach.Invoke(ctx, agent.Invocation{ID: id, Origin: origin, Tool: tool.Name, Input: input})
}

// Text is what a model would read of a command of a file, or of a skill, that a person has
// typed. Commands in it run where that needs no question.
func (l *Lent) Text(ctx context.Context, name, arguments string) (string, error) {
	return l.app.commands.Text(ctx, l.id, name, arguments)
}

// Close ends the session; its log stays.
func (l *Lent) Close(ctx context.Context) error { return l.reg.Close(ctx, l.id) }

// ReadTool is the tool that reads files.
const ReadTool = readTool

// ToolName is what a tool is called in the dialect of the settings.
func (a *App) ToolName(canonical string) string {
	return catalog.Dialect(a.cfg.Dialect).Name(canonical)
}

// Logger is where the program logs.
func (a *App) Logger() *slog.Logger { return a.opts.Logger }
