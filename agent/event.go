package agent

import (
	"encoding/json"
	"errors"
	"time"
)

// An Event is one fact about a session. Stored events are numbered without gaps
// from 1 and never change. An event with Seq 0 is live only: it is shown to
// readers and not stored, and what it said is said again in full by a stored
// event that follows.
type Event struct {
	Seq   int64
	Epoch int64 // of the writer; raised at every writable open
	Time  time.Time
	ID    string // unique for ever; what an append is recognised by
	Body  Body
}

// Kind returns the name of the event's kind.
func (e Event) Kind() string { return e.Body.Kind() }

// Live reports whether the event is never stored.
func (e Event) Live() bool { return e.Seq == 0 }

// Body is one of the event types of this package, or [Unknown].
type Body interface{ Kind() string }

// EndReason says how a turn ended.
type EndReason string

// The ways in which a turn ends.
const (
	EndDone        EndReason = "done"
	EndInterrupted EndReason = "interrupted"
	EndFailed      EndReason = "failed"
	EndLimit       EndReason = "limit"   // steps
	EndRefused     EndReason = "refused" // the model would not
	EndStopped     EndReason = "stopped" // a denial or a hook stopped it
)

// The session itself.
type (
	// SessionOpened opens an epoch: the first event of a log, and the first one
	// of everybody who writes to it later.
	SessionOpened struct {
		Session string `json:"session"`
		Parent  string `json:"parent,omitempty"`   // session whose call this one serves
		Call    string `json:"call,omitempty"`     // key of that call
		ForkOf  string `json:"fork_of,omitempty"`  // session that this one continues
		ForkSeq int64  `json:"fork_seq,omitempty"` // ... from there
		Title   string `json:"title,omitempty"`
		Workdir string `json:"workdir"`
		Agent   string `json:"agent,omitempty"`
		Model   string `json:"model,omitempty"`
		Mode    Mode   `json:"mode,omitempty"`
		Dialect string `json:"dialect,omitempty"`
		Profile string `json:"profile,omitempty"` // kind of work: chat, cowork, code, finance, or one of the user's own
		Lane    string `json:"lane,omitempty"`
		Version string `json:"version,omitempty"` // of dure
		Host    string `json:"host,omitempty"`
		PID     int    `json:"pid,omitempty"`
		Config  string `json:"config,omitempty"` // hash

		// Schema is the form that answers are to have, as long as this epoch lasts.
		Schema json.RawMessage `json:"schema,omitempty"`

		// Work is what holds for that kind of work, as long as this epoch lasts.
		Work *Profile `json:"work,omitempty"`

		// Origin says where the conversation was imported from; nil = it was not.
		Origin *Origin `json:"origin,omitempty"`
	}

	// Origin is where a conversation comes from that was not held here.
	Origin struct {
		Source string    `json:"source"`       // claude-code, codex, opencode or jsonl
		ID     string    `json:"id,omitempty"` // as the source knows it
		At     time.Time `json:"at,omitzero"`  // when it was imported; its events have the times of the source
	}

	// Rated records what a person thinks of an answer.
	Rated struct {
		Of   int64  `json:"of"` // number of the answer's event
		Good bool   `json:"good"`
		Text string `json:"text,omitempty"` // why
		Was  *bool  `json:"was,omitempty"`  // what they had said of it before
	}

	// SettingsChanged records a [Change]. Empty fields stayed as they were.
	SettingsChanged struct {
		Model string `json:"model,omitempty"`
		Mode  Mode   `json:"mode,omitempty"`
		Title string `json:"title,omitempty"`
		By    string `json:"by,omitempty"`

		Tags     *[]string `json:"tags,omitempty"` // all of them
		Pinned   *bool     `json:"pinned,omitempty"`
		Archived *bool     `json:"archived,omitempty"`

		Plan PlanMode `json:"plan,omitempty"` // when the session plans first

		Effort string `json:"effort,omitempty"` // how much the model thinks
	}

	// LogRepaired says what was cut from the end of the log when it was opened.
	LogRepaired struct {
		Bytes int64  `json:"bytes"`
		Kept  string `json:"kept,omitempty"` // file that holds what was cut
		Why   string `json:"why,omitempty"`
	}

	// LogSealed makes the log tamper-evident: Hash is the SHA-256 of Prev and of
	// the lines From to To.
	LogSealed struct {
		From int64  `json:"from"`
		To   int64  `json:"to"`
		Hash string `json:"hash"`
		Prev string `json:"prev,omitempty"`
	}

	// Note is a remark for people.
	Note struct {
		Level string `json:"level,omitempty"` // info, warn, error
		Code  string `json:"code,omitempty"`  // key in the message catalogue
		Text  string `json:"text"`
	}
)

