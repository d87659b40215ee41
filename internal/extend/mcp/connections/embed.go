package connections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
	"dure/internal/tools/catalog"
	"dure/internal/tools/kit"
)

// now returns the servers of a session that is open.
func (x *Extension) now(_ context.Context, q query.ServersNow) ([]query.ServerNow, error) {
	list := []query.ServerNow{}
	c := x.Of(q.Session)
	if c == nil {
		return list, nil
	}
	for _, s := range c.set.Status() {
		title, version := s.Title, ""
		if i := strings.LastIndexByte(title, ' '); i >= 0 {
			title, version = title[:i], title[i+1:]
		}
		n := query.ServerNow{
			Name: s.Server.Name, State: string(s.State), Problem: s.Problem, Title: title, Version: version, Scope: s.Server.Scope, Type: s.Server.Type,
		}
		for _, t := range c.tools(s.Server.Name) {
			n.Tools = append(n.Tools, query.ServerToolNow{Name: t.Remote(), Description: t.Spec().Description, ReadOnly: t.Traits().ReadOnly})
		}
		if s.Server.Type != servers.SDK {
			n.Run = x.Clean(s.Server.Shown())
		}
		list = append(list, n)
	}
	return list, nil
}

// join connects a server of a session, also anew, or ends its connection.
func (x *Extension) join(ctx context.Context, q query.ConnectServer) ([]query.ServerNow, error) {
	c, err := x.Of(q.Session), error(nil)
	switch {
	case c == nil:
		err = errNone
	case q.Do == query.ServerReconnect:
		err = c.set.Reconnect(ctx, q.Server)
	case q.Do == query.ServerEnable, q.Do == query.ServerDisable:
		err = c.toggle(q.Server, q.Do == query.ServerEnable)
	default:
		err = fmt.Errorf("nothing is called %q", kit.Clip(q.Do))
	}
	if err != nil {
		return nil, err
	}
	return x.now(ctx, query.ServersNow{Session: q.Session})
}

// replace has a session use servers in the place of those that were set before.
func (x *Extension) replace(ctx context.Context, q query.SetServers) (query.ServersSet, error) {
	out := query.ServersSet{Added: []string{}, Removed: []string{}, Errors: map[string]string{}}
	c := x.Of(q.Session)
	if c == nil {
		return out, errNone
	}
	c.setting.Lock()
	defer c.setting.Unlock()
	list, faults := servers.Read(servers.Source{Path: hostSource, Scope: servers.Given, Data: q.Servers, Bare: true})
	for _, f := range faults {
		if f.Server == "" && !f.Odd {
			return out, errors.New(f.What)
		}
		if !f.Odd {
			out.Errors[f.Server] = f.What
		}
	}
	wanted := map[string]servers.Known{}
	for _, k := range x.resolve(list, servers.Choices{}, c.b.Workdir) {
		if k.State == servers.Ready {
			wanted[k.Name] = k
			continue
		}
		if out.Errors[k.Name] = k.Why; k.Why == "" {
			out.Errors[k.Name] = "it is " + string(k.State)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.dynamic)) {
		if k, still := wanted[name]; !still || k.Hash != c.dynamic[name] {
			c.set.Remove(name)
			delete(c.dynamic, name)
			if !still {
				out.Removed = append(out.Removed, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		k := wanted[name]
		if _, has := c.dynamic[name]; has {
			continue
		}
		if !c.set.Add(k.Expanded) {
			out.Errors[name] = "the session has a server of this name already"
			continue
		}
		c.dynamic[name] = k.Hash
		out.Added = append(out.Added, name)
	}
	c.settle(ctx)
	for _, st := range c.set.Status() { // those that fail
		if slices.Contains(out.Added, st.Server.Name) && st.State == mcp.Failed {
			out.Errors[st.Server.Name] = st.Problem
		}
	}
	return out, nil
}

// resource reads a resource of a server of a session, if rules permit it.
func (x *Extension) resource(ctx context.Context, q query.ReadServer) (agent.Result, error) {
	c := x.Of(q.Session)
	if c != nil {
		if why := c.Barred(c.Policy, q.Server, q.URI); why != "" {
			return agent.Result{}, errors.New(why)
		}
	}
	return c.Read(ctx, q.Server, q.URI)
}

// ServerOf returns the server of a tool, and its scope; "" = it is a tool of none.
func (c *Servers) ServerOf(tool string) (server, scope string) {
	if c == nil {
		return "", ""
	}
	for _, t := range c.set.Tools() {
		if own, is := t.(*mcp.Tool); is && t.Spec().Name == tool {
			st, _ := c.status(own.Server())
			return st.Server.Name, st.Server.Scope
		}
	}
	return "", ""
}

// ToolOf returns the name of a tool of a server, and whether that is connected.
func (c *Servers) ToolOf(server, tool string) (name string, up bool) {
	st, ok := c.status(server)
	if !ok {
		return "", false
	}
	if t := c.tool(server, tool); t != nil {
		name = t.Spec().Name
	}
	return name, st.State == mcp.Connected
}

// toolFor finds a tool of a server, as the session of a catalog has it: what says something else
// of itself than when it was first seen is not there until somebody agrees.
func (c *Servers) toolFor(ctx context.Context, cat *catalog.Catalog, server, tool string) (*mcp.Tool, error) {
	if c == nil {
		return nil, unavailable(server, errors.New("the session has no servers"))
	}
	c.settle(ctx)
	t := c.tool(server, tool)
	switch {
	case t == nil:
		return nil, unavailable(server, fmt.Errorf("the server %s has no tool %s", server, tool))
	case !slices.ContainsFunc(cat.List(), func(e catalog.Entry) bool { return e.Source == catalog.MCP && e.Tool == agent.Tool(t) }):
		return nil, unavailable(server, fmt.Errorf("the tool %s of the server %s says something else than before, and waits for somebody to agree", tool, server))
	}
	return t, nil
}

func unavailable(server string, err error) error {
	return &agent.ToolError{Code: agent.ErrMCPUnavailable, Message: err.Error(), Suggestion: "dure mcp get " + server + " says how it stands with the server."}
}

// InvokeFor calls a tool of a server for one of a bundle, as the catalog of the session has it.
func (c *Servers) InvokeFor(ctx context.Context, cat *catalog.Catalog, server, tool string, input json.RawMessage) (agent.Result, error) {
	t, err := c.toolFor(ctx, cat, server, tool)
	if err != nil {
		return agent.Result{}, err
	}
	return t.Run(ctx, agent.ToolContext{}, agent.Call{Tool: tool, Input: input})
}

// AsksFor reports whether no mode allows such a call without the person.
func (c *Servers) AsksFor(ctx context.Context, cat *catalog.Catalog, server, tool string) (bool, error) {
	t, err := c.toolFor(ctx, cat, server, tool)
	return err == nil && t.Traits().Asks, err
}
