package sdk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// The picture of a context: so many squares in a row, and so many rows.
const gridSide = 10

type category struct {
	ID       string `json:"id,omitempty"`
	Name     string `json:"name"`
	Tokens   int    `json:"tokens"`
	Color    string `json:"color"`
	Deferred bool   `json:"isDeferred,omitempty"`
	Kind     string `json:"kind"`
}

type square struct {
	Color      string  `json:"color"`
	Filled     bool    `json:"isFilled"`
	Name       string  `json:"categoryName"`
	Tokens     int     `json:"tokens"`
	Percentage int     `json:"percentage"`
	Fullness   float64 `json:"squareFullness"`
}

// categories are the parts of a context as hosts know them: the name that people read, and
// the color.
var categories = map[string][2]string{
	"system_prompt": {"System prompt", "gray"}, "system_tools": {"System tools", "silver"},
	"mcp_tools": {"MCP tools", "cyan"}, "mcp_tools_deferred": {"MCP tools (deferred)", "silver"},
	"custom_agents": {"Custom agents", "blue"}, "memory_files": {"Memory files", "orange"},
	"skills": {"Skills", "yellow"}, "messages": {"Messages", "purple"},
	"autocompact_buffer": {"Autocompact buffer", "silver"}, "free_space": {"Free space", "white"},
	"mentions": {"Mentions", "pink"}, "lessons": {"Lessons", "red"}, "hooks": {"Hooks", "green"},
}

// ownParts are parts of a context for which hosts have no name of their own.
var ownParts = []string{"mentions", "lessons", "hooks"}

// contextUsage tells what fills the window of the model.
func (h *Host) contextUsage(struct{}) (any, error) {
	c, id, dir := h.prog.Client, h.session, h.prog.Workdir
	var used any
	if u := h.show.Result("").Usage; u.Input+u.Output+u.CacheRead+u.CacheWrite > 0 {
		used = u
	}
	return reports(h, agent.ContextUsage{Session: id}, func(ctx context.Context, r agent.ContextReport) any {
		out := map[string]any{
			"totalTokens": r.Used, "maxTokens": r.Window, "rawMaxTokens": r.Window, "percentage": int(math.Round(100 * r.Ratio)),
			"model": r.Model, "isAutoCompactEnabled": false, "apiUsage": used, "agents": []any{},
		}
		list := []category{}
		for _, part := range r.Parts {
			if part.Name == "autocompact_buffer" && part.Tokens > 0 {
				out["isAutoCompactEnabled"], out["autoCompactThreshold"] = true, max(r.Window-part.Tokens, 0)
			}
			if part.Name == "system_prompt" && len(part.Parts) > 0 {
				var sections []map[string]any
				for _, s := range part.Parts {
					sections = append(sections, map[string]any{"name": s.Name, "tokens": s.Tokens})
				}
				out["systemPromptSections"] = sections
			}
			list = append(list, categoryOf(part))
		}
		out["categories"], out["gridRows"] = list, grid(list, r.Window)
		out["memoryFiles"] = memoryFiles(ctx, c, id, dir)
		tools := []map[string]any{}
		for _, s := range h.servers(ctx) {
			for _, t := range s.Tools {
				tools = append(tools, map[string]any{"name": t.Name, "serverName": s.Name, "tokens": estimate(len(t.Name) + len(t.Description)), "isLoaded": s.State == "connected"})
			}
		}
		out["mcpTools"] = tools
		return out
	})
}

func categoryOf(p agent.ContextPart) category {
	c := category{ID: p.Name, Name: p.Name, Tokens: p.Tokens, Color: "silver", Kind: "used"}
	if known, ok := categories[p.Name]; ok {
		c.Name, c.Color = known[0], known[1]
	}
	if slices.Contains(ownParts, p.Name) {
		c.ID = ""
	}
	switch p.Name {
	case "free_space":
		c.Kind = "free"
	case "autocompact_buffer":
		c.Kind = "buffer"
	case "mcp_tools_deferred":
		c.Kind, c.Deferred = "deferred", true
	}
	return c
}

// grid is a picture of a context, square by square.
func grid(list []category, window int) [][]square {
	rows := [][]square{}
	if window <= 0 {
		return rows
	}
	var all []square
	for _, c := range list {
		if c.Kind == "deferred" || c.Tokens <= 0 {
			continue
		}
		share := float64(c.Tokens) * gridSide * gridSide / float64(window)
		for share > 0 && len(all) < gridSide*gridSide {
			all = append(all, square{c.Color, c.Kind != "free", c.Name, c.Tokens, int(math.Round(100 * float64(c.Tokens) / float64(window))), min(share, 1)})
			share--
			if c.Kind != "used" && share < 0.5 {
				break
			}
		}
	}
	for row := range slices.Chunk(all, gridSide) {
		rows = append(rows, row)
	}
	return rows
}

