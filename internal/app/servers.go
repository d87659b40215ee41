package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/extend/mcp/servers"
	"dure/internal/extend/plugins/active"
	"dure/internal/safety/workspace"
)

// managedServers are the files by which an administrator names all servers that there
// are, ours before another agent's.
func managedServers(system string) []string {
	switch system {
	case "windows":
		return []string{`C:\Program Files\dure\managed-mcp.json`, `C:\Program Files\ClaudeCode\managed-mcp.json`}
	case "darwin":
		return []string{"/Library/Application Support/dure/managed-mcp.json", "/Library/Application Support/ClaudeCode/managed-mcp.json"}
	}
	return []string{"/etc/dure/managed-mcp.json", "/etc/claude-code/managed-mcp.json"}
}

// serverSources is what is read of servers for a folder.
type serverSources struct {
	list    []servers.Definition
	faults  []servers.Fault
	only    bool            // no others than the administrator's
	trusted map[string]bool // files of projects that are as they were when they were trusted
	plugins map[string]active.Plugin
}

// add reads a source.
func (s *serverSources) add(from servers.Source) []servers.Definition {
	list, faults := servers.Read(from)
	s.list, s.faults = append(s.list, list...), append(s.faults, faults...)
	return list
}

// addFile reads a file, if it is there.
func (s *serverSources) addFile(path, scope string, judge func(data []byte)) (there bool) {
	data, err := config.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		s.faults = append(s.faults, servers.Fault{Path: path, What: "reading it: " + workspace.Cause(err).Error()})
		return true
	}
	if judge != nil {
		judge(data)
	}
	s.add(servers.Source{Path: path, Scope: scope, Data: data})
	return true
}

// serverStore keeps what the user has decided on servers.
func (a *App) serverStore() servers.Store {
	return servers.Store{Dir: filepath.Join(a.cfg.Data, "mcp")}
}

// localServers says in lists where servers of scope local stand.
const localServers = "dure mcp add"

// readServers reads all sources of a folder.
func (a *App) readServers(workdir string, choices servers.Choices) *serverSources {
	s := &serverSources{trusted: map[string]bool{}, plugins: map[string]active.Plugin{}}
	for _, path := range managedServers(runtime.GOOS) {
		if s.only = s.addFile(path, servers.Managed, nil); s.only {
			return s
		}
	}
	for i, given := range a.opts.Flags.Servers {
		a.givenServers(s, i, given)
	}
	a.opts.Host.servers(s)
	if a.opts.Flags.OnlyServers {
		return s
	}
	if a.opts.Flags.reads(config.Local) {
		s.add(choices.Source(localServers))
	}
	for _, path := range projectServers(workdir) {
		if !a.opts.Flags.reads(config.Project) {
			break
		}
		s.addFile(path, servers.Project, func(data []byte) { s.trusted[path] = a.trust.Covers(path, data) })
	}
	for _, raw := range a.cfg.MCP.Sources {
		from := servers.Source{Path: cmp.Or(raw.File, string(raw.Layer)), Data: []byte(raw.JSON), Bare: true, Line: max(raw.Line-1, 0)}
		switch raw.Layer {
		case config.Managed:
			from.Scope = servers.Managed
		case config.Project, config.Local: // they are there when the folder is trusted only
			from.Scope = servers.Project
			s.trusted[from.Path] = true
		case config.Inline, config.Flags:
			from.Scope = servers.Given
		default:
			from.Scope = servers.User
		}
		s.add(from)
	}
	a.pluginServers(s, workdir)
	a.agentServers(s, workdir)
	return s
}

