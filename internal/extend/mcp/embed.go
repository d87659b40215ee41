package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxWaiting is how many messages of a server inside the embedding program wait to be read.
const maxWaiting = 256

// orderly is how long a message waits for the notification in front of it.
const orderly = time.Second

// A Manifest is what the embedding program knows of one of its servers before it is asked:
// with it, the server is connected without a word.
type Manifest struct {
	Initialize json.RawMessage // the result of initialize, for the version of [EmbeddedProtocol]; nil = the server is asked
	Tools      json.RawMessage // the result of the first tools/list; nil = the server is asked
}

// EmbeddedProtocol is the version that is spoken with servers inside the embedding program.
const EmbeddedProtocol = settle

// Embedded is the way to a server inside the program that embeds this one. Send puts a
// message to it, and returns its answer; of a notification the answer counts nothing. It
// may be called by many at once.
type Embedded struct {
	send     func(ctx context.Context, message []byte) ([]byte, error)
	manifest Manifest
	in       chan jsonrpc.Message
	life     context.Context
	end      context.CancelFunc
	wg       sync.WaitGroup // of messages that wait for an answer

	mu     sync.Mutex
	closed bool
	listed bool          // the tools of the manifest were given out
	last   chan struct{} // is closed when the newest notification was taken; nil = there was none
}

var _ sdk.Transport = (*Embedded)(nil)

// NewEmbedded returns the way to one server, for one connection.
func NewEmbedded(ctx context.Context, m Manifest, send func(ctx context.Context, message []byte) ([]byte, error)) *Embedded {
	e := &Embedded{send: send, manifest: m, in: make(chan jsonrpc.Message, maxWaiting)}
	e.life, e.end = context.WithCancel(ctx)
	return e
}

// Connect implements [sdk.Transport].
func (e *Embedded) Connect(context.Context) (sdk.Connection, error) { return e, nil }

// SessionID implements [sdk.Connection].
func (e *Embedded) SessionID() string { return "" }

// Read implements [sdk.Connection].
func (e *Embedded) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-e.in:
		return m, nil
	case <-e.life.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [sdk.Connection]. It does not wait for the answer.
func (e *Embedded) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	deliveryOf(ctx).sent.Store(true)
	req, isRequest := m.(*jsonrpc.Request)
	if isRequest {
		if known, ok := e.known(req); ok {
			if known != nil {
				e.hear(&jsonrpc.Response{ID: req.ID, Result: known})
			}
			return nil
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return io.ErrClosedPipe
	}
	before := e.last
	if isRequest && req.IsCall() || !isRequest {
		e.wg.Go(func() { e.behind(before); e.exchange(req, data) })
		return nil
	}
	taken := make(chan struct{})
	e.last = taken
	e.wg.Go(func() { defer close(taken); e.behind(before); e.exchange(req, data) })
	return nil
}

// behind waits until the server has taken the notification in front of a message, as long
// as that is no nuisance.
func (e *Embedded) behind(taken chan struct{}) {
	if taken == nil {
		return
	}
	late := time.NewTimer(orderly)
	defer late.Stop()
	select {
	case <-taken:
	case <-late.C:
	case <-e.life.Done():
	}
}

// known answers what the manifest has; nil = there is nothing to be said.
func (e *Embedded) known(r *jsonrpc.Request) (result json.RawMessage, ok bool) {
	if e.manifest.Initialize == nil {
		return nil, false
	}
	switch r.Method {
	case "initialize":
		return e.manifest.Initialize, true
	case "notifications/initialized":
		return nil, true
	case "tools/list":
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.manifest.Tools != nil && !e.listed {
			e.listed = true
			return e.manifest.Tools, true
		}
	}
	return nil, false
}

// exchange sends a message and takes what is answered.
func (e *Embedded) exchange(req *jsonrpc.Request, data []byte) {
	answer, err := e.send(e.life, data)
	if req == nil || !req.IsCall() {
		return
	}
	if err == nil {
		var m jsonrpc.Message
		m, err = jsonrpc.DecodeMessage(answer)
		if r, ok := m.(*jsonrpc.Response); err == nil && ok && r.ID == req.ID {
			e.hear(r)
			return
		}
		if err == nil {
			err = errors.New("its answer is to another question")
		}
	}
	e.hear(&jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}})
}

// Hear takes a message that the server sends by itself.
func (e *Embedded) Hear(message []byte) error {
	if len(message) > maxMessage {
		return errTooLong
	}
	m, err := jsonrpc.DecodeMessage(message)
	if err != nil {
		return fmt.Errorf("this is no message of the protocol: %w", err)
	}
	if e.life.Err() != nil {
		return io.ErrClosedPipe
	}
	select {
	case e.in <- m:
		return nil
	default:
		return fmt.Errorf("%d messages of the server wait to be read", maxWaiting)
	}
}

func (e *Embedded) hear(m jsonrpc.Message) {
	select {
	case e.in <- m:
	case <-e.life.Done():
	}
}

// Close implements [sdk.Connection].
func (e *Embedded) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.end()
	e.wg.Wait()
	return nil
}
