package hooks

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"dure/agent/query"
)

// Event is a moment at which hooks are asked.
type Event string

// The events.
const (
	SessionStart        Event = "SessionStart"
	Setup               Event = "Setup"
	InstructionsLoaded  Event = "InstructionsLoaded"
	UserPromptSubmit    Event = "UserPromptSubmit"
	UserPromptExpansion Event = "UserPromptExpansion"
	MessageDisplay      Event = "MessageDisplay"
	PreToolUse          Event = "PreToolUse"
	PermissionRequest   Event = "PermissionRequest"
	PermissionDenied    Event = "PermissionDenied"
	PostToolUse         Event = "PostToolUse"
	PostToolUseFailure  Event = "PostToolUseFailure"
	PostToolBatch       Event = "PostToolBatch"
	Notification        Event = "Notification"
	SubagentStart       Event = "SubagentStart"
	SubagentStop        Event = "SubagentStop"
	TaskCreated         Event = "TaskCreated"
	TaskCompleted       Event = "TaskCompleted"
	TeammateIdle        Event = "TeammateIdle"
	Stop                Event = "Stop"
	StopFailure         Event = "StopFailure"
	PreModelSwitch      Event = "PreModelSwitch"
	PostModelSwitch     Event = "PostModelSwitch"
	ConfigChange        Event = "ConfigChange"
	CwdChanged          Event = "CwdChanged"
	DirectoryAdded      Event = "DirectoryAdded"
	FileChanged         Event = "FileChanged"
	WorktreeCreate      Event = "WorktreeCreate"
	WorktreeRemove      Event = "WorktreeRemove"
	PreCompact          Event = "PreCompact"
	PostCompact         Event = "PostCompact"
	SessionEnd          Event = "SessionEnd"
	Elicitation         Event = "Elicitation"
	ElicitationResult   Event = "ElicitationResult"

	// Ours beyond those of the ecosystem.
	PreSkillExecute     Event = "PreSkillExecute"
	PostSkillExecute    Event = "PostSkillExecute"
	AgentIterationStart Event = "AgentIterationStart"
	AgentIterationEnd   Event = "AgentIterationEnd"
)

// Type is what a hook is made of.
type Type string

// The types.
const (
	Command Type = "command"
	HTTP    Type = "http"
	MCPTool Type = "mcp_tool"
	Prompt  Type = "prompt"
	Agent   Type = "agent"

	// Callback is a function of the program that embeds this one: no file defines such.
	Callback Type = "callback"
)

// A kind says what holds for an event.
type kind struct {
	matcher string // the field of the input that matchers look at; "" = none do
	types   []Type
	tool    bool // it is about a call, and so may have an if
	blocks  blocking
	plain   bool // output that is no JSON is for the model
	env     bool // hooks may leave an environment behind
	deaf    bool // what hooks write does not count
	alone   bool // nobody waits for hooks
	limit   time.Duration
}

// blocking is what it means that a hook forbids.
type blocking int

const (
	never    blocking = iota // nothing: people are told
	deny                     // what was to happen does not
	feedback                 // the model reads why
	goesOn                   // what was to end goes on
)

var (
	allTypes = []Type{Command, HTTP, MCPTool, Prompt, Agent}
	ioTypes  = []Type{Command, HTTP, MCPTool}
	early    = []Type{Command, MCPTool}
)

// Time limits where a hook names none. Prompts and agents have their own.
const (
	usualLimit   = 600 * time.Second
	inputLimit   = 30 * time.Second
	displayLimit = 10 * time.Second
	promptLimit  = 30 * time.Second
	agentLimit   = 60 * time.Second

	// closingLimit is what all hooks at the end of a session have together, unless one
	// of them asks for more; closingMost is the most.
	closingLimit = 1500 * time.Millisecond
	closingMost  = 60 * time.Second
)

