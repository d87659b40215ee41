package mcpserve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/client/protocol"
)

// maxLine bounds a message, in bytes.
const maxLine = 4 << 20

// Run serves one client over a pair of streams, one message a line, until the input ends
// or ctx is done. Lines that are no messages are answered with an error and passed over.
// What reads the input ends with it, and what writes when the client reads or goes.
func (s *Server) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &lines{in: make(chan []byte), out: make(chan outgoing), over: make(chan struct{}), closed: make(chan struct{}), answered: make(chan struct{}, 1)}
	go c.read(in)
	go c.write(out)
	s.wg.Go(func() { s.endWith(c) })
	defer context.AfterFunc(ctx, func() { // what runs would be waited for
		s.end()
		_ = c.Close() // it has no errors
	})()
	err := s.mcp.Run(ctx, c)
	_ = c.Close() // it has no errors
	if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		err = nil
	}
	return err
}

// endWith ends what still runs a while after the input has: the client is gone.
func (s *Server) endWith(c *lines) {
	select {
	case <-c.over:
	case <-c.closed:
		return
	}
	grace := time.NewTimer(closeTime)
	defer grace.Stop()
	select {
	case <-grace.C:
		s.end()
	case <-c.closed:
	}
}

// lines is a connection over streams.
type lines struct {
	in     chan []byte
	out    chan outgoing
	over   chan struct{} // closed when the input has ended
	closed chan struct{}
	once   sync.Once

	open     atomic.Int64  // requests that are not answered yet
	answered chan struct{} // holds one value when a request was answered
}

type outgoing struct {
	data    []byte
	written chan error // buffered
}

// Connect returns the connection itself.
func (l *lines) Connect(context.Context) (mcp.Connection, error) { return l, nil }

// SessionID is empty: streams have one client.
func (l *lines) SessionID() string { return "" }

// Close ends the connection.
func (l *lines) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// read takes the input apart.
func (l *lines) read(in io.Reader) {
	defer close(l.over)
	r := protocol.NewReader(in, maxLine)
	for {
		data, err := r.Next()
		if errors.Is(err, protocol.ErrTooLong) {
			data, err = tooLong, nil
		}
		if err != nil {
			return
		}
		select {
		case l.in <- data:
		case <-l.closed:
			return
		}
	}
}

// tooLong stands for a line that was longer than a message may be. It is none itself.
var tooLong = []byte("too long")

// write writes what is to be written, one message at a time.
func (l *lines) write(out io.Writer) {
	for {
		select {
		case o := <-l.out:
			_, err := out.Write(o.data)
			o.written <- err
		case <-l.closed:
			return
		}
	}
}

// What is answered to a line that is no message.
var noMessage = []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the line is no JSON-RPC message, or longer than 4 MiB"}}`)

// Read returns the next message.
func (l *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case data := <-l.in:
			m, err := jsonrpc.DecodeMessage(data)
			if err == nil {
				if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
					l.open.Add(1)
				}
				return m, nil
			}
			if err := l.send(ctx, noMessage); err != nil {
				return nil, err
			}
		case <-l.over:
			return nil, l.finish(ctx)
		case <-l.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// finish waits, for a while, until what was asked before the input ended is answered.
func (l *lines) finish(ctx context.Context) error {
	grace := time.NewTimer(2 * closeTime) // what is ended after one has another to say so
	defer grace.Stop()
	for l.open.Load() > 0 {
		select {
		case <-l.answered:
		case <-grace.C:
			return io.EOF
		case <-l.closed:
			return io.EOF
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return io.EOF
}

// Write writes a message.
func (l *lines) Write(ctx context.Context, m jsonrpc.Message) error {
	if _, ok := m.(*jsonrpc.Response); ok {
		defer func() {
			l.open.Add(-1)
			select {
			case l.answered <- struct{}{}:
			default:
			}
		}()
	}
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return l.send(ctx, data)
}

func (l *lines) send(ctx context.Context, data []byte) error {
	o := outgoing{append(bytes.Clone(data), '\n'), make(chan error, 1)}
	select {
	case l.out <- o:
	case <-l.closed:
		return mcp.ErrConnectionClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-o.written:
		return err
	case <-l.closed:
		return mcp.ErrConnectionClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
