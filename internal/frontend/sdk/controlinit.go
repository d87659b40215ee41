package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// Bounds of what a host may say of itself.
const maxCallbacks = 1000

// Initialize is what a host says of itself and of what it wants, before anything begins.
type Initialize struct {
	SystemPrompt       []string        `json:"systemPrompt"` // nil = what dure says of itself
	AppendSystemPrompt string          `json:"appendSystemPrompt"`
	Agents             json.RawMessage `json:"agents"`
	JSONSchema         json.RawMessage `json:"jsonSchema"`
	Skills             *[]string       `json:"skills"` // that its models may use; nil = all
	Title              string          `json:"title"`
	Forward            bool            `json:"forwardSubagentText"`

	Hooks           map[string][]Matcher `json:"hooks"`
	Servers         []string             `json:"sdkMcpServers"`
	ServerConfigs   map[string]ServerConfig
	Manifests       map[string]Manifest `json:"sdkMcpServerManifests"`
	Dialogs         []string            `json:"supportedDialogKinds"`
	Plugins         *[]Plugin           `json:"plugins"`    // nil = it has not said which
	MCPServers      json.RawMessage     `json:"mcpServers"` // nil = likewise
	Settings        json.RawMessage     `json:"settings"`
	Managed         json.RawMessage     `json:"managedSettings"`
	DisallowedTools []string            `json:"disallowedTools"`

	Raw json.RawMessage `json:"-"` // all of it
}

// A Matcher is callbacks of hooks that a host has for an event.
type Matcher struct {
	Matcher   string   `json:"matcher"`
	Callbacks []string `json:"hookCallbackIds"`
	Timeout   float64  `json:"timeout"` // seconds; 0 = the usual one
	OnFailure string   `json:"onFailure"`
}

// ServerConfig is what a host says of a server inside of it.
type ServerConfig struct {
	Timeout float64      `json:"timeout"` // milliseconds of a call; 0 = the usual one
	Tools   []ServerTool `json:"tools"`
}

// ServerTool is how calls of a tool of such a server are to be decided on.
type ServerTool struct {
	Name   string `json:"name"`
	Policy string `json:"permission_policy"`  // always_allow, always_ask or always_deny; "" = as any other
	Most   string `json:"org_max_permission"` // allow, ask or blocked; "" = allow
}

// ToolRules are the rules that hosts want for tools of servers inside of them: of what two
// members say of a tool, the stricter counts.
func (i *Initialize) ToolRules() (allow, ask, deny []string) {
	for _, name := range slices.Sorted(maps.Keys(i.ServerConfigs)) {
		for _, t := range i.ServerConfigs[name].Tools {
			rule := "mcp__" + name + "__" + t.Name
			switch {
			case t.Policy == "always_deny" || t.Most == "blocked":
				deny = append(deny, rule)
			case t.Policy == "always_ask" || t.Most == "ask":
				ask = append(ask, rule)
			case t.Policy == "always_allow":
				allow = append(allow, rule)
			}
		}
	}
	return allow, ask, deny
}

// Manifest is what a host has asked a server inside of it already.
type Manifest struct {
	Initialize json.RawMessage `json:"initializeResult"`
	Tools      json.RawMessage `json:"toolsListResult"`
}

// Plugin is a plugin that a host names.
type Plugin struct {
	Type       string `json:"type"`
	Path       string `json:"path"`
	Serverless bool   `json:"skipMcpDiscovery"`
}

// The outcomes of a manifest.
const (
	Parked      = "parked" // the server is connected without a word
	mismatch    = "protocol_version_mismatch"
	malformed   = "malformed"
	notHonoured = "not_honoured"
)

// Parking says what becomes of each manifest, where servers are spoken with in a version of
// the protocol.
func (i *Initialize) Parking(protocol string) map[string]string {
	out := map[string]string{}
	for name, m := range i.Manifests {
		var hello struct {
			Version      *string          `json:"protocolVersion"`
			Capabilities *json.RawMessage `json:"capabilities"`
		}
		var tools struct {
			Tools *[]json.RawMessage `json:"tools"`
		}
		switch {
		case !slices.Contains(i.Servers, name):
			out[name] = notHonoured
		case json.Unmarshal(m.Initialize, &hello) != nil || hello.Version == nil || hello.Capabilities == nil,
			len(m.Tools) > 0 && (json.Unmarshal(m.Tools, &tools) != nil || tools.Tools == nil):
			out[name] = malformed
		case *hello.Version != protocol:
			out[name] = mismatch
		default:
			out[name] = Parked
		}
	}
	return out
}