// givenServers reads a value of --mcp-config: a file, or a JSON object.
func (a *App) givenServers(s *serverSources, i int, given string) {
	if strings.HasPrefix(strings.TrimSpace(given), "{") {
		s.add(servers.Source{Path: fmt.Sprintf("--mcp-config %d", i+1), Scope: servers.Given, Data: []byte(given)})
		return
	}
	if rest, ok := strings.CutPrefix(given, "~/"); ok { // as settings understand it
		given = filepath.Join(a.opts.UserHome, rest)
	}
	if !filepath.IsAbs(given) {
		given = filepath.Join(a.opts.Workdir, given)
	}
	if !s.addFile(given, servers.Given, nil) {
		s.faults = append(s.faults, servers.Fault{Path: given, What: "there is no such file", Fix: "name a file, or write the servers as JSON"})
	}
}

// projectServers are the files of a project, the nearest first: in the folder, and above
// it as far as the repository goes.
func projectServers(workdir string) (files []string) {
	top := cmp.Or(gitTop(workdir), workdir)
	for dir := workdir; ; dir = filepath.Dir(dir) {
		files = append(files, filepath.Join(dir, servers.FileName))
		if dir == top || dir == filepath.Dir(dir) {
			return files
		}
	}
}

// pluginServers reads those of plugins, which are named after their plugin.
func (a *App) pluginServers(s *serverSources, workdir string) {
	for _, p := range a.plugins.In(workdir) {
		if len(p.Servers) == 0 {
			continue
		}
		data, err := json.Marshal(p.Servers)
		if err != nil {
			s.faults = append(s.faults, servers.Fault{Path: p.ID, What: err.Error()})
			continue
		}
		list, faults := servers.Read(servers.Source{Path: p.ID, Scope: servers.Plugin, Data: data, Bare: true})
		for i := range list {
			list[i].Name = "plugin:" + p.Name + ":" + list[i].Name
			list[i].Line, list[i].Column = 0, 0 // of no file
			s.plugins[list[i].Name] = p
		}
		for i := range faults {
			faults[i].Line, faults[i].Column = 0, 0
		}
		s.list, s.faults = append(s.list, list...), append(s.faults, faults...)
	}
}

// serversIn returns the servers that the sessions of a folder have, and those that they do
// not have, with the reason.
func (a *App) serversIn(workdir string) ([]servers.Known, []servers.Fault) {
	choices, err := a.serverStore().Of(workdir)
	s := a.readServers(workdir, choices)
	if err != nil {
		s.faults = append(s.faults, servers.Fault{Path: a.serverStore().Dir, What: err.Error()})
		s.list = nil // what was switched off or rejected would be used
	}
	known := a.resolveServers(s, choices, workdir)
	if k := a.opts.Flags.Code; k != nil && !s.only && !a.opts.Flags.OnlyServers {
		return a.withBundle(known, s.faults, k.Dir(), workdir)
	}
	return known, s.faults
}

// resolveServers says which servers of some sources are used.
func (a *App) resolveServers(s *serverSources, choices servers.Choices, workdir string) []servers.Known {
	keys := map[string]bool{}
	for _, p := range a.models.All() {
		for _, name := range p.Keys {
			keys[name] = true
		}
	}
	for _, p := range a.cfg.Providers {
		keys[p.KeyEnv] = true
	}
	m := a.cfg.MCP
	return servers.Resolve(servers.Config{
		Definitions: s.list, Choices: choices, AllProject: m.AllProject, Enabled: m.Enabled, Disabled: m.Disabled,
		Policy: servers.Policy{Allowed: m.Allowed, Denied: m.Denied}, OnlyManaged: m.ManagedOnly,
		Trusted: func(d servers.Definition) bool { return s.trusted[d.Source] },
		Secret:  func(name string) bool { return keys[name] || strings.HasPrefix(name, "DURE_") },
		Lookup:  func(d servers.Definition, name string) (string, bool) { return a.serverVar(s, d, workdir, name) },
	})
}

