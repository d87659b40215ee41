package plug

import (
	"context"
	"encoding/json"
	"io"
	"iter"

	"dure/agent"
)

// Session is a session that is being opened, as its capabilities see it.
type Session struct {
	Root    string        // of the workspace, without links
	Workdir string        // the same folder, by the name that it was opened with
	Work    agent.Profile // what holds for its kind of work
	Kind    string        // the type of agents that it is of; "" = the usual one

	ID     string
	Open   agent.Open
	Stored agent.SessionInfo // as the log has it; zero for a new session
	Files  []agent.FileState // what the session has seen of files
	Past   []agent.Message   // the conversation so far; of its oldest part, the newest call of each tool
	Child  *agent.Child
	Parent string // of a child: the session whose call it serves; "" when it is opened by itself
	Depth  int    // of a child: 1, of one of a child 2 ...; at most maxDepth
	Agent  string // of a session that is opened again: the type that it had
	Reach  agent.Reach

	// Spent are the hooks that run once in a session and have done so in this one.
	Spent []string

	// Selected are the tools that the model has looked for, see [agent.ToolsSelected].
	Selected []string

	// Off are the tools and groups that a person has switched off, see [agent.ToolsSwitched].
	Off []string

	// Active are the skills of a turn that was cut short, which goes on with them.
	Active []agent.TurnSkill

	// Record puts what capabilities of the session have done into its log: snapshots of
	// the workspace, notes, runs of hooks. What comes before it is open is put there when
	// it is.
	Record func(...agent.Body) error

	// Events reads the session's log behind an event, once it is open.
	Events func(ctx context.Context, after int64) iter.Seq2[agent.Event, error]

	// Kept is what extensions have kept, see [agent.ExtensionKept].
	Kept map[string]json.RawMessage

	// Follow is Events with what comes then, until ctx is done. It is not read by what
	// gives back what Build took.
	Follow func(ctx context.Context, after int64) iter.Seq2[agent.Event, error]

	// Model returns the model that the session would ask next, once it is open.
	Model func() string

	// Conversation returns the newest messages, as far as they are at hand, once it is
	// open. They must not be changed.
	Conversation func() []agent.Message

	// Wake puts a text of somebody who is not the user before the model: at the next
	// step of a running turn, else in a turn of its own. Facts are stored with it.
	Wake func(ctx context.Context, text, by string, facts ...agent.Body) error

	// Tell does so, too. What has an ID is said once, however often it comes.
	Tell func(ctx context.Context, id, text, by string) error

	// PlanAgreed is for the call of the model's that puts a plan to the user, when it
	// runs: it ends plan mode, and returns what was changed in the plan since the model
	// wrote it. PlanFirst turns plan mode on, because the model wants to plan, and
	// Planning says when the session plans, and PlanPut whether a call that has put a plan
	// to the user has no result yet.
	PlanAgreed func(ctx context.Context, call, text string) (changes []string, err error)
	PlanFirst  func(ctx context.Context) error
	Planning   func() agent.PlanMode
	PlanPut    func() bool

	// Granted lets rules hold that somebody has allowed in the place of a person, and
	// Choose has a permission mode hold, by whose word it says.
	Granted func(agent.RulesGranted) error
	Choose  func(ctx context.Context, mode agent.Mode, by string) error

	// Outcome returns how a pending call of this session came out, or that it is
	// lost; false when it is not known.
	Outcome func(handle string) (agent.Result, bool)

	// Hidden reports whether deny rules keep a file from being read, by its absolute path.
	Hidden func(path string) bool

	// AskSmall asks the small model that belongs to the session's, once it is open. nil =
	// settings permit no such questions.
	AskSmall agent.Ask

	// Clean returns a text as the guard lets the result of a tool through that reads
	// files: with secrets masked, and without what a person does not see.
	Clean func(ctx context.Context, text string) (string, error)

	// PutBlob stores a spilled output with the session; see [journal.Lease].
	PutBlob func(ctx context.Context, r io.Reader, limit int64) (sha256 string, size int64, err error)
}
