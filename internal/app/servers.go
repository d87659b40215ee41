package app

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"dure/internal/app/config"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/mcp/connections"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/extend/mcp/servers"
	"dure/internal/frontend/text"
	"dure/internal/models/registry/providers"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/trust"
	"dure/internal/safety/workspace"
)

// newServers returns the servers of the Model Context Protocol.
func (a *App) newServers() *connections.Extension {
	f, say := a.opts.Flags, text.For(a.cfg.Language)
	c := connections.Config{
		Settings: a.cfg.MCP.Settings, Workdir: a.opts.Workdir, Home: a.opts.UserHome, Dir: filepath.Join(a.cfg.Data, "mcp"), AddDirs: a.cfg.AddDirs,
		Environ: environ(a.opts, a.cfg), Version: a.opts.Version, Logger: a.opts.Logger,
		Given: f.Servers, OnlyGiven: f.OnlyServers, NoLocal: !f.reads(config.Local), NoProject: !f.reads(config.Project), Await: f.AwaitServers, NoAI: a.cfg.NoAI,
		Sources: a.serverSources, Read: config.ReadFile, Covered: a.trust.Covers, Top: trust.Repository,
		Folder: func(session string) string { return a.sessions.folder(session, a.opts.Workdir) },
		Secret: func(name string) bool {
			return strings.HasPrefix(name, "DURE_") || slices.ContainsFunc(a.models.All(), func(p providers.Provider) bool { return slices.Contains(p.Keys, name) })
		},
		Clean: a.patterns.Redact,
		Say:   func(w connections.Word, args ...any) string { return say.Named(string(w), args...) },
		Hooks: func(session string) connections.Hooks { return a.hooks.Of(session) },
		Box: func(ws *workspace.Workspace) *sandbox.Box {
			box, _ := a.boxes.Box(ws.Root(), a.opts.Workdir, nil)
			return box
		},
		Env: a.commandEnv, Desk: func() (*oauth.Desk, error) { return a.desk() }, Reach: a.reach, Web: a.transport,
		Change: a.settings.Servers, OwnFile: filepath.Join(a.cfg.Home, "settings.json"),
	}
	if f.Code != nil {
		c.Bundle = f.Code.Dir()
	}
	if h := a.opts.Host; h != nil {
		c.Host = &h.Host
	}
	return connections.New(c)
}

// serverSources are the servers that settings, plugins and types of agents name for a folder.
func (a *App) serverSources(workdir string) (all []servers.Source, faults []servers.Fault) {
	for _, raw := range a.cfg.MCP.Sources {
		from := servers.Source{Path: cmp.Or(raw.File, string(raw.Layer)), Data: []byte(raw.JSON), Bare: true, Line: max(raw.Line-1, 0), Scope: servers.User}
		switch raw.Layer {
		case config.Managed:
			from.Scope = servers.Managed
		case config.Project, config.Local: // they are there when the folder is trusted only
			from.Scope, from.Trusted = servers.Project, true
		case config.Inline, config.Flags:
			from.Scope = servers.Given
		}
		all = append(all, from)
	}
	for _, p := range a.plugins.In(workdir) {
		if len(p.Servers) == 0 {
			continue
		}
		data, err := json.Marshal(p.Servers)
		if err != nil {
			faults = append(faults, servers.Fault{Path: p.ID, What: err.Error()})
		}
		all = append(all, servers.Source{
			Path: p.ID, Scope: servers.Plugin, Data: data, Bare: true, Prefix: "plugin:" + p.Name + ":", Lookup: func(name string) (string, bool) { return a.plugins.Variable(p, name) },
		})
	}
	for _, d := range a.agents.Types(a.house.Project(workdir)).Usable() {
		from, fault := connections.AgentSource(d.Name, d.Path, d.Path != "" && d.Place.Scope == frontmatter.Project, d.Servers)
		if fault != nil {
			faults = append(faults, *fault)
		}
		all = append(all, from)
	}
	return all, faults
}

// connect begins to connect the servers of a session, and those that its type of agents defines.
// Whoever is asked what agents need is in the session that they work for.
func (s *assembly) connect() {
	p := connections.Place{Box: s.box, Workspace: s.ws, Catalog: s.offered.Tools, Policy: s.deciding.Policy, Person: s.b}
	if top := s.app.hooks.Of(s.b.Parent).Top(); top != nil {
		p.Person = *top
	}
	as := s.agents.As
	if len(as.Servers) == 0 {
		as.Name = ""
	}
	s.servers = s.app.servers.Open(s.b, as.Name, p)
}
