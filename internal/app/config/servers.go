package config

import (
	"encoding/json"
	"fmt"
	"slices"
)

// MCP is what the settings say of servers of the Model Context Protocol. What they mean is
// for others to say.
type MCP struct {
	Sources []RawServers // the weaker layers before the stronger

	AllProject bool     // servers of trusted projects are used without a question
	Enabled    []string // those of these names are
	Disabled   []string // those of these names are not used

	Allowed     *[]json.RawMessage // nil = any; an empty list is none
	Denied      []json.RawMessage
	ManagedOnly bool // only the administrator names servers
}

// RawServers is the value of "mcpServers" in one source.
type RawServers struct {
	Layer  Layer
	File   string // "" = it is in no file
	Line   int    // where JSON begins in it; 0 = that is not known
	Theirs bool   // the file is one of a .claude folder
	JSON   Secret
}

// FileMCP is [MCP] as a file writes it.
type FileMCP struct {
	Servers         json.RawMessage    `json:"mcpServers"`
	AllProject      *bool              `json:"enableAllProjectMcpServers"`
	EnabledServers  []string           `json:"enabledMcpjsonServers"`
	DisabledServers []string           `json:"disabledMcpjsonServers"`
	AllowedServers  *[]json.RawMessage `json:"allowedMcpServers"`
	DeniedServers   []json.RawMessage  `json:"deniedMcpServers"`
	ManagedServers  *bool              `json:"allowManagedMcpServersOnly"`
}

// maxServerList bounds each list about servers.
const maxServerList = 1000

// servers adds those of a layer.
func (l *loader) servers(ly layer, s Settings) error {
	m, to := s.FileMCP, &l.cfg.MCP
	if len(m.Servers) > 0 && string(m.Servers) != "null" {
		line, _ := ly.position(ly.where("mcpServers"))
		to.Sources = append(to.Sources, RawServers{Layer: ly.kind, File: ly.path, Line: line, Theirs: ly.compat, JSON: Secret(m.Servers)})
		l.set(ly, "mcpServers", false)
	}
	if v := m.AllProject; v != nil {
		l.set(ly, "enableAllProjectMcpServers", to.AllProject != *v)
		to.AllProject = *v
	}
	for _, list := range []struct {
		key    string
		values []string
		to     *[]string
	}{{"enabledMcpjsonServers", m.EnabledServers, &to.Enabled}, {"disabledMcpjsonServers", m.DisabledServers, &to.Disabled}} {
		for i, v := range list.values {
			if v == "" || len(v) > maxText || i >= maxServerList {
				return l.invalidItem(ly, list.key, i, v, fmt.Sprintf("the name of a server, and one of at most %d", maxServerList))
			}
		}
		if len(list.values) > 0 {
			l.set(ly, list.key, false)
			*list.to = union(*list.to, list.values)
		}
	}
	if len(m.DeniedServers) > 0 {
		l.set(ly, "deniedMcpServers", false)
		to.Denied = append(slices.Clone(to.Denied), m.DeniedServers...)
	}
	return l.managedServers(ly, m)
}

// managedServers applies what is the administrator's alone.
func (l *loader) managedServers(ly layer, m FileMCP) error {
	to := &l.cfg.MCP
	for _, f := range []struct {
		key   string
		given bool
		apply func()
	}{
		{"allowedMcpServers", m.AllowedServers != nil, func() { to.Allowed = m.AllowedServers }},
		{"allowManagedMcpServersOnly", m.ManagedServers != nil, func() { to.ManagedOnly = *m.ManagedServers }},
	} {
		switch {
		case !f.given:
		case ly.kind != Managed:
			l.inert(ly, f.key, ly.where(f.key), Locked, "")
		default:
			l.set(ly, f.key, false)
			f.apply()
		}
	}
	return nil
}

// restrictServers takes out what only a trusted folder may say about servers, and what none
// may: no repository approves what it brings itself.
func (l *loader) restrictServers(ly layer, s *Settings) {
	m := &s.FileMCP
	own := func(key string, given bool) {
		switch {
		case !given:
		case ly.compat: // another agent keeps its user's answers there
			l.leave(Inert{Key: key, Origin: Origin{ly.kind, ly.place(ly.where(key))}, Why: Foreign})
		default:
			l.inert(ly, key, ly.where(key), Foreign, "")
		}
	}
	own("enableAllProjectMcpServers", m.AllProject != nil)
	own("enabledMcpjsonServers", m.EnabledServers != nil)
	m.AllProject, m.EnabledServers = nil, nil
	if len(m.Servers) > 0 && !l.permits(ly) {
		l.inert(ly, "mcpServers", ly.where("mcpServers"), Untrusted, "")
		m.Servers = nil
	}
}
