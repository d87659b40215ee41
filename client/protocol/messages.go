package protocol

import "encoding/json"

// InitializeResultData is the payload of InitializeResult.
type InitializeResultData struct {
	Version      int      `json:"version"` // of the protocol that is spoken from now on
	Program      Client   `json:"program"` // dure, and its version
	Session      string   `json:"session,omitempty"`
	Workdir      string   `json:"workdir"`
	Requests     []Type   `json:"requests"`
	Messages     []Type   `json:"messages"`
	Capabilities []string `json:"capabilities"` // settings, agents, hooks, can_use_tool, rewind, sessions
	Limits       Limits   `json:"limits"`
}

// Limits are the bounds of a connection.
type Limits struct {
	MessageBytes int `json:"message_bytes"`
	OpenRequests int `json:"open_requests"` // that are not answered yet
	Sessions     int `json:"sessions"`      // that are open at once
	AskTime      int `json:"can_use_tool_timeout_ms"`
}

// TokenData is the payload of AssistantToken: a piece of the answer that is on its way. Who
// reads slowly may miss some; AssistantMessage has the whole.
type TokenData struct {
	Kind  string `json:"kind" enum:"text,thinking,call,input"`
	Text  string `json:"text"`
	Step  int    `json:"step"`
	Index int    `json:"index"`          // of the block that it is a piece of
	Call  string `json:"call,omitempty"` // ID, for the kinds call and input
	Tool  string `json:"tool,omitempty"` // canonical name
}

// AssistantMessageData is the payload of AssistantMessage: one whole answer of the model.
type AssistantMessageData struct {
	Seq        int64    `json:"seq"` // number of its event
	Text       string   `json:"text"`
	Thinking   string   `json:"thinking,omitempty"`
	Calls      []Call   `json:"calls,omitempty"`
	Model      string   `json:"model,omitempty"`
	StopReason string   `json:"stop_reason,omitempty"`
	Usage      Usage    `json:"usage"`
	Cost       *float64 `json:"cost_usd,omitempty"` // missing = unknown
	Truncated  bool     `json:"truncated,omitempty"`
}

// Call is a call of a tool that the model wants to make.
type Call struct {
	ID    string          `json:"id"`
	Tool  string          `json:"tool"`                            // canonical name
	Input json.RawMessage `json:"input,omitempty" schema:"object"` // missing = longer than 1 MiB
}

// Usage is a number of tokens.
type Usage struct {
	Input      int `json:"input_tokens"` // neither read from the cache nor written to it
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_tokens"`
	CacheWrite int `json:"cache_write_tokens"`
}

// ToolUseStartData is the payload of ToolUseStart: a call that was allowed, and begins.
type ToolUseStartData struct {
	Seq   int64           `json:"seq"`
	ID    string          `json:"id"`
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input,omitempty" schema:"object"` // missing = longer than 1 MiB, or begun before the connection
	By    string          `json:"by,omitempty"`                    // who has allowed it
}

// ToolProgressData is the payload of ToolProgress: output of a call that runs. Who reads slowly
// may miss some; ToolResult has what counts.
type ToolProgressData struct {
	ID   string `json:"id"` // of the call
	Text string `json:"text"`
}

// ToolResultData is the payload of ToolResult: how a call came out. A call that is pending has
// another ToolResult when it is over.
type ToolResultData struct {
	Seq       int64           `json:"seq"`
	ID        string          `json:"id"` // of the call
	Tool      string          `json:"tool,omitempty"`
	Status    string          `json:"status" enum:"ok,error,pending"`
	Text      string          `json:"text"` // as the model reads it
	Output    json.RawMessage `json:"output,omitempty"`
	Code      string          `json:"code,omitempty"`   // of an error: E_TOOL_...
	Handle    string          `json:"handle,omitempty"` // of a call that is pending, or was
	Duration  int64           `json:"duration_ms,omitempty"`
	Truncated bool            `json:"truncated,omitempty"` // text is only the beginning
}

