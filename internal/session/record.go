package session

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/journal"
	"dure/internal/transcript"
)

// thresholds are the shares of the window that are reported.
var thresholds = []float64{0.8, 0.95}

// snapEvents is how far the log grows between two snapshots.
const snapEvents = 2000

// record is a session's log with everything that follows from it: the fold and
// the readers. Every event of the session goes through append. It is safe for
// concurrent use.
type record struct {
	lease  journal.Lease
	feed   *feed
	now    func() time.Time
	window func(model string) int // tokens; 0 = unknown

	mu    sync.Mutex
	state *transcript.State
	snap  int64 // head of the last snapshot, or of the last attempt at one
}

// openRecord folds the log of a lease.
func openRecord(ctx context.Context, lease journal.Lease, now func() time.Time) (*record, error) {
	r := &record{lease: lease, now: now, state: transcript.New()}
	if seq, data, err := lease.LastSnapshot(ctx); err == nil && seq > 0 {
		if s, err := transcript.Decode(data); err == nil && s.Head == seq {
			r.state, r.snap = s, seq
		}
	}
	for e, err := range lease.Read(ctx, r.state.Head) {
		if err != nil {
			return nil, fmt.Errorf("reading the log: %w", err)
		}
		r.state.Apply(e)
	}
	r.feed = newFeed(r.state.Head)
	return r, nil
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
	// An append is never cut short: what is half written is lost.
	events, err := r.lease.Append(context.Background(), b)
	if err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	for _, e := range events {
		r.state.Apply(e)
	}
	r.feed.stored(r.state.Head)
	if r.state.Head-r.snap >= snapEvents {
		r.snapshotLocked()
	}
	return nil
}

// crossed returns the event for a threshold that an answer takes the
// conversation over, once for each, highest first.
func (r *record) crossed(a agent.ModelAnswered) *agent.ContextThreshold {
	if a.Purpose != "" || r.window == nil {
		return nil
	}
	window := r.window(r.state.Model)
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
	data, err := r.state.Encode()
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
// and with all that which waits for the end of the turn.
func (r *record) steer(all bool) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var bodies []agent.Body
	for _, q := range r.state.Queued {
		if all || !q.Later {
			bodies = append(bodies, agent.InputAdded{Input: q.Input, Text: q.Text, Parts: q.Parts})
		}
	}
	if bodies == nil {
		return false, nil
	}
	return true, r.appendLocked(journal.Batch{}, bodies...)
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
