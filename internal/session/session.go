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
	"io"
	"log/slog"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/journal"
	"dure/internal/loop"
	"dure/internal/transcript"
)

// Parts is what a session is made of, built anew for each one.
type Parts struct {
	Agent   string
	Workdir string
	Dialect string // recorded, so that a replay knows the names that the model saw
	Lane    string // default LaneMain
	Config  string // hash of the configuration, for the log

	// Model returns the model of a name; "" is the default. An error should be
	// an [agent.Problem].
	Model func(name string) (agent.Model, error)

	// Catalog returns the tools of the next step. The slice is the same as long
	// as the tools are.
	Catalog func() Catalog

	// System returns the system prompt. It is called once, when the session is
	// opened; opened is the time of the first event.
	System func(opened time.Time) []agent.Section

	Params agent.Params
	Gate   []loop.Stage
	Guard  func(context.Context, agent.Spec, agent.Call, agent.Result) (agent.Result, error)
	Clean  func(string) string // of output in progress; may be nil
	Wrap   []func(agent.Tool, loop.Run) loop.Run
	Reap   func(agent.Process)
	Retry  loop.Retry
	Limits loop.Limits

	SetMode func(agent.Mode) error // of the policy
	Grant   func(agent.Proposal)   // remembers a yes for the session
	Close   func()                 // gives back what Build took; may be nil
}

// Catalog is the tools of one step, in a stable order.
type Catalog struct {
	Specs []agent.Spec
	Names map[string]string
	loop.Tools
}

// Config says how to run sessions. Store and Build are required.
type Config struct {
	Store journal.Store

	// Build makes the parts of a session that is being opened. child is set for
	// a session that serves a call of another one.
	Build func(ctx context.Context, b Build) (Parts, error)

	// Query answers what is not about sessions; nil = nothing.
	Query func(context.Context, agent.Query) (any, error)

	Lanes   *Lanes // default: no limits
	Logger  *slog.Logger
	Now     func() time.Time // default time.Now
	Version string
	Host    string
	PID     int
}

// Build is what a session is to be built from.
type Build struct {
	Session string
	Open    agent.Open
	Stored  agent.SessionInfo // as the log has it; zero for a new session
	Files   []agent.FileState // what the session has seen of files
	Past    []agent.Message   // the conversation so far
	Child   *agent.Child
	Reach   agent.Reach

	// PutBlob stores a spilled output with the session; see [journal.Lease].
	PutBlob func(ctx context.Context, r io.Reader, limit int64) (sha256 string, size int64, err error)
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
	rec      *record
	approver bool
	limits   loop.Limits
	front    *Session // whose log a person reads: this one, or that of a child's parent
	via      string   // the child of front that this session is, or belongs to; "" = front itself
	system   []agent.Section
	blobs    blobs

	inbox  chan envelope
	ended  chan ended
	life   context.Context // done when the session is to end
	stop   context.CancelFunc
	opened int64         // sequence number of the event that opened this epoch
	done   chan struct{} // closed when run has returned
	err    error         // why run returned; read after done
	strays sync.WaitGroup

	asking  chan struct{} // holds one value while a person is being asked
	mu      sync.Mutex
	waiting map[string]chan agent.ApprovalResolved
	mode    agent.Mode // of this epoch; "" = that of the settings
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
}

// newSession returns a session that has neither parts nor a record yet.
func newSession(reg *Registry, id string, approver bool) *Session {
	s := &Session{
		reg: reg, id: id, approver: approver,
		inbox: make(chan envelope), ended: make(chan ended), done: make(chan struct{}),
		asking: make(chan struct{}, 1), waiting: map[string]chan agent.ApprovalResolved{},
	}
	s.life, s.stop = context.WithCancel(context.Background())
	s.front = s
	return s
}

// Send hands a command to the owner and waits until it is accepted.
func (s *Session) Send(ctx context.Context, c agent.Command) error {
	e := envelope{c, make(chan error, 1)}
	select {
	case s.inbox <- e:
	case <-s.done:
		return s.closedError()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return <-e.reply // the owner answers what it has taken, also when it ends then
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
	s.err = r.serve()
	s.stop()
	s.strays.Wait()
	if s.parts.Close != nil {
		s.parts.Close()
	}
	s.err = errors.Join(s.err, s.release())
}

// release gives the log back.
func (s *Session) release() error {
	meta := s.rec.lease.Session()
	s.rec.read(func(st *transcript.State) {
		meta.SessionInfo = st.Info()
		if st.Head-s.rec.snap >= snapEvents/8 {
			s.rec.snapshotLocked()
		}
	})
	return s.rec.lease.Release(context.Background(), journal.Parked, meta)
}

// Info returns the session's row in the list.
func (s *Session) Info() (info agent.SessionInfo) {
	s.rec.read(func(st *transcript.State) { info = st.Info() })
	return info
}

// currentMode returns the permission mode that holds now. The log's may be one
// that was not taken over when the session was resumed.
func (s *Session) currentMode() agent.Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// newID returns an ID that is unique for ever.
func newID(prefix string) string { return prefix + rand.Text()[:16] }
