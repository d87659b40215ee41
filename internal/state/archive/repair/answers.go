package repair

import (
	"context"
	"errors"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/state/archive"
	"dure/internal/state/journal"
)

// Logs are where the logs of sessions are repaired.
type Logs interface {
	Mend(ctx context.Context, id string, dry bool) (query.LogReport, error)
}

// Extension repairs the logs of sessions.
type Extension struct {
	plug.NoSession
	logs func() Logs
}

// New returns the extension.
func New(logs func() Logs) *Extension { return &Extension{logs: logs} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "repair" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer { return []plug.Answer{plug.Answers(x.repair)} }

func (x *Extension) repair(ctx context.Context, q query.RepairSession) (query.LogReport, error) {
	r, err := x.logs().Mend(ctx, q.Session, q.Dry)
	if errors.Is(err, journal.ErrDamaged) {
		err = &agent.Problem{
			Code: agent.ProblemDamaged, Message: err.Error(), Err: err, Fix: "nothing can be made of it; the files stay as they are",
			Args: map[string]string{"session": q.Session, "error": err.Error()},
		}
	}
	return r, archive.Owned(err)
}
