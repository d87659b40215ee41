package main

import (
	"context"
	"encoding/json"
	"slices"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/app/config/live"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/connections"
	"dure/internal/frontend/sdk"
)

// embedded is what the program sees of the host that drives it over lines.
func (p *program) embedded(h *sdk.Host, init *sdk.Initialize) (*app.Host, error) {
	if !p.flags.linesFrom() {
		return nil, nil
	}
	out := &app.Host{Call: h.Callback}
	out.Message = h.Message
	out.Elicit = func(ctx context.Context, q mcp.Elicitation) (string, map[string]any, error) {
		return h.Elicit(ctx, q.Server, q.Message, q.URL, q.ID, q.Schema)
	}
	if p.flags.host.stores {
		out.Mirrored = h.Mirrored
	}
	if init == nil {
		return out, nil
	}
	var err error
	if out.Hooks, err = init.HookSettings(); err != nil {
		return nil, &agent.Problem{Code: agent.ProblemUsage, Message: "initialize: " + err.Error(), Fix: "give fewer hooks", Err: err}
	}
	parked := init.Parking(mcp.EmbeddedProtocol)
	for _, name := range init.Servers {
		s := connections.HostServer{Name: name, Timeout: init.CallTime(name)}
		if m := init.Manifests[name]; parked[name] == sdk.Parked {
			s.Initialize, s.Tools = m.Initialize, m.Tools
		}
		out.Servers = append(out.Servers, s)
	}
	return out, nil
}

// linesFrom reports whether a host gives lines.
func (f *flags) linesFrom() bool { return f.host.input == formatStream }

// mayBypass reports whether a host may switch permissions off while the session runs.
func (f *flags) mayBypass() bool {
	return f.skip || f.mode == string(agent.ModeBypass) || f.host.bypass
}

// takeMore takes over what a host delivers when it begins, and not on the command line.
func (f *flags) takeMore(init *sdk.Initialize, workdir string) error {
	if has(init.Settings) {
		merged, err := live.Merge(workdir, f.settings, init.Settings)
		if err != nil {
			return &agent.Problem{Code: agent.ProblemUsage, Message: "initialize: " + err.Error(), Fix: "mend the settings", Err: err}
		}
		f.settings = merged
	}
	if has(init.MCPServers) {
		data, err := json.Marshal(map[string]json.RawMessage{"mcpServers": init.MCPServers})
		if err != nil {
			return err
		}
		f.servers = append(slices.Clone(f.servers), string(data))
	}
	if init.Plugins != nil {
		for _, one := range *init.Plugins {
			if one.Serverless {
				f.serverless = append(f.serverless, one.Path)
				continue
			}
			f.pluginDirs = append(f.pluginDirs, one.Path)
		}
	}
	f.host.skills = init.Skills
	f.deny = append(f.deny, init.DisallowedTools...)
	allow, ask, deny := init.ToolRules()
	f.allow, f.deny = append(f.allow, allow...), append(f.deny, deny...)
	return f.takeAsks(ask, workdir)
}

// takeManaged takes over the settings of a host that only restrict. Where they are to come
// with initialize, nothing begins without them.
func (f *flags) takeManaged(init *sdk.Initialize) error {
	bad := func(what, fix string) error {
		return &agent.Problem{Code: agent.ProblemUsage, Message: "initialize: " + what, Fix: fix}
	}
	given := init != nil && has(init.Managed)
	switch {
	case !given && f.host.managedLater:
		return bad("there are no managedSettings in it, and --managed-settings-in-initialize says that there are", "send them")
	case !given:
		return nil
	case f.host.managed != "":
		return bad("managedSettings are there, and --managed-settings too", "send them once")
	}
	f.host.managed = string(init.Managed)
	return nil
}

// takeAsks adds rules that ask to the settings of the command line.
func (f *flags) takeAsks(rules []string, workdir string) error {
	if len(rules) == 0 {
		return nil
	}
	whole, err := live.Merge(workdir, f.settings, json.RawMessage("{}"))
	if err != nil {
		return err
	}
	var had struct {
		Permissions struct {
			Ask []string `json:"ask"`
		} `json:"permissions"`
	}
	if err := json.Unmarshal([]byte(whole), &had); err != nil {
		return &agent.Problem{Code: agent.ProblemUsage, Message: "--settings: " + err.Error(), Fix: "mend the settings", Err: err}
	}
	more, err := json.Marshal(map[string]any{"permissions": map[string]any{"ask": append(had.Permissions.Ask, rules...)}})
	if err != nil {
		return err
	}
	f.settings, err = live.Merge(workdir, whole, more)
	return err
}

func has(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }
