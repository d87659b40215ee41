package agent

import (
	"encoding/json"
	"time"
)

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

		// Without names what is not to be read with the input although Text mentions
		// it: the ID, name, path or text of a [dure/agent/query.Mentioned], [WithoutAll] or
		// [WithoutPlain]. At most 200 count.
		Without []string `json:"without,omitempty"`
	}

	// Interrupt stops the running turn. It does nothing when there is none.
	Interrupt struct{}

	// Resolve answers an [ApprovalAsked]. The first answer wins; later ones are
	// accepted and do nothing.
	Resolve struct {
		ID       string   `json:"id"`
		Decision Decision `json:"decision"`
		Remember string   `json:"remember,omitempty"` // "" = once, "session", "always"

		// Rules are what to remember instead of what the question offered.
		Rules []string `json:"rules,omitempty"`
	}

	// Change alters settings of the session from the next step on. Empty fields
	// stay as they are.
	Change struct {
		Model string `json:"model,omitempty"`
		Mode  Mode   `json:"mode,omitempty"`
		Title string `json:"title,omitempty"`

		Tags     *[]string `json:"tags,omitempty"` // all of them
		Pinned   *bool     `json:"pinned,omitempty"`
		Archived *bool     `json:"archived,omitempty"`

		Plan PlanMode `json:"plan,omitempty"` // when the session plans first

		Effort string `json:"effort,omitempty"` // low, medium or high: how much the model thinks
	}

	// Compact shortens the conversation now. It waits for a running turn to end.
	Compact struct {
		Focus string `json:"focus,omitempty"` // what to keep above all
	}

	// Restore takes the newest compaction back. It needs an idle session.
	Restore struct{}

	// Rewind goes back to how things were when event To had been stored: what was
	// said since leaves the conversation, or files are put back, or both. It needs
	// an idle session.
	Rewind struct {
		To           int64 `json:"to"`
		Conversation bool  `json:"conversation,omitempty"`
		Files        bool  `json:"files,omitempty"`

		// Force names files that are put back although somebody else has changed
		// them since. Only, if it is not empty, names those that are put back at
		// all. Paths are relative to the workspace.
		Force []string `json:"force,omitempty"`
		Only  []string `json:"only,omitempty"`
	}

	// Rate says what a person thinks of an answer.
	Rate struct {
		Of   int64  `json:"of,omitempty"` // number of its event; 0 = the newest answer
		Good bool   `json:"good"`
		Text string `json:"text,omitempty"` // why
	}

	// Continue goes on with a turn that was cut short, without new input.
	Continue struct{}
)

// What [Prompt.Without] may name besides single mentions.
const (
	WithoutAll   = "*" // nothing is read
	WithoutPlain = "?" // only what has an @ before it is read
)

// Command returns the name of the command on the wire.
func (Prompt) Command() string    { return "prompt" }
func (Interrupt) Command() string { return "interrupt" }
func (Resolve) Command() string   { return "resolve" }
func (Change) Command() string    { return "change" }
func (Continue) Command() string  { return "continue" }
func (Compact) Command() string   { return "compact" }
func (Restore) Command() string   { return "restore" }
func (Rewind) Command() string    { return "rewind" }
func (Rate) Command() string      { return "rate" }

// A Query asks for something that is not part of one session's log.
type Query interface{ Query() string }

type (
	// ListSessions asks for a SessionList: newest first, those that are pinned before
	// all others.
	ListSessions struct {
		Workdir  string `json:"workdir,omitempty"`  // "" = any
		Tag      string `json:"tag,omitempty"`      // "" = any
		Archived bool   `json:"archived,omitempty"` // those that were put away, too
		Limit    int    `json:"limit,omitempty"`    // 0 = all

		Before time.Time `json:"before,omitzero"` // changed before it; zero = ever

		Profile string `json:"profile,omitempty"` // kind of work; "" = any
	}

	// FindSession asks for the SessionInfo that a user means by Name: an ID, a
	// unique prefix of one, a title, or "" for the newest in Workdir, with Profile of
	// that kind of work.
	FindSession struct {
		Name    string `json:"name,omitempty"`
		Workdir string `json:"workdir,omitempty"`
		Profile string `json:"profile,omitempty"`
	}

	// VerifySeals asks for a SealReport on the log of Session.
	VerifySeals struct {
		Session string `json:"session"`
	}

	// ContextUsage asks for a ContextReport on Session, which has to be open.
	ContextUsage struct {
		Session string `json:"session"`
	}
)