var kinds = map[Event]kind{
	SessionStart:        {matcher: "source", types: early, plain: true, env: true},
	Setup:               {matcher: "trigger", types: early, env: true},
	InstructionsLoaded:  {matcher: "load_reason", types: ioTypes, deaf: true, alone: true},
	UserPromptSubmit:    {types: allTypes, blocks: deny, plain: true, limit: inputLimit},
	UserPromptExpansion: {matcher: "command_name", types: allTypes, blocks: deny, plain: true},
	MessageDisplay:      {types: ioTypes, limit: displayLimit},
	PreToolUse:          {matcher: "tool_name", types: allTypes, tool: true, blocks: deny},
	PermissionRequest:   {matcher: "tool_name", types: allTypes, tool: true},
	PermissionDenied:    {matcher: "tool_name", types: allTypes, tool: true},
	PostToolUse:         {matcher: "tool_name", types: allTypes, tool: true, blocks: feedback},
	PostToolUseFailure:  {matcher: "tool_name", types: allTypes, tool: true, blocks: feedback},
	PostToolBatch:       {types: allTypes, blocks: deny},
	Notification:        {matcher: "notification_type", types: ioTypes},
	SubagentStart:       {matcher: "agent_type", types: ioTypes},
	SubagentStop:        {matcher: "agent_type", types: allTypes, blocks: goesOn},
	TaskCreated:         {types: allTypes, blocks: deny},
	TaskCompleted:       {types: allTypes, blocks: deny},
	TeammateIdle:        {types: allTypes, blocks: goesOn},
	Stop:                {types: allTypes, blocks: goesOn},
	StopFailure:         {matcher: "error", types: ioTypes},
	PreModelSwitch:      {matcher: "to_model", types: allTypes, blocks: deny, limit: inputLimit},
	PostModelSwitch:     {matcher: "to_model", types: ioTypes, plain: true},
	ConfigChange:        {matcher: "source", types: ioTypes, blocks: deny},
	CwdChanged:          {types: ioTypes, env: true},
	DirectoryAdded:      {matcher: "source", types: ioTypes, alone: true},
	FileChanged:         {matcher: "file_path", types: ioTypes, env: true},
	WorktreeCreate:      {types: ioTypes, blocks: deny},
	WorktreeRemove:      {types: ioTypes, deaf: true},
	PreCompact:          {matcher: "trigger", types: ioTypes, blocks: deny},
	PostCompact:         {matcher: "trigger", types: ioTypes, deaf: true},
	SessionEnd:          {matcher: "reason", types: ioTypes, deaf: true},
	Elicitation:         {matcher: "mcp_server_name", types: ioTypes, blocks: deny},
	ElicitationResult:   {matcher: "mcp_server_name", types: ioTypes, blocks: deny},
	PreSkillExecute:     {matcher: "skill_name", types: allTypes, blocks: deny},
	PostSkillExecute:    {matcher: "skill_name", types: allTypes},
	AgentIterationStart: {types: ioTypes},
	AgentIterationEnd:   {types: ioTypes},
}

// Events returns all events, sorted.
func Events() []Event {
	all := make([]Event, 0, len(kinds))
	for e := range kinds {
		all = append(all, e)
	}
	slices.Sort(all)
	return all
}

// EventOf returns the event of a name in any spelling: preToolUse, pre_tool_use,
// PreToolUse.
func EventOf(name string) (Event, bool) {
	p := plain(name)
	if p == "agentstop" {
		return Stop, true
	}
	for e := range kinds {
		if plain(string(e)) == p {
			return e, true
		}
	}
	return "", false
}

// plain is the form in which names are compared.
func plain(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return name
	}
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// Limit is how long a hook may run: as it says, or as is usual for the event and the type.
func (h Hook) Limit() time.Duration {
	switch {
	case h.Timeout > 0:
		return h.Timeout
	case h.Type == Prompt:
		return promptLimit
	case h.Type == Agent:
		return agentLimit
	case kinds[h.Event].limit > 0 && !h.Async:
		return kinds[h.Event].limit
	}
	return usualLimit
}

// MatchedField returns the field of the input that matchers of an event look at; "" =
// they look at nothing.
func (e Event) MatchedField() string { return kinds[e].matcher }

// AboutCall reports whether an event is about one call of a tool.
func (e Event) AboutCall() bool { return kinds[e].tool }

// Types returns the types of hooks that run at an event. Those of [Callback] run at each.
func (e Event) Types() []Type { return slices.Clone(kinds[e].types) }

// Blocks says what it does that a hook forbids what an event is about: one of the words of
// [query.HookEffect]; "" = nothing.
func (e Event) Blocks() string {
	return map[blocking]string{deny: query.HookDenies, feedback: query.HookTells, goesOn: query.HookGoesOn}[kinds[e].blocks]
}
