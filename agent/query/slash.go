package query

// What can be typed behind a slash.
type (
	// ListCommands asks for []CommandInfo, sorted by name: of Session while it is open,
	// else of Workdir.
	ListCommands struct {
		Session  string `json:"session,omitempty"`
		Workdir  string `json:"workdir,omitempty"`  // "" = the program's
		Language string `json:"language,omitempty"` // of what is said to people: en or ko; "" = en
	}

	// ReadCommand asks for a CommandRead: what an input is, before it is sent.
	ReadCommand struct {
		Session string `json:"session,omitempty"`
		Workdir string `json:"workdir,omitempty"`
		Text    string `json:"text"`
	}
)

// Query returns the name of the query on the wire.
func (ListCommands) Query() string { return "commands" }
func (ReadCommand) Query() string  { return "commands.read" }

// CommandInfo is a command that can be typed.
type CommandInfo struct {
	Name        string   `json:"name"` // without the slash
	Aliases     []string `json:"aliases,omitempty"`
	Description string   `json:"description"`
	Hint        string   `json:"argumentHint,omitempty"`
	Values      []string `json:"values,omitempty"`          // what its first argument may be
	Session     bool     `json:"requiresSession,omitempty"` // it is about a session that is open

	// Kind is builtin, command, skill or prompt. A front-end carries out what is built in;
	// the others it sends as they were typed, and the session makes a prompt of them.
	Kind  string `json:"kind"`
	Scope string `json:"scope,omitempty"` // of a file: managed, user, project or plugin; of a prompt: its server
	Path  string `json:"path,omitempty"`  // of a file

	// Off says why it cannot be used, in English; "" = it can.
	Off string `json:"off,omitempty"`

	Warnings []string `json:"warnings,omitempty"` // on its file, in English
}

// The kinds of commands.
const (
	CommandBuiltIn = "builtin"
	CommandCustom  = "command"
	CommandSkill   = "skill"
	CommandPrompt  = "prompt" // of an MCP server
)

// CommandRead is what an input is.
type CommandRead struct {
	// Is says what is to be done with it: run (built in, by the front-end), send (a
	// prompt, or what the session makes one of), refuse (see Why) or unknown.
	Is        string   `json:"is"`
	Kind      string   `json:"kind,omitempty"`      // of the command; "" = it names none
	Name      string   `json:"name,omitempty"`      // of the command, without the slash
	Arguments string   `json:"arguments,omitempty"` // as they were typed
	Near      []string `json:"near,omitempty"`      // commands that may be meant, of what is unknown

	// Why is usage (the command does not take these arguments), session (it needs
	// one that is open), or says in English what is wrong with its file.
	Why string `json:"why,omitempty"`
}

// What [CommandRead.Is] says.
const (
	ReadRun     = "run"
	ReadSend    = "send"
	ReadRefuse  = "refuse"
	ReadUnknown = "unknown"
)

// What [CommandRead.Why] says of a command that is built in.
const (
	WhyUsage   = "usage"
	WhySession = "session"
)

// Making a commit of what a person has seen.
type (
	// PrepareCommit asks for a CommitDraft of Session, which has to be open: what is
	// staged, or else what is changed in tracked files.
	PrepareCommit struct {
		Session string   `json:"session"`
		Hunks   []string `json:"hunks,omitempty"` // of [CommitDraft.Hunks], to be committed alone; none = all
	}

	// MakeCommit commits what a draft has shown, and returns a CommitMade. It refuses
	// when that is not any more as it was shown.
	MakeCommit struct {
		Session string `json:"session"`
		ID      string `json:"id"` // of the draft
		Message string `json:"message"`
	}
)

// Query returns the name of the query on the wire.
func (PrepareCommit) Query() string { return "commit.prepare" }
func (MakeCommit) Query() string    { return "commit.make" }

// CommitDraft is what would be committed. Without files there is nothing to commit.
type CommitDraft struct {
	ID        string       `json:"id"`
	Message   string       `json:"message"` // as the model proposes it; "" = it has not
	Why       string       `json:"why,omitempty"`
	Staged    bool         `json:"staged"` // it is what was staged
	Files     []CommitFile `json:"files"`
	Untracked []string     `json:"untracked,omitempty"` // that are not in it; at most 200
	Secrets   []string     `json:"secrets,omitempty"`   // files in it that look like secrets
	Diff      string       `json:"diff,omitempty"`      // its beginning, masked

	// Hunks are what can be chosen of what is staged: the lines of a file, as in
	// "a.txt @@ -1 +1,2 @@", or a file. Chosen are those that the draft is of; none = all.
	Hunks  []string `json:"hunks,omitempty"`
	Chosen []string `json:"chosen,omitempty"`
}

// CommitFile is a file of a [CommitDraft].
type CommitFile struct {
	Path   string `json:"path"`
	Status string `json:"status"` // A, M, D, T, ... as git has it
}

// CommitMade is a commit that was made.
type CommitMade struct {
	Commit string `json:"commit"`
	Said   string `json:"said,omitempty"` // by git and its hooks
}