// SessionResultData is the payload of SessionResult: what a turn came to. It has the ID of
// each UserMessage that the model has read in the turn: as many messages as there are of
// those, or one without an ID when there are none.
type SessionResultData struct {
	Seq      int64    `json:"seq"`
	Turn     string   `json:"turn,omitempty"`
	Status   string   `json:"status" enum:"done,interrupted,failed,limit,refused,stopped,dropped,deferred"`
	Text     string   `json:"text"` // of the last answer
	Error    string   `json:"error,omitempty"`
	Code     string   `json:"code,omitempty"` // of the error: what failed at the model's provider, or a problem
	Usage    Usage    `json:"usage"`          // of the turn
	Cost     *float64 `json:"cost_usd,omitempty"`
	Steps    int      `json:"steps"`       // requests to the model in the turn
	Turns    int      `json:"turns"`       // of the session that this connection has seen end
	Duration int64    `json:"duration_ms"` // of the turn
	Denials  []Denial `json:"denials,omitempty"`

	Truncated bool `json:"truncated,omitempty"` // text is only the beginning
}

// Denial is a call that was not allowed.
type Denial struct {
	ID     string `json:"id"`
	Tool   string `json:"tool"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// HookEventData is the payload of HookEvent: something has happened that the host has
// registered for. HookCallback with the same ID answers it.
type HookEventData struct {
	Event   string          `json:"event"`
	Hook    int             `json:"hook"`                  // its place in the list of Initialize, from 0
	Call    string          `json:"call,omitempty"`        // ID of the call that it is about
	Input   json.RawMessage `json:"input" schema:"object"` // what a hook's program would be given
	Timeout int             `json:"timeout_ms"`            // 0 = no answer is waited for
}

// CanUseToolData is the payload of CanUseTool: a call waits for somebody's word.
// CanUseToolResponse with the same ID answers it. After the time, the call is denied with the
// code E_TOOL_APPROVAL_TIMEOUT.
type CanUseToolData struct {
	Seq     int64           `json:"seq"`
	Call    string          `json:"call"` // ID of the call
	Tool    string          `json:"tool"`
	Input   json.RawMessage `json:"input" schema:"object"`
	Reason  string          `json:"reason,omitempty"` // why somebody is asked
	Rule    string          `json:"rule,omitempty"`   // the rule that asks
	Diff    string          `json:"diff,omitempty"`   // what an edit would change, in unified form
	Choices []Choice        `json:"choices,omitempty"`
	Child   string          `json:"child,omitempty"` // ID of the session of an agent that asks
	Timeout int             `json:"timeout_ms"`
}

// Choice is an answer that holds beyond the call.
type Choice struct {
	Remember string   `json:"remember" enum:"session,always"`
	Rules    []string `json:"rules"`
}

// NotificationData is the payload of Notification: the reply to a request, or something that
// has happened for which there is no message of its own.
type NotificationData struct {
	Kind string `json:"kind" enum:"reply,event,closed"`

	// Of a reply: the request, and what it asked for.
	Request Type          `json:"request,omitempty"`
	Context *ContextUsage `json:"context,omitempty"`
	Rewound *Rewound      `json:"rewound,omitempty"`

	// Of an event: its kind, number (0 = it is not stored) and body (docs/events.md); a
	// body of more than 32 KiB is missing.
	Event string          `json:"event,omitempty"`
	Seq   int64           `json:"seq,omitempty"`
	Data  json.RawMessage `json:"data,omitempty" schema:"object"`

	// Of a session that is closed: why, if it was not asked for.
	Reason string `json:"reason,omitempty"`
}

// ContextUsage is what fills the window of a session's model. Tokens are estimates.
type ContextUsage struct {
	Model  string        `json:"model"`
	Used   int           `json:"used_tokens"`
	Window int           `json:"window_tokens"` // 0 = not known
	Status string        `json:"status"`        // safe, warning, critical or exceeded
	Parts  []ContextPart `json:"parts"`
}

// ContextPart is one part of what fills the window.
type ContextPart struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
}

// Rewound is what became of files.
type Rewound struct {
	Files int   `json:"files"` // that were changed
	Left  int   `json:"left"`  // that were left alone, because others have changed them
	To    int64 `json:"to"`    // number of the event
}

// ErrorData is the payload of Error.
type ErrorData struct {
	Code    Code              `json:"code"`
	Message string            `json:"message"`
	Fix     string            `json:"fix,omitempty"` // what to do next
	Request Type              `json:"request,omitempty"`
	Args    map[string]string `json:"args,omitempty"` // the names involved
}
