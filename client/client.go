// Package client is the Go client of sessions: commands in, events out, and
// queries for what is not part of one session.
//
// It knows a [Transport] only, so that a program reads the same whether its
// sessions run in the same process or elsewhere. It holds no state of a session
// and starts no goroutines.
package client

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"dure/agent"
)

// Transport reaches sessions. It is safe for concurrent use.
type Transport interface {
	Open(ctx context.Context, o agent.Open) (agent.SessionInfo, error)
	Send(ctx context.Context, session string, c agent.Command) error

	// Events yields the stored events after seq, then stored and live events as
	// they happen, until ctx is done or the session is closed. Of a session that
	// does not run it yields what is stored. [ErrDisconnected] means that the
	// events go on elsewhere: ask again after the last sequence number.
	Events(ctx context.Context, session string, after int64) iter.Seq2[agent.Event, error]

	Query(ctx context.Context, q agent.Query) (any, error)

	// Close ends a session that runs: its turn is interrupted, its log stays.
	Close(ctx context.Context, session string) error
}

// ErrDisconnected is a connection that was lost; what it carried was not.
var ErrDisconnected = errors.New("disconnected")

// Client opens sessions. The zero value is not usable; see [New].
type Client struct{ t Transport }

// New returns a client over t.
func New(t Transport) Client { return Client{t} }

// Open opens a session, new or stored, and runs it.
func (c Client) Open(ctx context.Context, o agent.Open) (*Session, error) {
	info, err := c.t.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Session{Info: info, t: c.t}, nil
}

// Attach returns a handle to a session without opening it: enough to read its
// events, and to send commands when it runs.
func (c Client) Attach(id string) *Session {
	return &Session{Info: agent.SessionInfo{ID: id}, t: c.t}
}

// Query asks q and returns its answer, whose type stands at the query's type.
func Query[T any](ctx context.Context, c Client, q agent.Query) (T, error) {
	var zero T
	a, err := c.t.Query(ctx, q)
	if err != nil {
		return zero, err
	}
	t, ok := a.(T)
	if !ok {
		return zero, fmt.Errorf("query %s: answer is %T, not %T", q.Query(), a, zero)
	}
	return t, nil
}

// Session is a handle to one session. It is safe for concurrent use.
type Session struct {
	Info agent.SessionInfo // as it was when the session was opened
	t    Transport
}

// Send returns when the session has accepted c: what c asks for is durable.
func (s *Session) Send(ctx context.Context, c agent.Command) error {
	return s.t.Send(ctx, s.Info.ID, c)
}

// Events yields the events after seq, and then each new one until ctx is done
// or the session ends. Live events have sequence number 0; a slow reader may
// miss some of them, and never misses a stored one. A lost connection is taken
// up again where it broke.
func (s *Session) Events(ctx context.Context, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for {
			again := false
			for e, err := range s.t.Events(ctx, s.Info.ID, after) {
				if errors.Is(err, ErrDisconnected) && ctx.Err() == nil {
					again = true
					break
				}
				if !yield(e, err) || err != nil {
					return
				}
				if !e.Live() {
					after = e.Seq
				}
			}
			if !again {
				return
			}
		}
	}
}

// Close ends the session. Its log stays and can be opened again.
func (s *Session) Close(ctx context.Context) error { return s.t.Close(ctx, s.Info.ID) }
