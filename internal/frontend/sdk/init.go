package sdk

import (
	"context"
	"slices"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// initMessage is the beginning of a turn.
type initMessage struct {
	head
	Agents       []string     `json:"agents"`
	KeySource    string       `json:"apiKeySource"`
	Version      string       `json:"claude_code_version"`
	Cwd          string       `json:"cwd"`
	Tools        []string     `json:"tools"`
	Servers      []serverLine `json:"mcp_servers"`
	Model        string       `json:"model"`
	Mode         string       `json:"permissionMode"`
	Commands     []string     `json:"slash_commands"`
	Style        string       `json:"output_style"`
	Skills       []string     `json:"skills"`
	Plugins      []pluginLine `json:"plugins"`
	Capabilities []string     `json:"capabilities"`
}

type serverLine struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Source string `json:"source,omitempty"`
}

type pluginLine struct {
	Name    string `json:"name"`
	Path    string `json:"path"` // "" = it is installed
	Source  string `json:"source"`
	Version string `json:"version,omitempty"`
}

// pluginLines are the plugins that are in force, with how many should be and are not.
func pluginLines(list []query.PluginInfo) (lines []pluginLine, faults int) {
	lines = []pluginLine{}
	for _, p := range list {
		switch {
		case !p.Enabled:
		case p.Problem != "":
			faults++
		default:
			one := pluginLine{Name: p.Name, Source: p.Source, Version: p.Version}
			if p.By == "flag" {
				one.Path, one.Source = p.Source, p.ID
			}
			lines = append(lines, one)
		}
	}
	return lines, faults
}

// capabilities are what hosts may count on beside what every version has.
var capabilities = []string{"interrupt_receipt_v1", "interrupt_cancel_queued_v1", "reload_plugins_refuse_if_busy_v1"}

// beginning is what the session is like as a turn begins. What cannot be found out is left
// out: the turn does not wait for it.
func (h *Host) beginning() initMessage {
	ctx, done := context.WithTimeout(h.ctx, closeTime)
	defer done()
	m := initMessage{
		head: h.head("system", "init", ""), KeySource: h.prog.KeySource, Version: h.prog.Version, Cwd: h.prog.Workdir,
		Model: h.show.model, Mode: string(h.show.mode), Style: outputStyle, Capabilities: capabilities,
		Agents: []string{}, Tools: []string{}, Servers: []serverLine{}, Commands: []string{}, Skills: []string{}, Plugins: []pluginLine{},
	}
	if m.Mode == "" {
		m.Mode = string(agent.ModeDefault)
	}
	c := h.prog.Client
	if r, err := client.Query[query.ToolReport](ctx, c, query.ListTools{Session: h.session}); err == nil {
		for _, t := range r.Tools {
			if t.State != "off" {
				m.Tools = append(m.Tools, t.Shown)
			}
		}
	}
	if r, err := client.Query[query.ServerReport](ctx, c, query.ListServers{Session: h.session}); err == nil {
		for _, s := range r.Servers {
			if s.State != "hidden" {
				m.Servers = append(m.Servers, serverLine{s.Name, ServerStatus(s.State), s.Scope})
			}
		}
	}
	if list, err := client.Query[[]query.CommandInfo](ctx, c, query.ListCommands{Session: h.session}); err == nil {
		for _, x := range list {
			if typable(x) {
				m.Commands = append(m.Commands, x.Name)
			}
			if x.Kind == query.CommandSkill && x.Off == "" {
				m.Skills = append(m.Skills, x.Name)
			}
		}
	}
	if h.plugins == nil {
		if list, err := client.Query[[]query.PluginInfo](ctx, c, query.ListPlugins{Workdir: h.prog.Workdir}); err == nil {
			h.plugins, _ = pluginLines(list)
		}
	}
	m.Plugins = append(m.Plugins, h.plugins...)
	if list, err := client.Query[[]query.AgentInfo](ctx, c, query.ListAgents{Workdir: h.prog.Workdir}); err == nil {
		for _, a := range list {
			if a.State == "active" && !slices.Contains(m.Agents, a.Name) {
				m.Agents = append(m.Agents, a.Name)
			}
		}
	}
	return m
}

// ServerStatus is the state of a server in the words of the protocol.
func ServerStatus(state string) string {
	switch state {
	case "connected", "failed":
		return state
	case "login":
		return "needs-auth"
	case "off", "rejected", "forbidden":
		return "disabled"
	case "broken":
		return "failed"
	}
	return "pending"
}
