package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// thresholds are the shares of the window that are reported.
var thresholds = []float64{0.8, 0.95}

const (
	// snapEvents is how far the log grows between two snapshots.
	snapEvents = 2000

	// keptBytes is about how much of the conversation is at hand when a session
	// has been opened, and in its snapshots: as much as the largest windows hold.
	// What is older is read from the log for the next request.
	keptBytes = 4 << 20
)

// record is a session's log with everything that follows from it: the fold and
// the readers. Every event of the session goes through append. It is safe for
// concurrent use.
type record struct {
	lease  journal.Lease
	feed   *feed
	now    func() time.Time
	window func(model string) int // tokens; 0 = unknown

	filling sync.Mutex // held by whoever fills the state

	mu     sync.Mutex
	state  *transcript.State
	snap   int64 // head of the last snapshot, or of the last attempt at one
	parked bool  // nothing more comes into the log
}

// openRecord folds the log of a lease.
func openRecord(ctx context.Context, lease journal.Lease, now func() time.Time) (*record, error) {
	r := &record{lease: lease, now: now, state: transcript.New()}
	if seq, data, err := lease.LastSnapshot(ctx); err == nil && seq > 0 {
		if s, err := transcript.Decode(data); err == nil && s.Head == seq {
			r.state, r.snap = s, seq
		}
	}
	r.state.Keep(keptBytes)
	r.state.Reread(r.events)
	if err := fold(ctx, lease, r.state); err != nil {
		return nil, err
	}
	r.state.Keep(0)
	r.feed = newFeed(r.state.Head)
	return r, nil
}

// events are those of the log, from the first on. They are read as long as anybody
// may write the log, and no longer.
func (r *record) events() iter.Seq2[agent.Event, error] {
	return r.lease.Read(r.lease.Valid(), 0)
}

// fold takes the events that a state does not know yet into it.
func fold(ctx context.Context, lease journal.Lease, s *transcript.State) error {
	for e, err := range lease.Read(ctx, s.Head) {
		if err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
		s.Apply(e)
	}
	return s.Err()
}

// fill makes the conversation whole again: it reads the log once and keeps of it what
// the conversation still has. That may be much when nothing was ever shortened, and is
// what the next request consists of. Reading takes a while, in which the session goes on.
func (r *record) fill(ctx context.Context) error {
	r.filling.Lock()
	defer r.filling.Unlock()
	for {
		var seqs []int64
		var whole bool
		r.read(func(s *transcript.State) { whole, seqs = s.Whole(), slices.Clone(s.Seqs) })
		if whole {
			return nil
		}
		err := r.again(ctx, seqs, func(s, all *transcript.State, has func(seq int64) bool) {
			if !slices.ContainsFunc(s.Seqs, func(seq int64) bool { return !has(seq) }) {
				s.Messages = all.Messages
			} // else it went back meanwhile, to what was not kept
		})
		if err != nil {
			return err
		}
	}
}

// survey calls f with the state and the conversation as a summary needs it: of messages
// that are not at hand, little more than their beginnings and ends.
func (r *record) survey(ctx context.Context, f func(s *transcript.State, messages []agent.Timed)) error {
	r.filling.Lock()
	defer r.filling.Unlock()
	var seqs []int64
	var whole bool
	r.read(func(s *transcript.State) {
		if whole = s.Whole(); whole {
			f(s, s.Timed())
			return
		}
		seqs = slices.Clone(s.Seqs[len(s.Seqs)-len(s.Messages):])
	})
	if whole {
		return nil
	}
	return r.again(ctx, seqs, func(s, all *transcript.State, _ func(int64) bool) { f(s, all.Timed()) })
}

// again folds the log into a second state, in which the messages that are completed by
// the events seqs, and by those that are new, are as they were, and little is left of
// all others. It calls f with both states when they are equally far.
func (r *record) again(ctx context.Context, seqs []int64, f func(s, all *transcript.State, has func(seq int64) bool)) error {
	kept := map[int64]bool{}
	for _, seq := range seqs {
		kept[seq] = true
	}
	var head int64
	r.read(func(s *transcript.State) { head = s.Head })
	has := func(seq int64) bool { return seq > head || kept[seq] }
	all := transcript.New()
	all.Reread(r.events)
	all.Slim(has)
	for done := false; !done; {
		if err := fold(ctx, r.lease, all); err != nil {
			return err
		}
		r.read(func(s *transcript.State) {
			if done = all.Head == s.Head; done {
				f(s, all, has)
			}
		})
	}
	return nil
}

