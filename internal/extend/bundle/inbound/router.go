package inbound

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/extend/bundle"
)

// Config is what a router is made of.
type Config struct {
	Client client.Client
	// Route says where a message of a connection goes.
	Route func(connection string, m bundle.Message) (bundle.Goal, error)
	// Bundle tells the sessions of this bundle from those of others: its folder.
	Bundle string
	// Open returns how the session of a goal is opened: its agent, its model, its limits.
	Open   func(bundle.Goal) agent.Open
	Logger *slog.Logger
	// Progressed is told, once each, how far the plans are that agents of a session do; nil =
	// nobody is. It may be called from several goroutines.
	Progressed func(session string, p agent.CrewProgressed)
}

// Router gives messages to sessions, see the package.
type Router struct {
	cfg  Config
	ctx  context.Context // of all that it waits for
	stop context.CancelCauseFunc
	all  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	flight  int
	waiting int              // for people who are to sign in
	open    map[string]*live // by session
}

// live is a session with messages that are not answered.
type live struct {
	sess  *client.Session
	ready chan struct{} // closed when sess or err is there
	err   error
	refs  int
	told  int64 // the last event that progress was told of
}

var errClosed = errors.New("the router is closed")

// NewRouter returns a router. It is to be closed.
func NewRouter(c Config) *Router {
	r := &Router{cfg: c, open: map[string]*live{}}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	return r
}

// Close ends the sessions that are open, and waits for what the router has started. What is
// not answered stays in the logs, and goes on when its session is opened again.
func (r *Router) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop(errClosed)
	r.all.Wait()
}

// Deliver gives a message of a connection to its session. It returns when the message is in
// the log of that.
func (r *Router) Deliver(ctx context.Context, connection string, m bundle.Message) (*Delivery, error) {
	if strings.TrimSpace(m.Text) == "" {
		return nil, errors.New("the message is empty")
	}
	if len(m.Text) > maxText {
		return nil, fmt.Errorf("the message has more than %d bytes", maxText)
	}
	goal, err := r.cfg.Route(connection, m)
	if err != nil {
		return nil, err
	}
	input := inputOf(connection, m.ID)
	own := func(i string) bool { return i == input }
	return r.deliver(ctx, goal.Session(r.cfg.Bundle), r.cfg.Open(goal), heard{}, own, func(s *client.Session) error {
		return s.Send(ctx, agent.Prompt{ID: input, Text: m.Text, Later: true})
	})
}

// Continue has a session go on that was cut short after the event head, with the turn that
// was open and with what it has handed to others. The answer is what is said last.
func (r *Router) Continue(ctx context.Context, id string, o agent.Open, head int64) (*Delivery, error) {
	o.Session = id
	all := func(string) bool { return true }
	return r.deliver(ctx, id, o, heard{from: head}, all, func(s *client.Session) error {
		err := s.Send(ctx, agent.Continue{})
		if p := agent.ProblemOf(err); p != nil && (p.Code == agent.ProblemOver || p.Code == agent.ProblemUsage) {
			return nil // what it waits for wakes it
		}
		return err
	})
}

// deliver opens a session, says something to it, and waits for the end of that.
func (r *Router) deliver(ctx context.Context, id string, o agent.Open, h heard, mine func(input string) bool, say func(*client.Session) error) (*Delivery, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	l, err := r.acquire(ctx, id, o)
	if err != nil {
		r.leave()
		return nil, err
	}
	if err := say(l.sess); err != nil {
		r.release(id, l)
		r.leave()
		return nil, err
	}
	d := &Delivery{Session: id, done: make(chan struct{}), later: make(chan string, 1)}
	go r.wait(d, l, h, mine)
	return d, nil
}

// wait waits for what a session answers, and for what it says when a person has signed in
// that it has asked for it. Router.all waits for it, see enter.
func (r *Router) wait(d *Delivery, l *live, h heard, mine func(input string) bool) {
	defer r.all.Done()
	defer close(d.later)
	h.progressed = func(seq int64, p agent.CrewProgressed) { r.progressed(d.Session, l, seq, p) }
	_, err := follow(r.ctx, l.sess, &h, 0, mine)
	d.text, d.SignIns, d.err = h.text, h.signIns, err
	lingers := err == nil && len(h.waiting) > 0 && r.lingers(1)
	if !lingers {
		r.release(d.Session, l)
	}
	r.mu.Lock()
	r.flight--
	r.mu.Unlock()
	close(d.done)
	if !lingers {
		return
	}
	defer r.lingers(-1)
	defer r.release(d.Session, l)
	if text, err := linger(r.ctx, l.sess, h); err == nil && text != "" {
		d.later <- text
	}
}

// progressed tells of a plan, unless another message of the session has.
func (r *Router) progressed(session string, l *live, seq int64, p agent.CrewProgressed) {
	if r.cfg.Progressed == nil {
		return
	}
	r.mu.Lock()
	fresh := seq > l.told
	l.told = max(l.told, seq)
	r.mu.Unlock()
	if fresh {
		r.cfg.Progressed(session, p)
	}
}

// lingers counts the messages that are answered and wait for a person to sign in. Of too many,
// it is the next message that goes on with what they have agreed to.
func (r *Router) lingers(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > 0 && (r.closed || r.waiting == maxFlight) {
		return false
	}
	r.waiting += n
	return true
}

// enter counts a message that is on its way.
func (r *Router) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return errClosed
	case r.flight == maxFlight:
		return ErrBusy
	}
	r.flight++
	r.all.Add(1)
	return nil
}

func (r *Router) leave() {
	r.mu.Lock()
	r.flight--
	r.mu.Unlock()
	r.all.Done()
}

// acquire opens a session, or returns it if it is open.
func (r *Router) acquire(ctx context.Context, id string, o agent.Open) (*live, error) {
	r.mu.Lock()
	l := r.open[id]
	first := l == nil
	if first {
		l = &live{ready: make(chan struct{})}
		r.open[id] = l
	}
	l.refs++
	r.mu.Unlock()
	if first {
		l.sess, l.err = r.openSession(r.ctx, id, o)
		close(l.ready)
	}
	select {
	case <-l.ready:
	case <-ctx.Done():
		r.release(id, l)
		return nil, context.Cause(ctx)
	}
	if l.err != nil {
		r.release(id, l)
		return nil, l.err
	}
	return l, nil
}

func (r *Router) openSession(ctx context.Context, id string, o agent.Open) (*client.Session, error) {
	known := o.Session != ""
	o.Session = id
	sess, err := r.cfg.Client.Open(ctx, o)
	if p := agent.ProblemOf(err); p != nil && p.Code == agent.ProblemMissing && !known {
		o.Session, o.New = "", id
		sess, err = r.cfg.Client.Open(ctx, o)
	}
	return sess, err
}

// release closes a session that nobody waits for any more.
func (r *Router) release(id string, l *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.refs--; l.refs > 0 {
		return
	}
	delete(r.open, id)
	if l.sess == nil {
		return
	}
	const most = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), most)
	defer cancel()
	if err := l.sess.Close(ctx); err != nil && r.cfg.Logger != nil {
		r.cfg.Logger.Warn("closing a session", "session", id, "error", err)
	}
}

// inputOf is the ID of an input: the same for a message that comes twice, which is read once
// then.
func inputOf(connection, id string) string {
	if id == "" {
		return "in-" + rand.Text()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(connection), connection, id))
	return "in-" + hex.EncodeToString(sum[:20])
}

var errGone = errors.New("the session was closed before it answered")
