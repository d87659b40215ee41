package app

import (
	"cmp"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/extend/hooks"
	"dure/internal/extend/hooks/run"
	"dure/internal/frontend/text"
	"dure/internal/knowledge/memory/instruct"
	"dure/internal/safety/policy"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/trust"
	"dure/internal/tools/catalog"
)

func (a *App) newHooks() *run.Extension {
	cfg, say := &a.cfg, text.For(a.cfg.Language)
	dialect := catalog.Dialect(cfg.Dialect)
	return run.New(run.Config{
		Settings: cfg.Hooks, More: a.moreHooks, Off: a.hooksOff, Place: config.PlaceOf, ReadFile: config.ReadFile,
		Current: func() (hooks.Settings, int) { now, version := a.permissions.Now(); return now.Hooks, version },
		Changes: func() func() ([]run.Change, func()) { return settingsChanges(a.permissions.Source) },
		Workdir: a.opts.Workdir, Home: cfg.Home, UserHome: a.opts.UserHome, Managed: cfg.Memory.Managed,
		Mode: cfg.Mode, Effort: cfg.Effort, Version: a.opts.Version, Dialect: dialect, Logger: a.opts.Logger,
		Env: a.commandEnv, Getenv: getenv(a.opts.Environ), Temp: a.temp, Transport: a.transport, Network: string(cfg.Network.Mode), Hosts: cfg.Network.AllowHosts,
		Project: func(workdir string) string {
			root := a.house.Project(workdir)
			return cmp.Or(trust.Repository(root), root)
		},
		LogPath: func(session string) string { return a.sessions.store.LogPath(session) },
		Redact:  a.patterns.Redact, Elsewhere: func(session string) bool { return a.parent.Works(session) }, Call: a.opts.Host.callback(),
		Fits: func(workdir string) func(string, agent.Proposal) bool {
			return policy.Fits(workdir, a.opts.UserHome, catalog.New(catalog.Config{Dialect: dialect}).Canonical)
		},
		Tool:   func(session, server, tool string) (string, bool) { return a.servers.Of(session).ToolOf(server, tool) },
		Server: func(session, tool string) (name, source string) { return a.servers.Of(session).ServerOf(tool) },
		Loads:  map[string]string{instruct.FromMemory: "session_start", instruct.FromRules: "path_glob_match"},
		Asks:   func(tool string) string { return say.Say(text.HookAsks, "tool", tool) }, Idle: func() string { return say.Say(text.HookIdle) },
		Explain: a.opts.proposer(cfg.AddDirs),
		Confine: func() (*sandbox.Box, func(string) string, error) {
			box, _, find, err := a.ownBox()
			return box, find, err
		},
	})
}

// forHooks is what a session has for its hooks.
func (s *assembly) forHooks() run.Place {
	p := run.Place{Box: s.box, Find: sandbox.Outside(s.ws.Inside), Policy: s.deciding.Policy, Refresh: s.deciding.Refresh, Reread: s.known.Reread}
	if as := s.agents.As; as.Place.Trusted {
		p.Own = hooks.Defined{JSON: as.Hooks, Source: hooks.Source{
			Layer: "agent", Name: as.Name, File: as.Path, Root: as.Place.Root, Data: as.Place.Data, Options: as.Place.Options,
		}}
	}
	return p
}

// hooksOff are the files whose hooks are not read.
func (a *App) hooksOff() (off []query.HooksOff) {
	for _, i := range a.cfg.Inert {
		if i.Key != "hooks" {
			continue
		}
		o := query.HooksOff{Source: i.Origin.Where, Why: string(i.Why)}
		if f, err := a.trust.Look(a.opts.Workdir); err == nil && i.Why == config.Untrusted && f.Stale() != nil {
			o.Why, o.Changed = "changed", f.Stale()
		}
		off = append(off, o)
	}
	return off
}

// settingsChanges begins to look at the files of the settings, see [run.Config.Changes].
func settingsChanges(source func() config.Sources) func() ([]run.Change, func()) {
	last, _ := config.Changed(source(), config.Stamp{})
	return func() (changed []run.Change, take func()) {
		now, different := config.Changed(source(), last)
		if !different {
			return nil, nil
		}
		for _, f := range now.Since(last) {
			changed = append(changed, run.Change{Layer: string(f.Layer), Path: f.Path})
		}
		return changed, func() { last = now }
	}
}
