package app

import (
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/tools/catalog"
)

// The sources that [Flags.Sources] may name.
const (
	SourceUser    = config.User
	SourceProject = config.Project
	SourceLocal   = config.Local
)

// layers are the layers of settings that are read; nil = all.
func (f Flags) layers() []config.Layer {
	if f.Sources == nil {
		return nil
	}
	all := []config.Layer{} // not nil: none is not all
	for _, name := range *f.Sources {
		all = append(all, config.Layer(name))
	}
	return all
}

// reads reports whether what stands in files of a layer is read.
func (f Flags) reads(kind config.Layer) bool {
	return f.Sources == nil || slices.Contains(f.layers(), kind)
}

// offered returns which tools a kind of work has, of those that the command line leaves;
// nil = all.
func (a *App) offered(cat *catalog.Catalog, w config.Work) (func(agent.Spec) bool, error) {
	has, err := offered(cat, w)
	only := a.opts.Flags.Tools
	if err != nil || only == nil || slices.Contains(*only, catalog.Default) {
		return has, err
	}
	names := map[string]bool{agent.FormTool: true} // it is there where it was asked for
	for _, name := range *only {
		if canonical, ok := cat.Canonical(name); ok { // others are not there anyway
			names[canonical] = true
		}
	}
	return catalog.Both(has, func(s agent.Spec) bool {
		return strings.HasPrefix(s.Name, "mcp__") || names[s.Name] || names["group:"+s.Group]
	}), nil
}
