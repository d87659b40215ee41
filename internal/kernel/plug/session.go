package plug

import (
	"context"
	"io"
	"iter"

	"dure/agent"
)

// Session is a session that is being opened, as its capabilities see it.
type Session struct {
	// SessionOpened is the event that opens the session, as far as it is known: the folder by
	// the name that it was opened with, the type of its agent, the kind of work. Parent is the
	// session whose call this one serves; "" when it is opened by itself.
	agent.SessionOpened
	agent.Marks // of the log so far

	ID     string
	Root   string // of the workspace, without links
	Open   agent.Open
	Stored agent.SessionInfo // as the log has it; zero for a new session
	Child  *agent.Child
	Depth  int // of a child: 1, of one of a child 2 ...; at most maxDepth

	Log
	Planner
	Reach agent.Reach

	// Send has the session do what a capability wants: [Wake], [ChooseMode], [GrantRules].
	Send func(context.Context, agent.Command) error

	// Model returns the model that the session would ask next, once it is open.
	Model func() string

	// AskSmall asks the small model that belongs to the session's, once it is open. nil =
	// settings permit no such questions.
	AskSmall agent.Ask

	// Clean returns a text as the guard lets the result of a tool through that reads
	// files: with secrets masked, and without what a person does not see.
	Clean func(ctx context.Context, text string) (string, error)
}

// A Log is the log of a session, and its fold.
type Log interface {
	// Record puts what capabilities of the session have done into its log: snapshots of
	// the workspace, notes, runs of hooks. What comes before it is open is put there when
	// it is.
	Record(...agent.Body) error

	// Events reads the session's log behind an event, once it is open.
	Events(ctx context.Context, after int64) iter.Seq2[agent.Event, error]

	// Follow is Events with what comes then, until ctx is done. It is not read by what
	// gives back what Attach took.
	Follow(ctx context.Context, after int64) iter.Seq2[agent.Event, error]

	// PutBlob stores a spilled output with the session; see [journal.Lease].
	PutBlob(ctx context.Context, r io.Reader, limit int64) (sha256 string, size int64, err error)

	// Past returns the conversation so far; of its oldest part, the newest call of each
	// tool. Conversation returns the newest messages, as far as they are at hand, once the
	// session is open. They must not be changed.
	Past() []agent.Message
	Conversation() []agent.Message

	// Underway are the skills of a turn that was cut short, which goes on with them.
	Underway() []agent.TurnSkill
}

// A Planner is the plan mode of a session.
type Planner interface {
	// PlanAgreed is for the call of the model's that puts a plan to the user, when it
	// runs: it ends plan mode, and returns what was changed in the plan since the model
	// wrote it. PlanFirst turns plan mode on, because the model wants to plan.
	PlanAgreed(ctx context.Context, call, text string) (changes []string, err error)
	PlanFirst(ctx context.Context) error

	// Planning says when the session plans, and PlanPut whether a call that has put a plan
	// to the user has no result yet.
	Planning() agent.PlanMode
	PlanPut() bool
}

// Wake puts a text of somebody who is not the user before the model: at the next step of a
// running turn, else in a turn of its own. Facts are stored with it. What has an ID is said
// once, however often it comes.
type Wake struct {
	ID, Text, By string
	Facts        []agent.Body
}

// ChooseMode has a permission mode hold, by whose word it says.
type ChooseMode struct {
	Mode agent.Mode
	By   string
}

// GrantRules lets rules hold that somebody has allowed in the place of a person.
type GrantRules struct{ agent.RulesGranted }

// Command returns the name of the command.
func (Wake) Command() string       { return "wake" }
func (ChooseMode) Command() string { return "choose mode" }
func (GrantRules) Command() string { return "grant rules" }