// serverVar returns a variable that a definition names.
func (a *App) serverVar(s *serverSources, d servers.Definition, workdir, name string) (string, bool) {
	if name == "CLAUDE_PROJECT_DIR" {
		return workdir, true
	}
	if p, ok := s.plugins[d.Name]; ok && d.Scope == servers.Plugin {
		values := a.plugins.Values(p)
		key, option := strings.CutPrefix(name, "user_config.")
		switch {
		case name == "CLAUDE_PLUGIN_ROOT":
			return p.Root, true
		case name == "CLAUDE_PLUGIN_DATA":
			return p.Data, true
		case option:
			v, ok := values[key]
			return v, ok
		}
	}
	if v, ok := a.cfg.Env[name]; ok {
		return string(v), true
	}
	for _, entry := range slices.Backward(a.opts.Environ) {
		if n, v, ok := strings.Cut(entry, "="); ok && (n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name)) {
			return v, true
		}
	}
	return "", false
}

// listServers answers what servers there are.
func (a *App) listServers(q query.ListServers) query.ServerReport {
	c := a.serversOf(q.Session)
	workdir := cmp.Or(q.Workdir, a.folderOf(q.Session, q.Workdir))
	known, faults := a.serversIn(workdir)
	r := query.ServerReport{Servers: []query.ServerInfo{}}
	for _, k := range known {
		r.Servers = append(r.Servers, serverInfo(k))
	}
	c.states(r.Servers)
	for _, f := range faults {
		at := f.Path
		if f.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", f.Path, f.Line, f.Column)
		}
		r.Faults = append(r.Faults, query.ServerFault{Source: at, Server: f.Server, Message: f.What, Fix: f.Fix})
	}
	return r
}

func serverInfo(k servers.Known) query.ServerInfo {
	env, headers := k.Names()
	at := k.Source
	if k.Line > 0 && filepath.IsAbs(at) {
		at = fmt.Sprintf("%s:%d:%d", at, k.Line, k.Column)
	}
	return query.ServerInfo{
		Name: k.Name, Type: k.Type, Run: k.Shown(), Env: env, Headers: headers, Vars: k.Vars,
		Scope: k.Scope, Source: at, Hash: k.Hash, State: string(k.State), Why: k.Why,
	}
}

// ServerNotes says which servers of the folder wait for a yes, and what is wrong with
// others.
func (a *App) ServerNotes() (notes []agent.Note) {
	known, faults := a.serversIn(a.opts.Workdir)
	note := func(format string, args ...any) {
		notes = append(notes, agent.Note{Level: "warn", Code: "servers", Text: fmt.Sprintf(format, args...)})
	}
	var waiting []string
	for _, k := range known {
		switch k.State {
		case servers.Waiting, servers.Changed:
			waiting = append(waiting, k.Name)
		case servers.Broken:
			note("the server %s: %s", servers.Clip(k.Name), k.Why)
		}
	}
	if len(waiting) > 0 {
		note("servers of this folder wait for your yes: %s; dure mcp approve NAME", strings.Join(waiting, ", "))
	}
	for _, f := range faults {
		note("%s", f.Error())
	}
	return notes
}

// findServer returns the server of a name that counts in a folder.
func (a *App) findServer(workdir, name string) (servers.Known, error) {
	known, _ := a.serversIn(workdir)
	if i := slices.IndexFunc(known, func(k servers.Known) bool { return k.Name == name }); i >= 0 {
		return known[i], nil
	}
	var names []string
	for _, k := range known {
		names = append(names, k.Name)
	}
	return servers.Known{}, noServer(name, names)
}

var errNoServer = errors.New("there is no such server")

func noServer(name string, names []string) error {
	fix := "dure mcp list"
	if like := nearestName(name, names); like != "" {
		fix = "dure mcp get " + like
	}
	return serverProblem(name, errNoServer, fix)
}

func serverProblem(name string, err error, fix string) error {
	name = servers.Clip(name)
	return &agent.Problem{
		Code: agent.ProblemServer, Message: fmt.Sprintf("server %s: %v", name, err), Fix: fix, Err: err,
		Args: map[string]string{"name": name, "error": err.Error(), "fix": fix},
	}
}
