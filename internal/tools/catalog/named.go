package catalog

import (
	"slices"
	"strings"

	"dure/internal/base/near"
)

// Default names all built-in tools where a list of tools is given.
const Default = "default"

// foreign are tools of other agents that scripts name, and of which there is nothing here to
// leave out.
var foreign = []string{
	"Brief", "Config", "CronCreate", "CronDelete", "CronList", "EnterWorktree", "ExitWorktree",
	"Monitor", "NotebookRead", "PowerShell", "PushNotification", "REPL", "RemoteTrigger", "SlashCommand", "TaskCreate", "TaskGet", "TaskList",
	"TaskUpdate", "TeamCreate", "TeamDelete", "TodoRead",
}

// Unknown returns the names that no built-in tool has. Those of servers are left out, because
// the names of extensions are not known before they run.
func Unknown(names []string) (unknown []string) {
	cat := New(Config{})
	for _, name := range names {
		if _, ok := cat.Canonical(name); !ok && name != Default && !strings.Contains(name, "__") {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// Mistyped returns the first of the names that no tool has, here or in another agent, and the
// tool that may have been meant.
func Mistyped(names []string) (name, nearest string) {
	for _, name := range Unknown(names) {
		if !slices.Contains(foreign, name) {
			return name, near.Nearest(name, slices.Sorted(slices.Values(Claude.Names())))
		}
	}
	return "", ""
}
