// Package plug is the contract between a session and its capabilities: the types of the
// points at which hooks, skills, checkpoints, models and tools take part in a session.
// It has types alone: it starts no goroutines and does nothing.
package plug

import (
	"context"

	"dure/agent"
)

// An Extension is one capability of the program. The program has one list of them, whose
// order is the order of everything that they add: the first is the outermost.
type Extension interface {
	Name() string

	// Attach adds the capability to a session that is being opened. The zero Points adds
	// nothing. Whatever it has taken, Points.Close gives back, also when the session
	// cannot be opened for another reason.
	Attach(context.Context, *Session) (Points, error)
}

// Attached is what one capability has added to a session.
type Attached struct {
	Name string // of the extension
	Points
}

// Points are the points at which a capability takes part in a session. All may be nil.
type Points struct {
	Gate  Gate
	Hooks Hooks
	Wrap  []Wrap // around Tool.Run, the outermost first

	// Extra returns what the model should have before it besides the conversation, as
	// of now. What the conversation has already, with the same source, key and text, is
	// left out; what it has no more, as after a compaction, comes again. It is asked
	// before each input and each request, and so should cost little when nothing has
	// changed.
	Extra func(context.Context, Moment) []agent.ContextAdded

	// Choose is asked before each step which of the tools it has, and with what words. The
	// slice is the same as long as what it makes of them is. An error ends the turn.
	Choose func(context.Context, Catalog) (Catalog, error)

	// A session has at most one capability for each of these.
	Undo        Undo // of the capability that keeps checkpoints
	Guard       Guard
	Compactor   Compactor
	Permissions Permissions
	Plans       Plans

	// Revive returns what has a call go on that an earlier program has left pending with a
	// child session; nil = the call is lost. Without Revive, all are.
	Revive func(handle string, p agent.PendingCall) Revival

	// Awaits takes a call up that an earlier program has answered as pending, and reports
	// whether it has: then it settles it, once the session is open.
	Awaits func(handle string) bool

	// Thinks returns how many tokens of thinking were asked for while the session runs; ok
	// is false while nobody has asked.
	Thinks func() (tokens int, ok bool)

	// Close gives back what Attach took, the last capability first.
	Close func()
}

// Undo puts files back. With the zero value, no checkpoints are kept.
type Undo struct {
	// Rewind puts files back to how they were after event To.
	Rewind func(context.Context, agent.Rewind) (agent.FilesRewound, error)

	// Accept checks what of the changes to files a person accepts, and Reject puts back
	// what one does not want.
	Accept func(context.Context, agent.Accept) (agent.ChangesAccepted, error)
	Reject func(context.Context, agent.Reject) (agent.FilesRewound, error)
}

// A Guard decides what the results of calls carry back. Without Check, all results are
// withheld.
type Guard struct {
	Check  func(context.Context, agent.Spec, agent.Call, agent.Result) (agent.Result, error)
	Stream func(agent.Spec) Cleaner // of output in progress; may be nil
}

// A Compactor shortens conversations. Without Compact, they are never shortened.
type Compactor struct {
	// Compact returns what to put in the log, or nil when there is nothing to gain. It is
	// asked before a request of as many tokens as Full says are too many, which also says
	// whether there is hardly any room left; nil = more than 0.8 and 0.95 of the window.
	Compact func(context.Context, Compaction) (*agent.ContextCompacted, error)
	Full    func(m agent.ModelInfo, tokens int) (full, brink bool)

	// Tokens is about how many tokens a model has for a system prompt, tools and
	// messages; nil = one for three bytes.
	Tokens func(m agent.ModelInfo, system []agent.Section, specs []agent.Spec, messages []agent.Message) int

	// Usage tells what fills the window. nil = nobody can tell.
	Usage func(Compaction) agent.ContextReport
}

// Permissions are what people change of the policy of a session.
type Permissions struct {
	SetMode func(agent.Mode) error

	// Offer returns what a question shows beside the proposal: the answers that
	// hold beyond the call, and what an edit would change. nil = nothing.
	Offer func(context.Context, agent.Proposal, agent.Decision) (choices []agent.Choice, diff string)

	// Grant lets rules hold from now on: for the session, or always. It is also
	// told what a session that is opened again remembers. nil = nothing is
	// remembered.
	Grant func(remember string, rules []string) error

	// Revoke takes back what holds for the session; nil = nothing is remembered.
	Revoke func(agent.Revoke) error
}

// NoSession is embedded by extensions that add nothing to sessions.
type NoSession struct{}

// Attach adds nothing.
func (NoSession) Attach(context.Context, *Session) (Points, error) { return Points{}, nil }
