package app

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
	"dure/internal/extend/swarm"
	"dure/internal/tools/catalog"
)

// agentServer is how a server of a type of agents is called where it is listed and said yes
// to. In the sessions of the type it has its own name.
func agentServer(kind, name string) string { return "agent:" + kind + ":" + name }

// inlineServers are the servers that a type of agents defines itself, as an object, without
// those that it only names: it has them with its session.
func inlineServers(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.HasPrefix(raw, []byte("{")) {
		return raw, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, errors.New("mcpServers is neither a list nor an object")
	}
	all := map[string]json.RawMessage{}
	for _, entry := range list {
		var one map[string]json.RawMessage
		var name string
		switch {
		case json.Unmarshal(entry, &name) == nil:
		case json.Unmarshal(entry, &one) == nil:
			for name, def := range one {
				if _, has := all[name]; has {
					return nil, errors.New("mcpServers defines " + servers.Clip(name) + " twice")
				}
				all[name] = def
			}
		default:
			return nil, errors.New("an entry of mcpServers is neither a name nor a server")
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return json.Marshal(all)
}

// agentServers reads those of the types of agents of a folder: of a file of a project they
// need trust and a yes, as those of its .mcp.json do.
func (a *App) agentServers(s *serverSources, workdir string) {
	for _, d := range a.types(a.projectOf(workdir)).Usable() {
		raw, err := inlineServers(d.Servers)
		if err != nil {
			s.faults = append(s.faults, servers.Fault{Path: d.Path, What: err.Error(), Fix: "write names of servers, or {NAME: {command: ...}}"})
			continue
		}
		if len(raw) == 0 {
			continue
		}
		from := servers.Source{Path: d.Path, Scope: servers.Agent, Data: raw, Bare: true}
		switch {
		case d.Path == "":
			from.Path = "--agents " + d.Name
		case d.Place.Scope == frontmatter.Project:
			from.Scope = servers.Project
			s.trusted[d.Path] = true // what a file says that is not as it was trusted is not kept
		}
		list, faults := servers.Read(from)
		for i := range list {
			list[i].Name, list[i].Agent = agentServer(d.Name, list[i].Name), d.Name
			list[i].Line, list[i].Column = 0, 0 // they are read out of the fields of a file
		}
		for i := range faults {
			faults[i].Line, faults[i].Column = 0, 0
		}
		s.list, s.faults = append(s.list, list...), append(s.faults, faults...)
	}
}

// unusedWhy says why a server is not used; of the other states, its own reason does.
var unusedWhy = map[servers.State]string{
	servers.Waiting: "it waits for your yes", servers.Changed: "it is not as it was when you said yes to it", servers.Rejected: "you have said no to it",
	servers.Untrusted: "the folder is not trusted", servers.Off: "it is switched off",
}

// connectBoth begins to connect the servers of a session, and those of its type of agents.
func (a *App) connectBoth(b serverPlace, as swarm.Definition, cat *catalog.Catalog) (all, own *connected) {
	return a.connect(b, cat), a.connectOwn(b, as, cat)
}

// connectOwn begins to connect the servers that a type of agents defines itself, for one
// session, with which they end. It notes which of them are not used. nil = there are none.
func (a *App) connectOwn(b serverPlace, as swarm.Definition, cat *catalog.Catalog) *connected {
	if len(as.Servers) == 0 || b.Open.Edit || b.ID == "" {
		return nil
	}
	prefix := agentServer(as.Name, "")
	var list []servers.Server
	known, _ := a.serversIn(b.workdir)
	for _, k := range known {
		switch {
		case !strings.EqualFold(k.Agent, as.Name) || k.State == servers.Hidden:
		case k.State == servers.Ready:
			one := k.Expanded
			one.Name = strings.TrimPrefix(k.Name, prefix)
			list = append(list, one)
		default:
			note := agent.Note{Level: "warn", Code: "servers", Text: "the server " + servers.Clip(k.Name) + ": " + cmp.Or(unusedWhy[k.State], k.Why) + "; dure mcp get " + servers.Clip(k.Name)}
			if err := b.Record(note); err != nil {
				a.opts.Logger.Warn("noting a server that is not used", "session", b.ID, "error", err)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	c := a.newConnected(b)
	if top := a.hooks.Of(b.Parent).Top(); top != nil { // who is asked what agents need
		c.asks, c.person, c.record = top.Open.Approver, top.Reach, top.Record
	}
	c.prefix, c.awaits, c.catalogs[b.ID] = prefix, true, cat
	c.set = mcp.New(c.config(list))
	c.set.Connect()
	return c
}

// brings reports whether a tool is one of these servers.
func (c *connected) brings(cat *catalog.Catalog) func(agent.Spec) bool {
	if c == nil {
		return func(agent.Spec) bool { return false }
	}
	var owners []string
	for _, s := range c.set.Status() {
		owners = append(owners, c.prefix+s.Server.Name)
	}
	return func(s agent.Spec) bool {
		e, ok := cat.Get(s.Name)
		return ok && e.Source == catalog.MCP && slices.Contains(owners, e.From)
	}
}
