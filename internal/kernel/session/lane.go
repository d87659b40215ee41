package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// The lanes that always exist. A parent in LaneMain cannot block its children:
// they run in LaneSubagent, under keys of their own.
const (
	LaneMain     = "main"
	LaneCron     = "cron"
	LaneSubagent = "subagent"
)

// LaneConfig bounds one lane. The zero value has the defaults.
type LaneConfig struct {
	Turns int // at once, over all keys; 0 = no limit, and 2 in LaneCron
	Queue int // waiting for the lane; default 1,000
}

// The errors of [Lanes.Acquire].
var (
	ErrLaneFull  = errors.New("the lane's queue is full")
	ErrLaneReset = errors.New("the lane was reset")
)

// Lanes keeps turns in order: at most one at a time for a key, in the order in
// which they came, and no more at once than their lane allows. It protects
// against concurrency in this process; between processes the lease does. It is
// safe for concurrent use and starts no goroutines.
type Lanes struct {
	mu     sync.Mutex
	config map[string]LaneConfig
	lanes  map[string]*lane
	closed bool
}

type lane struct {
	LaneConfig
	generation int
	running    map[string]bool // keys
	waiting    []*waiter
}

type waiter struct {
	key   string
	ready chan error // closed, or given the reason for giving up
}

// NewLanes returns lanes. Lanes that config does not name have the defaults.
func NewLanes(config map[string]LaneConfig) *Lanes {
	return &Lanes{config: config, lanes: map[string]*lane{}}
}

func (l *Lanes) lane(name string) *lane {
	ln := l.lanes[name]
	if ln == nil {
		ln = &lane{LaneConfig: l.config[name], running: map[string]bool{}}
		if ln.Queue == 0 {
			ln.Queue = 1000
		}
		if ln.Turns == 0 && name == LaneCron {
			ln.Turns = 2
		}
		l.lanes[name] = ln
	}
	return ln
}

// Acquire waits for its turn and returns the function that ends it, which may
// be called any number of times.
func (l *Lanes) Acquire(ctx context.Context, name, key string) (release func(), err error) {
	l.mu.Lock()
	ln := l.lane(name)
	switch {
	case l.closed:
		l.mu.Unlock()
		return nil, fmt.Errorf("entering lane %s: %w", name, ErrLaneReset)
	case len(ln.waiting) >= ln.Queue:
		l.mu.Unlock()
		return nil, fmt.Errorf("entering lane %s: %w (%d waiting)", name, ErrLaneFull, len(ln.waiting))
	}
	w := &waiter{key: key, ready: make(chan error, 1)}
	ln.waiting = append(ln.waiting, w)
	ln.admit()
	generation := ln.generation
	l.mu.Unlock()

	select {
	case err = <-w.ready:
	case <-ctx.Done():
		err = l.giveUp(ctx, ln, w, generation)
	}
	if err != nil {
		return nil, fmt.Errorf("entering lane %s: %w", name, err)
	}
	return sync.OnceFunc(func() { l.release(ln, key, generation) }), nil
}

// giveUp takes a waiter out of the queue, or lets go of what it has just got.
func (l *Lanes) giveUp(ctx context.Context, ln *lane, w *waiter, generation int) error {
	l.mu.Lock()
	i := slices.Index(ln.waiting, w)
	if i >= 0 {
		ln.waiting = slices.Delete(ln.waiting, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 {
		if err := <-w.ready; err != nil {
			return err
		}
		l.release(ln, w.key, generation)
	}
	return context.Cause(ctx)
}

func (l *Lanes) release(ln *lane, key string, generation int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln.generation != generation {
		return
	}
	delete(ln.running, key)
	ln.admit()
}

// admit lets in whoever may run now, oldest first.
func (ln *lane) admit() {
	for i := 0; i < len(ln.waiting); {
		w := ln.waiting[i]
		if ln.Turns > 0 && len(ln.running) >= ln.Turns {
			return
		}
		if ln.running[w.key] {
			i++
			continue
		}
		ln.running[w.key] = true
		ln.waiting = slices.Delete(ln.waiting, i, i+1)
		w.ready <- nil
	}
}

// Reset turns all waiters of a lane away and forgets who runs in it: their
// release does nothing any more.
func (l *Lanes) Reset(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lane(name).reset()
}

func (ln *lane) reset() {
	ln.generation++
	for _, w := range ln.waiting {
		w.ready <- ErrLaneReset
	}
	ln.waiting = nil
	clear(ln.running)
}

// Close resets all lanes and lets nobody in any more.
func (l *Lanes) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, ln := range l.lanes {
		ln.reset()
	}
}

// Load returns how many turns run in a lane and how many wait for it.
func (l *Lanes) Load(name string) (running, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.lane(name)
	return len(ln.running), len(ln.waiting)
}

// Loads returns how many turns run in all lanes and how many wait.
func (l *Lanes) Loads() (running, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ln := range l.lanes {
		running, waiting = running+len(ln.running), waiting+len(ln.waiting)
	}
	return running, waiting
}
