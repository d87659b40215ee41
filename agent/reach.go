package agent

import (
	"context"
	"encoding/json"
)

// Through the function types below a capability reaches back into its session,
// so that the log, the budget and the gate see everything it does.
type (
	// Ask puts a side question to a model. The conversation does not see it.
	Ask func(context.Context, Question) (Answer, error)

	// Spawn runs a child session to its end, or starts it when Background is set.
	Spawn func(context.Context, Child) (Outcome, error)

	// Invoke runs one tool call, through the same gate and guard as the model's.
	Invoke func(context.Context, Invocation) (Result, error)

	// Settle tells the session how a call came out that was answered with
	// [StatusPending]. The result is durable when it returns; the model reads of
	// it at its next step, and is woken for it when it is idle. A second result
	// for the same handle is accepted and does nothing.
	Settle func(context.Context, Settlement) error
)

// Reach is what a session offers to the capabilities it was built with.
type Reach struct {
	Ask    Ask
	Spawn  Spawn
	Invoke Invoke
	Settle Settle

	// Outcome returns how a pending call of this session came out, or that it is
	// lost; false when it is not known.
	Outcome func(handle string) (Result, bool)
}

// A Question is a side call to a model.
type Question struct {
	Purpose   string // for the log: summary, hook, digest, ...
	Model     string // "" = the session's
	System    string
	Messages  []Message
	MaxTokens int
}

// A Child is a session to run on behalf of a call.
type Child struct {
	Agent      string // type of agent; "" = the parent's
	Title      string
	Prompt     string
	System     string // what it is told to be, in place of the usual instructions; "" = those
	Model      string // "" = the parent's
	Effort     string // "" = the parent's
	Mode       Mode   // "" = the parent's; never one that asks less
	Tools      []string
	Without    []string // tools that it does not have
	MaxSteps   int      // 0 = no limit
	Background bool

	// Mate is how hooks know it that works beside others, for nobody who waits for it; "" =
	// somebody waits for its end.
	Mate string

	Rules     []string        // that allow it more than its parent has, for the turn of it
	Hooks     json.RawMessage // that hold in it beside those of everybody
	HooksFrom string          // the file that they stand in
	Hookless  bool            // no hooks run in it, nor in what it opens: it serves one

	// Key makes the child's ID: the same key finds the same child, also after a
	// crash. It is the key of the call that asks, see [CallEnv].
	Key string

	// Resume is the ID of a child of the same session, which goes on with Prompt;
	// "" = a new one.
	Resume string

	// Workdir is the folder that it works in; "" = the parent's. It has to be one that
	// was made for it: what lies there is its to change.
	Workdir string

	// Bare means without the instruction files of the project.
	Bare bool

	// Apart runs it in a process of its own. It has no agents and no servers there, and
	// never runs in the background of Spawn.
	Apart bool

	// Opened is told the ID of the child when it is open; may be nil.
	Opened func(id string) `json:"-"`
}

// An Outcome is how a child session ended, or that it runs.
type Outcome struct {
	Session string    `json:"session"`
	Reason  EndReason `json:"reason,omitempty"` // "" while it runs
	Text    string    `json:"text,omitempty"`   // its last answer
	Error   string    `json:"error,omitempty"`
	Steps   int       `json:"steps,omitempty"` // requests of its newest turn
	Usage   Usage     `json:"usage"`
	Cost    *Money    `json:"cost,omitempty"`
	Calls   int       `json:"calls,omitempty"` // of tools, since it was opened first
}

// An Invocation is a tool call that a capability makes.
type Invocation struct {
	ID     string // of the call, by which its events are known; "" = any
	Origin string // who asks: skill:NAME, hook:NAME, command:NAME, ...
	Tool   string
	Input  []byte // JSON
	Alone  bool   // nobody is asked: what is not allowed as it is is denied
}

// ChildHandle begins the handle of a pending call that a child session serves; the ID of
// that follows.
const ChildHandle = "child:"

// A Settlement is the outcome of a pending call.
type Settlement struct {
	// Handle is what the pending result named. The part before its colon is the
	// type of the work: job, child, ...
	Handle string

	// Result is the outcome. It passes the guard like any other; its Stream is
	// read and closed.
	Result Result

	// Granted is the sign-in that the call has waited for; nil = none. The event
	// names the handle by itself.
	Granted *AuthGranted
}
