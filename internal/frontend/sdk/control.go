package sdk

import (
	"context"
	"encoding/json"
	"time"

	"dure/agent"
	"dure/agent/query"
)

// control is what a host keeps for requests.
type control struct {
	asking map[string]asking        // questions that the host has not answered, by ID
	inputs map[string]int64         // messages of the user, and the events that they have become
	spent  struct{ api, all int64 } // ms, of all turns
}

// HostAPI is what requests need of the program beside the three verbs. It is safe for
// concurrent use.
type HostAPI interface {
	CallTool(ctx context.Context, session, tool string, input json.RawMessage) (agent.Result, error)
	HearServer(server string, message []byte) error

	ReadFile(session, path string, most int64) (query.FileText, error)
	SawFile(session, path string, at time.Time) error
	Below(session, path string) error

	SetThinking(session string, tokens *int) error
	ApplySettings(settings json.RawMessage, try bool) error // with try it only says what it would say
	Reload(session string, plugins, skills bool) error
}

// controls are the requests that are answered beside those of the conversation.
func controls() map[string]answer {
	return map[string]answer{
		"set_permission_mode":     with(opened, (*Host).setMode),
		"set_model":               with(opened, (*Host).setModel),
		"set_max_thinking_tokens": with(able, (*Host).setThinking),
		"apply_flag_settings":     with(able, (*Host).applySettings),
		"get_settings":            with(able, (*Host).getSettings),
		"update_settings":         with(able, (*Host).updateSettings),
		"rename_session":          with(anytime, (*Host).rename),
		"set_color":               with(opened, (*Host).setColor),
		"set_has_subscribers":     with(anytime, (*Host).noted),
		"cancel_async_message":    with(anytime, (*Host).cancelMessage),

		"mcp_status":        with(able, (*Host).serverStatus),
		"mcp_reconnect":     with(able, (*Host).reconnect),
		"mcp_toggle":        with(able, (*Host).toggle),
		"mcp_set_servers":   with(able, (*Host).setServers),
		"mcp_call":          with(able, (*Host).callTool),
		"mcp_read_resource": with(able, (*Host).readResource),
		"mcp_message":       with(able, (*Host).fromServer),

		"rewind_files":     with(opened, (*Host).rewindFiles),
		"read_file":        with(able, (*Host).readFile),
		"seed_read_state":  with(able, (*Host).seedRead),
		"file_suggestions": with(opened, (*Host).suggestFiles),

		"register_repo_root": with(able, (*Host).registerRoot),

		"stop_task":        with(able, (*Host).stopTask),
		"background_tasks": with(opened, (*Host).backgroundTasks),
		"get_task_output":  with(able, (*Host).taskOutput),

		"get_context_usage":     with(able, (*Host).contextUsage),
		"get_session_cost":      with(opened, (*Host).sessionCost),
		"get_usage":             with(opened, (*Host).usage),
		"list_models":           with(opened, (*Host).listModels),
		"get_binary_version":    with(anytime, (*Host).binaryVersion),
		"reload_skills":         with(able, (*Host).reloadSkills),
		"reload_plugins":        with(able, (*Host).reloadPlugins),
		"reload_output_styles":  with(anytime, (*Host).outputStyles),
		"get_hooks_listing":     with(opened, (*Host).listHooks),
		"list_permission_rules": with(opened, (*Host).listRules),
	}
}
