package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what is read from, and written to, a process.
const (
	maxMessage = 16 << 20         // bytes of a message
	maxAsked   = 64               // requests of the server that have no answer yet
	burst      = 1000             // notifications at once
	perSecond  = 200              // notifications after that
	writeLimit = 30 * time.Second // for one message
	writeGrace = time.Second      // for the rest of it, when nobody waits for it any more
	probeLimit = 5 * time.Second  // for an answer to whether it speaks the newest protocol
)

// A breach is why a connection is ended from this side.
type breach string

func (b breach) Error() string { return string(b) }

var errTooLong = breach(fmt.Sprintf("it sent a message of more than %d MiB", maxMessage>>20))

// lines is the transport over a pair of pipes: one message on each line. Lines that
// are no messages are passed over, because programs print what they like when they
// start. It is used for one connection.
type lines struct {
	rw io.ReadWriteCloser
	in chan jsonrpc.Message

	closing sync.Once
	done    chan struct{}

	writing chan struct{} // holds one token while somebody writes

	mu    sync.Mutex
	err   error // why it ended
	asked map[jsonrpc.ID]bool
	probe *jsonrpc.ID // the question that an old server may never answer
	flow  flow
}

func newLines(rw io.ReadWriteCloser) *lines {
	return &lines{
		rw: rw, in: make(chan jsonrpc.Message), done: make(chan struct{}),
		writing: make(chan struct{}, 1), asked: map[jsonrpc.ID]bool{},
	}
}

// Connect implements [sdk.Transport].
func (l *lines) Connect(context.Context) (sdk.Connection, error) {
	go l.pump() // ends with the connection: Close closes what it reads from
	return l, nil
}

// SessionID implements [sdk.Connection].
func (l *lines) SessionID() string { return "" }

// pump reads until the connection ends.
func (l *lines) pump() {
	r := bufio.NewReaderSize(l.rw, 64<<10)
	for {
		text, err := readLine(r)
		if err == nil {
			err = l.take(text)
		}
		if err != nil {
			l.fail(err)
			return
		}
	}
}

// readLine reads a line of at most maxMessage bytes.
func readLine(r *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(whole)+len(piece) > maxMessage {
			return nil, errTooLong
		}
		if err == nil && whole == nil {
			return piece, nil
		}
		whole = append(whole, piece...)
		if err == nil || err == io.EOF && len(whole) > 0 {
			return whole, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// take passes on what a line holds, if that is a message.
func (l *lines) take(text []byte) error {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return nil
	}
	counted := !bytes.Contains(text, []byte(`"id"`))
	if counted && !l.lets() { // notifications have none, and reading them is what costs
		return nil
	}
	m, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil // no message
	}
	pass, err := l.admit(m, counted)
	if !pass || err != nil {
		return err
	}
	select {
	case l.in <- m:
		return nil
	case <-l.done:
		return io.EOF
	}
}

// lets reports whether one more notification is passed on.
func (l *lines) lets() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flow.pass(time.Now())
}

// admit reports whether a message is passed on. A notification may be counted already.
func (l *lines) admit(m jsonrpc.Message, counted bool) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := m.(type) {
	case *jsonrpc.Response:
		if l.probe != nil && *l.probe == m.ID {
			l.probe = nil
		}
		return m.ID.IsValid(), nil
	case *jsonrpc.Request:
		if !m.IsCall() {
			return counted || l.flow.pass(time.Now()), nil
		}
		if len(l.asked) >= maxAsked {
			return false, breach(fmt.Sprintf("it asked %d questions at once", maxAsked))
		}
		l.asked[m.ID] = true
	}
	return true, nil
}

// Read implements [sdk.Connection].
func (l *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-l.in:
		return m, nil
	case <-l.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [sdk.Connection]. A message that is written in part cannot be
// taken back, so the connection ends when the rest of it does not go out.
func (l *lines) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	select {
	case l.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return io.ErrClosedPipe
	}
	defer func() { <-l.writing }()
	deliveryOf(ctx).sent.Store(true)
	l.note(m)
	var written atomic.Bool
	slow := time.AfterFunc(writeLimit, func() {
		if !written.Load() {
			l.fail(breach("it does not read what it is sent"))
		}
	})
	defer slow.Stop()
	stop := context.AfterFunc(ctx, func() { slow.Reset(writeGrace) })
	defer stop()
	defer written.Store(true)
	_, err = l.rw.Write(append(data, '\n'))
	return err
}

// note remembers what is written as far as it matters for what is read.
func (l *lines) note(m jsonrpc.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := m.(type) {
	case *jsonrpc.Response:
		delete(l.asked, m.ID)
	case *jsonrpc.Request:
		if m.Method == "server/discover" && m.IsCall() {
			id := m.ID
			l.probe = &id
			time.AfterFunc(probeLimit, func() { l.giveUp(id) })
		}
	}
}

// giveUp answers for a server that has not said whether it speaks the newest
// protocol: old ones may never answer what they do not know.
func (l *lines) giveUp(id jsonrpc.ID) {
	l.mu.Lock()
	open := l.probe != nil && *l.probe == id
	l.probe = nil
	l.mu.Unlock()
	if !open {
		return
	}
	select {
	case l.in <- &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}}:
	case <-l.done:
	}
}

// fail ends the connection for a reason.
func (l *lines) fail(why error) {
	l.mu.Lock()
	if l.err == nil {
		l.err = why
	}
	l.mu.Unlock()
	_ = l.Close()
}

// why says why the connection has ended; nil = it has not, or it was closed.
func (l *lines) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close implements [sdk.Connection]. It ends the process.
func (l *lines) Close() (err error) {
	l.closing.Do(func() {
		close(l.done)
		err = l.rw.Close()
	})
	return err
}

// flow lets through so many at once, and so many a second after that.
type flow struct {
	spent float64
	last  time.Time
}

func (f *flow) pass(now time.Time) bool {
	if !f.last.IsZero() {
		f.spent = max(0, f.spent-now.Sub(f.last).Seconds()*perSecond)
	}
	f.last = now
	if f.spent >= burst {
		return false
	}
	f.spent++
	return true
}
