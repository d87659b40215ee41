package connections

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
	"dure/internal/tools/kit"
)

// resources are what the servers that are connected let be read, templates last.
func (c *Servers) resources() []mcp.Resource {
	if c == nil {
		return nil
	}
	there := map[string]bool{}
	for _, s := range c.set.Status() {
		there[s.Server.Name] = s.State == mcp.Connected
	}
	return slices.DeleteFunc(slices.Concat(c.set.Resources(), c.set.Templates()), func(r mcp.Resource) bool { return !there[r.Server] })
}

// Addresses are the resources that are listed, as SERVER:URI.
func (c *Servers) Addresses() (all []string) {
	for _, r := range c.resources() {
		if !r.Template {
			all = append(all, r.Server+":"+r.URI)
		}
	}
	return all
}

// Barred says why rules keep all of a server from being used, or an address of it that names
// a file; "" = they do not.
func (c *Servers) Barred(pol Policy, server, uri string) string {
	if c == nil {
		return ""
	}
	if c.deniedFile(pol, uri) {
		return "a rule denies the file " + kit.Clip(uri)
	}
	d := pol.Before(agent.Proposal{
		Call: agent.Call{Tool: Prefix + c.set.Part(server) + "__*", Input: json.RawMessage(`{}`)}, Class: agent.Unsafe, Group: "mcp", Risk: agent.RiskMedium,
	})
	if d.Verdict != agent.Deny {
		return ""
	}
	return "a rule denies all of the server " + server
}

// deniedFile reports whether an address names a file that no rule lets be read: a server that
// runs outside of the sandbox would read it. What cannot be understood is denied.
func (c *Servers) deniedFile(pol Policy, uri string) bool {
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
	given, resolved, err := c.Workspace.Resolve(filepath.FromSlash(path))
	return err != nil || pol.DeniesRead(given) || pol.DeniesRead(resolved)
}

// Split takes the name of a resource apart: the server, and the address. Names of servers
// may have colons in them.
func (c *Servers) Split(name string) (server, uri string, ok bool) {
	if c == nil {
		return "", "", false
	}
	for _, s := range c.set.Status() {
		rest, of := strings.CutPrefix(name, s.Server.Name+":")
		if of && s.State == mcp.Connected && len(s.Server.Name) > len(server) {
			server, uri, ok = s.Server.Name, rest, true
		}
	}
	return server, uri, ok
}

// Mentioned finds the resource that a text means, by the first of its readings that a server
// has listed; else, where its server has any, the first reading. Its class is that of reading it.
func (c *Servers) Mentioned(readings []string) (name, server, uri string, class agent.Class, ok bool) {
	for _, name := range readings {
		if server, uri, ok := c.Split(name); ok && c.lists(server, uri) {
			return name, server, uri, agent.Read, true
		}
	}
	if len(readings) > 0 {
		name = readings[0]
		server, uri, ok = c.Split(name)
	}
	ok = ok && slices.ContainsFunc(c.resources(), func(r mcp.Resource) bool { return r.Server == server })
	return name, server, uri, agent.Unsafe, ok
}

var errNone = errors.New("this session has no servers")

// Read reads a resource of a server, as its text and its media.
func (c *Servers) Read(ctx context.Context, server, uri string) (agent.Result, error) {
	if c == nil {
		return agent.Result{}, errNone
	}
	return c.set.Read(ctx, server, uri)
}