// estimate is how many tokens a text may be.
func estimate(bytes int) int { return (bytes + 3) / 4 }

func memoryFiles(ctx context.Context, c client.Client, session, dir string) []map[string]any {
	out := []map[string]any{}
	m, err := client.Query[query.MemoryReport](ctx, c, query.ListMemory{Session: session, Workdir: dir})
	if err != nil {
		return out // it is for information
	}
	for _, f := range m.Files {
		if f.State == "active" {
			out = append(out, map[string]any{"path": f.Path, "type": strings.ToUpper(f.Scope[:1]) + f.Scope[1:], "tokens": estimate(f.Chars)})
		}
	}
	return out
}

// cost is what the session has used.
func (h *Host) cost() map[string]any {
	r := h.show.Result("")
	r.Describe(h.models())
	all, models := costs(r)
	return map[string]any{"total_cost_usd": all, "total_api_duration_ms": h.spent.api, "total_duration_ms": h.spent.all, "model_usage": models}
}

// sessionCost tells what the session has cost.
func (h *Host) sessionCost(struct{}) (any, error) {
	return h.cost(), nil
}

// usage tells what the session has used and changed. There is no subscription that it
// could be counted against.
func (h *Host) usage(struct{}) (any, error) {
	spent, c, id := h.cost(), h.prog.Client, h.session
	return slow(func(ctx context.Context) (any, error) {
		d, err := client.Query[query.DiffReport](ctx, c, query.Diff{Session: id, All: true})
		if err != nil {
			d = query.DiffReport{} // nothing is known of changes
		}
		spent["total_lines_added"], spent["total_lines_removed"] = d.Added, d.Removed
		return map[string]any{"session": spent, "subscription_type": nil, "rate_limits_available": false, "rate_limits": nil, "behaviors": nil}, nil
	}), nil
}

// listModels tells which models can be asked.
func (h *Host) listModels(struct{}) (any, error) {
	return slow(func(ctx context.Context) (any, error) { return map[string]any{"models": h.modelLines(ctx)}, nil }), nil
}

// binaryVersion tells the version of the protocol that is spoken.
func (h *Host) binaryVersion(struct{}) (any, error) {
	return map[string]string{"version": h.prog.Version}, nil
}

// reloadSkills reads the skills again.
func (h *Host) reloadSkills(struct{}) (any, error) {
	p, c, id := h.prog.API, h.prog.Client, h.session
	return slow(func(ctx context.Context) (any, error) {
		if err := p.Reload(id, false, true); err != nil {
			return nil, err
		}
		list, err := client.Query[[]query.CommandInfo](ctx, c, query.ListCommands{Session: id})
		if err != nil {
			return nil, err
		}
		out := []commandLine{}
		for _, s := range list {
			if s.Kind == query.CommandSkill && s.Off == "" {
				out = append(out, commandLine{s.Name, s.Description, s.Hint, s.Aliases, false})
			}
		}
		return map[string]any{"skills": out}, nil
	}), nil
}

// errBusy is why plugins are not read again for a host that wants no turn disturbed.
var errBusy = errors.New("the session is busy")

// agents reports whether something goes on in the background beside commands.
func (h *Host) agents() bool {
	_, others := h.running()
	return others
}

// reloadPlugins reads the plugins again. What the running session has of them stays until
// another one begins.
func (h *Host) reloadPlugins(in struct {
	Add    []Plugin `json:"add_plugins"`
	Refuse bool     `json:"refuse_if_busy"`
},
) (any, error) {
	switch {
	case len(in.Add) > 0:
		return nil, fmt.Errorf("plugins cannot be added while a session runs; begin with them")
	case in.Refuse && (h.show.busy() || len(h.queue) > 0 || h.agents()):
		return nil, errBusy
	}
	p, c, id := h.prog.API, h.prog.Client, h.session
	h.plugins = nil
	return slow(func(ctx context.Context) (any, error) {
		if err := p.Reload(id, true, true); err != nil {
			return nil, err
		}
		list, err := client.Query[[]query.PluginInfo](ctx, c, query.ListPlugins{})
		if err != nil {
			return nil, err
		}
		plugins, faults := pluginLines(list)
		return map[string]any{
			"commands": h.commandLines(ctx), "agents": h.agentLines(ctx), "plugins": plugins, "mcpServers": serverLines(h.servers(ctx)), "error_count": faults,
		}, nil
	}), nil
}

