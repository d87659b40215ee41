package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/base/jsonc"
	"dure/internal/base/near"
	"dure/internal/extend/mcp/servers"
)

// ServerScopes are the scopes that servers are written to, the usual one first.
func ServerScopes() []string { return []string{servers.Local, servers.Project, servers.User} }

// ServerChange is what a change of servers has done.
type ServerChange struct {
	Name  string `json:"name"`
	Scope string `json:"scope,omitempty"`
	Path  string `json:"path,omitempty"` // of the file that was written; "" = it is the program's own
	State string `json:"state,omitempty"`
	Count int    `json:"count,omitempty"`
}

func nearestName(name string, names []string) string { return near.Nearest(name, names) }

// AddServer names a server in a scope. raw is its definition; who names it says yes to it.
func (a *App) AddServer(ctx context.Context, scope, name string, raw json.RawMessage) (ServerChange, error) {
	c := ServerChange{Name: name, Scope: scope}
	if why := servers.CheckName(name); why != "" {
		return c, serverProblem(name, errors.New(why), "give it a name of letters, digits, - and _")
	}
	key, err := json.Marshal(name)
	if err != nil {
		return c, err
	}
	d, faults := servers.Read(servers.Source{Path: name, Scope: scope, Bare: true, Data: slices.Concat([]byte("{"), key, []byte(":"), raw, []byte("}"))})
	if len(d) != 1 {
		f := faults[0]
		return c, serverProblem(name, errors.New(f.What), f.Fix)
	}
	switch scope {
	case servers.Local:
		err = a.serverStore().Change(a.opts.Workdir, func(ch *servers.Choices) error {
			if ch.Add(name, raw) {
				return errServerThere
			}
			ch.Switch(name, true)
			return nil
		})
	case servers.User:
		if c.Path, err = a.scopeFile("user"); err == nil {
			_, err = a.changeSettings(ctx, "user", "mcpServers."+name, func(t *jsonc.Text) ([]byte, error) {
				if _, ok := t.Get("mcpServers", name); ok {
					return nil, errServerThere
				}
				return t.Set(raw, "mcpServers", name)
			})
		}
	case servers.Project:
		c.Path = filepath.Join(a.opts.Workdir, servers.FileName)
		err = a.changeProjectServers(ctx, c.Path, func(t *jsonc.Text) ([]byte, error) {
			if _, ok := t.Get("mcpServers", name); ok {
				return nil, errServerThere
			}
			return t.Set(raw, "mcpServers", name)
		})
		if err == nil { // it was its user who wrote it
			err = a.serverStore().Change(a.opts.Workdir, func(ch *servers.Choices) error { ch.Approve(name, d[0].Hash, true); return nil })
		}
	default:
		return c, serverProblem(name, fmt.Errorf("there is no scope %q", servers.Clip(scope)), "name one of: "+strings.Join(ServerScopes(), ", "))
	}
	if errors.Is(err, errServerThere) {
		return c, serverProblem(name, errServerThere, "take it out first: dure mcp remove "+name+" --scope "+scope)
	}
	return c, err
}

var errServerThere = errors.New("there is one of this name already")

// changeProjectServers changes the file of the working folder.
func (a *App) changeProjectServers(ctx context.Context, file string, change func(*jsonc.Text) ([]byte, error)) error {
	unlock, err := a.lockSettings(ctx, settingsWait)
	if err == nil {
		defer unlock()
		err = a.keepInside(servers.Project, file)
	}
	if err != nil {
		return writingProblem(file, err)
	}
	before, err := config.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return writingProblem(file, err)
	}
	t, err := jsonc.Read(before, nil)
	if err != nil {
		return writingProblem(file, err)
	}
	after, err := change(t)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	again := a.trustedApart(file)
	if err := replaceText(file, after, false); err != nil {
		return writingProblem(file, err)
	}
	again()
	return nil
}

