package catalog

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"dure/agent"
)

// Dialect says under which names the model, hooks and hosts see the tools.
type Dialect string

// The dialects.
const (
	Claude Dialect = "claude" // the names that models and the hooks of the ecosystem know
	Dure   Dialect = "dure"   // canonical names
)

// dialects has the presented name of each tool that does not keep its own.
var dialects = map[Dialect]map[string]string{
	Dure: {},
	Claude: {
		"bash__exec":              "Bash",
		"file-system__read":       "Read",
		"file-system__write":      "Write",
		"file-system__edit":       "Edit",
		"file-system__multi-edit": "MultiEdit",
		"file-system__list":       "LS",
		"file-system__glob":       "Glob",
		"file-system__grep":       "Grep",
		"todo__write":             "TodoWrite",
		"task__note":              "TaskNote",
		"memory__read":            "MemoryRead",
		"memory__append":          "MemoryAppend",
		"session__recall":         "Recall",
		"user__ask":               "AskUserQuestion",
		"plan__exit":              "ExitPlanMode",
		"plan__enter":             "EnterPlanMode",
		"task__output":            "TaskOutput",
		"task__stop":              "TaskStop",
		"notebook__edit":          "NotebookEdit",
		"web__fetch":              "WebFetch",
		"web__search":             "WebSearch",
		"http__request":           "HttpRequest",
		"file-system__patch":      "ApplyPatch",
		"file-system__delete":     "Delete",
		"file-system__move":       "Move",
		"file-system__multi-read": "MultiRead",
		"git__read":               "GitRead",
		"git__commit":             "GitCommit",
		"process__list":           "ProcessList",
		"process__signal":         "ProcessSignal",
		"environment__info":       "Environment",
		"code__outline":           "Outline",
		"code__diagnostics":       "Diagnostics",
		"code__check":             "Check",
		"agent__run":              "Agent",
		"agent__handoff":          "Handoff",
		"agent__coordinate":       "Coordinate",
		"agent__message":          "SendMessage",
		"worktree__merge":         "WorktreeMerge",
		"worktree__remove":        "WorktreeRemove",
		"skill__use":              "Skill",
		"resource__list":          "ListMcpResourcesTool",
		"resource__read":          "ReadMcpResourceTool",
		Search:                    "ToolSearch",
		agent.FormTool:            "StructuredOutput",
	},
}

// Name returns the name under which a dialect shows a tool.
func (d Dialect) Name(canonical string) string {
	if shown, ok := dialects[d][canonical]; ok {
		return shown
	}
	return canonical
}

// Names returns the presented names of the built-in tools, in no order.
func (d Dialect) Names() []string { return slices.Collect(maps.Values(dialects[d])) }

// aliases maps spellings of older configuration, rules, hooks and transcripts
// to canonical names. They are compared without regard to case, with ".", "-"
// and "_" the same.
var aliases = map[string]string{
	"bash":            "bash__exec",
	"shell":           "bash__exec",
	"process":         "bash__exec",
	"command":         "bash__exec",
	"run_command":     "bash__exec",
	"bash_exec":       "bash__exec",
	"script":          "bash__script",
	"bash_script":     "bash__script",
	"read":            "file-system__read",
	"file_read":       "file-system__read",
	"read_file":       "file-system__read",
	"view":            "file-system__read",
	"write":           "file-system__write",
	"file_write":      "file-system__write",
	"write_file":      "file-system__write",
	"script_create":   "file-system__write",
	"edit":            "file-system__edit",
	"file_edit":       "file-system__edit",
	"edit_file":       "file-system__edit",
	"multiedit":       "file-system__multi-edit",
	"multi_edit":      "file-system__multi-edit",
	"ls":              "file-system__list",
	"list":            "file-system__list",
	"list_directory":  "file-system__list",
	"directory_list":  "file-system__list",
	"glob":            "file-system__glob",
	"file_search":     "file-system__glob",
	"grep":            "file-system__grep",
	"code_search":     "file-system__grep",
	"todowrite":       "todo__write",
	"todo_write":      "todo__write",
	"todo":            "todo__write",
	"askuserquestion": "user__ask",
	"ask_user":        "user__ask",
	"question":        "user__ask",
	"memory":          "memory__read",
	"memory_read":     "memory__read",
	"memory_append":   "memory__append",
	"taskoutput":      "task__output",
	"bashoutput":      "task__output",
	"agentoutput":     "task__output",
	"taskstop":        "task__stop",
	"killshell":       "task__stop",
	"killbash":        "task__stop",
	"notebookedit":    "notebook__edit",
	"webfetch":        "web__fetch",
	"web_fetch":       "web__fetch",
	"fetch":           "web__fetch",
	"websearch":       "web__search",
	"web_search":      "web__search",
	"http":            "http__request",
	"http_request":    "http__request",
	"apply_patch":     "file-system__patch",
	"applypatch":      "file-system__patch",
	"patch":           "file-system__patch",
	"delete":          "file-system__delete",
	"file_delete":     "file-system__delete",
	"delete_file":     "file-system__delete",
	"move":            "file-system__move",
	"rename":          "file-system__move",
	"multi_read":      "file-system__multi-read",
	"multiread":       "file-system__multi-read",
	"read_many_files": "file-system__multi-read",
	"git":             "git__read",
	"git_read":        "git__read",
	"git_commit":      "git__commit",
	"process_list":    "process__list",
	"process_signal":  "process__signal",
	"env":             "environment__info",
	"environment":     "environment__info",
	"outline":         "code__outline",
	"code_outline":    "code__outline",
	"lsp":             "code__diagnostics",
	"diagnostics":     "code__diagnostics",
	"check":           "code__check",
	"test_loop":       "code__check",
	"build_run":       "code__check",
	"task":            "agent__run",
	"agent":           "agent__run",
	"delegate":        "agent__run",
	"spawn_agent":     "agent__run",
	"toolsearch":      Search,
	"tool_search":     Search,
	"skill":           "skill__use",
	"skillmanager":    "skill__use",
	"skill_manager":   "skill__use",

	"listmcpresources": "resource__list",
	"readmcpresource":  "resource__read",
}

var folding = strings.NewReplacer(".", "_", "-", "_")

// alias returns the canonical name that an older spelling means.
func alias(name string) (string, bool) {
	s, ok := aliases[folding.Replace(strings.ToLower(name))]
	return s, ok
}

// presented finds the tool that a dialect presents as name, in any dialect.
func presented(name string) (string, bool) {
	canonical, ok := shownNames()[name]
	return canonical, ok
}

// shownNames has the tools by the names that dialects present them under.
var shownNames = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for _, table := range dialects {
		for canonical, shown := range table {
			all[shown] = canonical
		}
	}
	return all
})
