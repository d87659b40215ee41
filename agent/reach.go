package agent

import "context"

// Through the three function types below a capability reaches back into its
// session, so that the log, the budget and the gate see everything it does.
type (
	// Ask puts a side question to a model. The conversation does not see it.
	Ask func(context.Context, Question) (Answer, error)

	// Spawn runs a child session to its end, or starts it when Background is set.
	Spawn func(context.Context, Child) (Outcome, error)

	// Invoke runs one tool call, through the same gate and guard as the model's.
	Invoke func(context.Context, Invocation) (Result, error)
)

// Reach is what a session offers to the capabilities it was built with.
type Reach struct {
	Ask    Ask
	Spawn  Spawn
	Invoke Invoke
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
	Model      string // "" = the parent's
	Tools      []string
	MaxSteps   int // 0 = no limit
	Background bool

	// Key makes the child's ID: the same key finds the same child, also after a
	// crash. It is the key of the call that asks, see [CallEnv].
	Key string
}

// An Outcome is how a child session ended, or that it runs.
type Outcome struct {
	Session string    `json:"session"`
	Reason  EndReason `json:"reason,omitempty"` // "" while it runs
	Text    string    `json:"text,omitempty"`   // its last answer
	Error   string    `json:"error,omitempty"`
	Usage   Usage     `json:"usage"`
	Cost    *Money    `json:"cost,omitempty"`
}

// An Invocation is a tool call that a capability makes.
type Invocation struct {
	Origin string // who asks: skill:NAME, hook:NAME, command:NAME, ...
	Tool   string
	Input  []byte // JSON
}