// RemoveServer takes a server out of a scope; "" = the only one that has it.
func (a *App) RemoveServer(ctx context.Context, scope, name string) (ServerChange, error) {
	c := ServerChange{Name: name, Scope: scope}
	known, _ := a.serversIn(a.opts.Workdir)
	var scopes, names []string
	for _, k := range known {
		names = append(names, k.Name)
		if k.Name == name && !slices.Contains(scopes, k.Scope) {
			scopes = append(scopes, k.Scope)
		}
	}
	file := filepath.Join(a.opts.Workdir, servers.FileName)
	for _, s := range ServerScopes() { // also one that cannot be read
		if !slices.Contains(scopes, s) && a.hasServer(s, file, name) {
			scopes = append(scopes, s)
		}
	}
	ours := slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !slices.Contains(ServerScopes(), s) })
	switch {
	case len(scopes) == 0, scope != "" && !slices.Contains(scopes, scope):
		return c, noServer(name, names)
	case len(ours) == 0:
		return c, serverProblem(name, fmt.Errorf("it is of scope %s, which is not changed from here", scopes[0]), "switch it off with dure mcp disable "+name)
	case scope == "" && len(ours) > 1:
		return c, serverProblem(name, errors.New("several scopes have it: "+strings.Join(ours, ", ")), "name one: dure mcp remove "+name+" --scope "+ours[0])
	case scope == "":
		c.Scope = ours[0]
	}
	var err error
	unset := func(t *jsonc.Text) ([]byte, error) { return t.Unset("mcpServers", name) }
	switch c.Scope {
	case servers.Local:
		err = a.serverStore().Change(a.opts.Workdir, func(ch *servers.Choices) error { ch.Add(name, nil); return nil })
	case servers.User:
		if c.Path, err = a.scopeFile("user"); err == nil {
			_, err = a.changeSettings(ctx, "user", "mcpServers."+name, unset)
		}
	case servers.Project:
		c.Path = file
		err = a.changeProjectServers(ctx, c.Path, unset)
	}
	if errors.Is(err, jsonc.ErrNotThere) {
		err = serverProblem(name, errors.New("it stands in another file"), "take it out there; dure mcp get "+name+" says where")
	}
	return c, err
}

// hasServer reports whether the file of a scope has a server, readable or not.
func (a *App) hasServer(scope, file, name string) bool {
	switch scope {
	case servers.Local:
		c, err := a.serverStore().Of(a.opts.Workdir)
		_, ok := c.Added[name]
		return err == nil && ok
	case servers.User:
		path, err := a.scopeFile("user")
		if err != nil {
			return false
		}
		file = path
	}
	data, err := config.ReadFile(file)
	if err != nil {
		return false
	}
	t, err := jsonc.Read(data, nil)
	if err != nil {
		return false
	}
	_, ok := t.Get("mcpServers", name)
	return ok
}

// ApproveServer records whether a server of the project of the working folder may be used,
// with the definition that it has now; and of any server, that its tools may be what they
// say now.
func (a *App) ApproveServer(name string, yes bool) (query.ServerInfo, error) {
	return a.approveServer(a.opts.Workdir, name, yes)
}

func (a *App) approveServer(workdir, name string, yes bool) (query.ServerInfo, error) {
	k, err := a.findServer(workdir, name)
	if err != nil {
		return query.ServerInfo{}, err
	}
	n := 0
	if yes {
		if n, err = a.agreeToTools(workdir, name); err != nil {
			return serverInfo(k), err
		}
	}
	switch {
	case k.Scope != servers.Project && n > 0:
		return serverInfo(k), nil
	case k.Scope != servers.Project:
		return serverInfo(k), serverProblem(name, errors.New("no project names it: it needs no yes"), "switch it off with dure mcp disable "+name)
	}
	if err := a.serverStore().Change(workdir, func(c *servers.Choices) error { c.Approve(name, k.Hash, yes); return nil }); err != nil {
		return serverInfo(k), serverProblem(name, err, "dure mcp reset-project-choices")
	}
	k, err = a.findServer(workdir, name)
	return serverInfo(k), err
}

// agreeToTools takes the tools of a server as they are now: in the sessions that are open,
// and in others when they are seen next. It returns how many had changed.
func (a *App) agreeToTools(workdir, name string) (n int, err error) {
	a.servers.mu.Lock()
	var open []*connected
	for _, c := range a.servers.open {
		if (c.workdir == workdir || c.ws.Root() == workdir) && !slices.Contains(open, c) {
			open = append(open, c)
		}
	}
	a.servers.mu.Unlock()
	for _, c := range open {
		more, err := c.agree(name)
		if err != nil {
			return n, err
		}
		n += more
	}
	err = a.serverStore().Change(workdir, func(c *servers.Choices) error { n += c.Agree(name); return nil })
	return n, err
}

// SwitchServer records whether a server is used in this folder.
func (a *App) SwitchServer(name string, on bool) (query.ServerInfo, error) {
	return a.switchServer(a.opts.Workdir, name, on)
}

func (a *App) switchServer(workdir, name string, on bool) (query.ServerInfo, error) {
	k, err := a.findServer(workdir, name)
	if err != nil {
		return query.ServerInfo{}, err
	}
	if err := a.serverStore().Change(workdir, func(c *servers.Choices) error { c.Switch(name, on); return nil }); err != nil {
		return serverInfo(k), serverProblem(name, err, "dure mcp list")
	}
	k, err = a.findServer(workdir, name)
	return serverInfo(k), err
}

// ResetServers forgets what was said of the project's servers.
func (a *App) ResetServers() (n int, err error) {
	err = a.serverStore().Change(a.opts.Workdir, func(c *servers.Choices) error { n = c.Reset(); return nil })
	return n, err
}
