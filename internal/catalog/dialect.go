package catalog

import "strings"

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
		"user__ask":               "AskUserQuestion",
	},
}

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
}

var folding = strings.NewReplacer(".", "_", "-", "_")

// alias returns the canonical name that an older spelling means.
func alias(name string) (string, bool) {
	s, ok := aliases[folding.Replace(strings.ToLower(name))]
	return s, ok
}

// presented finds the tool that a dialect presents as name, in any dialect.
func presented(name string) (string, bool) {
	for _, table := range dialects {
		for canonical, shown := range table {
			if shown == name {
				return canonical, true
			}
		}
	}
	return "", false
}