// Query returns the name of the query on the wire.
func (ListSessions) Query() string { return "sessions" }
func (FindSession) Query() string  { return "session" }
func (VerifySeals) Query() string  { return "verify" }
func (ContextUsage) Query() string { return "context" }

// SessionInfo is a row of the session list.
type SessionInfo struct {
	ID      string `json:"id"`
	Parent  string `json:"parent,omitempty"` // what it works for; with ForkSeq: what it was forked from
	Title   string `json:"title,omitempty"`
	Workdir string `json:"workdir,omitempty"`
	Model   string `json:"model,omitempty"`
	Status  string `json:"status,omitempty"` // idle, running, waiting, interrupted, damaged
	Created string `json:"created"`          // RFC 3339
	Updated string `json:"updated"`
	Turns   int    `json:"turns"`

	// Messages are inputs and answers, those to side questions counted too.
	Messages int `json:"messages"`

	Head  int64  `json:"head"` // sequence number of the last event
	Bytes int64  `json:"bytes"`
	Usage Usage  `json:"usage"`
	Cost  *Money `json:"cost,omitempty"` // nil = unknown

	Tags     []string `json:"tags,omitempty"`
	Pinned   bool     `json:"pinned,omitempty"`
	Archived bool     `json:"archived,omitempty"`

	Named  bool    `json:"named,omitempty"`  // a person has given it its title
	Origin *Origin `json:"origin,omitempty"` // of one that was imported
	Good   int     `json:"good,omitempty"`   // answers that a person liked
	Bad    int     `json:"bad,omitempty"`    // ... and did not

	ForkSeq int64 `json:"fork_seq,omitempty"` // the last event that a fork has from Parent

	Profile string `json:"profile,omitempty"` // kind of work
}

// SessionList is the beginning of a list of sessions.
type SessionList struct {
	Sessions []SessionInfo `json:"sessions"`
	More     int           `json:"more"` // sessions that are not in it
}

// IsChild reports whether the session works for another one, as those of agents do. A
// fork does not: it goes on by itself.
func (i SessionInfo) IsChild() bool { return i.Parent != "" && i.ForkSeq == 0 }

// DecisionRecord is a decision as its session's log has it.
type DecisionRecord struct {
	Session string    `json:"session"`
	Seq     int64     `json:"seq"`
	Time    time.Time `json:"time"`
	Workdir string    `json:"workdir,omitempty"`
	CallDecided

	// Answer is what a person said, if one was asked.
	Answer *ApprovalResolved `json:"answer,omitempty"`

	// Plan is what became of a plan, when that is what the record is about: the decision
	// is that on the plan then, and the call is the one that it was put with.
	Plan *PlanRecord `json:"plan,omitempty"`
}

// PlanRecord is something that became of a plan.
type PlanRecord struct {
	ID   string `json:"id"`
	What string `json:"what"` // proposed, what [ChangePlan] does, or a [PlanVerdict]
	Step int    `json:"step,omitempty"`
	To   int    `json:"to,omitempty"`
	Body *Plan  `json:"body,omitempty"` // what it says from then on; nil = as before
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

	// File is the file with the problem, in the session's folder, and Offset the
	// first byte of it that is not as it was written. Without Exact that byte is
	// somewhere behind: in the line, the sealed lines or the file that begin there.
	File   string `json:"file,omitempty"`
	Offset int64  `json:"offset,omitempty"`
	Exact  bool   `json:"exact,omitempty"`

	// Torn is how many bytes at the end of the log are what a crash has left of a
	// write. They were never part of it.
	Torn int64 `json:"torn,omitempty"`
}

// ReplayReport is the outcome of executing a session again from its log.
type ReplayReport struct {
	Session   string `json:"session"`
	OK        bool   `json:"ok"`
	Requests  int    `json:"requests"`            // that were built again
	Decisions int    `json:"decisions,omitempty"` // on calls
	Redecided int    `json:"redecided,omitempty"` // of them, decided again as they were: the others, by rules that hold no more
	Folds     int    `json:"folds,omitempty"`     // turn ends and snapshots at which the state was compared
	At        int64  `json:"at,omitempty"`        // the first event that differs
	Problem   string `json:"problem,omitempty"`

	// Expected is what was recorded, and Came what the replay comes to. Diff has, where
	// there are messages to compare, lines with "-" of the one and "+" of the other.
	// All of it is cut to what can be read.
	Expected string   `json:"expected,omitempty"`
	Came     string   `json:"came,omitempty"`
	Diff     []string `json:"diff,omitempty"`
}

