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

	Undo Undo // by the one capability that keeps checkpoints

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

// NoSession is embedded by extensions that add nothing to sessions.
type NoSession struct{}

// Attach adds nothing.
func (NoSession) Attach(context.Context, *Session) (Points, error) { return Points{}, nil }
