// Package toolkit holds the tools that bundles have of the program by the names of their
// own: a bundle says which of a kit it exports, and how that is called.
//
// They say what they touch and pass the gate as all tools do. They start no goroutines.
package toolkit

import (
	"maps"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/extend/bundle/changeset"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// Config is what the kits work on. Workspace is required.
type Config struct {
	Workspace *workspace.Workspace
	Home      string // what "~" stands for; "" = it is not expanded

	// Masked reports whether a text has a mask in it, which stands for a secret that a
	// result does not show; nil = none has. Such text gets into no file.
	Masked func(text string) bool

	Skills  func() []Skill        // that the agent can call; nil = none
	Changes *changeset.Changesets // of the bundle; nil = its tools refuse all
}

// A Skill is one that is listed.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// limit is how long one call may take.
const limit = time.Minute

// kits are the tools of each kit, by their exports.
var kits = map[string]map[string]func(*tools) kit.Tool{
	"calculator": {"add": (*tools).add, "multiply": (*tools).multiply},
	"file":       {"read": (*tools).read, "write": (*tools).write},
	"skills":     {"list": (*tools).skills},
	"bundle":     {"openChangeset": (*tools).open, "commitChangeset": (*tools).commit},
}

// Exports returns what a kit has, sorted; nil = there is no such kit.
func Exports(entry string) []string {
	if kits[entry] == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(kits[entry]))
}

// Has reports whether a kit has an export, in the form of older bundles too: file.read.
func Has(entry, export string) bool { return kits[entry][last(export)] != nil }

// last is what stands behind the last dot.
func last(export string) string { return export[strings.LastIndexByte(export, '.')+1:] }

type tools struct {
	Config
	pins kit.Pins
}

// New returns what makes the tools of a session: one of a kit, by the name that models call
// it by, and with the description that the bundle has of it, or else its own.
func New(c Config) func(entry, export, name, description string) (agent.Tool, bool) {
	if c.Masked == nil {
		c.Masked = func(string) bool { return false }
	}
	if c.Skills == nil {
		c.Skills = func() []Skill { return nil }
	}
	t := &tools{Config: c}
	return func(entry, export, name, description string) (agent.Tool, bool) {
		of := kits[entry][last(export)]
		if of == nil {
			return nil, false
		}
		one := of(t)
		one.About.Name, one.About.Limit = name, limit
		if description != "" {
			one.About.Description = description
		}
		if last(export) == "commitChangeset" {
			return committing{one, t}, true
		}
		return one, true
	}
}

// nothing is what a tool touches that only reckons.
func nothing(agent.ToolContext, agent.Call) (agent.Effects, error) { return agent.Effects{}, nil }

// answer is a result that is a value.
func answer(v any) agent.Result {
	r := agent.Result{Status: agent.StatusOK, Output: kit.Structured(v)}
	r.Text = string(r.Output)
	return r
}
