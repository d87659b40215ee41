package app

import (
	"cmp"
	"context"

	"dure/agent"
	"dure/internal/extend/commands"
	"dure/internal/extend/mcp/connections"
	"dure/internal/knowledge/mention"
	"dure/internal/knowledge/mention/read"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/state/archive/visible"
	"dure/internal/state/journal"
	"dure/internal/tools/catalog"
	"dure/internal/tools/code"
	"dure/internal/tools/files"
)

func (a *App) newMentions() *read.Extension {
	sessions := visible.Sessions{Store: func() *journal.Local { return a.sessions.store }, Find: a.sessions.find}
	return read.New(read.Config{
		Plain: a.cfg.Context.Auto, Typed: commands.Typed, Verbatim: func(session, input string) bool { return a.commands.Verbatim(session, input) },
		Model:  func(name string) agent.ModelInfo { info, _ := a.models.Info(name); return info },
		Attach: files.Attach, NoMedia: files.ErrNoMedia, MaxMedia: files.MaxAttached,
		Declared: func(ctx context.Context, ws *workspace.Workspace, files []string, symbol string) (all []mention.Place) {
			for _, p := range code.Declared(ctx, ws, files, symbol) {
				all = append(all, mention.Place(p))
			}
			return all
		},
		ReadTool: readTool, Fetch: catalog.Dialect(a.cfg.Dialect).Name("web__fetch"), Logger: a.opts.Logger,
		Open: func(dir string) (*workspace.Workspace, error) {
			dir = cmp.Or(dir, a.opts.Workdir)
			ws, err := workspace.New(workspace.Config{Root: dir})
			if err == nil {
				ws, err = workspace.New(workspace.Config{Root: dir, Git: sandbox.Outside(ws.Inside)("git")})
			}
			if err != nil {
				return nil, workspace.Problem(dir, err)
			}
			return ws, nil
		},
		Sessions: sessions.Complete, Session: sessions.Named,
	})
}

// forMentions is what a session has for reading its inputs.
func (s *assembly) forMentions() read.Place {
	pol := s.deciding.Policy
	of := func() *connections.Servers { return s.app.servers.Of(s.b.ID) }
	return read.Place{Workspace: s.ws, Tracker: s.tracker, Decide: pol.Decide, Servers: mentionable{of, pol, s.grd}}
}
