package app

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/safety/guard"
	"dure/internal/state/archive/index"
)

// index opens the index of the sessions. It is closed after each question, so that it
// is in nobody's way.
func (a *App) index(ctx context.Context) (*index.Index, error) {
	o := index.Options{Dir: filepath.Join(a.cfg.Data, "index"), Mask: guard.MaskJSON}
	if a.opts.Flags.Scratch {
		o.Dir = ""
	}
	return index.Open(ctx, o)
}

// search looks for a text in all sessions. What is found to be damaged is made again
// first.
func (a *App) search(ctx context.Context, q query.Search) (res query.SearchResult, err error) {
	x, err := a.index(ctx)
	if err != nil {
		return res, a.indexProblem(err)
	}
	if a.opts.Flags.Scratch { // there is nothing of an earlier question
		_, err = x.Update(ctx, a.store, 0)
	}
	if err == nil {
		res, err = x.Search(ctx, q)
	}
	if errors.Is(err, index.ErrDamaged) {
		if err = x.Reset(ctx); err == nil {
			_, err = x.Update(ctx, a.store, 0)
		}
		if err == nil {
			res, err = x.Search(ctx, q)
		}
	}
	return res, a.indexProblem(errors.Join(err, x.Close()))
}

// indexSessions brings the index closer to the logs.
func (a *App) indexSessions(ctx context.Context, q query.IndexSessions) (rep query.IndexReport, err error) {
	x, err := a.index(ctx)
	if err != nil {
		return rep, a.indexProblem(err)
	}
	if q.Rebuild {
		err = x.Reset(ctx)
	}
	limit := time.Duration(q.Millis) * time.Millisecond
	if err == nil {
		rep, err = x.Update(ctx, a.store, limit)
	}
	if errors.Is(err, index.ErrDamaged) {
		if err = x.Reset(ctx); err == nil {
			rep, err = x.Update(ctx, a.store, limit)
		}
	}
	if errors.Is(err, index.ErrBusy) && !q.Rebuild {
		rep, err = query.IndexReport{Busy: true}, nil
	}
	return rep, a.indexProblem(errors.Join(err, x.Close()))
}

// indexProblem says what somebody can do about an error of the index.
func (a *App) indexProblem(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || agent.ProblemOf(err) != nil {
		return err
	}
	if q, ok := errors.AsType[*index.QueryError](err); ok {
		return &agent.Problem{Code: agent.ProblemUsage, Message: q.Why, Fix: "see what can be looked for with: dure help search", Err: err}
	}
	dir := filepath.Join(a.cfg.Data, "index")
	if index.IsFull(err) || errors.Is(err, syscall.ENOSPC) {
		return &agent.Problem{
			Code: agent.ProblemDisk, Message: "the disk is full: " + dir, Err: err,
			Fix: "make room; the sessions are not affected", Args: map[string]string{"path": dir},
		}
	}
	p := &agent.Problem{
		Code: agent.ProblemIndex, Message: "sessions cannot be searched: " + err.Error(), Err: err,
		Fix: "make the index again with: dure search --rebuild", Args: map[string]string{"error": err.Error()},
	}
	if errors.Is(err, index.ErrBusy) {
		p.Fix, p.Args = "wait until it has ended", nil
		p.Message = "another process is using the search index"
	}
	return p
}
