package index

import (
	"context"
	"errors"
	"syscall"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
)

// Config says what is indexed.
type Config struct {
	Options
	Source func() Source
}

// Extension answers searches. The index is opened for each question, so that it is in
// nobody's way.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(cfg Config) *Extension { return &Extension{cfg: cfg} }

// Name returns the name of the extension.
func (e *Extension) Name() string { return "search" }

// Answers returns the queries that the extension answers.
func (e *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Answers(e.search), plug.Answers(e.update)}
}

// search looks for a text in all sessions. What is found to be damaged is made again
// first.
func (e *Extension) search(ctx context.Context, q query.Search) (res query.SearchResult, err error) {
	x, err := Open(ctx, e.cfg.Options)
	if err != nil {
		return res, e.problem(err)
	}
	if e.cfg.Dir == "" { // there is nothing of an earlier question
		_, err = x.Update(ctx, e.cfg.Source(), 0)
	}
	if err == nil {
		res, err = x.Search(ctx, q)
	}
	if errors.Is(err, ErrDamaged) {
		if err = x.Reset(ctx); err == nil {
			_, err = x.Update(ctx, e.cfg.Source(), 0)
		}
		if err == nil {
			res, err = x.Search(ctx, q)
		}
	}
	return res, e.problem(errors.Join(err, x.Close()))
}

// update brings the index closer to the logs.
func (e *Extension) update(ctx context.Context, q query.IndexSessions) (rep query.IndexReport, err error) {
	x, err := Open(ctx, e.cfg.Options)
	if err != nil {
		return rep, e.problem(err)
	}
	if q.Rebuild {
		err = x.Reset(ctx)
	}
	limit := time.Duration(q.Millis) * time.Millisecond
	if err == nil {
		rep, err = x.Update(ctx, e.cfg.Source(), limit)
	}
	if errors.Is(err, ErrDamaged) {
		if err = x.Reset(ctx); err == nil {
			rep, err = x.Update(ctx, e.cfg.Source(), limit)
		}
	}
	if errors.Is(err, ErrBusy) && !q.Rebuild {
		rep, err = query.IndexReport{Busy: true}, nil
	}
	return rep, e.problem(errors.Join(err, x.Close()))
}

// problem says what somebody can do about an error of the index.
func (e *Extension) problem(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || agent.ProblemOf(err) != nil {
		return err
	}
	if q, ok := errors.AsType[*QueryError](err); ok {
		return &agent.Problem{Code: agent.ProblemUsage, Message: q.Why, Fix: "see what can be looked for with: dure help search", Err: err}
	}
	if IsFull(err) || errors.Is(err, syscall.ENOSPC) {
		return &agent.Problem{
			Code: agent.ProblemDisk, Message: "the disk is full: " + e.cfg.Dir, Err: err,
			Fix: "make room; the sessions are not affected", Args: map[string]string{"path": e.cfg.Dir},
		}
	}
	p := &agent.Problem{
		Code: agent.ProblemIndex, Message: "sessions cannot be searched: " + err.Error(), Err: err,
		Fix: "make the index again with: dure search --rebuild", Args: map[string]string{"error": err.Error()},
	}
	if errors.Is(err, ErrBusy) {
		p.Fix, p.Args = "wait until it has ended", nil
		p.Message = "another process is using the search index"
	}
	return p
}
