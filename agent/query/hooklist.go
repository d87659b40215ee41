package query

import (
	"encoding/json"

	"dure/agent"
)

// ListHooks asks for a [HookReport]: the hooks of a session that is open, or with "" those
// that a session in the working folder would have.
type ListHooks struct {
	Session string `json:"session,omitempty"`
}

// Query returns the name of the query on the wire.
func (ListHooks) Query() string { return "hooks" }

// HookReport is the answer to [ListHooks].
type HookReport struct {
	Hooks  []HookInfo  `json:"hooks"`            // in the order of their definition
	Faults []HookFault `json:"faults,omitempty"` // what is wrong with definitions

	// Off are sources whose hooks do not run, and why: untrusted, disabled or managed.
	Off []HooksOff `json:"off,omitempty"`
}

// HookInfo is a hook as it is defined.
type HookInfo struct {
	Event   string   `json:"event"`
	Matcher string   `json:"matcher,omitempty"` // "" = it runs at each
	Type    string   `json:"type"`              // command, http, mcp_tool, prompt, agent or callback
	Run     string   `json:"run"`               // the command, the address, the tool, the prompt
	Args    []string `json:"args,omitempty"`    // of a program that is run without a shell
	If      string   `json:"if,omitempty"`
	Seconds float64  `json:"timeout"`
	Status  string   `json:"statusMessage,omitempty"`
	Once    bool     `json:"once,omitempty"`
	Async   bool     `json:"async,omitempty"`
	Rewake  bool     `json:"asyncRewake,omitempty"`
	Block   bool     `json:"block,omitempty"` // what goes wrong with it forbids
	Layer   string   `json:"layer"`           // managed, flags, user, project, local, plugin, skill, agent or host
	Source  string   `json:"source"`          // its file, or what it belongs to
	At      string   `json:"at,omitempty"`    // JSON pointer in it
}

// HookFault is something in the definition of hooks that does not count.
type HookFault struct {
	Source  string `json:"source"` // file:line:column, where it is known
	At      string `json:"at"`     // JSON pointer
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// HooksOff is a source whose hooks do not run.
type HooksOff struct {
	Source string `json:"source"`
	Why    string `json:"why"` // untrusted, changed, disabled or managed

	// Changed are the files by which the folder is another one than was trusted.
	Changed []string `json:"changed,omitempty"`
}

// TryHooks fires an event in the working folder without a session, and asks for a [HookTrial].
type TryHooks struct {
	Event string `json:"event"`
	Told  string `json:"told,omitempty"`   // what hooks are told: a JSON object; "" = nothing more than is usual
	Dry   bool   `json:"dryRun,omitempty"` // no hook runs
}

// Query returns the name of the query on the wire.
func (TryHooks) Query() string { return "hooks.try" }

// HookTrial is what hooks of an event do, tried without a session.
type HookTrial struct {
	Event  string          `json:"event"`
	Match  string          `json:"match,omitempty"` // what matchers have looked at
	Hooks  []TriedHook     `json:"hooks"`
	Off    []HooksOff      `json:"off,omitempty"`
	Effect HookEffect      `json:"effect"`
	Told   json.RawMessage `json:"told"` // what hooks are told
}

// TriedHook is a hook of the event, and what it has answered.
type TriedHook struct {
	HookInfo

	// Skip says why it did not run: matcher, if, once, duplicate, broken, dry or session.
	// "" = it ran.
	Skip string `json:"skip,omitempty"`
	Why  string `json:"why,omitempty"` // more on that

	Outcome agent.HookOutcome `json:"outcome,omitempty"`
	Exit    *int              `json:"exit,omitempty"`
	Millis  int64             `json:"ms,omitempty"`
	Verdict agent.Verdict     `json:"verdict,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Context string            `json:"context,omitempty"`
	Message string            `json:"message,omitempty"` // for people
	Warn    []string          `json:"warnings,omitempty"`
}

// HookEffect is what would come of all answers together. The zero value is that nothing
// would change.
type HookEffect struct {
	// Does is what a block means at the event: denied, told to the model, or goes on; "" =
	// nothing is blocked.
	Does    string        `json:"does,omitempty"`
	Verdict agent.Verdict `json:"verdict,omitempty"`
	Reasons []string      `json:"reasons,omitempty"`

	Stop       bool            `json:"stop,omitempty"` // everything stops
	StopReason string          `json:"stopReason,omitempty"`
	Context    []string        `json:"context,omitempty"` // that the model reads
	Input      json.RawMessage `json:"updatedInput,omitempty"`
	Output     json.RawMessage `json:"updatedOutput,omitempty"`
}

// What blocking means at an event, see [HookEffect].
const (
	HookDenies = "denied"
	HookTells  = "told"
	HookGoesOn = "goes on"
)
