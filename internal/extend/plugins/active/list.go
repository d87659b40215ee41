package active

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"dure/agent/query"
	"dure/internal/extend/plugins"
)

// list returns the plugins that are installed, named for this run, or beside skills.
func (x *Extension) list(_ context.Context, q query.ListPlugins) ([]query.PluginInfo, error) {
	workdir, s, choices := cmp.Or(q.Workdir, x.cfg.Workdir), x.cfg.Store(), x.choices()
	all := []query.PluginInfo{}
	add := func(info query.PluginInfo, l plugins.Loaded, own map[string]json.RawMessage, err error) {
		if err != nil {
			info.Problem = err.Error()
		}
		all = append(all, x.described(info, l, own))
	}
	for _, n := range x.named() {
		l, err := s.LoadFolder(n.dir)
		info := query.PluginInfo{ID: l.ID, Source: n.dir, Enabled: true, By: "flag"}
		if err != nil {
			info.Name = filepath.Base(n.dir)
		}
		add(info, l, nil, err)
	}
	list, err := s.List()
	if err != nil {
		return nil, plugins.Problem("list", err)
	}
	for _, in := range list {
		l, err := s.Look(in)
		info := query.PluginInfo{ID: in.ID, Name: in.Name(), Version: in.Now.Version, Source: plugins.SourceText(in.Now.Source), SHA256: in.Now.Tree}
		if in.Before != nil {
			info.Before = in.Before.Version
		}
		info.Enabled, info.By = choices.Enabled(in, l.Off, workdir)
		add(info, l, in.Options, err)
	}
	for _, one := range besideIn(x.besidePlaces(workdir, true)) {
		l, err := s.LoadBeside(one.dir, one.covers)
		info := query.PluginInfo{ID: l.ID, Name: strings.TrimSuffix(l.ID, "@"+plugins.SkillsDir), Source: one.dir}
		info.Enabled, info.By = choices.Enabled(plugins.Installed{ID: l.ID}, l.Off, workdir)
		add(info, l, nil, err)
	}
	first := map[string]string{} // of a name, which is in force
	for i, info := range all {
		switch id, ok := first[info.Name]; {
		case !info.Enabled || info.Problem != "":
		case ok:
			all[i].Problem = taken(id)
		default:
			first[info.Name] = info.ID
		}
	}
	return all, nil
}

// described adds what a plugin says of itself.
func (x *Extension) described(info query.PluginInfo, l plugins.Loaded, own map[string]json.RawMessage) query.PluginInfo {
	info.Capabilities, info.Left = []query.PluginCapability{}, []string{}
	if info.Problem != "" {
		return info
	}
	p := l.Plugin
	info.Name, info.Title, info.Description, info.Warnings = p.Name, p.Title, p.Description, p.Warnings
	info.Version = cmp.Or(info.Version, p.Version)
	info.Missing = x.missing(l, own)
	info.Capabilities = append(info.Capabilities, p.Can...)
	left := p.Left
	for _, kind := range []string{plugins.Commands, plugins.Agents} {
		_, more := l.Folders(kind)
		left = append(left[:len(left):len(left)], more...)
	}
	for _, one := range left {
		info.Left = append(info.Left, one.What+": "+one.Why)
	}
	return info
}
