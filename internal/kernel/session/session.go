// Package session runs sessions. One goroutine owns a session: it takes
// commands from the inbox in order and starts turns; one child of it runs the
// current turn, and the loop's calls are the children of that. Both write facts
// through one record, whose fold is the only state they share.
//
// Capabilities reach back into their session through Ask, Spawn and Invoke,
// which go through the same log, gate and guard as everything else. The package
// knows no model, tool or rule by name; [Parts] plugs them in.
package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"dure/agent"
	"dure/internal/kernel/budget"
	"dure/internal/kernel/loop"
	"dure/internal/kernel/plug"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// Parts is what a session is made of, built anew for each one. What of the event that opens
// the session is not the registry's to know stands in it: the folder, the type of the agent,
// the dialect, the kind of work, the lane, a hash of the settings. A Mode holds from the
// beginning; "" = the one that the session was opened with.
type Parts struct {
	agent.SessionOpened

	// Model returns the model of a name; "" is the default. An error should be
	// an [agent.Problem].
	Model func(name string) (agent.Model, error)

	// Catalog returns the tools of the next step. The slice is the same as long
	// as the tools are.
	Catalog func() plug.Catalog

	// System returns the system prompt for a model. It is called once for each model that
	// is asked; opened is the time of the first event. What it returns has to be the same
	// when the session is opened again, or providers read all of it anew.
	System func(opened time.Time, model string) []agent.Section

	Params agent.Params
	Retry  loop.Retry
	Limits loop.Limits

	// Fallback names the models that are asked when the session's own fails for
	// good, see [loop.Config].
	Fallback []string

	// Thinking is how many tokens of thinking stand for the efforts that a turn may ask
	// for, see [transcript.State.Effort]. One that is not here changes nothing.
	Thinking map[string]int

	// Budget limits what the session and its children use, from when it is opened;
	// zero fields do not.
	Budget plug.Amount

	// Points are what the capabilities have added, in the order of their list.
	Points []plug.Attached
}

// Config says how to run sessions. Store and Build are required.
type Config struct {
	Store journal.Store

	// Build makes the parts of a session that is being opened. child is set for
	// a session that serves a call of another one.
	Build func(ctx context.Context, b plug.Session) (Parts, error)

	// Takeover ends the owner of a session, which has not given it up, or says why it
	// does not; nil = it never does.
	Takeover func(context.Context, *journal.OwnedError) error

	// Discard takes a fork away that could not be opened, so that nothing of it is left;
	// nil = it stays.
	Discard func(ctx context.Context, id string) error

	// Apart runs a child in a process of its own to its end; nil = it cannot be.
	Apart func(context.Context, plug.Apart) (agent.Outcome, error)

	// Reap ends a process that an earlier program has left; nil = it is left alone.
	Reap func(agent.Process)

	// Query answers what is not about sessions; nil = nothing.
	Query func(context.Context, agent.Query) (any, error)

	Lanes   *Lanes // default: no limits
	Logger  *slog.Logger
	Now     func() time.Time // default time.Now
	Version string
	Host    string
	PID     int
}

// maxStuck is how often a turn is started without anything coming of it before
// it is given up.
const maxStuck = 5

// Session is a session that runs. Its methods are safe for concurrent use; its
// turn belongs to the goroutine in run.
type Session struct {
	reg      *Registry
	id       string
	parts    Parts
	points   plug.Points // of all capabilities
	gate     []plug.Stage
	rec      *record
	early    early
	approver bool
	lent     bool        // others call its tools, and it runs no turns
	served   atomic.Bool // capabilities have called its tools
	limits   loop.Limits
	front    *Session // whose log a person reads: this one, or that of a child's parent
	depth    int      // how many sessions it works for, in each other
	via      string   // the child of front that this session is, or belongs to; "" = front itself
	blobs    blobs
	shown    offered         // the tools of the newest request of the conversation, if it was of this epoch
	next     offered         // those of the one that is being made, or was made last
	account  *budget.Account // nil = no limit

	inbox  chan envelope
	ended  chan ended
	life   context.Context // done when the session is to end
	stop   context.CancelFunc
	opened int64         // sequence number of the event that opened this epoch
	done   chan struct{} // closed when run has returned
	err    error         // why run returned; read after done
	strays sync.WaitGroup
	rested chan struct{} // of a child: holds something when nothing was left to do

	revived   []plug.Revival // what earlier programs have left pending and goes on in this one
	beginning chan struct{}  // closed when the session's beginning is over
	held      atomic.Bool    // input waits for that in the queue

	// formed is the number of the turn that is to come to an answer in the form that was
	// asked for: everyTurn, or one that was begun before; 0 = none.
	formed int

	whyLong string // why the conversation was not shortened, as it was noted; of the running turn
	vain    int    // messages at the newest attempt to shorten the conversation, if nothing came of it; of the running turn
	tight   bool   // it was noted that a request is too large for its model; of the running turn

	asking  chan struct{} // holds one value while a person is being asked
	mu      sync.Mutex
	waiting map[string]chan agent.ApprovalResolved
	mode    agent.Mode // of this epoch; "" = that of the settings

	// above asks the person where the session stands for one of another process, see
	// [Registry.RunApart]; nil = it is one of this process.
	above func(ctx context.Context, id, child string, p agent.Proposal, d agent.Decision) (agent.Decision, error)

	children map[string]bool // that run for it, and theirs in turn; of front
	created  time.Time
	systems  map[string][]agent.Section // by model
}

