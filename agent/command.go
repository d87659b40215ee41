package agent

// A Command asks a session to do something. Commands are the only way in, as
// events are the only way out. A command is accepted when Send returns without
// error: what it asks for is then durable.
type Command interface{ Command() string }

type (
	// Prompt adds user input: it starts a turn, or steers the running one at its
	// next step.
	Prompt struct {
		// ID is chosen by the sender. A second prompt with the same ID is
		// accepted and does nothing. "" = not repeated.
		ID     string  `json:"id,omitempty"`
		Text   string  `json:"text,omitempty"`
		Blocks []Block `json:"blocks,omitempty"` // images and documents, after Text

		// Later keeps the input until the running turn has ended, rather than
		// steering it.
		Later bool `json:"later,omitempty"`
	}

	// Interrupt stops the running turn. It does nothing when there is none.
	Interrupt struct{}

	// Resolve answers an [ApprovalAsked]. The first answer wins; later ones are
	// accepted and do nothing.
	Resolve struct {
		ID       string   `json:"id"`
		Decision Decision `json:"decision"`
		Remember string   `json:"remember,omitempty"` // "" = once, "session"
	}

	// Change alters settings of the session from the next step on. Empty fields
	// stay as they are.
	Change struct {
		Model string `json:"model,omitempty"`
		Mode  Mode   `json:"mode,omitempty"`
		Title string `json:"title,omitempty"`
	}

	// Continue goes on with a turn that was cut short, without new input.
	Continue struct{}
)

// Command returns the name of the command on the wire.
func (Prompt) Command() string    { return "prompt" }
func (Interrupt) Command() string { return "interrupt" }
func (Resolve) Command() string   { return "resolve" }
func (Change) Command() string    { return "change" }
func (Continue) Command() string  { return "continue" }

// A Query asks for something that is not part of one session's log.
type Query interface{ Query() string }

type (
	// ListSessions asks for []SessionInfo, newest first.
	ListSessions struct {
		Workdir string `json:"workdir,omitempty"` // "" = any
		Limit   int    `json:"limit,omitempty"`   // 0 = all
	}

	// FindSession asks for the SessionInfo that a user means by Name: an ID, a
	// unique prefix of one, a title, or "" for the newest in Workdir.
	FindSession struct {
		Name    string `json:"name,omitempty"`
		Workdir string `json:"workdir,omitempty"`
	}

	// ListModels asks for []ModelInfo.
	ListModels struct{}

	// VerifySeals asks for a SealReport on the log of Session.
	VerifySeals struct {
		Session string `json:"session"`
	}

	// VerifyReplay asks for a ReplayReport on the log of Session.
	VerifyReplay struct {
		Session string `json:"session"`
	}

	// Diagnose asks for []Finding about this installation.
	Diagnose struct{}
)

// Query returns the name of the query on the wire.
func (ListSessions) Query() string { return "sessions" }
func (FindSession) Query() string  { return "session" }
func (ListModels) Query() string   { return "models" }
func (VerifySeals) Query() string  { return "verify" }
func (VerifyReplay) Query() string { return "replay.verify" }
func (Diagnose) Query() string     { return "diagnose" }

// SessionInfo is a row of the session list.
type SessionInfo struct {
	ID      string `json:"id"`
	Parent  string `json:"parent,omitempty"`
	Title   string `json:"title,omitempty"`
	Workdir string `json:"workdir,omitempty"`
	Model   string `json:"model,omitempty"`
	Status  string `json:"status,omitempty"` // idle, running, waiting, interrupted, damaged
	Created string `json:"created"`          // RFC 3339
	Updated string `json:"updated"`
	Turns   int    `json:"turns"`
	Head    int64  `json:"head"` // sequence number of the last event
	Bytes   int64  `json:"bytes"`
	Usage   Usage  `json:"usage"`
	Cost    *Money `json:"cost,omitempty"` // nil = unknown
}

// SealReport is the outcome of verifying a log.
type SealReport struct {
	Session string `json:"session"`
	OK      bool   `json:"ok"`
	Events  int64  `json:"events"`
	Seals   int    `json:"seals"`
	Open    int64  `json:"open"` // events after the last seal
	Head    string `json:"head"` // the last seal's hash
	Problem string `json:"problem,omitempty"`
	At      int64  `json:"at,omitempty"` // event at which the problem shows
}

// ReplayReport is the outcome of building a session's requests again.
type ReplayReport struct {
	Session  string `json:"session"`
	OK       bool   `json:"ok"`
	Requests int    `json:"requests"`
	At       int64  `json:"at,omitempty"` // the first request that differs
	Problem  string `json:"problem,omitempty"`
}

// Finding is one line of a diagnosis.
type Finding struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok, warn, fail
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// Open asks for a session to be opened, new or stored, and run.
type Open struct {
	Session string `json:"session,omitempty"` // ID to resume; "" = a new session
	New     string `json:"new,omitempty"`     // ID for the new session; "" = any
	Workdir string `json:"workdir,omitempty"` // of a new session; absolute
	Model   string `json:"model,omitempty"`   // "" = that of the session, or the default
	Mode    Mode   `json:"mode,omitempty"`
	Title   string `json:"title,omitempty"`

	// Approver says that somebody answers approvals. Without one, a call that
	// needs the user is denied at once.
	Approver bool `json:"approver,omitempty"`

	MaxSteps int  `json:"max_steps,omitempty"` // of a turn; 0 = no limit
	Scratch  bool `json:"scratch,omitempty"`   // keep nothing on disk
}
