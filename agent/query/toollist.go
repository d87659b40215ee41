package query

import (
	"encoding/json"

	"dure/agent"
)

// ListTools asks for a [ToolReport]: the tools of a session that is open, or with "" those
// that one in the working folder would begin with; all of them, or those that a name means.
type ListTools struct {
	Session string `json:"session,omitempty"`
	Tool    string `json:"tool,omitempty"` // in any spelling; "group:NAME" are all of a group
}

// Query returns the name of the query on the wire.
func (ListTools) Query() string { return "tools" }

// SwitchTool takes a tool from the model in a session, and in those that work for it, or
// gives it back, from the next step on. It asks for a [ToolReport] of the tools that are meant.
type SwitchTool struct {
	Session string `json:"session"`
	Tool    string `json:"tool"` // in any spelling; "group:NAME" are all of a group
	On      bool   `json:"on"`
}

// Query returns the name of the query on the wire.
func (SwitchTool) Query() string { return "tools.switch" }

// ListLendable asks for the []agent.Spec of the tools that others than the program's own model
// may call: all that the settings offer, or those of them that Only names.
type ListLendable struct {
	Only []string `json:"only,omitempty"` // in any spelling; "group:NAME" are all of a group
}

// Query returns the name of the query on the wire.
func (ListLendable) Query() string { return "tools.lendable" }

// ToolReport is the answer to [ListTools].
type ToolReport struct {
	Tools []ToolInfo `json:"tools"`          // in the order in which the model has them
	Left  []ToolLeft `json:"left,omitempty"` // what others have brought and cannot be used
}

// ToolInfo is a tool that there is.
type ToolInfo struct {
	Name        string          `json:"name"`
	Shown       string          `json:"shown"` // what the model calls it
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"`
	Group       string          `json:"group,omitempty"`
	Class       agent.Class     `json:"class"`
	Risk        agent.Risk      `json:"risk"`

	Source string `json:"source"`         // built-in, config, skill, plugin, extension or mcp
	From   string `json:"from,omitempty"` // which plugin, server, ...

	// Own is the name that it came with, where it has another one: Before is then the
	// source of the tool that has it.
	Own    string `json:"own,omitempty"`
	Before string `json:"before,omitempty"`

	State string `json:"state"`          // on, named (the model has to look for it first) or off
	Why   string `json:"why,omitempty"`  // of one that is off: rule, session, role, useless or none-named
	Rule  string `json:"rule,omitempty"` // that says so, or what was switched off
	At    string `json:"at,omitempty"`   // where the rule stands
}

// ToolLeft is a tool that cannot be used.
type ToolLeft struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	From   string `json:"from,omitempty"`
	Why    string `json:"why"`
}
