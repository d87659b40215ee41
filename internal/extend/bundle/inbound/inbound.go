// Package inbound brings messages from outside to sessions: from a terminal, from webhooks
// and by schedule.
//
// A [Connector] waits for messages, a [Router] gives each to the session that it belongs to
// and returns the answer, and [Supervise] starts again what fails. Where messages go is the
// business of bundles, what a session may do that of its gate. Messages are hostile: bounded
// in size and number, and a webhook takes none that is not signed. A Router is safe for
// concurrent use and owns a goroutine for each message until that is answered; connectors
// own what they start, and have ended it when Run returns.
package inbound

import (
	"context"
	"errors"

	"dure/internal/extend/bundle"
)

// Bounds of messages.
const (
	maxText   = 256 << 10 // bytes
	maxFlight = 64        // messages that are not answered yet
)

// ErrBusy says that too many messages are not answered yet.
var ErrBusy = errors.New("too many messages are not answered yet")

// A Sink takes the messages of a connector. It returns when the message is safe in the log of
// its session.
type Sink func(ctx context.Context, m bundle.Message) (*Delivery, error)

// A Connector waits for messages until ctx is done, or it fails, or there are no more: then
// it returns nil. Messages that it has taken are answered before it returns, unless ctx is done.
type Connector interface {
	Run(ctx context.Context, sink Sink) error
}

// A Delivery is a message that a session has.
type Delivery struct {
	Session string
	SignIns []SignIn // that tools want, once it is answered
	done    chan struct{}
	later   chan string // what is said when somebody has signed in; closed when nothing is to come
	text    string
	err     error
}

// Later returns what the session says by itself when somebody has signed in that it has
// waited for; false when nothing comes any more.
func (d *Delivery) Later(ctx context.Context) (string, bool) {
	select {
	case text, ok := <-d.later:
		return text, ok
	case <-ctx.Done():
		return "", false
	}
}

// Wait returns what the session answers.
func (d *Delivery) Wait(ctx context.Context) (string, error) {
	select {
	case <-d.done:
		return d.text, d.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
