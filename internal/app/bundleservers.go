package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"dure/agent"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
	"dure/internal/extend/plugins/active"
	"dure/internal/tools/catalog"
)

// bundleServers are the servers that the folder of a bundle names, as its sessions have them
// besides those of the folder that they work in, whose file it may be itself. They need trust
// and a yes there, as others of projects do.
func (a *App) bundleServers(dir, workdir string) ([]servers.Known, []servers.Fault) {
	path := filepath.Join(dir, servers.FileName)
	if slices.Contains(projectServers(workdir), path) {
		return nil, nil
	}
	s := &serverSources{trusted: map[string]bool{}, plugins: map[string]active.Plugin{}}
	if !s.addFile(path, servers.Project, func(data []byte) { s.trusted[path] = a.trust.Covers(path, data) }) {
		return nil, nil
	}
	choices, err := a.serverStore().Of(dir)
	if err != nil {
		return nil, []servers.Fault{{Path: a.serverStore().Dir, What: err.Error()}}
	}
	return a.resolveServers(s, choices, dir), s.faults
}

// withBundle adds the servers of a bundle to others, which come before those of their names.
func (a *App) withBundle(known []servers.Known, faults []servers.Fault, dir, workdir string) ([]servers.Known, []servers.Fault) {
	more, wrong := a.bundleServers(dir, workdir)
	for _, k := range more {
		if !slices.ContainsFunc(known, func(o servers.Known) bool { return o.Name == k.Name && o.State != servers.Hidden }) {
			known = append(known, k)
		}
	}
	return known, append(faults, wrong...)
}

// usableServer says why tools of a bundle cannot be those of a server; nil = they can.
func (a *App) usableServer(dir, tool, name string) error {
	known, faults := a.serversIn(a.opts.Workdir)
	known, _ = a.withBundle(known, faults, dir, a.opts.Workdir)
	i := slices.IndexFunc(known, func(k servers.Known) bool {
		return k.Name == name && k.Agent == "" && k.State != servers.Hidden
	})
	path := filepath.Join(dir, servers.FileName)
	fix := "write it into " + path + ", or: dure mcp add"
	if i < 0 {
		return unservedTool(tool, name, "there is no such server", fix)
	}
	k := known[i]
	if k.State == servers.Ready {
		return nil
	}
	fix = "dure mcp get " + name
	switch k.State {
	case servers.Waiting, servers.Changed:
		fix = "look at it, then: dure mcp approve " + name
	case servers.Untrusted:
		fix = "look at it, then: dure trust " + dir
	}
	if k.Source == path && dir != a.opts.Workdir {
		fix += " (in " + dir + ")"
	}
	return unservedTool(tool, name, "it is not used: "+string(k.State), fix)
}

func unservedTool(tool, name, why, fix string) error {
	name = servers.Clip(name)
	return &agent.Problem{Code: agent.ProblemBundle, Message: fmt.Sprintf("%s is of the server %s: %s", tool, name, why), Fix: fix}
}

// serverTool finds a tool of a server, as a session has it: what says something else of itself
// than when it was first seen is not there until somebody agrees.
func (a *App) serverTool(ctx context.Context, p swarms.Place, server, tool string) (*mcp.Tool, error) {
	t, err := a.lookUp(ctx, p, server, tool)
	if err != nil {
		return nil, &agent.ToolError{Code: agent.ErrMCPUnavailable, Message: err.Error(), Suggestion: "dure mcp get " + server + " says how it stands with the server."}
	}
	return t, nil
}

func (a *App) lookUp(ctx context.Context, p swarms.Place, server, tool string) (*mcp.Tool, error) {
	c := a.serversOf(p.ID)
	if c == nil {
		return nil, errors.New("the session has no servers")
	}
	wait, cancel := context.WithTimeout(ctx, awaitServers)
	defer cancel()
	_ = c.set.Wait(wait) // what is not there by then is not there
	c.takeAll()
	known := p.Catalog.List()
	for _, t := range c.set.Tools() {
		own, ok := t.(*mcp.Tool)
		if !ok || own.Server() != server || own.Remote() != tool {
			continue
		}
		if slices.ContainsFunc(known, func(e catalog.Entry) bool { return e.Source == catalog.MCP && e.Tool == t }) {
			return own, nil
		}
		return nil, fmt.Errorf("the tool %s of the server %s says something else than before, and waits for somebody to agree", tool, server)
	}
	return nil, fmt.Errorf("the server %s has no tool %s", server, tool)
}

// invokeServer calls a tool of a server for one of a bundle.
func (a *App) invokeServer(ctx context.Context, p swarms.Place, server, tool string, input json.RawMessage) (agent.Result, error) {
	t, err := a.serverTool(ctx, p, server, tool)
	if err != nil {
		return agent.Result{}, err
	}
	return t.Run(ctx, agent.ToolContext{}, agent.Call{Tool: tool, Input: input})
}

// serverAsks reports whether no mode allows a tool of a server without the person.
func (a *App) serverAsks(ctx context.Context, p swarms.Place, server, tool string) (bool, error) {
	t, err := a.serverTool(ctx, p, server, tool)
	return err == nil && t.Traits().Asks, err
}