// ContextReport is what fills the window of a session's model. Tokens are estimates,
// but for what the provider has counted.
type ContextReport struct {
	Session string        `json:"session"`
	Model   string        `json:"model"`
	Used    int           `json:"used"`
	Window  int           `json:"window"` // 0 = not known
	Ratio   float64       `json:"ratio"`
	Status  string        `json:"status"` // safe, warning, critical or exceeded
	Needed  bool          `json:"needed"` // it should be shortened
	Parts   []ContextPart `json:"parts"`
}

// ContextPart is one part of a [ContextReport].
type ContextPart struct {
	Name   string `json:"name"` // system_prompt, system_tools, memory_files, mentions, lessons, messages, autocompact_buffer, free_space, ...
	Tokens int    `json:"tokens"`

	// Parts are what it consists of, where that is known: the sections of the system
	// prompt.
	Parts []ContextPart `json:"parts,omitempty"`
}

// Open asks for a session to be opened, new or stored, and run.
type Open struct {
	Session string `json:"session,omitempty"` // ID to resume; "" = a new session
	New     string `json:"new,omitempty"`     // ID for the new session; "" = any

	// Edit opens the session to be changed or taken back, and not to go on: no model is
	// needed.
	Edit bool `json:"edit,omitempty"`

	// Lend opens the session so that somebody outside of it may call its tools: no model is
	// needed, and no turn begins, whatever would begin one.
	Lend bool `json:"lend,omitempty"`

	// Fork makes the new session a copy of another one up to and including event
	// At; 0 = all of it.
	Fork string `json:"fork,omitempty"`
	At   int64  `json:"at,omitempty"`

	Workdir string `json:"workdir,omitempty"` // of a new session, or where another goes on; absolute
	Model   string `json:"model,omitempty"`   // "" = that of the session, or the default
	Mode    Mode   `json:"mode,omitempty"`
	Title   string `json:"title,omitempty"`

	// Profile is the kind of work; "" = that of the session, or of the settings.
	Profile string `json:"profile,omitempty"`

	// Agent is the type of agents that a session runs as; "" = that of the session, or of
	// the settings.
	Agent string `json:"agent,omitempty"`

	// Schema is a JSON Schema of an object. Every turn is to come to an answer of that form,
	// which the model gives as the input of [FormTool]; a turn that does not ends with
	// [ProblemForm]. Empty = an answer is text; a turn that was cut short goes on with the
	// schema that it began with.
	Schema json.RawMessage `json:"schema,omitempty"`

	// Lane is where the turns of the session wait for each other: cron for what is
	// scheduled; "" = main.
	Lane string `json:"lane,omitempty"`

	// Approver says that somebody answers approvals. Without one, a call that
	// needs the user is denied at once.
	Approver bool `json:"approver,omitempty"`

	// Added are folders that somebody has added to those of the workspace: hooks are told.
	Added []string `json:"added,omitempty"`

	// After is a session whose place this one takes: hooks are told why that one ends.
	After string `json:"after,omitempty"`

	// Setup has hooks make the place ready before the session begins: init or
	// maintenance; "" = they do not. With Ready the session is open only when what runs at
	// its beginning is over.
	Setup string `json:"setup,omitempty"`
	Ready bool   `json:"ready,omitempty"`

	MaxSteps int  `json:"max_steps,omitempty"` // of a turn; 0 = no limit
	Scratch  bool `json:"scratch,omitempty"`   // keep nothing on disk

	// Owned says that the session belongs to a user of a server, who answers what it asks:
	// what the server keeps of all its users is not for it. No client says so.
	Owned bool `json:"-"`

	// Takeover ends the process that has the session if it is on this machine and
	// hangs. One that answers keeps it.
	Takeover bool `json:"takeover,omitempty"`
}

// Modelless reports whether the session is opened for something that asks no model.
func (o Open) Modelless() bool { return o.Edit || o.Lend }
