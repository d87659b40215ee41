package app

import (
	"context"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/extend/swarm/agents"
	"dure/internal/kernel/plug"
	"dure/internal/tools/builtin"
	"dure/internal/tools/catalog"
)

// fromTools is the source of the names of tools that are not loaded.
const fromTools = "tools"

// usualWindow is the window of a model whose own is not known, in tokens, and a token has
// about so many bytes.
const (
	usualWindow = 200_000
	tokenBytes  = 3
)

// offers returns the tools of the next step of a session, of the role that it has by then.
// Those that others bring are named where they are too many, but for those that it has
// looked for.
func (a *App) offers(cat *catalog.Catalog, work config.Work, b plug.Session, who *agents.Role) (step func() *catalog.Step) {
	d := catalog.Deferral{On: a.cfg.ToolSearch >= 0}
	window := usualWindow
	if info, err := a.models.Info(work.Model); err == nil && info.Window > 0 {
		window = info.Window
	}
	d.Room = window / 100 * a.cfg.ToolSearch * tokenBytes
	cat.Defer(d)
	cat.Choose(b.Selected...)
	return func() *catalog.Step { return cat.Step(who.Has) }
}

// toolSearch makes the tool that finds those that are only named.
func toolSearch(c toolConfig) agent.Tool {
	if c.step == nil { // it is only looked at
		c.step = func() *catalog.Step { return c.cat.Step(nil) }
	}
	return builtin.Search(c.step, func(call string, names []string) error {
		if err := c.Record(agent.ToolsSelected{Call: call, Tools: names}); err != nil {
			return err
		}
		c.cat.Choose(names...)
		return nil
	})
}

// toldTools puts the names of tools that are not loaded before the model.
func toldTools(step func() *catalog.Step) func(context.Context, plug.Moment) []agent.ContextAdded {
	return func(_ context.Context, at plug.Moment) []agent.ContextAdded {
		text := builtin.Named(step())
		if text == "" && at.Has(fromTools, "") {
			text = "There are no further tools to be loaded."
		}
		return []agent.ContextAdded{{Source: fromTools, Title: fromTools, Text: text}}
	}
}
