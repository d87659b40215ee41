package app

import (
	"context"
	"log/slog"

	"dure/agent"
	"dure/internal/extend/host"
)

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

// Logger is where the program logs.
func (a *App) Logger() *slog.Logger { return a.opts.Logger }
