package connections

import (
	"bytes"
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
	"dure/internal/extend/mcp/servers"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// managed are the files by which an administrator names all servers that there are, ours
// before another agent's.
func managed(system string) []string {
	switch system {
	case "windows":
		return []string{`C:\Program Files\dure\managed-mcp.json`, `C:\Program Files\ClaudeCode\managed-mcp.json`}
	case "darwin":
		return []string{"/Library/Application Support/dure/managed-mcp.json", "/Library/Application Support/ClaudeCode/managed-mcp.json"}
	}
	return []string{"/etc/dure/managed-mcp.json", "/etc/claude-code/managed-mcp.json"}
}

// sources is what is read of servers for a folder.
type sources struct {
	x      *Extension
	list   []servers.Definition
	faults []servers.Fault
	only   bool // no others than the administrator's
}

func (s *sources) add(from servers.Source) {
	list, faults := servers.Read(from)
	s.list, s.faults = append(s.list, list...), append(s.faults, faults...)
}

// addFile reads a file, if it is there.
func (s *sources) addFile(path, scope string) (there bool) {
	data, err := s.x.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		s.faults = append(s.faults, servers.Fault{Path: path, What: "reading it: " + workspace.Cause(err).Error()})
	default:
		s.add(servers.Source{Path: path, Scope: scope, Data: data, Trusted: scope == servers.Project && s.x.Covered(path, data)})
	}
	return true
}

// addGiven reads a value of --mcp-config: a file, or a JSON object.
func (s *sources) addGiven(i int, given string) {
	if strings.HasPrefix(strings.TrimSpace(given), "{") {
		s.add(servers.Source{Path: fmt.Sprintf("--mcp-config %d", i+1), Scope: servers.Given, Data: []byte(given)})
		return
	}
	if rest, ok := strings.CutPrefix(given, "~/"); ok { // as settings understand it
		given = filepath.Join(s.x.Home, rest)
	}
	if !filepath.IsAbs(given) {
		given = filepath.Join(s.x.Workdir, given)
	}
	if !s.addFile(given, servers.Given) {
		s.faults = append(s.faults, servers.Fault{Path: given, What: "there is no such file", Fix: "name a file, or write the servers as JSON"})
	}
}

// CheckGiven refuses values of --mcp-config that are no servers. One server among others
// that cannot be used is noted, as in every other place.
func (x *Extension) CheckGiven() error {
	s := sources{x: x}
	for i, given := range x.Given {
		s.addGiven(i, given)
	}
	for _, f := range s.faults {
		if f.Server != "" || f.Odd {
			continue
		}
		what := f.Error()
		if !strings.HasPrefix(what, "--mcp-config ") { // JSON on the command line is called so
			what = "--mcp-config: " + what
		}
		return &agent.Problem{Code: agent.ProblemUsage, Message: what, Fix: cmp.Or(f.Fix, "name a file, or write the servers as JSON")}
	}
	return nil
}

// read reads all sources of a folder.
func (x *Extension) read(workdir string, choices servers.Choices) *sources {
	s := &sources{x: x}
	for _, path := range managed(runtime.GOOS) {
		if s.only = s.addFile(path, servers.Managed); s.only {
			return s
		}
	}
	for i, given := range x.Given {
		s.addGiven(i, given)
	}
	if from, err := x.Host.source(); err != nil {
		s.faults = append(s.faults, servers.Fault{Path: hostSource, What: err.Error()})
	} else {
		s.add(from)
	}
	if x.OnlyGiven {
		return s
	}
	if !x.NoLocal {
		s.add(choices.Source("dure mcp add"))
	}
	if !x.NoProject {
		for _, path := range x.projectFiles(workdir) {
			s.addFile(path, servers.Project)
		}
	}
	more, faults := x.Sources(workdir)
	for _, from := range more {
		s.add(from)
	}
	s.faults = append(s.faults, faults...)
	return s
}

// projectFiles are the files of a project, the nearest first: in the folder, and above it as
// far as the repository goes.
func (x *Extension) projectFiles(workdir string) (files []string) {
	top := cmp.Or(x.Top(workdir), workdir)
	for dir := workdir; ; dir = filepath.Dir(dir) {
		files = append(files, filepath.Join(dir, servers.FileName))
		if dir == top || dir == filepath.Dir(dir) {
			return files
		}
	}
}

