// Package socket carries the native control protocol over WebSockets: a message of the
// protocol is a text message of the socket.
//
// It decides nothing. Who may come in is decided before a request gets here. Of a socket, one
// goroutine reads, and one looks whether the other side is there; both end with its request.
package socket

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"dure/client/protocol"
	"dure/internal/frontend/control"
)

// The bounds of sockets.
const (
	maxSockets = 64               // at once
	maxPassed  = 64 << 20         // bytes of a message that is too long; beyond, the socket is closed
	beatTime   = 30 * time.Second // between questions whether the other side is there
	closeTime  = 2 * time.Second  // for the other side to hear that it ends
	stallTime  = 2 * time.Minute  // after which a host that takes nothing, or does not answer, is gone
)

// Config says what hosts are served with.
type Config struct {
	// Control is what each connection is served with. A host whose socket ends is gone,
	// whatever Lasting says.
	Control control.Config

	// Ending returns what is closed when the server of a request is to end; nil = nothing.
	// What runs is finished then, and nothing new is taken.
	Ending func(context.Context) <-chan struct{}

	// Still reports whether whoever has sent a request would be let in again. It is asked with
	// each beat, and a socket ends for whom it denies that; nil = everybody would.
	Still func(context.Context) bool

	// Full answers who comes while there are too many sockets.
	Full func(http.ResponseWriter)

	Beat, Stall time.Duration // 0 = the usual times
}

// Sockets serve hosts over WebSockets. They are safe for concurrent use.
type Sockets struct {
	cfg   Config
	slots chan struct{}
}

// New returns sockets.
func New(cfg Config) *Sockets {
	if cfg.Beat == 0 {
		cfg.Beat = beatTime
	}
	if cfg.Stall == 0 {
		cfg.Stall = stallTime
	}
	cfg.Control.Lasting = true // conn.Read says that the input has ended when the server is to end, and then alone
	return &Sockets{cfg, make(chan struct{}, maxSockets)}
}

// ServeHTTP serves one host, until it leaves or the request is over.
func (s *Sockets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		s.cfg.Full(w)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // it has answered
	}
	ws.SetReadLimit(maxPassed)
	open, shut := context.WithCancel(context.WithoutCancel(r.Context()))
	defer shut()
	life, end := context.WithCancelCause(r.Context())
	c := &conn{ws: ws, open: open, life: life, stall: s.cfg.Stall, in: make(chan incoming)}
	if s.cfg.Ending != nil {
		c.ending = s.cfg.Ending(r.Context())
	}
	var working sync.WaitGroup
	working.Go(func() { c.beat(s.cfg.Beat, s.cfg.Still, end) })
	working.Go(c.listen)
	err = control.Serve(life, s.cfg.Control, c)
	end(nil)
	late := time.AfterFunc(closeTime, shut) // which closes it, whatever it waits for
	switch {
	case errors.Is(err, errSilent):
		_ = ws.CloseNow() // nobody reads why
	case errors.Is(context.Cause(life), errDenied):
		_ = ws.Close(websocket.StatusPolicyViolation, "no access any more")
	case r.Context().Err() != nil || c.drained():
		_ = ws.Close(websocket.StatusGoingAway, "the server ends")
	default:
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}
	late.Stop()
	shut()
	working.Wait()
}

var (
	errSilent = errors.New("the host does not answer")
	errBinary = errors.New("the host has sent what is no text")
	errDenied = errors.New("the host has no access any more")
	errEnds   = errors.New("the connection ends")
)

// conn is a socket as a connection of the protocol.
type conn struct {
	ws     *websocket.Conn
	open   context.Context // of the socket, which is closed with it
	life   context.Context // of what is done for the host
	stall  time.Duration
	ending <-chan struct{} // closed when the server is to end; nil = it is never said
	in     chan incoming
}

// incoming is what was read.
type incoming struct {
	data []byte
	err  error
}

// listen reads messages, until there are no more.
func (c *conn) listen() {
	for {
		data, err := c.next()
		select {
		case c.in <- incoming{data, err}:
		case <-c.life.Done():
			return
		}
		if err != nil && !errors.Is(err, protocol.ErrTooLong) {
			return
		}
	}
}

// Read returns the next message. It says that the input has ended when the server is to end:
// what was asked for is finished then. Any other end is that of the host.
func (c *conn) Read() ([]byte, error) {
	if c.drained() {
		return nil, io.EOF
	}
	select {
	case i := <-c.in:
		return i.data, i.err
	case <-c.ending:
		return nil, io.EOF
	case <-c.life.Done():
		return nil, errEnds
	}
}

func (c *conn) drained() bool {
	select {
	case <-c.ending:
		return true
	default:
		return false
	}
}

// next reads a message of the socket. Of one that is too long nothing is kept.
func (c *conn) next() ([]byte, error) {
	kind, r, err := c.ws.Reader(c.open)
	if err != nil {
		return nil, gone(err)
	}
	if kind != websocket.MessageText {
		_ = c.ws.Close(websocket.StatusUnsupportedData, "messages are text")
		return nil, errBinary
	}
	data, err := io.ReadAll(io.LimitReader(r, protocol.MaxMessage+1))
	if err == nil && len(data) > protocol.MaxMessage {
		if _, err = io.Copy(io.Discard, r); err == nil {
			return nil, protocol.ErrTooLong
		}
	}
	if err != nil {
		return nil, gone(err)
	}
	return data, nil
}

// gone is an error that is not the end of the input, whatever it was.
func gone(err error) error { return errors.New("the socket has ended: " + err.Error()) }

// Write writes a message. A host that does not take it for too long is gone.
func (c *conn) Write(data []byte) error {
	ctx, cancel := context.WithTimeout(c.open, c.stall)
	defer cancel()
	return c.ws.Write(ctx, websocket.MessageText, data)
}

// beat asks now and then whether the other side is there, and ends the connection when it
// does not answer, or has no access any more.
func (c *conn) beat(each time.Duration, still func(context.Context) bool, end context.CancelCauseFunc) {
	next := time.NewTimer(each)
	defer next.Stop()
	for {
		select {
		case <-c.life.Done():
			return
		case <-next.C:
		}
		if still != nil && !still(c.life) {
			end(errDenied)
			return
		}
		ctx, cancel := context.WithTimeout(c.open, c.stall)
		err := c.ws.Ping(ctx)
		cancel()
		if err != nil {
			end(errSilent)
			return
		}
		next.Reset(each)
	}
}
