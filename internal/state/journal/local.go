package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dure/agent"
)

// The durabilities of a store: what it does for an append.
const (
	DurabilityBarrier = "barrier" // Barrier appends are synced; the default
	DurabilityAlways  = "always"  // every append is
	DurabilityOS      = "os"      // none is: for scratch sessions
)

// LocalOptions configure a store in a folder. Only Dir is required.
type LocalOptions struct {
	Dir        string
	Durability string // "" = DurabilityBarrier

	// AllowNetworkFS accepts file systems whose locks may not hold between
	// machines.
	AllowNetworkFS bool

	Now   func() time.Time           // nil = time.Now
	NewID func(now time.Time) string // IDs of events; nil = [NewID]

	// Fault is for crash tests. It is called before and after each change of the
	// disk, on the goroutine that makes it, which may hold locks: it may end the
	// process, but not call the store. The names of the boundaries are those of
	// what changes: append.write, .written, .sync, .synced; segment, blob,
	// snapshot, index, lock, meta, inbox, receipts, outbox, queue, repair, fork, discard.
	Fault func(boundary string)
}

// Local is a store on one machine: a folder of files, or the same in memory.
//
//	sessions/2026-11/<id>/log.000001.jsonl  the record; only ever appended to
//	                      lock              held by the owner
//	                      meta.json         what List shows; derived
//	                      receipts          messages that were consumed
//	                      inbox/ blobs/ snap/
//	queue/<id>                              sessions that are runnable, and when
//	outbox/<id>                             sessions with messages not yet delivered
//	trash/<id>                              what a deleted session has left
//	index.jsonl                             the listing; derived
//
// It starts no goroutines but the timers of open leases, which [Lease.Release]
// ends.
type Local struct {
	d          disk
	durability string
	now        func() time.Time
	newID      func(time.Time) string
	fault      func(string)
	segment    int64 // bytes after which a log gets a new file
	posted     atomic.Int64

	indexing sync.Mutex // held while index.jsonl is changed

	mu       sync.Mutex
	leases   map[string]*lease
	fresh    map[string]Meta // of sessions that were created here and have no meta.json
	runnable chan struct{}   // closed, and replaced, when a session became runnable
	closed   bool
}

// NewLocal opens the store in a folder, which is made when it is missing.
func NewLocal(o LocalOptions) (*Local, error) {
	if o.Dir == "" {
		return nil, errors.New("opening the session store: no folder was named")
	}
	switch o.Durability {
	case "", DurabilityBarrier, DurabilityAlways, DurabilityOS:
	default:
		return nil, fmt.Errorf("opening the session store: durability %q is none of barrier, always, os", o.Durability)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the session store: %w", err)
	}
	if !o.AllowNetworkFS {
		name, err := networkFS(o.Dir)
		if err != nil {
			return nil, fmt.Errorf("opening the session store: %w", err)
		}
		if name != "" {
			return nil, fmt.Errorf("opening the session store: %s is on %s, where a lock may not keep a second writer out; use a local folder, or allow network file systems", o.Dir, name)
		}
	}
	s := newLocal(osDisk{o.Dir}, o)
	s.redeliverAll()
	return s, nil
}

// MemoryOptions configure a store in memory. Everything is optional.
type MemoryOptions struct {
	Now   func() time.Time
	NewID func(now time.Time) string
}

// NewMemory returns a store that keeps everything in memory, for tests and for
// sessions that nobody wants to keep. It behaves as the store in a folder does.
func NewMemory(o MemoryOptions) *Local {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	return newLocal(newMemDisk(now), LocalOptions{Now: now, NewID: o.NewID})
}