// envelope is a command on its way to the owner.
type envelope struct {
	command agent.Command
	reply   chan error // buffered
}

// ended is how a turn came out.
type ended struct {
	turn  string
	steps int
	err   error
	aside bool // it was no turn
}

// newSession returns a session that has neither parts nor a record yet.
func newSession(reg *Registry, id string, approver bool) *Session {
	s := &Session{
		reg: reg, id: id, approver: approver,
		inbox: make(chan envelope), ended: make(chan ended), done: make(chan struct{}),
		beginning: make(chan struct{}), asking: make(chan struct{}, 1), waiting: map[string]chan agent.ApprovalResolved{}, systems: map[string][]agent.Section{},
	}
	s.life, s.stop = context.WithCancel(context.Background())
	s.front = s
	return s
}

// Send hands a command to the owner and waits until it is accepted.
func (s *Session) Send(ctx context.Context, c agent.Command) error {
	done, err := s.switches(ctx, c)
	if err != nil {
		return err
	}
	e := envelope{c, make(chan error, 1)}
	select {
	case s.inbox <- e:
	case <-s.done:
		return s.closedError()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err = <-e.reply // the owner answers what it has taken, also when it ends then
	if err == nil {
		done()
	}
	return err
}

func (s *Session) closedError() error {
	if s.err != nil {
		return s.err
	}
	return fmt.Errorf("session %s: %w", s.id, journal.ErrClosed)
}

// run serves the session until it is stopped or its log cannot be written.
func (s *Session) run() {
	defer close(s.done)
	defer s.reg.remove(s)
	defer func() { s.rec.feed.close(s.err) }()
	r := &runner{Session: s}
	s.strays.Go(s.begun)
	s.resurrect()
	s.err = r.serve()
	if s.points.Hooks.Closing != nil && s.rec.lease.Valid().Err() == nil {
		s.points.Hooks.Closing(s.rec.lease.Valid())
	}
	s.stop()
	s.strays.Wait()
	if s.points.Close != nil {
		s.points.Close()
	}
	s.err = errors.Join(s.err, s.release())
}

// release gives the log back. That of a session whose tools were called without turns, the
// ends of which seal it, is sealed here.
func (s *Session) release() error {
	var unsealed error
	turns := false
	s.rec.read(func(st *transcript.State) { turns = st.Turn.ID != "" })
	if (s.lent || s.served.Load() && !turns) && s.rec.lease.Valid().Err() == nil {
		unsealed = s.rec.append(journal.Batch{Sync: journal.Barrier, Seal: true})
	}
	meta := s.rec.lease.Session()
	s.rec.read(func(st *transcript.State) {
		meta.SessionInfo = st.Info()
		if st.Head-s.rec.snap >= snapEvents/8 {
			s.rec.snapshotLocked()
		}
	})
	return errors.Join(unsealed, s.rec.lease.Release(context.Background(), journal.Parked, meta))
}

// Info returns the session's row in the list.
func (s *Session) Info() (info agent.SessionInfo) {
	s.rec.read(func(st *transcript.State) { info = st.Info() })
	return info
}

// current returns the model that would be asked next.
func (s *Session) current() (model string) {
	s.rec.read(func(st *transcript.State) { model = st.Current() })
	return model
}

// currentMode returns the permission mode that holds now. The log's may be one
// that was not taken over when the session was resumed.
func (s *Session) currentMode() agent.Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// system returns the system prompt for a model: the same slice each time.
func (s *Session) system(model string) []agent.Section {
	s.mu.Lock()
	defer s.mu.Unlock()
	sections, ok := s.systems[model]
	if !ok {
		sections = s.parts.System(s.created, model)
		s.systems[model] = sections
	}
	return sections
}

// newID returns an ID that is unique for ever.
func newID(prefix string) string { return prefix + rand.Text()[:16] }
