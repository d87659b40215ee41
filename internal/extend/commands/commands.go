// Package commands owns what can be typed behind a slash: the table of the commands
// that are built in, the files by which people add some of their own, and what an input
// means by them.
//
// It is data and functions of it: front-ends carry out what is built in, and sessions
// make prompts of the rest. It runs nothing, asks nobody and starts no goroutines. What
// is said to people of each command stands in internal/frontend/text, by its name.
package commands

import (
	"slices"
	"strings"

	"dure/agent/query"
)

// A BuiltIn is a command that front-ends carry out themselves.
type BuiltIn struct {
	Name    string // lower case, without the slash
	Aliases []string
	Hint    string   // its arguments, as they are shown
	Values  []string // what its first argument may be, where that is a list of words
	Bare    bool     // it takes no arguments
	Free    bool     // it needs no session
	Prompt  bool     // it is sent as it is typed: the session makes a prompt of it
}

// modes and scopes are what the first argument of some commands may be.
var (
	modes  = []string{"plan", "dontAsk", "default", "acceptEdits", "bypassPermissions"}
	plans  = []string{"show", "edit", "add", "move", "drop", "approve", "reject", "regenerate", "off", "always", "auto", "open"}
	scopes = []string{"project", "local", "user", "managed"}
)

// builtIns is the table of the commands, sorted by name. Each has a description in
// internal/frontend/text, a section in docs/commands.md, and a script in
// internal/app/testdata/commands.
var builtIns = [...]BuiltIn{
	{Name: "add-dir", Hint: "FOLDER"},
	{Name: "agents", Hint: "[NAME]"},
	{Name: "bad", Hint: "[WHY]"},
	{Name: "calc", Hint: "CALCULATION", Free: true},
	{Name: "cd", Hint: "[FOLDER]"},
	{Name: "changes", Bare: true},
	{Name: "clear", Aliases: []string{"new", "reset"}, Hint: "[TITLE]"},
	{Name: "commit", Bare: true},
	{Name: "compact", Hint: "[FOCUS]"},
	{Name: "config", Aliases: []string{"settings"}, Hint: "[KEY [VALUE]]", Free: true},
	{Name: "context", Hint: "[on|off]", Values: []string{"on", "off"}},
	{Name: "continue", Bare: true},
	{Name: "cost", Aliases: []string{"usage"}, Bare: true},
	{Name: "diff", Hint: "[FILE]"},
	{Name: "edit", Hint: "[N] TEXT"},
	{Name: "emoji", Hint: "WORD...", Free: true},
	{Name: "export", Hint: "[--force] [FILE]", Values: []string{"--force"}},
	{Name: "fork", Aliases: []string{"branch"}, Hint: "[TITLE]"},
	{Name: "good", Hint: "[WHY]"},
	{Name: "help", Hint: "[COMMAND]", Free: true},
	{Name: "hooks", Hint: "[EVENT]"},
	{Name: "init", Hint: "[WHAT MATTERS]", Free: true, Prompt: true},
	{Name: "link", Hint: "[NAME VALUE...]", Free: true},
	{Name: "mcp", Hint: "[NAME | enable|disable|reconnect [NAME] | approve NAME]", Values: []string{"enable", "disable", "reconnect", "approve"}},
	{Name: "memory", Hint: "[SCOPE|undo]", Values: append(slices.Clone(scopes), "global", "undo")},
	{Name: "mode", Hint: "[MODE]", Values: modes},
	{Name: "model", Hint: "[MODEL]"},
	{Name: "palette", Hint: "[WORD...]", Free: true},
	{Name: "permissions", Aliases: []string{"allowed-tools"}, Hint: "[allow|ask|deny|remove RULE [SCOPE] | mode MODE]", Values: []string{"allow", "ask", "deny", "remove", "mode"}},
	{Name: "pin", Bare: true},
	{Name: "plan", Hint: "[VERB|DESCRIPTION]", Values: plans},
	{Name: "plugin", Aliases: []string{"plugins"}, Hint: "[NAME]"},
	{Name: "profile", Bare: true},
	{Name: "prompt", Hint: "[full]", Values: []string{"full"}},
	{Name: "quit", Aliases: []string{"exit"}, Bare: true, Free: true},
	{Name: "rename", Hint: "TITLE"},
	{Name: "resume", Hint: "[ID|TITLE]"},
	{Name: "retry", Bare: true},
	{Name: "review", Hint: "[PR|RANGE|uncommitted]", Values: []string{"uncommitted"}, Prompt: true},
	{Name: "rewind", Aliases: []string{"checkpoint", "undo"}, Hint: "[N] [files|conversation] [--dry-run]", Values: []string{"files", "conversation", "--dry-run"}},
	{Name: "search", Hint: "WORD..."},
	{Name: "skills", Hint: "[NAME]"},
	{Name: "snippet", Hint: "[NAME VARIABLE=VALUE...]"},
	{Name: "status", Bare: true},
	{Name: "tag", Hint: "[TAG...|-]"},
	{Name: "task", Bare: true},
	{Name: "tools", Hint: "[NAME | enable|disable NAME]", Values: []string{"enable", "disable"}},
	{Name: "uncompact", Bare: true},
}

// BuiltIns returns the commands that are built in, sorted by name. It is the caller's.
func BuiltIns() []BuiltIn { return slices.Clone(builtIns[:]) }

// Find returns the command that a name or an alias means, whatever its case.
func Find(name string) (BuiltIn, bool) {
	name = strings.ToLower(name)
	for _, b := range builtIns {
		if b.Name == name || slices.Contains(b.Aliases, name) {
			return b, true
		}
	}
	return BuiltIn{}, false
}

// List returns the commands that are built in as front-ends list them. about says what
// each does.
func List(about func(name string) string) []query.CommandInfo {
	all := make([]query.CommandInfo, 0, len(builtIns))
	for _, b := range builtIns {
		all = append(all, query.CommandInfo{
			Name: b.Name, Aliases: b.Aliases, Description: about(b.Name), Hint: b.Hint, Values: b.Values,
			Session: !b.Free, Kind: query.CommandBuiltIn,
		})
	}
	return all
}
