package connections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent/query"
	"dure/internal/base/jsonc"
	"dure/internal/extend/mcp/servers"
	"dure/internal/tools/kit"
)

var errThere = errors.New("there is one of this name already")

// edit changes a server in the file of a scope, and returns its path.
func (x *Extension) edit(ctx context.Context, scope, name string, edit func(*jsonc.Text) ([]byte, error)) (path string, err error) {
	path = x.file(scope)
	return path, x.Change(ctx, FileChange{Scope: scope, File: path, Server: name, Edit: edit})
}

// file is the file of a scope; "" = it has none.
func (x *Extension) file(scope string) string {
	switch scope {
	case servers.User:
		return x.OwnFile
	case servers.Project:
		return filepath.Join(x.Workdir, servers.FileName)
	}
	return ""
}

// add names a server in a scope; who names it says yes to it.
func (x *Extension) add(ctx context.Context, q query.AddServer) (query.ServerChange, error) {
	name, raw := q.Server, q.Definition
	c := query.ServerChange{Name: name, Scope: q.Scope}
	if why := servers.CheckName(name); why != "" {
		return c, problem(name, errors.New(why), "give it a name of letters, digits, - and _")
	}
	key, err := json.Marshal(name)
	if err != nil {
		return c, err
	}
	d, faults := servers.Read(servers.Source{Path: name, Scope: q.Scope, Bare: true, Data: slices.Concat([]byte("{"), key, []byte(":"), raw, []byte("}"))})
	if len(d) != 1 {
		f := faults[0]
		return c, problem(name, errors.New(f.What), f.Fix)
	}
	switch q.Scope {
	case servers.Local:
		err = x.store.Change(x.Workdir, func(ch *servers.Choices) error {
			if ch.Add(name, raw) {
				return errThere
			}
			ch.Switch(name, true)
			return nil
		})
	case servers.User, servers.Project:
		c.Path, err = x.edit(ctx, q.Scope, name, func(t *jsonc.Text) ([]byte, error) {
			if _, ok := t.Get("mcpServers", name); ok {
				return nil, errThere
			}
			return t.Set(raw, "mcpServers", name)
		})
		if err == nil && q.Scope == servers.Project { // it was its user who wrote it
			err = x.store.Change(x.Workdir, func(ch *servers.Choices) error { ch.Approve(name, d[0].Hash, true); return nil })
		}
	default:
		return c, problem(name, fmt.Errorf("there is no scope %q", kit.Clip(q.Scope)), "name one of: "+strings.Join(servers.Scopes(), ", "))
	}
	if errors.Is(err, errThere) {
		return c, problem(name, errThere, "take it out first: dure mcp remove "+name+" --scope "+q.Scope)
	}
	return c, err
}

// remove takes a server out of a scope; "" = the only one that has it.
func (x *Extension) remove(ctx context.Context, q query.RemoveServer) (query.ServerChange, error) {
	name, scopes, c := q.Server, servers.Scopes(), query.ServerChange{Name: q.Server, Scope: q.Scope}
	known, _ := x.Known(x.Workdir)
	var in, names []string
	for _, k := range known {
		names = append(names, k.Name)
		if k.Name == name && !slices.Contains(in, k.Scope) {
			in = append(in, k.Scope)
		}
	}
	for _, s := range scopes { // also one that cannot be read
		if !slices.Contains(in, s) && x.has(s, name) {
			in = append(in, s)
		}
	}
	ours := slices.DeleteFunc(slices.Clone(in), func(s string) bool { return !slices.Contains(scopes, s) })
	switch {
	case len(in) == 0, q.Scope != "" && !slices.Contains(in, q.Scope):
		return c, unknown(name, names)
	case len(ours) == 0:
		return c, problem(name, fmt.Errorf("it is of scope %s, which is not changed from here", in[0]), "switch it off with dure mcp disable "+name)
	case q.Scope == "" && len(ours) > 1:
		return c, problem(name, errors.New("several scopes have it: "+strings.Join(ours, ", ")), "name one: dure mcp remove "+name+" --scope "+ours[0])
	case q.Scope == "":
		c.Scope = ours[0]
	}
	var err error
	switch c.Scope {
	case servers.Local:
		err = x.store.Change(x.Workdir, func(ch *servers.Choices) error { ch.Add(name, nil); return nil })
	case servers.User, servers.Project:
		c.Path, err = x.edit(ctx, c.Scope, name, func(t *jsonc.Text) ([]byte, error) { return t.Unset("mcpServers", name) })
	}
	if errors.Is(err, jsonc.ErrNotThere) {
		err = problem(name, errors.New("it stands in another file"), "take it out there; dure mcp get "+name+" says where")
	}
	return c, err
}

