package app

import (
	"context"
	"encoding/json"
	"math"

	"dure/agent/query"
	"dure/internal/frontend/view"
	"dure/internal/safety/guard"
	"dure/internal/state/archive"
)

// viewOf folds what people see of a session up to an event.
func (a *App) viewOf(ctx context.Context, session string, at int64, l view.Limits) (*view.View, error) {
	v := view.New(session, l)
	for e, err := range archive.Events(ctx, a.store, session) {
		if err != nil {
			return nil, err
		}
		if e.Seq > at {
			break
		}
		v.Apply(e)
	}
	return v, nil
}

func (a *App) viewAt(ctx context.Context, q query.View) (json.RawMessage, error) {
	if q.At == 0 {
		q.At = math.MaxInt64
	}
	v, err := a.viewOf(ctx, q.Session, q.At, view.Limits{})
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return guard.MaskValue(json.RawMessage(data))
}

// viewRows folds all of the log: later events change and take back what is on an old page.
func (a *App) viewRows(ctx context.Context, q query.Rows) (json.RawMessage, error) {
	const (
		usual, most = 100, 1000
		rows, bytes = 1 << 18, 64 << 20 // older ones are given up
	)
	v, err := a.viewOf(ctx, q.Session, math.MaxInt64, view.Limits{Rows: rows, Bytes: bytes})
	if err != nil {
		return nil, err
	}
	if q.Limit <= 0 {
		q.Limit = usual
	}
	var page struct {
		Rows []*view.Row `json:"rows"`
		More bool        `json:"more"`
	}
	page.Rows, page.More = v.Rows(q.Before, min(q.Limit, most))
	data, err := json.Marshal(page)
	if err != nil {
		return nil, err
	}
	return guard.MaskValue(json.RawMessage(data))
}
