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
		// it: the ID, name, path or text of a [Mentioned], [WithoutAll] or
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

	// ListModels asks for []ModelInfo. With Local, servers on this machine are
	// looked for too.
	ListModels struct {
		Local bool `json:"local,omitempty"`
	}

	// ListProviders asks for []ProviderInfo.
	ListProviders struct{}

	// CheckModel asks a model for one word and returns a ModelCheck.
	CheckModel struct {
		Model string `json:"model,omitempty"` // "" = the one that would be asked
	}

	// UsageReport asks for a UsageSummary over the logs of all sessions.
	UsageReport struct {
		By    string `json:"by,omitempty"`    // day, model, project or session; "" = day
		Since string `json:"since,omitempty"` // RFC 3339; "" = everything
	}

	// ListDecisions asks for []DecisionRecord out of the logs of all sessions, the
	// oldest first. Empty fields select all.
	ListDecisions struct {
		Session string  `json:"session,omitempty"` // ID
		Workdir string  `json:"workdir,omitempty"`
		Tool    string  `json:"tool,omitempty"` // canonical
		Verdict Verdict `json:"verdict,omitempty"`
		By      string  `json:"by,omitempty"`
		Since   string  `json:"since,omitempty"` // RFC 3339
		Limit   int     `json:"limit,omitempty"` // the newest of them; 0 = all

		// Plans has what became of plans stand among the decisions on calls.
		Plans bool `json:"plans,omitempty"`
	}

	// VerifySeals asks for a SealReport on the log of Session.
	VerifySeals struct {
		Session string `json:"session"`
	}

	// VerifyReplay asks for a ReplayReport on the log of Session.
	VerifyReplay struct {
		Session string `json:"session"`
	}

	// ContextUsage asks for a ContextReport on Session, which has to be open.
	ContextUsage struct {
		Session string `json:"session"`
	}

	// ListMemory asks for a MemoryReport: of Session while it is open, else of Workdir.
	ListMemory struct {
		Session string `json:"session,omitempty"`
		Workdir string `json:"workdir,omitempty"` // "" = the program's

		// Text asks for the Text of the report, too: what the files say that are active
		// from the start, of Scope or, with "", of all scopes.
		Text  bool   `json:"text,omitempty"`
		Scope string `json:"scope,omitempty"`
	}

	// PromptPreview asks for a PromptReport on the system prompt that a session would
	// have. Empty fields stand for what the settings say.
	PromptPreview struct {
		Profile string    `json:"profile,omitempty"`
		Model   string    `json:"model,omitempty"`
		Workdir string    `json:"workdir,omitempty"`
		Opened  time.Time `json:"opened,omitzero"` // zero = now
		Tools   bool      `json:"tools,omitempty"` // with those that the model is offered
	}

	// Diagnose asks for []Finding about this installation.
	Diagnose struct{}
)

// Query returns the name of the query on the wire.
func (ListSessions) Query() string  { return "sessions" }
func (FindSession) Query() string   { return "session" }
func (ListModels) Query() string    { return "models" }
func (ListProviders) Query() string { return "providers" }
func (CheckModel) Query() string    { return "models.check" }
func (UsageReport) Query() string   { return "usage" }
func (ListDecisions) Query() string { return "decisions" }
func (VerifySeals) Query() string   { return "verify" }
func (VerifyReplay) Query() string  { return "replay.verify" }
func (ListMemory) Query() string    { return "memory" }
func (PromptPreview) Query() string { return "prompt" }
func (Diagnose) Query() string      { return "diagnose" }
func (ContextUsage) Query() string  { return "context" }

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

