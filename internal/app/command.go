package app

import (
	"slices"

	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// ToolNames returns the names of the built-in tools in the dialect of the
// settings, sorted. Nothing is started for it.
func (a *App) ToolNames() []string {
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir})
	if err != nil {
		return nil
	}
	dialect := catalog.Dialect(a.cfg.Dialect)
	cat := catalog.New(catalog.Config{Dialect: dialect})
	box := sandbox.New(sandbox.Config{})
	set, err := a.tools(toolConfig{Session: plug.Session{}, cat: cat, ws: ws, tracker: ws.NewTracker(nil), box: box, profile: a.cfg.Profile, find: sandbox.Find})
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range cat.List() {
		names = append(names, dialect.Name(e.Spec.Name))
	}
	set.close()
	if err := box.Close(); err != nil {
		a.opts.Logger.Debug("closing the process box", "error", err)
	}
	slices.Sort(names)
	return names
}
