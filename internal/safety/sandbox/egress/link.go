package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"
)

// maxHead is how many bytes of a request or an answer its header may have.
const maxHead = 64 << 10

// maxLinger is how many bytes of a client are read that nobody wants.
const maxLinger = 1 << 20

// A link is one connection of a client, and where it leads. Its Read and Write
// are the client's, and count.
type link struct {
	server *Server
	client net.Conn
	pulse  *time.Timer // cuts the link when it has been idle; nil before it is connected
	over   sync.Once   // of telling that the budget is used up

	// Guarded by the server's lock.
	to     target // host is "" until it has been allowed
	remote net.Conn
	gone   bool // it was cut
}

// serve takes the client's first byte for which protocol it speaks.
func (l *link) serve() {
	defer l.close()
	_ = l.client.SetDeadline(time.Now().Add(headTime))
	head := newHeadReader(l)
	first, err := head.buf.Peek(1)
	switch {
	case err != nil:
	case first[0] == socksVersion:
		l.serveSOCKS(head)
	case first[0] >= 'A' && first[0] <= 'Z':
		l.serveHTTP(head)
	}
}

// reach checks a target and connects to it. The error is a *refusal, or can be
// shown to the client.
func (l *link) reach(t target, plain bool) (*route, error) {
	s := l.server
	s.mu.Lock()
	err := s.current().check(t)
	if err == nil {
		l.to = t
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if s.spent.Load() >= s.cfg.MaxBytes {
		return nil, t.refuse(WhyBytes, fmt.Sprintf("the %d bytes that may pass to and from the network are used up", s.cfg.MaxBytes))
	}
	conn, via, err := s.connect(s.ctx, t, plain)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	l.remote = conn
	if l.gone { // before there was something to cut
		conn.Close()
	}
	s.mu.Unlock()
	_ = l.client.SetDeadline(time.Time{})
	l.pulse = time.AfterFunc(idleTime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.cut()
	})
	return &route{Conn: conn, via: via}, nil
}

// cut ends the link from outside. The caller has the lock of the server.
func (l *link) cut() {
	l.gone = true
	l.client.Close()
	if l.remote != nil {
		l.remote.Close()
	}
}

func (l *link) close() {
	if l.pulse != nil {
		l.pulse.Stop()
	}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.cut()
}

// errBudget ends connections when the budget is used up.
var errBudget = errors.New("the budget of bytes is used up")

func (l *link) count(n int) error {
	if l.pulse != nil && n > 0 {
		l.pulse.Reset(idleTime)
	}
	if l.server.spent.Add(int64(n)) <= l.server.cfg.MaxBytes || l.pulse == nil {
		return nil
	}
	l.over.Do(func() { l.tell(l.to.refuse(WhyBytes, errBudget.Error())) })
	return errBudget
}

// Read reads from the client.
func (l *link) Read(p []byte) (int, error) {
	n, err := l.client.Read(p)
	if over := l.count(n); over != nil {
		return 0, over
	}
	return n, err
}

// Write writes to the client.
func (l *link) Write(p []byte) (int, error) {
	if over := l.count(len(p)); over != nil {
		return 0, over
	}
	return l.client.Write(p)
}

// tell calls Denied when err is a refusal.
func (l *link) tell(err error) {
	r, ok := errors.AsType[*refusal](err)
	if ok && l.server.cfg.Denied != nil {
		l.server.cfg.Denied(r.host, int(r.port), r.why)
	}
}

// pass passes bytes on in both directions until both have ended. from is what the
// client sends.
func (l *link) pass(from io.Reader, remote net.Conn) {
	var up sync.WaitGroup
	up.Go(func() {
		_, err := io.Copy(onlyWriter{remote}, from)
		if err != nil || closeWrite(remote) != nil {
			remote.Close()
		}
	})
	_, err := io.Copy(onlyWriter{l}, remote)
	if err != nil || closeWrite(l.client) != nil {
		l.client.Close()
	}
	up.Wait()
}

// onlyWriter hides what else a writer can do: the bytes have to be counted.
type onlyWriter struct{ io.Writer }

// linger lets the client take in what it was sent: a connection that is closed
// with something unread takes back what was written.
func (l *link) linger() {
	if closeWrite(l.client) != nil {
		return
	}
	_ = l.client.SetDeadline(time.Now().Add(refuseTime))
	_, _ = io.CopyN(io.Discard, l.client, maxLinger)
}

// closeWrite says to the other side that nothing more is sent.
func closeWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return errors.ErrUnsupported
}

// A headReader bounds the header of what is read until it is opened.
type headReader struct {
	buf   *bufio.Reader
	limit *io.LimitedReader
}

func newHeadReader(r io.Reader) headReader {
	limit := &io.LimitedReader{R: r, N: maxHead}
	return headReader{bufio.NewReader(limit), limit}
}

func (h headReader) open() { h.limit.N = math.MaxInt64 }