// Selects reports whether the query asks for a decision, apart from its time.
func (q ListDecisions) Selects(r DecisionRecord) bool {
	d := r.CallDecided
	return (q.Tool == "" || q.Tool == d.Proposal.Call.Tool) && (q.Verdict == Pass || q.Verdict == d.Decision.Verdict) &&
		(q.By == "" || q.By == d.Decision.By)
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

// MemoryReport is what a model is told by instruction files, and where they are
// looked for.
type MemoryReport struct {
	Root     string        `json:"root"`    // of the project
	Trusted  bool          `json:"trusted"` // what the project brings may be read
	Off      bool          `json:"off,omitempty"`
	Chars    int           `json:"chars"` // of all that is active
	Files    []MemoryFile  `json:"files"` // from the lowest priority to the highest
	Places   []MemoryPlace `json:"places"`
	Findings []Finding     `json:"findings"`
	Text     string        `json:"text,omitempty"`
}

// MemoryFile is one instruction file that was found.
type MemoryFile struct {
	Path     string   `json:"path"`
	Scope    string   `json:"scope"` // managed, user, project or local
	State    string   `json:"state"` // active, waiting, untrusted, excluded, same or refused
	Why      string   `json:"why,omitempty"`
	Note     string   `json:"note,omitempty"` // why it is not active
	Rule     bool     `json:"rule,omitempty"`
	Name     string   `json:"name,omitempty"`
	Paths    []string `json:"paths,omitempty"` // that a rule holds for; none = all
	Chars    int      `json:"chars,omitempty"`
	Includes []string `json:"includes,omitempty"`
	Trigger  string   `json:"trigger,omitempty"` // the file whose touch made it active
}

// MemoryPlace is the file in which a person writes instructions of a scope.
type MemoryPlace struct {
	Scope  string `json:"scope"`
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
}

// ProviderInfo is a provider as this installation would reach it.
type ProviderInfo struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Type  string `json:"type"` // the wire format
	URL   string `json:"url"`
	Key   string `json:"key,omitempty"` // where the key comes from; "" = there is none
	Local bool   `json:"local,omitempty"`
	Model string `json:"model,omitempty"` // the one to take when none is named
}

// ModelCheck is the outcome of asking a model for one word.
type ModelCheck struct {
	Model    string       `json:"model"`
	Provider string       `json:"provider"`
	URL      string       `json:"url"`
	OK       bool         `json:"ok"`
	Millis   int64        `json:"ms"`
	First    int64        `json:"first_ms"` // until the answer began
	Usage    Usage        `json:"usage"`
	Cost     *Money       `json:"cost,omitempty"` // nil = unknown
	Class    FailureClass `json:"class,omitempty"`
	Error    string       `json:"error,omitempty"`
}

// Finding is one line of a diagnosis. Detail and Fix are English; front-ends show
// it in the user's language by Code and Args.
type Finding struct {
	Group  string            `json:"group,omitempty"` // configured, reachable, enforced, programs, machine
	Name   string            `json:"name"`
	State  string            `json:"state"` // ok, warn, fail
	Code   string            `json:"code,omitempty"`
	Detail string            `json:"detail"`
	Fix    string            `json:"fix,omitempty"`
	Args   map[string]string `json:"args,omitempty"` // the names involved
}

// UsageSummary is what models have used, by day, model, project or session.
type UsageSummary struct {
	By       string     `json:"by"`
	Since    string     `json:"since,omitempty"`
	Rows     []UsageRow `json:"rows"` // days in order, all else the dearest first
	Total    UsageRow   `json:"total"`
	Sessions int        `json:"sessions"`          // that have asked a model in that time
	Skipped  []string   `json:"skipped,omitempty"` // sessions whose logs could not be read to the end
}

// UsageRow is what the requests of one day, model, project or session used. Every
// request counts once: those of a child with its first ancestor, and those that a
// fork has taken over with the session that made them.
type UsageRow struct {
	Name     string `json:"name"`            // 2006-01-02, a model, a folder, an ID
	Title    string `json:"title,omitempty"` // of a session
	Requests int    `json:"requests"`
	Usage    Usage  `json:"usage"`
	Cost     Money  `json:"cost"`               // of the requests whose price is known
	Unpriced int    `json:"unpriced,omitempty"` // requests whose price is not
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