// Known returns the servers that the sessions of a folder have, and those that they do not
// have, with the reason. Those of the bundle that runs come behind the others.
func (x *Extension) Known(workdir string) ([]servers.Known, []servers.Fault) {
	choices, err := x.store.Of(workdir)
	s := x.read(workdir, choices)
	if err != nil {
		s.faults = append(s.faults, servers.Fault{Path: x.store.Dir, What: err.Error()})
		s.list = nil // what was switched off or rejected would be used
	}
	known := x.resolve(s.list, choices, workdir)
	if x.Bundle != "" && !s.only && !x.OnlyGiven {
		return x.withBundle(known, s.faults, x.Bundle, workdir)
	}
	return known, s.faults
}

// resolve says which servers of some sources are used.
func (x *Extension) resolve(list []servers.Definition, choices servers.Choices, workdir string) []servers.Known {
	return servers.Resolve(servers.Config{
		Definitions: list, Choices: choices, Settings: x.Settings, Secret: x.Secret,
		Lookup: func(name string) (string, bool) {
			if name == "CLAUDE_PROJECT_DIR" {
				return workdir, true
			}
			for _, entry := range slices.Backward(x.Environ) {
				if n, v, ok := strings.Cut(entry, "="); ok && (n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name)) {
					return v, true
				}
			}
			return "", false
		},
	})
}

// withBundle adds the servers that the folder of a bundle names to others, which come before
// those of their names. They need trust and a yes there, as others of projects do.
func (x *Extension) withBundle(known []servers.Known, faults []servers.Fault, dir, workdir string) ([]servers.Known, []servers.Fault) {
	path, s := filepath.Join(dir, servers.FileName), sources{x: x}
	if slices.Contains(x.projectFiles(workdir), path) || !s.addFile(path, servers.Project) {
		return known, faults
	}
	choices, err := x.store.Of(dir)
	if err != nil {
		return known, append(faults, servers.Fault{Path: x.store.Dir, What: err.Error()})
	}
	for _, k := range x.resolve(s.list, choices, dir) {
		if !slices.ContainsFunc(known, func(o servers.Known) bool { return o.Name == k.Name && o.State != servers.Hidden }) {
			known = append(known, k)
		}
	}
	return known, append(faults, s.faults...)
}

// ForBundle says why a tool of a bundle in a folder cannot be that of a server; nil = it can.
func (x *Extension) ForBundle(dir, tool, name string) error {
	why, fix := x.unusable(dir, name)
	if why == "" {
		return nil
	}
	return &agent.Problem{Code: agent.ProblemBundle, Message: fmt.Sprintf("%s is of the server %s: %s", tool, kit.Clip(name), why), Fix: fix}
}

func (x *Extension) unusable(dir, name string) (why, fix string) {
	known, faults := x.Known(x.Workdir)
	known, _ = x.withBundle(known, faults, dir, x.Workdir)
	i := slices.IndexFunc(known, func(k servers.Known) bool { return k.Name == name && k.Agent == "" && k.State != servers.Hidden })
	path := filepath.Join(dir, servers.FileName)
	if i < 0 {
		return "there is no such server", "write it into " + path + ", or: dure mcp add"
	}
	k := known[i]
	switch k.State {
	case servers.Ready:
		return "", ""
	case servers.Waiting, servers.Changed:
		fix = "look at it, then: dure mcp approve " + name
	case servers.Untrusted:
		fix = "look at it, then: dure trust " + dir
	default:
		fix = "dure mcp get " + name
	}
	if k.Source == path && dir != x.Workdir {
		fix += " (in " + dir + ")"
	}
	return "it is not used: " + string(k.State), fix
}

// agentPrefix begins the names of the servers of a type of agents where they are listed and
// said yes to. In the sessions of the type they have their own names.
func agentPrefix(kind string) string { return "agent:" + kind + ":" }

// AgentSource is the servers that a type of agents defines itself in its file, without those
// that it only names, which it has with its session. A project whose file is not as it was
// trusted has none.
func AgentSource(kind, path string, project bool, raw json.RawMessage) (servers.Source, *servers.Fault) {
	data, err := inline(raw)
	if err != nil {
		return servers.Source{}, &servers.Fault{Path: path, What: err.Error(), Fix: "write names of servers, or {NAME: {command: ...}}"}
	}
	s := servers.Source{
		Path: cmp.Or(path, "--agents "+kind), Scope: servers.Agent, Data: data, Bare: true,
		Prefix: agentPrefix(kind), Agent: kind, Trusted: project,
	}
	if project {
		s.Scope = servers.Project
	}
	return s, nil
}

// inline is the servers of a list or an object as one object; nil = there are none.
func inline(raw json.RawMessage) (json.RawMessage, error) {
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
					return nil, errors.New("mcpServers defines " + kit.Clip(name) + " twice")
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
