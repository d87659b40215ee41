package trust

import (
	"path"
	"strings"

	"dure/agent/query"
)

// What says what a file of the content is for: settings, hook, skill, command,
// agent, rule, server, plugin or other.
func What(name string) string {
	top, rest, deep := strings.Cut(strings.ToLower(name), "/")
	switch {
	case !deep && strings.HasSuffix(top, ".json"):
		return "server"
	case top == ".claude-plugin":
		return "plugin"
	}
	first, _, deep := strings.Cut(rest, "/")
	switch {
	case !deep && strings.HasPrefix(first, "settings") && path.Ext(first) == ".json":
		return "settings"
	case !deep && (first == "mcp.json" || first == ".mcp.json"):
		return "server"
	}
	for _, kind := range []string{"hook", "skill", "command", "agent", "rule", "plugin"} {
		if first == kind+"s" || first == kind+"s.json" {
			return kind
		}
	}
	return "other"
}

// List returns the folders that were decided on, by path. It does not look at
// what they bring now.
func (s Store) List() ([]query.DecidedFolder, error) {
	b, err := s.read()
	if err != nil {
		return nil, err
	}
	var all []query.DecidedFolder
	for _, e := range b.Folders {
		now, err := Find(e.Path)
		all = append(all, query.DecidedFolder{
			Path: e.Path, At: e.At, By: e.By, Never: e.Never, Files: len(e.Files),
			Gone: err != nil || !now.Names(e.Path) || now.Replaced(e.Folder),
		})
	}
	return all, nil
}
