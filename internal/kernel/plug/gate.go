package plug

import (
	"context"
	"encoding/json"

	"dure/agent"
)

// Stage is one stage of the gate. It sees the call and what the stages before
// it have said, and returns its own word: Pass keeps theirs, Deny ends the
// matter, an Input starts the gate again. An error denies. It may be asked about a call
// more than once, until that is decided, and about several reads at once.
type Stage struct {
	Name   string
	Waits  func(agent.Proposal) bool // it may take long: what is known is stored before it is asked; nil = it never does
	Decide func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error)
}

// Gate is the permission gate of a session, whose stages are asked in the order of the
// fields, and within a field in that of the program's list. Deny ends the matter, and a
// changed input begins it anew.
type Gate struct {
	Rules    Stage   // hard denials and rules that deny; of the policy alone
	Bounds   []Stage // may only narrow: the tools of an agent, a work tree, the files of a skill
	Hooks    []Stage // hooks of users, hosts and extensions
	Commands []Stage // what a typed command permits
	Verdict  Stage   // rules that ask or allow, then the mode; of the policy alone; without it all is denied
	Parent   Stage   // asks the session that this one works for, in another process: then Rules and Verdict only deny
	Last     []Stage // what is left of a typed command
}

// Run is [agent.Tool.Run], or a wrapper around it.
type Run func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error)

// Wrap is middleware around [agent.Tool.Run].
type Wrap = func(agent.Tool, Run) Run

// A Cleaner cleans output as it comes. It holds back what it cannot decide on yet,
// and Flush returns the rest of that. It is used by one goroutine at a time.
type Cleaner interface {
	Add(text string) string
	Flush() string
}

// Tools is the catalog of one step.
type Tools struct {
	// Find returns the tool that the model means, whatever spelling it used.
	Find func(name string) (agent.Tool, bool)

	// Refuse says why Find does not find a tool; nil = it is not known.
	Refuse func(name string) *agent.ToolError

	// Check validates an input against the tool's schema and returns it with
	// defaults and aliases applied. With answered the input carries a person's
	// answer, which the model may not give itself.
	Check func(spec agent.Spec, input json.RawMessage, answered bool) (json.RawMessage, *agent.ToolError)
}

// Catalog is the tools of one step, in a stable order.
type Catalog struct {
	Specs []agent.Spec
	Names map[string]string
	Tools
}

// A Rule is a permission rule that a capability has hold for a time.
type Rule struct {
	Text    string
	Verdict agent.Verdict // Allow, AskUser or Deny
	Reason  string
}