// HookSettings are the hooks of the host as settings have them; nil = there are none.
func (i *Initialize) HookSettings() (json.RawMessage, error) {
	all, n := map[string][]any{}, 0
	for _, event := range slices.Sorted(maps.Keys(i.Hooks)) {
		for _, m := range i.Hooks[event] {
			var list []any
			for _, id := range m.Callbacks {
				one := map[string]any{"type": "callback", "callback": id}
				if m.Timeout > 0 {
					one["timeout"] = m.Timeout
				}
				if m.OnFailure != "" {
					one["onFailure"] = m.OnFailure
				}
				list = append(list, one)
				n++
			}
			all[event] = append(all[event], map[string]any{"matcher": m.Matcher, "hooks": list})
		}
	}
	switch {
	case n > maxCallbacks:
		return nil, fmt.Errorf("hooks has %d callbacks; %d are the most", n, maxCallbacks)
	case n == 0:
		return nil, nil
	}
	return json.Marshal(all)
}

// CallTime is how long a call of a server inside of the host may take; 0 = as is usual.
func (i *Initialize) CallTime(server string) time.Duration {
	ms := i.ServerConfigs[server].Timeout
	if ms <= 0 || ms > float64((24*time.Hour)/time.Millisecond) {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// initialize takes what the host says of itself, and begins.
func (h *Host) initialize(body json.RawMessage) (any, error) {
	if h.begun {
		if h.init != nil && h.sess != nil { // it asks once more what it was told
			return h.hello(h.init), nil
		}
		return nil, errBegun
	}
	init, err := parseInitialize(body)
	if err != nil {
		return nil, err
	}
	h.c.Forward = h.c.Forward || init.Forward
	if err := h.begin(init); err != nil {
		return nil, err
	}
	return h.hello(init), nil
}

// parseInitialize reads what a host says of itself.
func parseInitialize(body json.RawMessage) (*Initialize, error) {
	init := &Initialize{Raw: body}
	var more struct {
		Configs map[string]ServerConfig    `json:"sdkMcpServerConfigs"`
		Aliases map[string]json.RawMessage `json:"toolAliases"`
	}
	if err := errors.Join(json.Unmarshal(body, init), json.Unmarshal(body, &more)); err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	init.ServerConfigs = more.Configs
	if len(more.Aliases) > 0 {
		return nil, errors.New("initialize: toolAliases is not served, and calls would go to the tools that it names: take these away with disallowedTools, and the model calls yours")
	}
	for event, list := range init.Hooks {
		for _, m := range list {
			if m.OnFailure != "" && m.OnFailure != "block" && m.OnFailure != "continue" {
				return nil, fmt.Errorf("initialize: onFailure of a hook of %s is %q: it has to be continue or block", event, m.OnFailure)
			}
		}
	}
	return init, nil
}

type commandLine struct {
	Name    string   `json:"name"`
	About   string   `json:"description"`
	Hint    string   `json:"argumentHint"`
	Aliases []string `json:"aliases,omitempty"`
	BuiltIn bool     `json:"builtin,omitempty"`
}

type agentLine struct {
	Name  string `json:"name"`
	About string `json:"description"`
	Model string `json:"model,omitempty"`
}

type modelLine struct {
	Value    string   `json:"value"`
	Resolved string   `json:"resolvedModel,omitempty"`
	Name     string   `json:"displayName"`
	About    string   `json:"description"`
	Effort   bool     `json:"supportsEffort,omitempty"`
	Efforts  []string `json:"supportedEffortLevels,omitempty"`
	Adaptive bool     `json:"supportsAdaptiveThinking,omitempty"`
}

// hello is what the host is told in return.
func (h *Host) hello(init *Initialize) map[string]any {
	ctx, done := context.WithTimeout(h.ctx, closeTime)
	defer done()
	out := map[string]any{
		"commands": h.commandLines(ctx), "agents": h.agentLines(ctx), "models": h.modelLines(ctx),
		"account":      map[string]any{"apiKeySource": h.prog.KeySource, "tokenSource": h.prog.KeySource},
		"output_style": outputStyle, "available_output_styles": []string{outputStyle},
		"claude_code_version": h.prog.Version, "hook_on_failure_supported": true,
	}
	if init.Hooks != nil {
		out["hooks_applied"] = true
	}
	if init.Plugins != nil {
		out["plugins_applied"] = true
	}
	if init.MCPServers != nil {
		out["mcp_servers_applied"] = true
	}
	if init.Settings != nil {
		out["settings_applied"] = true
	}
	if init.Managed != nil {
		out["managed_settings_applied"] = true // else nothing has begun
	}
	if init.DisallowedTools != nil {
		out["disallowed_tools_applied"] = true
	}
	if len(init.Manifests) > 0 {
		out["sdk_mcp_manifests_parked"] = init.Parking(h.prog.Protocol)
	}
	return out
}

// typable reports whether a host can send a command: one that a session makes a prompt of, or
// that is carried out here.
func typable(c query.CommandInfo) bool {
	return c.Off == "" && (c.Kind != query.CommandBuiltIn || slices.Contains(carried, c.Name) || slices.Contains(prompted, c.Name))
}

// prompted are the built-in commands of which sessions make prompts.
var prompted = []string{"init", "review"}

// commandLines are what can be typed behind a slash.
func (h *Host) commandLines(ctx context.Context) []commandLine {
	out := []commandLine{}
	list, err := client.Query[[]query.CommandInfo](ctx, h.prog.Client, query.ListCommands{Session: h.session})
	if err != nil {
		return out // it is for information
	}
	for _, c := range list {
		if typable(c) {
			out = append(out, commandLine{c.Name, c.Description, c.Hint, c.Aliases, c.Kind == query.CommandBuiltIn})
		}
	}
	return out
}

func (h *Host) agentLines(ctx context.Context) []agentLine {
	out := []agentLine{}
	list, err := client.Query[[]query.AgentInfo](ctx, h.prog.Client, query.ListAgents{Workdir: h.prog.Workdir})
	if err != nil {
		return out // it is for information
	}
	for _, a := range list {
		if a.State == "active" && !slices.ContainsFunc(out, func(l agentLine) bool { return l.Name == a.Name }) {
			out = append(out, agentLine{a.Name, a.Description, a.Model})
		}
	}
	return out
}

// modelLines are the models that can be asked here, and first that of the session.
func (h *Host) modelLines(ctx context.Context) []modelLine {
	models, err := client.Query[[]agent.ModelInfo](ctx, h.prog.Client, query.ListModels{})
	if err != nil {
		return []modelLine{} // it is for information
	}
	keyed := map[string]bool{}
	if list, err := client.Query[[]query.ProviderInfo](ctx, h.prog.Client, query.ListProviders{}); err == nil {
		for _, p := range list {
			keyed[p.Name] = p.Key != ""
		}
	}
	now := h.sess.Info.Model
	out := []modelLine{{Value: "default", Resolved: now, Name: "Default", About: now}}
	for _, m := range models {
		if !keyed[m.Provider] && m.ID != now {
			continue
		}
		l := modelLine{Value: m.ID, Resolved: m.ID, Name: m.Name, About: m.Provider, Adaptive: m.Thinking == "adaptive"}
		if l.Name == "" {
			l.Name = m.ID
		}
		if m.Thinking != "" {
			l.Effort, l.Efforts = true, []string{"low", "medium", "high"}
		}
		out = append(out, l)
	}
	return out
}

// notice is a message to whoever uses the host.
func (h *Host) notice(level, words string) any {
	return struct {
		head
		Content string `json:"content"`
		Level   string `json:"level"`
	}{h.head("system", "informational", ""), strings.TrimSpace(words), level}
}
