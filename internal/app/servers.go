package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/base/frontmatter"
	"dure/internal/base/jsonc"
	"dure/internal/extend/commands"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/connections"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/extend/mcp/servers"
	"dure/internal/extend/plugins/active"
	"dure/internal/extend/swarm"
	"dure/internal/frontend/text"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/mention"
	"dure/internal/models/registry/providers"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
)

// newServers returns the servers of the Model Context Protocol.
func (a *App) newServers() *connections.Extension {
	f, say := a.opts.Flags, text.For(a.cfg.Language)
	c := connections.Config{
		Settings: a.cfg.MCP.Settings, Workdir: a.opts.Workdir, Home: a.opts.UserHome, Dir: filepath.Join(a.cfg.Data, "mcp"), AddDirs: a.cfg.AddDirs,
		Environ: a.environ(), Version: a.opts.Version, Logger: a.opts.Logger,
		Given: f.Servers, OnlyGiven: f.OnlyServers, NoLocal: !f.reads(config.Local), NoProject: !f.reads(config.Project), Await: f.AwaitServers, NoAI: a.cfg.NoAI,
		Sources: a.serverSources, Read: config.ReadFile, Covered: a.trust.Covers, Top: gitTop,
		Folder: func(session string) string { return a.folderOf(session, "") },
		Secret: a.isKey, Clean: a.patterns.Redact,
		Say:   func(w connections.Word, args ...any) string { return say.Say(text.AskedSecret+text.Key(w), args...) },
		Hooks: func(session string) connections.Hooks { return a.hooks.Of(session) },
		Box: func(ws *workspace.Workspace) *sandbox.Box {
			box, _ := a.boxes.Box(ws.Root(), a.opts.Workdir, nil)
			return box
		},
		Env: a.commandEnv, Desk: func() (*oauth.Desk, error) { return a.desk() }, Reach: a.reachOf(), Web: a.transport,
		Change: a.changeServers,
	}
	if f.Code != nil {
		c.Bundle = f.Code.Dir()
	}
	if h := a.opts.Host; h != nil {
		c.Host = &h.Host
	}
	c.OwnFile, _ = a.scopeFile(servers.User)
	return connections.New(c)
}

// changeServers changes the servers in a file of settings, or of the project.
func (a *App) changeServers(ctx context.Context, c connections.FileChange) error {
	if c.Scope == servers.User {
		_, err := a.changeSettings(ctx, c.Scope, "mcpServers."+c.Server, c.Edit)
		return err
	}
	_, err := a.changeFile(ctx, c.Scope, c.File, func(before []byte) ([]byte, error) {
		t, err := jsonc.Read(before, nil)
		if err != nil {
			return nil, err
		}
		return c.Edit(t)
	}, nil)
	return err
}

// isKey reports whether a variable is one of our own, or has the key of a provider.
func (a *App) isKey(name string) bool {
	return strings.HasPrefix(name, "DURE_") || slices.ContainsFunc(a.models.All(), func(p providers.Provider) bool { return slices.Contains(p.Keys, name) })
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
			Path: p.ID, Scope: servers.Plugin, Data: data, Bare: true, Prefix: "plugin:" + p.Name + ":", Lookup: func(name string) (string, bool) { return a.pluginVar(p, name) },
		})
	}
	for _, d := range a.types(a.projectOf(workdir)).Usable() {
		from, fault := connections.AgentSource(d.Name, d.Path, d.Path != "" && d.Place.Scope == frontmatter.Project, d.Servers)
		if fault != nil {
			faults = append(faults, *fault)
		}
		all = append(all, from)
	}
	return all, faults
}

// pluginVar returns a variable that the servers of a plugin may name.
func (a *App) pluginVar(p active.Plugin, name string) (string, bool) {
	switch name {
	case "CLAUDE_PLUGIN_ROOT":
		return p.Root, true
	case "CLAUDE_PLUGIN_DATA":
		return p.Data, true
	}
	key, ok := strings.CutPrefix(name, "user_config.")
	if !ok {
		return "", false
	}
	v, ok := a.plugins.Values(p)[key]
	return v, ok
}

// Servers are the servers of the Model Context Protocol.
func (a *App) Servers() *connections.Extension { return a.servers }

// serverPrompt makes a prompt of an input that names one of a server; not ok = it names
// none.
func (t *typed) serverPrompt(ctx context.Context, q agent.InputQueued) (text string, drop *agent.InputDropped, ok bool) {
	c := t.app.servers.Of(t.b.ID)
	if c == nil || !connections.IsPrompt(q.Text) {
		return "", nil, false
	}
	c.Ready(ctx, q.Text)
	name, line, _ := commands.Split(q.Text)
	p, found := c.Prompt(name)
	as := commands.Command{Name: p.Command}
	if !found {
		as.Name = name
		return "", commands.Without(as, errors.New("no server of this session has a prompt of this name; /mcp says how it stands with them")), true
	}
	args, err := connections.Arguments(p, line)
	if err == nil {
		err = t.app.hooks.Of(t.b.ID).Expanding(ctx, "mcp_prompt", p.Command, line, "mcp", q.Text)
	}
	var said string
	if err == nil {
		said, err = t.askServer(ctx, c, p, args, q.Input)
	}
	if err != nil {
		return "", commands.Without(as, err), true
	}
	t.aloud(q.Input) // what a server says names nothing that is to be read
	return commands.Joined(q.Text, []commands.Command{as}, []string{said}), nil, true
}

// askServer has a server fill in a prompt, and returns what the guard leaves of it. What it
// shows besides texts is kept for the request.
func (t *typed) askServer(ctx context.Context, c *connections.Servers, p mcp.Prompt, args map[string]string, input string) (string, error) {
	r, err := c.Fill(ctx, p, args)
	if err != nil {
		return "", err
	}
	r, err = t.grd.Check(ctx, agent.Spec{Name: p.Command, Group: "mcp", Budget: 2 * mention.MaxTotal}, agent.Call{ID: input, Tool: p.Command}, r)
	if err != nil {
		return "", err
	}
	if len(r.Blocks) > 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.pictures[input] = agent.ContextAdded{Source: "mention", Key: input + " shown", Title: p.Command, Text: "What " + p.Command + " shows:\n", Blocks: r.Blocks}
	}
	return strings.TrimSpace(r.Unfenced()), nil
}

// extra returns the pictures of prompts that are read with the input that no request has had
// yet.
func (t *typed) extra(_ context.Context, at plug.Moment) (all []agent.ContextAdded) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := map[string]agent.ContextAdded{}
	for _, in := range at.Fresh {
		if c, ok := t.pictures[in.Input]; ok {
			kept[in.Input] = c
			all = append(all, c)
		}
	}
	if len(at.Fresh) > 0 {
		t.pictures = kept
	}
	return all
}

// connect begins to connect the servers of a session, and those that its type of agents defines.
// Whoever is asked what agents need is in the session that they work for.
func (a *App) connect(b plug.Session, as swarm.Definition, p connections.Place) *connections.Session {
	p.Person = b
	if top := a.hooks.Of(b.Parent).Top(); top != nil {
		p.Person = *top
	}
	if len(as.Servers) == 0 {
		return a.servers.Open(b, "", p)
	}
	return a.servers.Open(b, as.Name, p)
}
