package session

import (
	"context"
	"iter"
	"sync"

	"dure/agent"
)

// Bounds of the live events kept for readers.
const (
	maxLive     = 1024    // events
	maxFragment = 4 << 10 // bytes of text that fragments are merged up to
)

// feed hands the events of a session to its readers: stored ones from the log,
// live ones from a bounded ring between them. A slow reader misses live events
// and never a stored one. It is safe for concurrent use.
type feed struct {
	mu      sync.Mutex
	cond    *sync.Cond
	head    int64 // of the log
	closed  bool
	err     error // why it was closed
	readers int

	live  []liveEvent // the newest ones
	first int64       // position of live[0]
	taken int64       // the highest position that a reader has passed
}

// liveEvent is a live event and the log's head when it happened.
type liveEvent struct {
	event agent.Event
	after int64
}

func newFeed(head int64) *feed {
	f := &feed{head: head}
	f.cond = sync.NewCond(&f.mu)
	return f
}

// stored tells that the log has grown.
func (f *feed) stored(head int64) {
	f.mu.Lock()
	f.head = head
	f.mu.Unlock()
	f.cond.Broadcast()
}

// show adds a live event. Pieces of the same text are merged while no reader
// has seen the first of them.
func (f *feed) show(e agent.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers == 0 {
		return
	}
	if n := len(f.live); n > 0 && f.first+int64(n) > f.taken {
		if last := &f.live[n-1]; last.after == f.head {
			if b, ok := merge(last.event.Body, e.Body); ok {
				last.event.Body = b
				f.cond.Broadcast()
				return
			}
		}
	}
	if len(f.live) == maxLive {
		f.live = append(f.live[:0], f.live[maxLive/2:]...)
		f.first += maxLive / 2
	}
	f.live = append(f.live, liveEvent{e, f.head})
	f.cond.Broadcast()
}

// merge returns a followed by b as one event.
func merge(a, b agent.Body) (agent.Body, bool) {
	switch x := a.(type) {
	case agent.Fragment:
		y, ok := b.(agent.Fragment)
		if !ok || x.What == agent.DeltaCall || x.What != y.What || x.Index != y.Index || x.Step != y.Step || len(x.Text) > maxFragment {
			return nil, false
		}
		x.Text += y.Text
		return x, true
	case agent.CallOutput:
		y, ok := b.(agent.CallOutput)
		if !ok || x.ID != y.ID || len(x.Text) > maxFragment {
			return nil, false
		}
		x.Text += y.Text
		return x, true
	}
	return nil, false
}

// close ends the feed. Readers are told err behind the last event, if it is not
// nil.
func (f *feed) close(err error) {
	f.mu.Lock()
	f.closed, f.err = true, err
	f.mu.Unlock()
	f.cond.Broadcast()
}

// follow yields the events after seq and then each new one, until ctx is done
// or the feed is closed. read reads stored events.
func (f *feed) follow(ctx context.Context, seq int64, read func(context.Context, int64) iter.Seq2[agent.Event, error]) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		stop := context.AfterFunc(ctx, f.wake)
		defer stop()
		f.mu.Lock()
		f.readers++
		pos := f.first + int64(len(f.live))
		f.mu.Unlock()
		defer f.leave()
		for {
			batch, head, open := f.wait(ctx, seq, &pos)
			for _, l := range batch {
				if l.after > seq && !f.catchUp(ctx, &seq, l.after, read, yield) {
					return
				}
				if !yield(l.event, nil) {
					return
				}
			}
			if head > seq && !f.catchUp(ctx, &seq, head, read, yield) {
				return
			}
			if !open {
				if err := f.ended(ctx); err != nil {
					yield(agent.Event{}, err)
				}
				return
			}
		}
	}
}

// wake lets every reader look again. It takes the lock, so that a reader cannot
// be between looking at its context and beginning to wait.
func (f *feed) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cond.Broadcast()
}

// ended returns the error that the feed was closed with, unless the reader has
// left.
func (f *feed) ended(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	return f.err
}

func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers--; f.readers == 0 {
		f.first += int64(len(f.live))
		f.live = nil
	}
}

// wait waits for something new after seq and pos. It returns the live events
// since pos, the head, and whether more can come.
func (f *feed) wait(ctx context.Context, seq int64, pos *int64) ([]liveEvent, int64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.head <= seq && *pos >= f.first+int64(len(f.live)) && !f.closed && ctx.Err() == nil {
		f.cond.Wait()
	}
	if ctx.Err() != nil {
		return nil, seq, false
	}
	var batch []liveEvent
	if end := f.first + int64(len(f.live)); *pos < end {
		batch = append(batch, f.live[max(0, *pos-f.first):]...)
		*pos = end
		f.taken = max(f.taken, end)
	}
	return batch, f.head, !f.closed
}

// catchUp yields the stored events after seq up to head.
func (f *feed) catchUp(ctx context.Context, seq *int64, head int64, read func(context.Context, int64) iter.Seq2[agent.Event, error], yield func(agent.Event, error) bool) bool {
	for e, err := range read(ctx, *seq) {
		if err != nil {
			if ctx.Err() == nil {
				yield(e, err)
			}
			return false
		}
		if e.Seq > head {
			break
		}
		if !yield(e, nil) {
			return false
		}
		*seq = e.Seq
	}
	return true
}
