package query

import (
	"io"

	"dure/agent"
)

// Questions about what confines commands.
type (
	// ExplainSandbox asks for a [SandboxReport] on the working folder. With a command, the report
	// also lists the paths that the command could read or change. A harmless process is started
	// to find out.
	ExplainSandbox struct {
		Command string `json:"command,omitempty"`
	}

	// RunConfined runs a program of the user's own choice as a tool would, with the network and
	// the folders of the settings, and returns a [ConfinedRun].
	RunConfined struct {
		Argv []string  `json:"argv"`
		In   io.Reader `json:"-"`
		Out  io.Writer `json:"-"`
		Err  io.Writer `json:"-"`
	}
)

// Query returns the name of the query on the wire.
func (ExplainSandbox) Query() string { return "sandbox" }
func (RunConfined) Query() string    { return "sandbox.run" }

// ConfinedRun is the outcome of a confined program.
type ConfinedRun struct {
	Code    int    `json:"code"`
	Refused string `json:"refused,omitempty"` // what the confinement has refused it, in English
}

// SandboxReport says what confines commands here.
type SandboxReport struct {
	Off       bool          `json:"off,omitempty"` // by the user's own settings
	Level     string        `json:"level"`         // full, reduced or none
	Mechanism string        `json:"mechanism,omitempty"`
	Parts     []SandboxPart `json:"parts"`
	Enforced  []string      `json:"enforced"`
	Missing   []string      `json:"missing"`
	Mend      []string      `json:"mend"`

	// Of one command: what it would do, and what it could do with which path.
	Effects *agent.Effects `json:"effects,omitempty"`
	Mounts  []SandboxMount `json:"mounts,omitempty"`
}

// SandboxPart is a mechanism of the system that was looked for.
type SandboxPart struct {
	Name   string
	Used   bool
	Detail string // version, or why it cannot be used
}

// SandboxMount is a path, with all below it that no longer path names, and what a command can
// do with it.
type SandboxMount struct {
	Path   string
	Access SandboxAccess
}

// SandboxAccess is ro, rw, hidden or private.
type SandboxAccess string
