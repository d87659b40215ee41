package protocol

import "encoding/json"

// InitializePayload is the payload of Initialize, the first request of a connection.
// InitializeResult answers it.
type InitializePayload struct {
	// Version is the newest version of the protocol that the host speaks; missing = 1.
	Version int `json:"version,omitempty"`

	Client Client `json:"client,omitzero"`

	// Settings are settings for this connection, as a settings file has them; they are
	// stronger than files. Only a program that the host has started takes them.
	Settings json.RawMessage `json:"settings,omitempty" schema:"object"`

	// Agents are types of agents by their names, as --agents takes them: description,
	// prompt, tools, model. Only a program that the host has started takes them.
	Agents map[string]json.RawMessage `json:"agents,omitempty" schema:"object"`

	// Hooks are the events of hooks that the host wants to answer.
	Hooks []HookRegistration `json:"hooks,omitempty"`

	// CanUseTool says that the host answers CanUseTool. Without it, a call that needs
	// somebody's approval is denied at once.
	CanUseTool bool `json:"can_use_tool,omitempty"`

	// CanUseToolTimeout is how long the host's answer is waited for, in milliseconds;
	// missing = 30000, at most 600000. Then the call is denied.
	CanUseToolTimeout int `json:"can_use_tool_timeout_ms,omitempty"`

	// NoTokens leaves AssistantToken and ToolProgress away: whole messages are enough.
	NoTokens bool `json:"no_tokens,omitempty"`

	// EndWithInput says that the host is gone when the input ends: what runs is interrupted.
	// Without it, what was asked for is finished first. The end of a socket is always that
	// of its host.
	EndWithInput bool `json:"end_with_input,omitempty"`

	// Open opens a session at once. Without it the first UserMessage does.
	Open *OpenSession `json:"open,omitempty"`
}

// Client says who the host is.
type Client struct {
	Name    string `json:"name,omitempty"` // shown where it has decided something
	Version string `json:"version,omitempty"`
}

// HookRegistration is an event of hooks that the host wants to answer.
type HookRegistration struct {
	Event string `json:"event"` // PreToolUse, Stop, ...

	// Matcher says what the event has to be about, as settings have it; missing = anything.
	Matcher string `json:"matcher,omitempty"`

	// Timeout is how long the host's answer is waited for, in milliseconds; missing =
	// 30000, at most 600000.
	Timeout int `json:"timeout_ms,omitempty"`
}

// OpenSession says which session is opened. All fields may be missing: a new one, as the
// settings say.
type OpenSession struct {
	Resume string `json:"resume,omitempty"` // ID of a stored session to go on with
	Fork   string `json:"fork,omitempty"`   // ID of a stored session to make a copy of
	At     int64  `json:"at,omitempty"`     // the last event of the copy; missing = all of it
	New    string `json:"new,omitempty"`    // ID of the new session: 1 to 64 letters, digits, - or _; missing = any

	Workdir  string `json:"workdir,omitempty"` // absolute; missing = where dure runs
	Model    string `json:"model,omitempty"`
	Mode     string `json:"mode,omitempty" enum:"default,acceptEdits,plan,dontAsk,bypassPermissions"`
	Title    string `json:"title,omitempty"`
	Profile  string `json:"profile,omitempty"`   // kind of work
	Agent    string `json:"agent,omitempty"`     // type of agents that the session runs as
	MaxSteps int    `json:"max_steps,omitempty"` // of a turn; missing = no limit
}

// UserMessagePayload is the payload of UserMessage. It starts a turn, or steers the running
// one at its next step. SessionResult answers it when the turn in which the model has read it
// is over; a message without content opens a session only, and a reply answers it.
type UserMessagePayload struct {
	Text        string       `json:"text,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`

	// Later keeps the message until the running turn has ended, rather than steering it.
	Later bool `json:"later,omitempty"`

	// Open opens another session, to which the message goes. The message names no session
	// then; the answer does.
	Open *OpenSession `json:"open,omitempty"`
}

// Attachment is an image or a document.
type Attachment struct {
	Type string `json:"type"` // MIME type
	Name string `json:"name,omitempty"`
	Data []byte `json:"data"` // base64
}

// SetPermissionModePayload is the payload of SetPermissionMode. A reply answers it.
type SetPermissionModePayload struct {
	Mode string `json:"mode" enum:"default,acceptEdits,plan,dontAsk,bypassPermissions"`
}

// SetModelPayload is the payload of SetModel. A reply answers it; the model holds from the
// next step on.
type SetModelPayload struct {
	Model string `json:"model"`
}

// InterruptPayload is the payload of Interrupt, which stops the running turn, if there is one.
// A reply answers it; what the turn came to is told by SessionResult.
type InterruptPayload struct{}

// GetContextUsagePayload is the payload of GetContextUsage. A reply with Context answers it.
type GetContextUsagePayload struct{}

// RewindFilesPayload is the payload of RewindFiles, which puts files back. It needs a session
// in which no turn runs. A reply with Rewound answers it.
type RewindFilesPayload struct {
	// Message is the ID of a UserMessage of this connection: files become what they were
	// before it. To is the number of an event, in the place of it.
	Message string `json:"message,omitempty"`
	To      int64  `json:"to,omitempty"`

	// Conversation takes back what was said since, too.
	Conversation bool `json:"conversation,omitempty"`

	// Force names files that are put back although somebody else has changed them since.
	// Only, if there are any, names those that are put back at all. Paths are relative to
	// the workspace.
	Force []string `json:"force,omitempty"`
	Only  []string `json:"only,omitempty"`
}

// CanUseToolResponsePayload is the payload of CanUseToolResponse, the host's word on a
// CanUseTool, whose ID it has. A reply answers it when it has counted, and an Error with the
// code "late" when somebody else was first, or the time was over.
type CanUseToolResponsePayload struct {
	Behavior string `json:"behavior" enum:"allow,deny"`
	Reason   string `json:"reason,omitempty"` // the model reads that of a denial

	// Input takes the place of the call's input. The call is then decided on again.
	Input json.RawMessage `json:"input,omitempty" schema:"object"`

	// Remember says how long the answer holds: once, unless it says otherwise. Rules are
	// what is remembered in the place of what the question had offered.
	Remember string   `json:"remember,omitempty" enum:"session,always"`
	Rules    []string `json:"rules,omitempty"`
}

// HookCallbackPayload is the payload of HookCallback, the host's answer to a HookEvent, whose
// ID it has. A reply answers it when it has counted, and an Error with the code "late" when
// the time was over.
type HookCallbackPayload struct {
	// Output is what a hook's program would have printed: a JSON object. Missing = nothing to say.
	Output json.RawMessage `json:"output,omitempty" schema:"object"`

	// Error says that the host could not look at the event: the hook has failed then.
	Error string `json:"error,omitempty"`
}

// TerminatePayload is the payload of Terminate. With a session, that one is closed; without
// one, all are, and the connection ends behind the reply.
type TerminatePayload struct{}
