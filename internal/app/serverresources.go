package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/tools/builtin"
)

// resources are what the servers that are connected let be read, templates last.
func (c *connected) resources() (all []builtin.Resource) {
	if c == nil {
		return nil
	}
	there := map[string]bool{}
	for _, s := range c.set.Status() {
		there[s.Server.Name] = s.State == mcp.Connected
	}
	for i, list := range [][]mcp.Resource{c.set.Resources(), c.set.Templates()} {
		for _, r := range list {
			if there[r.Server] {
				all = append(all, builtin.Resource{Server: r.Server, URI: r.URI, Name: r.Name, Description: r.Description, Type: r.Type, Template: i == 1})
			}
		}
	}
	return all
}

// resourceTools are the tools that list and read what the servers of a session let be read.
func (a *App) resourceTools(c toolConfig) []agent.Tool {
	return builtin.Resources(builtin.ResourceConfig{
		List: func() []builtin.Resource { return a.serversOf(c.ID).resources() },
		Read: func(ctx context.Context, server, uri string) (agent.Result, error) {
			of := a.serversOf(c.ID)
			if of == nil {
				return agent.Failure(agent.ErrMCPUnavailable, "this session has no servers", ""), nil
			}
			return of.set.Read(ctx, server, uri)
		},
		Barred: func(server, uri string) string { return a.serversOf(c.ID).barred(c.pol, server, uri) },
	})
}

// barred says why rules keep all of a server from being used, or an address of it that names
// a file; "" = they do not.
func (c *connected) barred(pol *policy.Policy, server, uri string) string {
	if c == nil || pol == nil {
		return ""
	}
	if c.deniedFile(pol, uri) {
		return "a rule denies the file " + servers.Clip(uri)
	}
	d := pol.Before(agent.Proposal{
		Call: agent.Call{Tool: serverPrefix + c.set.Part(server) + "__*", Input: json.RawMessage(`{}`)}, Class: agent.Unsafe, Group: "mcp", Risk: agent.RiskMedium,
	})
	if d.Verdict != agent.Deny {
		return ""
	}
	return "a rule denies all of the server " + server
}

// deniedFile reports whether an address names a file that no rule lets be read: a server that
// runs outside of the sandbox would read it. What cannot be understood is denied.
func (c *connected) deniedFile(pol *policy.Policy, uri string) bool {
	const scheme = "file:"
	if len(uri) < len(scheme) || !strings.EqualFold(uri[:len(scheme)], scheme) {
		return false
	}
	u, err := url.Parse(uri)
	if err != nil {
		return true
	}
	path := u.Path
	if u.Opaque != "" {
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return true
		}
	}
	if drive := strings.TrimPrefix(path, "/"); filepath.VolumeName(filepath.FromSlash(drive)) != "" {
		path = drive
	}
	given, resolved, err := c.ws.Resolve(filepath.FromSlash(path))
	return err != nil || pol.DeniesRead(given) || pol.DeniesRead(resolved)
}

// split takes the name of a resource apart: the server, and the address. Names of servers
// may have colons in them.
func (c *connected) split(name string) (server, uri string, ok bool) {
	for _, s := range c.set.Status() {
		rest, of := strings.CutPrefix(name, s.Server.Name+":")
		if of && s.State == mcp.Connected && len(s.Server.Name) > len(server) {
			server, uri, ok = s.Server.Name, rest, true
		}
	}
	return server, uri, ok
}

// mentionable are the resources of the servers of a session, see [read.Servers].
type mentionable struct {
	of  func() *connected
	pol *policy.Policy
	grd *guard.Guard
}

// Addresses implements [read.Servers].
func (m mentionable) Addresses() (all []string) {
	for _, r := range m.of().resources() {
		if !r.Template {
			all = append(all, r.Server+":"+r.URI)
		}
	}
	return all
}

// Mentioned takes the first of the readings that a server has listed; else, what a person has
// written, if its server lists anything.
func (m mentionable) Mentioned(readings []string) (name string, says agent.Verdict, ok bool) {
	c := m.of()
	if c == nil {
		return "", "", false
	}
	listed := c.resources()
	for _, name := range readings {
		server, uri, ok := c.split(name)
		if ok && slices.ContainsFunc(listed, func(r builtin.Resource) bool { return r.Server == server && r.URI == uri && !r.Template }) {
			return name, m.decides(c, server, uri, agent.Read), true
		}
	}
	server, uri, ok := c.split(readings[0])
	if !ok || !slices.ContainsFunc(listed, func(r builtin.Resource) bool { return r.Server == server }) {
		return "", "", false
	}
	return readings[0], m.decides(c, server, uri, agent.Unsafe), true
}

// decides asks the policy as if the model read the resource.
func (m mentionable) decides(c *connected, server, uri string, class agent.Class) agent.Verdict {
	in, err := json.Marshal(map[string]string{"server": server, "uri": uri})
	if err != nil || c.barred(m.pol, server, uri) != "" {
		return agent.Deny
	}
	return m.pol.Decide(agent.Proposal{
		Call: agent.Call{ID: "mention", Tool: builtin.ReadResource, Input: in}, Class: class, Group: "mcp", Risk: agent.RiskMedium,
	}).Verdict
}

// Read implements [read.Servers].
func (m mentionable) Read(ctx context.Context, id, name string) (agent.Result, error) {
	c := m.of()
	if c == nil {
		return agent.Result{}, errors.New("this session has no servers")
	}
	server, uri, _ := c.split(name)
	r, err := c.set.Read(ctx, server, uri)
	if err != nil {
		return r, err
	}
	spec := agent.Spec{Name: builtin.ReadResource, Group: "mcp", Budget: 2 * mention.MaxTotal}
	return m.grd.Check(ctx, spec, agent.Call{ID: id, Tool: spec.Name}, r)
}
