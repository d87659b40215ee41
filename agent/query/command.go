package query

import (
	"time"

	"dure/agent"
)

type (
	// ListModels asks for []ModelInfo. With Local, servers on this machine are
	// looked for too.
	ListModels struct {
		Local bool `json:"local,omitempty"`
	}

	// ListProviders asks for []ProviderInfo.
	ListProviders struct {
		NoKeys bool `json:"no_keys,omitempty"` // without where their keys come from: nothing is asked for them
	}

	// CheckModel asks a model for one word and returns a ModelCheck.
	CheckModel struct {
		Model   string `json:"model,omitempty"`   // "" = the one that would be asked
		Unasked bool   `json:"unasked,omitempty"` // it is only looked whether it could be asked
	}

	// ChangeKey keeps the key of a provider, and asks for the KeyChange.
	ChangeKey struct {
		Provider string `json:"provider"`
		Key      string `json:"key,omitempty"`  // "" = it is forgotten
		File     bool   `json:"file,omitempty"` // not in the keychain
	}

	// UsageReport asks for a UsageSummary over the logs of all sessions.
	UsageReport struct {
		By    string `json:"by,omitempty"`    // day, model, project or session; "" = day
		Since string `json:"since,omitempty"` // RFC 3339; "" = everything
	}

	// ListDecisions asks for []DecisionRecord out of the logs of all sessions, the
	// oldest first. Empty fields select all.
	ListDecisions struct {
		Session string        `json:"session,omitempty"` // ID
		Workdir string        `json:"workdir,omitempty"`
		Tool    string        `json:"tool,omitempty"` // canonical
		Verdict agent.Verdict `json:"verdict,omitempty"`
		By      string        `json:"by,omitempty"`
		Since   string        `json:"since,omitempty"` // RFC 3339
		Limit   int           `json:"limit,omitempty"` // the newest of them; 0 = all

		// Plans has what became of plans stand among the decisions on calls.
		Plans bool `json:"plans,omitempty"`
	}

	// VerifyReplay asks for a ReplayReport on the log of Session.
	VerifyReplay struct {
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

	// ChangePrompt asks for the PromptFile of the user's own text for a kind of work.
	ChangePrompt struct {
		Profile string `json:"profile,omitempty"` // "" = the usual one
		Do      string `json:"do,omitempty"`      // see [PromptBegin] and the others; "" = nothing
	}

	// Diagnose asks for []Finding about this installation.
	Diagnose struct{}
)

func (ListModels) Query() string    { return "models" }
func (ListProviders) Query() string { return "providers" }
func (CheckModel) Query() string    { return "models.check" }
func (ChangeKey) Query() string     { return "keys.change" }
func (UsageReport) Query() string   { return "usage" }
func (ListDecisions) Query() string { return "decisions" }
func (VerifyReplay) Query() string  { return "replay.verify" }
func (ListMemory) Query() string    { return "memory" }
func (PromptPreview) Query() string { return "prompt" }
func (ChangePrompt) Query() string  { return "prompt.change" }
func (MakeMemory) Query() string    { return "memory.make" }
func (AddMemory) Query() string     { return "memory.add" }
func (UndoMemory) Query() string    { return "memory.undo" }
func (ListNotes) Query() string     { return "notes" }
func (DeleteNotes) Query() string   { return "notes.delete" }
func (Diagnose) Query() string      { return "diagnose" }

// Selects reports whether the query asks for a decision, apart from its time.
func (q ListDecisions) Selects(r agent.DecisionRecord) bool {
	d := r.CallDecided
	return (q.Tool == "" || q.Tool == d.Proposal.Call.Tool) && (q.Verdict == agent.Pass || q.Verdict == d.Decision.Verdict) &&
		(q.By == "" || q.By == d.Decision.By)
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

// MakeMemory asks for the MemoryPlace of a scope. A file that is missing is made.
type MakeMemory struct {
	Workdir string `json:"workdir,omitempty"` // "" = the program's
	Scope   string `json:"scope"`             // user, project, local or managed
}

// AddMemory adds a line to the instructions of a scope, and asks for a MemoryAdded.
type AddMemory struct {
	Workdir string `json:"workdir,omitempty"` // "" = the program's
	Scope   string `json:"scope"`             // user, project, local or managed
	Text    string `json:"text"`
}

// MemoryAdded is a line that was added to a file. Exists says whether the file was there.
type MemoryAdded struct {
	MemoryPlace
	Line string `json:"line"` // as the file has it
}

// UndoMemory takes a line back that was added, and asks for the MemoryPlace. It fails when
// the file has changed since.
type UndoMemory struct {
	Workdir string      `json:"workdir,omitempty"` // as in [AddMemory]
	Added   MemoryAdded `json:"added"`
}

// ListNotes asks for []AgentNotes: what agents have noted for later sessions.
type ListNotes struct {
	Agent string `json:"agent,omitempty"` // one type, with the texts; "" = all types, without
}

// DeleteNotes deletes the notes of a type of agents, and asks for the []AgentNotes that are
// gone.
type DeleteNotes struct {
	Agent string `json:"agent"`
	Scope string `json:"scope,omitempty"` // user, project or local; "" = all
}

// AgentNotes are the notes of one type of agents in one scope.
type AgentNotes struct {
	Agent string `json:"agent"`
	Scope string `json:"scope"`
	Path  string `json:"path"`
	Text  string `json:"text,omitempty"`
}

// What [ChangePrompt] does with the file: it is made where it is missing; it is checked, and
// removed if it says nothing; it is put aside.
const (
	PromptBegin = "begin"
	PromptCheck = "check"
	PromptReset = "reset"
)

// PromptFile is the file with a user's own text of the system prompt.
type PromptFile struct {
	Path  string `json:"path"`
	Found bool   `json:"found,omitempty"` // there is one that was checked, or was one that is put aside
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

// KeyChange is the outcome of storing or removing a key.
type KeyChange struct {
	Place   string `json:"place,omitempty"` // keychain or file
	Removed bool   `json:"removed,omitempty"`
}

// ModelCheck is the outcome of asking a model for one word.
type ModelCheck struct {
	Model    string             `json:"model"`
	Provider string             `json:"provider"`
	URL      string             `json:"url"`
	OK       bool               `json:"ok"`
	Millis   int64              `json:"ms"`
	First    int64              `json:"first_ms"` // until the answer began
	Usage    agent.Usage        `json:"usage"`
	Cost     *agent.Money       `json:"cost,omitempty"` // nil = unknown
	Class    agent.FailureClass `json:"class,omitempty"`
	Error    string             `json:"error,omitempty"`
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
	Name     string      `json:"name"`            // 2006-01-02, a model, a folder, an ID
	Title    string      `json:"title,omitempty"` // of a session
	Requests int         `json:"requests"`
	Usage    agent.Usage `json:"usage"`
	Cost     agent.Money `json:"cost"`               // of the requests whose price is known
	Unpriced int         `json:"unpriced,omitempty"` // requests whose price is not
}
