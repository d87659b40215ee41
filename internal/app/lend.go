package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"dure/agent"
	"dure/internal/base/near"
	"dure/internal/extend/host"
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

// Embedding returns what the program that embeds this one does in sessions.
func (a *App) Embedding() *host.Extension { return a.host }

// newHost makes what the program that embeds this one does in sessions.
func (a *App) newHost() *host.Extension {
	return host.New(host.Config{
		Dirs: a.cfg.AddDirs, Denies: a.policy.Denies, Reach: func(id string) agent.Reach { return a.reg.Reach(id) },
		Plugins: a.plugins.Reload, Apply: a.permissions.Put, Text: a.commands.Text,
		Skills: func(id string) error {
			h := a.hooks.Of(id)
			if h == nil {
				return agent.NotOpen(id)
			}
			h.Reread()
			return nil
		},
		Open: func(ctx context.Context, o agent.Open) (agent.SessionInfo, error) {
			reg, err := a.open()
			if err != nil {
				return agent.SessionInfo{}, err
			}
			o.Workdir, o.Mode = a.opts.Workdir, a.cfg.Mode
			return a.telemetry.Open(ctx, reg.Open, o)
		},
		Close: func(ctx context.Context, id string) error { return a.reg.Close(ctx, id) },
	})
}

// ReadTool is the tool that reads files.
const ReadTool = readTool

// ToolName is what a tool is called in the dialect of the settings.
func (a *App) ToolName(canonical string) string {
	return catalog.Dialect(a.cfg.Dialect).Name(canonical)
}

// Logger is where the program logs.
func (a *App) Logger() *slog.Logger { return a.opts.Logger }
