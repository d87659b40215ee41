package app

import (
	"context"
	"iter"

	"dure/agent"
	"dure/client"
)

// wire is the transport of the program's own clients. It opens the store when
// something needs it.
type wire struct{ *App }

var _ client.Transport = wire{}

// Open opens a session.
func (w wire) Open(ctx context.Context, o agent.Open) (agent.SessionInfo, error) {
	reg, err := w.sessions.open()
	if err != nil {
		return agent.SessionInfo{}, err
	}
	return w.Telemetry.Open(ctx, reg.Open, o)
}

// Send hands a command to a session.
func (w wire) Send(ctx context.Context, id string, c agent.Command) error {
	reg, err := w.sessions.open()
	if err != nil {
		return err
	}
	return reg.Send(ctx, id, c)
}

// Events yields the events of a session.
func (w wire) Events(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	reg, err := w.sessions.open()
	if err != nil {
		return func(yield func(agent.Event, error) bool) { yield(agent.Event{}, err) }
	}
	return reg.Events(ctx, id, after)
}

// Query answers questions. Those that need no session are answered without the store, so that
// a diagnosis works when it cannot be opened.
func (w wire) Query(ctx context.Context, q agent.Query) (any, error) {
	if w.answers[q.Query()].NoStore {
		return w.query(ctx, q)
	}
	reg, err := w.sessions.open()
	if err != nil {
		return nil, err
	}
	return reg.Query(ctx, q)
}

// Close ends a session.
func (w wire) Close(ctx context.Context, id string) error {
	reg, err := w.sessions.open()
	if err != nil {
		return err
	}
	return reg.Close(ctx, id)
}