// has reports whether a scope has a server, readable or not.
func (x *Extension) has(scope, name string) bool {
	if scope == servers.Local {
		c, err := x.store.Of(x.Workdir)
		_, ok := c.Added[name]
		return err == nil && ok
	}
	data, err := x.Read(x.file(scope))
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

// change does what somebody wants of a server in a session, or without one in the folder of
// the program. What is not connected there, as it was not used when the session began, is used
// from the next session on.
func (x *Extension) change(ctx context.Context, q query.ChangeServer) (query.ServerInfo, error) {
	c, workdir := x.Of(q.Session), x.Folder(q.Session)
	_, has := c.status(q.Server)
	var err error
	switch q.Do {
	case query.ServerApprove, query.ServerReject:
		err = x.approve(workdir, q.Server, q.Do == query.ServerApprove)
	case query.ServerEnable, query.ServerDisable:
		on := q.Do == query.ServerEnable
		if err = x.turn(workdir, q.Server, on); err == nil && has {
			err = c.toggle(q.Server, on)
		}
	case query.ServerReconnect:
		if !has {
			if _, err = x.find(workdir, q.Server); err == nil {
				err = problem(q.Server, errors.New("this session has not begun with it"), "begin another session: /clear")
			}
			break
		}
		if err = c.set.Reconnect(ctx, q.Server); err != nil {
			err = problem(q.Server, err, "dure mcp get "+q.Server)
		}
	default:
		err = problem(q.Server, fmt.Errorf("nothing is called %q", kit.Clip(q.Do)), "write enable, disable, reconnect or approve")
	}
	if err != nil {
		return query.ServerInfo{}, err
	}
	r := x.list(query.ListServers{Session: q.Session})
	if i := slices.IndexFunc(r.Servers, func(s query.ServerInfo) bool { return s.Name == q.Server }); i >= 0 {
		return r.Servers[i], nil
	}
	return query.ServerInfo{}, unknown(q.Server, nil)
}

// toggle connects a server, or ends its connection.
func (c *Servers) toggle(name string, on bool) error {
	do := c.set.Disable
	if on {
		do = c.set.Enable
	}
	if err := do(name); err != nil {
		return err
	}
	c.changed(name)
	return nil
}

// approve records whether a server of the project of a folder may be used, with the definition
// that it has now; and of any server, that its tools may be what they say now.
func (x *Extension) approve(workdir, name string, yes bool) error {
	k, err := x.find(workdir, name)
	if err != nil {
		return err
	}
	n := 0
	if yes {
		if n, err = x.agree(workdir, name); err != nil {
			return err
		}
	}
	switch {
	case k.Scope != servers.Project && n > 0:
		return nil
	case k.Scope != servers.Project:
		return problem(name, errors.New("no project names it: it needs no yes"), "switch it off with dure mcp disable "+name)
	}
	return decided(name, "dure mcp reset-project-choices", x.store.Change(workdir, func(c *servers.Choices) error { c.Approve(name, k.Hash, yes); return nil }))
}

func decided(name, fix string, err error) error {
	if err != nil {
		err = problem(name, err, fix)
	}
	return err
}

// agree takes the tools of a server as they are now: in the sessions that are open, and in
// others when they are seen next. It returns how many had changed.
func (x *Extension) agree(workdir, name string) (n int, err error) {
	x.mu.Lock()
	var open []*Servers
	for _, c := range x.open {
		if (c.b.Workdir == workdir || c.Workspace.Root() == workdir) && !slices.Contains(open, c) {
			open = append(open, c)
		}
	}
	x.mu.Unlock()
	for _, c := range open {
		more, err := c.agree(name)
		if err != nil {
			return n, err
		}
		n += more
	}
	err = x.store.Change(workdir, func(c *servers.Choices) error { n += c.Agree(name); return nil })
	return n, err
}

// turn records whether a server is used in a folder.
func (x *Extension) turn(workdir, name string, on bool) error {
	if _, err := x.find(workdir, name); err != nil {
		return err
	}
	return decided(name, "dure mcp list", x.store.Change(workdir, func(c *servers.Choices) error { c.Switch(name, on); return nil }))
}

// reset forgets what was said of the project's servers.
func (x *Extension) reset(context.Context, query.ResetServers) (n int, err error) {
	err = x.store.Change(x.Workdir, func(c *servers.Choices) error { n = c.Reset(); return nil })
	return n, err
}
