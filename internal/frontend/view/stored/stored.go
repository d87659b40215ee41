// Package stored answers what people see of a session, from its log, with the secrets masked. It
// changes nothing and starts no goroutines.
package stored

import (
	"context"
	"encoding/json"
	"iter"
	"math"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/view"
	"dure/internal/kernel/plug"
)

// Extension answers what people see of sessions. All fields are required.
type Extension struct {
	plug.NoSession
	Events func(ctx context.Context, session string) iter.Seq2[agent.Event, error] // from the first one on
	Mask   func(json.RawMessage) (json.RawMessage, error)                          // hides secrets
}

// Name returns the name of the extension.
func (*Extension) Name() string { return "views" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Answers(x.at), plug.Answers(x.page)}
}

// fold folds what people see of a session up to an event.
func (x *Extension) fold(ctx context.Context, session string, at int64, l view.Limits) (*view.View, error) {
	v := view.New(session, l)
	for e, err := range x.Events(ctx, session) {
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

func (x *Extension) at(ctx context.Context, q query.View) (json.RawMessage, error) {
	if q.At == 0 {
		q.At = math.MaxInt64
	}
	v, err := x.fold(ctx, q.Session, q.At, view.Limits{})
	if err != nil {
		return nil, err
	}
	return x.shown(v)
}

// page folds all of the log: later events change and take back what is on an old page.
func (x *Extension) page(ctx context.Context, q query.Rows) (json.RawMessage, error) {
	const (
		usual, most = 100, 1000
		rows, bytes = 1 << 18, 64 << 20 // older ones are given up
	)
	v, err := x.fold(ctx, q.Session, math.MaxInt64, view.Limits{Rows: rows, Bytes: bytes})
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
	return x.shown(page)
}

func (x *Extension) shown(v any) (json.RawMessage, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return x.Mask(data)
}
