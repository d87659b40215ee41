package plug

import (
	"context"

	"dure/agent"
	"dure/agent/query"
)

// An Answerer is an extension that answers queries.
type Answerer interface{ Answers() []Answer }

// A Doctor is an extension that looks for a diagnosis at what a run needs of it. The texts of
// a finding follow from its code.
type Doctor interface {
	Findings(context.Context) []query.Finding
}

// Answer answers the queries of one type.
type Answer struct {
	Query agent.Query // any value of the type
	Do    func(context.Context, agent.Query) (any, error)

	// NoStore is set if the answer needs no session: it is given when the store cannot be
	// opened, too.
	NoStore bool
}

// Answers makes an Answer of a function.
func Answers[Q agent.Query, R any](do func(context.Context, Q) (R, error)) Answer {
	var zero Q
	return Answer{Query: zero, Do: func(ctx context.Context, q agent.Query) (any, error) { return do(ctx, q.(Q)) }}
}

// Storeless is Answers for what needs no sessions.
func Storeless[Q agent.Query, R any](do func(context.Context, Q) (R, error)) Answer {
	a := Answers(do)
	a.NoStore = true
	return a
}