func newLocal(d disk, o LocalOptions) *Local {
	s := &Local{
		d: d, durability: o.Durability, now: o.Now, newID: o.NewID, fault: o.Fault,
		segment:  64 << 20,
		leases:   map[string]*lease{},
		fresh:    map[string]Meta{},
		runnable: make(chan struct{}),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.newID == nil {
		s.newID = NewID
	}
	if s.fault == nil {
		s.fault = func(string) {}
	}
	return s
}

// durable reports whether the store syncs at all.
func (s *Local) durable() bool { return s.durability != DurabilityOS }

const sessionsDir = "sessions"

func monthDir(t time.Time) string { return sessionsDir + "/" + t.UTC().Format("2006-01") }

// find returns the folder of a session.
func (s *Local) find(id string) (string, error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	if t, ok := idTime(id); ok {
		dir := monthDir(t) + "/" + id
		if _, _, err := s.d.stat(dir); err == nil || !missing(err) {
			return dir, err
		}
	}
	months, err := s.d.list(sessionsDir)
	if err != nil {
		return "", fmt.Errorf("looking for session %s: %w", id, err)
	}
	for _, month := range months {
		dir := sessionsDir + "/" + month + "/" + id
		if _, _, err := s.d.stat(dir); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("session %s: %w", id, ErrMissing)
}

// newDir returns the folder that a new session gets.
func (s *Local) newDir(id string) (string, error) {
	switch _, err := s.find(id); {
	case err == nil:
		return "", fmt.Errorf("session %s: %w", id, ErrExists)
	case !isID(id) || !errors.Is(err, ErrMissing):
		return "", err
	}
	t, ok := idTime(id)
	if !ok {
		t = s.now()
	}
	return monthDir(t) + "/" + id, nil
}

// Create makes an empty session. It is durable with the session's first Barrier.
func (s *Local) Create(_ context.Context, m Meta) error {
	if err := s.check(); err != nil {
		return err
	}
	dir, err := s.newDir(m.ID)
	if err != nil {
		return fmt.Errorf("creating a session: %w", err)
	}
	s.fault("create.dir")
	err = s.d.mkdir(dir)
	if errors.Is(err, fs.ErrExist) {
		err = ErrExists
	}
	if err == nil {
		m = s.created(m)
		err = s.keepMeta(dir, m)
	}
	if err != nil {
		return fmt.Errorf("creating session %s: %w", m.ID, err)
	}
	s.index(entry{Meta: m})
	return nil
}

// created fills in what a new session's listing has to say.
func (s *Local) created(m Meta) Meta {
	now := s.now().UTC().Format(time.RFC3339Nano)
	if m.Created == "" {
		m.Created = now
	}
	if m.Updated == "" {
		m.Updated = m.Created
	}
	if m.Status == "" {
		m.Status = statusIdle
	}
	return m
}

// Read yields the events after seq.
func (s *Local) Read(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		err := s.check()
		var dir string
		if err == nil {
			dir, err = s.find(id)
		}
		if err == nil {
			err = s.read(ctx, dir, after, func(e agent.Event) bool { return yield(e, nil) })
		}
		if err != nil {
			yield(agent.Event{}, fmt.Errorf("reading session %s: %w", id, err))
		}
	}
}

// read yields the events after seq, append by append: one that is not whole yet
// is not shown.
func (s *Local) read(ctx context.Context, dir string, after int64, yield func(agent.Event) bool) error {
	p, err := placeBefore(s.d, dir, after+1)
	if err != nil {
		return err
	}
	r, err := readFrom(s.d, dir, p)
	if err != nil {
		return err
	}
	defer r.close()
	fetch := s.fetch(dir)
	var held []agent.Event
	for r.step() {
		if err := ctx.Err(); err != nil {
			return err
		}
		l := r.line
		if len(held) > 0 && held[0].Epoch != l.epoch { // cut there by a fork
			if !yieldAll(held, yield) {
				return nil
			}
			held = held[:0]
		}
		if l.seq > after {
			e, err := l.event(fetch)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			held = append(held, e)
		}
		if l.more == 0 {
			if !yieldAll(held, yield) {
				return nil
			}
			held = held[:0]
		}
	}
	if n := len(held); n > 0 && (r.err != nil || s.forkedAt(dir, held[n-1].Seq)) && !yieldAll(held, yield) {
		return nil
	}
	return r.err
}

func yieldAll(events []agent.Event, yield func(agent.Event) bool) bool {
	for _, e := range events {
		if !yield(e) {
			return false
		}
	}
	return true
}

// forkedAt reports whether the log in dir is a copy that was cut behind seq, in
// the middle of an append of the original.
func (s *Local) forkedAt(dir string, seq int64) bool {
	m, err := s.readMeta(dir)
	return err == nil && m.ForkSeq == seq
}

// Close ends what leases are still open, as the end of the process would.
func (s *Local) Close() error {
	s.mu.Lock()
	s.closed = true
	var open []*lease
	for _, l := range s.leases {
		open = append(open, l)
	}
	s.mu.Unlock()
	var errs []error
	for _, l := range open {
		errs = append(errs, l.shut(nil))
	}
	return errors.Join(errs...)
}

func (s *Local) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("the session store: %w", ErrClosed)
	}
	return nil
}

// lease returns the open lease of a session, if this process has it.
func (s *Local) lease(id string) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[id]
}