// Input and turns.
type (
	// InputQueued records that input was taken but has to wait for the running
	// turn to reach a step boundary, or its end when Later is set.
	InputQueued struct {
		Input string  `json:"input"` // ID
		Text  string  `json:"text,omitempty"`
		Parts []Block `json:"parts,omitempty"`
		Later bool    `json:"later,omitempty"`

		Origin string `json:"origin,omitempty"` // as in InputAdded

		Without []string `json:"without,omitempty"` // as in Prompt
	}

	// InputAdded records input at the point where it enters the conversation.
	InputAdded struct {
		Input  string  `json:"input"`
		Text   string  `json:"text,omitempty"`
		Parts  []Block `json:"parts,omitempty"`
		Origin string  `json:"origin,omitempty"` // "" = user; else loop, settled, hook:NAME, child:ID, ...

		Without []string `json:"without,omitempty"` // as in Prompt
	}

	// TurnStarted opens a turn.
	TurnStarted struct {
		Turn    string `json:"turn"`
		Attempt int    `json:"attempt,omitempty"` // counts resumptions after a crash
	}

	// TurnEnded closes a turn.
	TurnEnded struct {
		Turn   string       `json:"turn"`
		Reason EndReason    `json:"reason"`
		Error  string       `json:"error,omitempty"`
		Fail   FailureClass `json:"fail,omitempty"` // when a model's failure ended it

		// Problem is what somebody has to do something about, such as a full disk.
		Problem ProblemCode `json:"problem,omitempty"`

		Steps  int    `json:"steps"`
		Millis int64  `json:"ms"`
		Usage  Usage  `json:"usage"`
		Cost   *Money `json:"cost,omitempty"` // nil = unknown
	}
)

// The model.
type (
	// ModelRequested is written before a request goes out.
	ModelRequested struct {
		Turn    string `json:"turn,omitempty"`
		Step    int    `json:"step"`
		Attempt int    `json:"attempt"`           // from 1
		Purpose string `json:"purpose,omitempty"` // "" = the conversation; else that of an [Ask]
		Model   string `json:"model"`

		// What the request was, so that it can be built again from the log: the
		// hash of all of it, and of its parts that are kept as blobs.
		Hash     string `json:"hash"`
		System   string `json:"system"` // blob: JSON of []Section
		Tools    string `json:"tools"`  // blob: JSON of the catalog of the step
		Messages int    `json:"messages"`
		Input    string `json:"input,omitempty"` // blob: JSON of []Message, with a Purpose
		Tail     string `json:"tail,omitempty"`
		Params   Params `json:"params"`
	}

	// ToolsChanged is written before the first request that has other tools than the
	// one before it, so that the request says nothing that no event explains.
	ToolsChanged struct {
		Added   []string `json:"added,omitempty"`
		Changed []string `json:"changed,omitempty"` // those that are described otherwise
		Removed []string `json:"removed,omitempty"`
	}

	// ToolsSelected says which tools the model has looked for, which it is offered from
	// then on.
	ToolsSelected struct {
		Call  string   `json:"call,omitempty"` // that looked for them
		Tools []string `json:"tools"`
	}

	// ToolsSwitched says that a person has taken a tool from the model for the session, or
	// has given it back.
	ToolsSwitched struct {
		Tool string `json:"tool"` // canonical, or "group:NAME"
		On   bool   `json:"on"`
	}

	// ModelAnswered records one complete answer.
	ModelAnswered struct {
		Turn    string `json:"turn,omitempty"`
		Step    int    `json:"step"`
		Purpose string `json:"purpose,omitempty"`
		Answer
		Cost      *Money `json:"cost,omitempty"` // nil = unknown
		Millis    int64  `json:"ms,omitempty"`
		FirstByte int64  `json:"first_ms,omitempty"` // until the first fragment

		// Shown is what people see in the place of the text, if a hook wants that; nil =
		// the text. The model has said what the message says.
		Shown *string `json:"shown,omitempty"`
	}

	// ModelFailed records a request that failed. What its attempt had shown is
	// void: front-ends take it back.
	ModelFailed struct {
		Turn    string       `json:"turn,omitempty"`
		Step    int          `json:"step"`
		Attempt int          `json:"attempt"`
		Purpose string       `json:"purpose,omitempty"`
		Class   FailureClass `json:"class,omitempty"`
		Status  int          `json:"status,omitempty"`
		Error   string       `json:"error"`
		Retry   bool         `json:"retry"`              // another attempt follows
		Delay   int64        `json:"delay_ms,omitempty"` // after this long
		Model   string       `json:"model,omitempty"`    // the model of the next attempt, when it is another
	}

	// ContextThreshold is written once each time the conversation grows over a
	// share of the model's window.
	ContextThreshold struct {
		Used      int     `json:"used"`
		Window    int     `json:"window"`
		Ratio     float64 `json:"ratio"`
		Threshold float64 `json:"threshold"`
	}
)

