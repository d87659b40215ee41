package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"dure/internal/extend/mcp/servers"
)

// How often, and when, a connection is made again.
const (
	firstPause = 500 * time.Millisecond
	maxTries   = 5               // in a row
	steady     = time.Minute     // after so long a connection, they are counted anew
	patience   = 5 * time.Second // for which a call waits for a server that is being connected
	relist     = 250 * time.Millisecond
)

// server is one server of a set, connected or not.
type server struct {
	set   *Set
	def   servers.Server
	short string // in the names of tools

	life context.Context // until it is removed
	end  context.CancelFunc
	gone chan struct{} // is closed when nothing of it runs any more

	tried chan struct{} // is closed when it has been tried once
	kick  chan struct{} // tells run that what is wanted has changed

	mu      sync.Mutex
	off     bool
	anew    bool // a new connection is asked for
	begun   int  // counts the attempts
	over    int  // of them that have succeeded or failed
	changed chan struct{}
	state   State
	problem error
	live    *live // while connected
	legacy  bool  // the program dies of being asked for the newest protocol
	once    bool  // it has been connected before
	offers  offers
}

func newServer(s *Set, def servers.Server) *server {
	v := &server{
		set: s, def: def, state: Pending, gone: make(chan struct{}),
		tried: make(chan struct{}), kick: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	v.life, v.end = context.WithCancel(s.life)
	return v
}

// runs is run for as long as the server is one of its set.
func (v *server) runs() {
	defer close(v.gone)
	v.run(v.life)
}

// closed is why nothing is asked any more.
func (v *server) closed() error {
	if v.set.life.Err() == nil {
		return unknown(v.def.Name)
	}
	return errClosed
}

// run connects, and connects again, until ctx is done.
func (v *server) run(ctx context.Context) {
	tries := 0
	for ctx.Err() == nil {
		if v.isOff() {
			v.become(Disabled, nil)
			v.await(ctx, 0)
			tries = 0
			continue
		}
		v.begin()
		since := time.Now()
		l, err := v.connect(ctx)
		if err == nil {
			err = v.serve(ctx, l)
			if time.Since(since) > steady {
				tries = 0
			}
		}
		if err == nil || ctx.Err() != nil { // somebody wants it otherwise
			tries = 0
			continue
		}
		pause := firstPause << tries
		tries++
		state := Pending
		switch {
		case errors.Is(err, errSignIn):
			state, pause = NeedsAuth, 0
		case tries > maxTries || !v.worthwhile(err):
			state, pause = Failed, 0
		}
		v.become(state, err)
		if v.await(ctx, pause) {
			tries = 0
		}
	}
}

// A mistake is in a definition, or in what this program can do.
type mistake string

func (m mistake) Error() string { return string(m) }

// worthwhile reports whether it makes sense to try again without being told to: what
// is reached over the network, or has run before, may come back.
func (v *server) worthwhile(why error) bool {
	if _, ok := errors.AsType[mistake](why); ok {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.once || v.def.Type != servers.Stdio
}

// await returns after a pause, 0 = never, or as soon as something else is wanted, which
// it reports.
func (v *server) await(ctx context.Context, pause time.Duration) bool {
	var over <-chan time.Time
	if pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-v.kick:
		return true
	}
	return false
}

// serve looks after a connection until it ends, or ctx is done; nil = somebody wants
// it to end.
func (v *server) serve(ctx context.Context, l *live) error {
	defer l.close()
	var due <-chan time.Time // when the lists are read again
	for {
		select {
		case <-ctx.Done():
			v.down()
			return nil
		case <-l.ended:
			v.down()
			return l.reason()
		case why := <-l.broken:
			v.down()
			return why
		case <-l.stale:
			if due == nil {
				due = time.After(relist)
			}
		case <-due:
			due = nil
			v.refresh(ctx, l)
		case <-v.kick:
			v.mu.Lock()
			stop := v.off || v.anew
			v.mu.Unlock()
			if stop {
				v.down()
				return nil
			}
		}
	}
}

// begin notes that an attempt begins.
func (v *server) begin() {
	select { // it is what the kick was for
	case <-v.kick:
	default:
	}
	v.mu.Lock()
	v.anew = false
	v.begun++
	off := v.off
	v.mu.Unlock()
	if off {
		v.nudge()
	}
	v.show(Pending, nil, false)
}

// become notes how an attempt has ended, or that none is made.
func (v *server) become(s State, why error) { v.show(s, why, true) }

// show changes what is said of the server.
func (v *server) show(s State, why error, over bool) {
	v.mu.Lock()
	news := v.state != s || over
	v.state = s
	if s != Pending || why != nil {
		v.problem = why
	}
	if over {
		v.over = v.begun
		select {
		case <-v.tried:
		default:
			close(v.tried)
		}
	}
	close(v.changed)
	v.changed = make(chan struct{})
	v.mu.Unlock()
	if why != nil {
		v.set.c.Log.Info("mcp server", "server", v.def.Name, "state", string(s), "problem", v.set.say(why.Error(), maxProblem))
	}
	if news {
		v.set.c.OnChange(v.def.Name)
	}
}

// up notes that the server is connected.
func (v *server) up(l *live, o offers) {
	v.mu.Lock()
	v.live, v.offers, v.once = l, o, true
	v.mu.Unlock()
	v.become(Connected, nil)
}

// drop is down for one connection, if it is still that one.
func (v *server) drop(l *live) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.live == l {
		v.live, v.state, v.problem = nil, Pending, errEnded
	}
}