// outputStyles tells which there are: one.
func (h *Host) outputStyles(struct{}) (any, error) {
	return map[string]any{"available_output_styles": []string{outputStyle}}, nil
}

type hookLine struct {
	Event      string  `json:"event"`
	Matcher    string  `json:"matcher"`
	Source     string  `json:"source"`
	Label      string  `json:"sourceLabel"`
	Type       string  `json:"type"`
	Display    string  `json:"displayText"`
	Command    string  `json:"commandText"`
	Content    string  `json:"contentLabel"`
	Condition  string  `json:"condition,omitempty"`
	Timeout    float64 `json:"timeout,omitempty"`
	Status     string  `json:"statusMessage,omitempty"`
	Once       bool    `json:"runsOnce,omitempty"`
	Background bool    `json:"runsInBackground,omitempty"`
}

type hookEvent struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Matches bool   `json:"supportsMatcher"`
	Count   int    `json:"hookCount"`
}

// listHooks shows the hooks of the session.
func (h *Host) listHooks(struct{}) (any, error) {
	return reports(h, query.ListHooks{Session: h.session}, func(_ context.Context, r query.HookReport) any {
		lines, events := []hookLine{}, map[string]*hookEvent{}
		for _, k := range r.Hooks {
			run := strings.TrimSpace(k.Run + " " + strings.Join(k.Args, " "))
			lines = append(lines, hookLine{
				Event: k.Event, Matcher: k.Matcher, Source: hookSource(k.Layer), Label: k.Source, Type: k.Type, Display: run, Command: run, Content: k.Type,
				Condition: k.If, Timeout: k.Seconds, Status: k.Status, Once: k.Once, Background: k.Async,
			})
			if events[k.Event] == nil {
				events[k.Event] = &hookEvent{Name: k.Event, Summary: k.Event}
			}
			events[k.Event].Count++
			events[k.Event].Matches = events[k.Event].Matches || k.Matcher != ""
		}
		list, off := []hookEvent{}, false
		for _, e := range events {
			list = append(list, *e)
		}
		slices.SortFunc(list, func(a, b hookEvent) int { return strings.Compare(a.Name, b.Name) })
		for _, o := range r.Off {
			off = off || o.Why == "disabled"
		}
		managed := slices.ContainsFunc(r.Off, func(o query.HooksOff) bool { return o.Why == "managed" })
		return map[string]any{
			"events": list, "hooks": lines, "eventCatalog": list,
			"policy": map[string]any{"disabledByPolicy": false, "managedOnly": managed, "pluginOnly": false, "allDisabled": off, "policyHookCount": countHooks(r.Hooks, "managed")},
		}
	})
}

func hookSource(layer string) string {
	switch layer {
	case "plugin":
		return "pluginHook"
	case "host", "skill", "agent":
		return "sessionHook"
	}
	return settingsSource(layer)
}

func countHooks(list []query.HookInfo, layer string) (n int) {
	for _, k := range list {
		if k.Layer == layer {
			n++
		}
	}
	return n
}

type ruleLine struct {
	Behavior string `json:"behavior"`
	Source   string `json:"source"`
	Rule     string `json:"rule"`
	Edit     string `json:"editability"`
	Off      bool   `json:"notInEffect,omitempty"`
}

// listRules shows the permission rules of the session.
func (h *Host) listRules(struct{}) (any, error) {
	dir := h.prog.Workdir
	return reports(h, query.ListRules{Session: h.session}, func(_ context.Context, r query.RuleReport) any {
		rules := []ruleLine{}
		for _, one := range r.Rules {
			rules = append(rules, ruleLine{string(one.Verdict), ruleSource(one), one.Rule, editOf(one.Layer), one.Off})
		}
		return map[string]any{"state": map[string]any{
			"rules": rules, "originalCwd": dir, "managedOnly": false,
			"workspaceDirectories": []map[string]string{{"path": filepath.Clean(dir), "source": "session"}},
		}}
	})
}

func ruleSource(r query.RuleInfo) string {
	switch r.Layer {
	case "flags":
		return "cliArg"
	case "granted":
		return "localSettings"
	}
	return settingsSource(r.Layer)
}

// editOf says how a rule of a layer may be changed.
func editOf(layer string) string {
	switch layer {
	case "user", "project", "local", "granted":
		return "persistent"
	case "session":
		return "session"
	}
	return "readonly"
}
