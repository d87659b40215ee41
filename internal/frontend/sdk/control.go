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
		"set_permission_mode":     (*Host).setMode,
		"set_model":               (*Host).setModel,
		"set_max_thinking_tokens": (*Host).setThinking,
		"apply_flag_settings":     (*Host).applySettings,
		"get_settings":            (*Host).getSettings,
		"update_settings":         (*Host).updateSettings,
		"rename_session":          (*Host).rename,
		"set_color":               (*Host).setColor,
		"set_has_subscribers":     (*Host).noted,
		"cancel_async_message":    (*Host).cancelMessage,

		"mcp_status":        (*Host).serverStatus,
		"mcp_reconnect":     (*Host).reconnect,
		"mcp_toggle":        (*Host).toggle,
		"mcp_set_servers":   (*Host).setServers,
		"mcp_call":          (*Host).callTool,
		"mcp_read_resource": (*Host).readResource,
		"mcp_message":       (*Host).fromServer,

		"rewind_files":     (*Host).rewindFiles,
		"read_file":        (*Host).readFile,
		"seed_read_state":  (*Host).seedRead,
		"file_suggestions": (*Host).suggestFiles,

		"register_repo_root": (*Host).registerRoot,

		"stop_task":        (*Host).stopTask,
		"background_tasks": (*Host).backgroundTasks,
		"get_task_output":  (*Host).taskOutput,

		"get_context_usage":     (*Host).contextUsage,
		"get_session_cost":      (*Host).sessionCost,
		"get_usage":             (*Host).usage,
		"list_models":           (*Host).listModels,
		"get_binary_version":    (*Host).binaryVersion,
		"reload_skills":         (*Host).reloadSkills,
		"reload_plugins":        (*Host).reloadPlugins,
		"reload_output_styles":  (*Host).outputStyles,
		"get_hooks_listing":     (*Host).listHooks,
		"list_permission_rules": (*Host).listRules,
	}
}