// down notes that the connection is no more. What the server offered stays listed: its
// calls say that it is not there.
func (v *server) down() {
	v.mu.Lock()
	v.live = nil
	v.state, v.problem = Pending, errEnded
	v.mu.Unlock()
}

var (
	errEnded = errors.New("the connection has ended")
	errOff   = errors.New("it is disabled: enable it")
)

func (v *server) isOff() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.off
}

// switchTo has the server connected, or not.
func (v *server) switchTo(on bool) {
	v.mu.Lock()
	same := v.off != on
	v.off = !on
	v.mu.Unlock()
	if !same {
		v.nudge()
	}
}

// nudge has run look at what is wanted.
func (v *server) nudge() {
	select {
	case v.kick <- struct{}{}:
	default:
	}
}

// again has the server connected anew, and returns how that went.
func (v *server) again(ctx context.Context) error {
	v.mu.Lock()
	if v.off {
		v.mu.Unlock()
		return &Unavailable{v.def.Name, Disabled, errOff}
	}
	v.anew = true
	mine := v.begun + 1
	v.mu.Unlock()
	v.nudge()
	for {
		v.mu.Lock()
		over, off, state, why, wait := v.over >= mine, v.off, v.state, v.problem, v.changed
		v.mu.Unlock()
		switch {
		case over && state == Connected:
			return nil
		case over && why != nil:
			return &Unavailable{v.def.Name, state, why}
		case off:
			return &Unavailable{v.def.Name, Disabled, errOff}
		}
		select {
		case <-wait:
		case <-v.life.Done():
			return v.closed()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// connected returns the connection. It waits a little while one is being made.
func (v *server) connected(ctx context.Context) (*live, error) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		v.mu.Lock()
		l, state, why, wait := v.live, v.state, v.problem, v.changed
		v.mu.Unlock()
		if l != nil {
			return l, nil
		}
		if why == nil {
			why = fmt.Errorf("it is %s", state)
		}
		if state != Pending {
			return nil, &Unavailable{v.def.Name, state, why}
		}
		select {
		case <-wait:
		case <-limit.C:
			return nil, &Unavailable{v.def.Name, state, why}
		case <-v.life.Done():
			return nil, v.closed()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// status tells how it stands with the server.
func (v *server) status() Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Status{
		Server: v.def, State: v.state, Title: v.offers.title, Protocol: v.offers.protocol, Instructions: v.offers.instructions,
		Tools: len(v.offers.tools), Prompts: len(v.offers.prompts), Resources: len(v.offers.resources), Templates: len(v.offers.templates),
		Left: v.offers.left,
	}
	if v.problem != nil && v.state != Connected {
		s.Problem = v.set.say(v.problem.Error(), maxProblem)
	}
	return s
}

// tail keeps the end of what a program writes to its error output.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const maxTail = 2 << 10

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-maxTail):]...)
	if n := len(t.b) - maxTail; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