// Said is what people see of an answer.
func (a ModelAnswered) Said() string {
	if a.Shown != nil {
		return *a.Shown
	}
	return a.Message.Text()
}

// Params are the parts of a request that are neither prompt nor conversation.
type Params struct {
	MaxTokens   int      `json:"max_tokens,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	Thinking    int      `json:"thinking,omitempty"`
	NoTools     bool     `json:"no_tools,omitempty"`
	Dialect     string   `json:"dialect,omitempty"`
}

// How long an answer holds beyond the call that it is about.
const (
	RememberSession = "session"
	RememberAlways  = "always"
)

// Calls.
type (
	// CallDecided records the verdict on one call. With Allow it is the intent:
	// it is durable before the call runs.
	CallDecided struct {
		Turn     string   `json:"turn,omitempty"`
		Step     int      `json:"step"`
		Proposal Proposal `json:"proposal"` // the call as it will run
		Decision Decision `json:"decision"`
		Key      string   `json:"key"`
	}

	// ApprovalAsked waits for a [Resolve] with the same ID.
	ApprovalAsked struct {
		ID       string    `json:"id"`
		Proposal Proposal  `json:"proposal"`
		Reason   string    `json:"reason,omitempty"`
		Trace    []Opinion `json:"trace,omitempty"`
		Child    string    `json:"child,omitempty"` // the child that asks; "" = the session itself

		Rule    string   `json:"rule,omitempty"`    // the rule that asks
		Diff    string   `json:"diff,omitempty"`    // what an edit would change, in unified form
		Choices []Choice `json:"choices,omitempty"` // beside allowing it once and denying it
	}

	// Choice is an answer that holds beyond the call, with the rules that it
	// stands for. Whoever answers may edit them.
	Choice struct {
		Remember string   `json:"remember"` // session or always
		Rules    []string `json:"rules"`
	}

	// ApprovalResolved records the first answer.
	ApprovalResolved struct {
		ID       string   `json:"id"`
		Decision Decision `json:"decision"`
		Remember string   `json:"remember,omitempty"`
		Rules    []string `json:"rules,omitempty"` // what is remembered
	}

	// CallStarted is written before a tool runs, so that a crash leaves a
	// started call without a finished one rather than no trace.
	CallStarted struct {
		ID      string          `json:"id"`
		Tool    string          `json:"tool"`
		Class   Class           `json:"class"`
		Key     string          `json:"key"`
		Attempt int             `json:"attempt,omitempty"` // counts from 1 after a crash
		Mark    json.RawMessage `json:"mark,omitempty"`    // see [Checker]
	}

	// CallSpawned names a process group that a running call started.
	CallSpawned struct {
		ID      string  `json:"id"`
		Process Process `json:"process"`
	}

	// CallFinished carries the result as the model will read it.
	CallFinished struct {
		Result Result `json:"result"`
		Tool   string `json:"tool,omitempty"`
		Millis int64  `json:"ms,omitempty"`
	}

	// AuthGranted records that a person has agreed to a sign-in for which a call
	// waits. It comes right before the outcome of that call, and holds no secret.
	AuthGranted struct {
		Handle      string   `json:"handle"`        // of the pending call
		AuthSession string   `json:"authSessionId"` // the sign-in
		App         string   `json:"app"`
		Subject     string   `json:"subject,omitempty"` // whose grant it is; "" = everyone's
		Scopes      []string `json:"scopes,omitempty"`
	}

	// CallSettled records how a call came out that had been answered as pending.
	CallSettled struct {
		Handle string `json:"handle"`
		ID     string `json:"id"` // of the call
		Tool   string `json:"tool,omitempty"`
		Result Result `json:"result"`

		// Notice is what the model reads of it, in front of the next input.
		Notice string `json:"notice"`

		// Lost says that the program that ran the work ended before it did.
		Lost bool `json:"lost,omitempty"`
	}
)

// Children.
type (
	// ChildOpened records a child session before it is created.
	ChildOpened struct {
		Child  string `json:"child"`
		Key    string `json:"key,omitempty"`
		Agent  string `json:"agent,omitempty"`
		Title  string `json:"title,omitempty"`
		Prompt string `json:"prompt,omitempty"`
	}

	// ChildEnded records what came of it.
	ChildEnded struct {
		Child   string  `json:"child"`
		Outcome Outcome `json:"outcome"`
	}

	// CrewProgressed records that a task of a plan, which agents do for a call, has begun
	// or is over.
	CrewProgressed struct {
		Call   string `json:"call"`
		Task   string `json:"task"`
		Agent  string `json:"agent"`  // type of agent
		Status string `json:"status"` // running, completed, failed or skipped

		Over    int `json:"over"` // tasks of the plan that are, this one included
		Done    int `json:"done"` // of those, the ones that have not failed and were not skipped
		Of      int `json:"of"`
		Percent int `json:"percent"` // of them that are over
	}
)

// Live events: their Seq is 0.
type (
	// Fragment is a piece of the answer in progress.
	Fragment struct {
		Step  int       `json:"step"`
		What  DeltaKind `json:"what"` // text, thinking, call, input
		Index int       `json:"index"`
		Text  string    `json:"text,omitempty"`
		Call  string    `json:"call,omitempty"`
		Tool  string    `json:"tool,omitempty"`
	}

	// CallOutput is a piece of the output of a running call.
	CallOutput struct {
		ID   string `json:"id"`
		Text string `json:"text"`
	}

	// StateChanged is a transition of the turn's state machine.
	StateChanged struct {
		From   State  `json:"from"`
		To     State  `json:"to"`
		Reason string `json:"reason,omitempty"` // on the way to done: completed, aborted, error, max_turns; retry on the way back
	}
)

// Causes of a turn that ends before its time.
var (
	// ErrInterrupted is the cause of a turn that was stopped by [Interrupt], or
	// because its session was closed.
	ErrInterrupted = errors.New("interrupted")

	// ErrParked is the cause of a turn that waits for a person while its session
	// is closed: it stays open and goes on when the session is opened again.
	ErrParked = errors.New("waiting for a person")

	// ErrDeferred is the cause of a turn of which a call was put aside: it stays open
	// likewise.
	ErrDeferred = errors.New("a call was put aside")
)

// State is a state of the turn's state machine.
type State string

// The states.
const (
	StateIdle      State = "idle"
	StateStreaming State = "streaming"
	StateToolUse   State = "tool_use"
	StateExecuting State = "executing"
	StateDone      State = "done"
)

// Unknown keeps an event that this version cannot read.
type Unknown struct {
	Name string
	Raw  json.RawMessage
}

// Kind returns the kind's name on disk and on the wire.
func (SessionOpened) Kind() string    { return "session.opened" }
func (SettingsChanged) Kind() string  { return "settings.changed" }
func (LogRepaired) Kind() string      { return "log.repaired" }
func (LogSealed) Kind() string        { return "log.sealed" }
func (Note) Kind() string             { return "note" }
func (Rated) Kind() string            { return "answer.rated" }
func (InputQueued) Kind() string      { return "input.queued" }
func (InputAdded) Kind() string       { return "input.added" }
func (TurnStarted) Kind() string      { return "turn.started" }
func (TurnEnded) Kind() string        { return "turn.ended" }
func (ModelRequested) Kind() string   { return "model.requested" }
func (ToolsChanged) Kind() string     { return "tools.changed" }
func (ToolsSelected) Kind() string    { return "tools.selected" }
func (ToolsSwitched) Kind() string    { return "tools.switched" }
func (ModelAnswered) Kind() string    { return "model.answered" }
func (ModelFailed) Kind() string      { return "model.failed" }
func (ContextThreshold) Kind() string { return "context.threshold" }
func (CallDecided) Kind() string      { return "call.decided" }
func (ApprovalAsked) Kind() string    { return "approval.asked" }
func (ApprovalResolved) Kind() string { return "approval.resolved" }
func (CallStarted) Kind() string      { return "call.started" }
func (CallSpawned) Kind() string      { return "call.spawned" }
func (CallFinished) Kind() string     { return "call.finished" }
func (CallSettled) Kind() string      { return "call.settled" }
func (AuthGranted) Kind() string      { return "auth.granted" }
func (ChildOpened) Kind() string      { return "child.opened" }
func (ChildEnded) Kind() string       { return "child.ended" }
func (CrewProgressed) Kind() string   { return "crew.progressed" }
func (Fragment) Kind() string         { return "model.fragment" }
func (CallOutput) Kind() string       { return "call.output" }
func (StateChanged) Kind() string     { return "state.changed" }
func (u Unknown) Kind() string        { return u.Name }

// Named reports whether a person has given the session its title: neither a parent
// nor the place it was imported from.
func (b SessionOpened) Named() bool { return b.Title != "" && b.Parent == "" && b.Origin == nil }

// Named reports whether a person has given the session another title.
func (b SettingsChanged) Named() bool { return b.Title != "" && b.By == "user" }
