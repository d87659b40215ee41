// Package inbound brings messages from outside to sessions: from a terminal, from webhooks
// and by schedule.
//
// A [Connector] waits for messages. A [Router] finds the session that each belongs to, opens
// it, gives it the message and returns the answer. [Supervise] starts a connector again when
// it fails, later each time. The package owns those three; where messages go is the business
// of bundles, and what a session may do that of its gate: nobody is there to ask, so what
// needs approval is denied.
//
// Messages are hostile. They are bounded in size and number, and a webhook takes none that
// is not signed. A Router is safe for concurrent use; it owns a goroutine for each message
// until that is answered, and Close waits for them. Connectors own what they start, and have
// ended it when Run returns.
package inbound

import (
	"context"
	"errors"

	"dure/internal/bundle"
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
	done    chan struct{}
	text    string
	err     error
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
