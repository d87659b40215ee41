package app

import (
	"context"
	"encoding/json"

	"dure/agent"
	"dure/internal/extend/hooks"
	"dure/internal/extend/host"
	"dure/internal/extend/mcp/connections"
)

// A Host is the program that embeds this one: it has hooks and servers of the Model
// Context Protocol in itself, and may answer what servers ask. Its functions are called by
// many at once, and end with their contexts. A nil one is something that it cannot do.
type Host struct {
	connections.Host

	// Hooks is the value of "hooks" in settings, of hooks of type callback. They hold beside
	// those of the settings.
	Hooks json.RawMessage

	// Call has a callback of Hooks answer; call is the ID of the call that it is about.
	Call func(ctx context.Context, callback string, input []byte, call string) ([]byte, error)

	// Mirrored hears what is written of sessions where programs for agent sessions look for
	// them: whole lines, in the order of their file, or why no more of it will be. Several
	// files are written at a time. nil = it keeps no store of them.
	Mirrored func(file string, lines []byte, err error)
}

// sources are the hooks of the host.
func (h *Host) sources() []hooks.Defined {
	if h == nil || len(h.Hooks) == 0 {
		return nil
	}
	return []hooks.Defined{{Source: hooks.Source{Layer: hooks.HostLayer, Theirs: true}, JSON: h.Hooks}}
}

// callback is what has callbacks answer; nil = there is nothing.
func (h *Host) callback() func(context.Context, string, []byte, string) ([]byte, error) {
	if h == nil {
		return nil
	}
	return h.Call
}

// newHost makes what the program that embeds this one does in sessions.
func (a *App) newHost() *host.Extension {
	return host.New(host.Config{
		Dirs: a.cfg.AddDirs, Denies: a.policy.Denies, Reach: func(id string) agent.Reach { return a.sessions.reg.Reach(id) },
		Plugins: a.plugins.Reload, Hear: a.servers.HearServer, Apply: a.permissions.Put, Text: a.commands.Text,
		Skills: func(id string) error {
			h := a.hooks.Of(id)
			if h == nil {
				return agent.NotOpen(id)
			}
			h.Reread()
			return nil
		},
		Open: func(ctx context.Context, o agent.Open) (agent.SessionInfo, error) {
			reg, err := a.sessions.open()
			if err != nil {
				return agent.SessionInfo{}, err
			}
			o.Workdir, o.Mode = a.opts.Workdir, a.cfg.Mode
			return a.Telemetry.Open(ctx, reg.Open, o)
		},
		Close: func(ctx context.Context, id string) error { return a.sessions.reg.Close(ctx, id) },
	})
}

// ReadTool is the tool that reads files.
const ReadTool = readTool