// append stores bodies, folds them and shows them. All or nothing.
func (r *record) append(b journal.Batch, bodies ...agent.Body) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.appendLocked(b, bodies...)
}

func (r *record) appendLocked(b journal.Batch, bodies ...agent.Body) error {
	for _, body := range bodies {
		b.Events = append(b.Events, agent.Event{Body: body})
		if a, ok := body.(agent.ModelAnswered); ok {
			if w := r.crossed(a); w != nil {
				b.Events = append(b.Events, agent.Event{Body: *w})
			}
		}
	}
	if r.parked {
		return errParked
	}
	// An append is never cut short: what is half written is lost.
	events, err := r.lease.Append(context.Background(), b)
	if err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	for _, e := range events {
		r.state.Apply(e)
	}
	if err := r.state.Err(); err != nil {
		return fmt.Errorf("folding the log: %w", err)
	}
	r.feed.stored(r.state.Head)
	if r.state.Head-r.snap >= snapEvents {
		r.snapshotLocked()
	}
	return nil
}

// errParked says that a session goes on when it is opened again, and not before.
var errParked = errors.New("the session is parked")

// park has nothing more come into the log.
func (r *record) park() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parked = true
}

func (r *record) isParked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parked
}

// crossed returns the event for a threshold that an answer takes the
// conversation over, once for each, highest first.
func (r *record) crossed(a agent.ModelAnswered) *agent.ContextThreshold {
	if a.Purpose != "" || r.window == nil {
		return nil
	}
	window := r.window(r.state.Current())
	if window <= 0 {
		return nil
	}
	used := a.Usage.Context()
	ratio := float64(used) / float64(window)
	for _, t := range slices.Backward(thresholds) {
		if ratio >= t && r.state.Warned < t {
			return &agent.ContextThreshold{Used: used, Window: window, Ratio: ratio, Threshold: t}
		}
	}
	return nil
}

// snapshotLocked stores the fold. A snapshot that cannot be written costs time
// at the next start and nothing else: it is not tried again at every event.
func (r *record) snapshotLocked() {
	r.snap = r.state.Head
	data, err := r.state.Encode(keptBytes)
	if err != nil {
		return
	}
	_ = r.lease.Snapshot(context.Background(), r.state.Head, data)
}

// store is append in the form that the loop takes.
func (r *record) store(sync bool, bodies ...agent.Body) error {
	b := journal.Batch{}
	if sync {
		b.Sync = journal.Barrier
	}
	return r.append(b, bodies...)
}

// live shows an event that is not stored.
func (r *record) live(b agent.Body) {
	r.feed.show(agent.Event{Time: r.now(), Body: b})
}

// read calls f with the state; f must not keep it.
func (r *record) read(f func(*transcript.State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.state)
}

// steer moves the input that waits for a step boundary into the conversation,
// and with all that which waits for the end of the turn. It reports whether
// anything was said with it.
func (r *record) steer(all bool) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var bodies []agent.Body
	for _, q := range r.state.Queued {
		if all || !q.Later {
			bodies = append(bodies, agent.InputAdded{Input: q.Input, Text: q.Text, Parts: q.Parts, Origin: q.Origin, Without: q.Without})
		}
	}
	if bodies == nil {
		return false, nil
	}
	said := r.state.Waits(all)
	return said, r.appendLocked(journal.Batch{}, bodies...)
}

func (r *record) follow(ctx context.Context, seq int64) iter.Seq2[agent.Event, error] {
	return r.feed.follow(ctx, seq, r.lease.Read)
}

// putBlob stores data and returns its hash.
func (r *record) putBlob(ctx context.Context, data []byte) (string, error) {
	hash, _, err := r.lease.PutBlob(ctx, bytes.NewReader(data), 0)
	if err != nil {
		return "", fmt.Errorf("storing a part of the request: %w", err)
	}
	return hash, nil
}
