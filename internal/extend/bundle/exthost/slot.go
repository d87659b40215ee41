package exthost

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// How often a worker may end in a row before it is started with pauses, and how long
// those are: the first, then twice as long each time.
const (
	freeStarts = 5
	firstPause = time.Second
	lastPause  = 5 * time.Minute
)

// A slot is the place of a worker: it has one, or starts the next one.
type slot struct {
	host  *Host
	start func(context.Context) (*worker, error)
	turn  chan struct{} // held by who looks at the rest

	now   atomic.Pointer[worker] // the same as w, for whoever does not wait
	w     *worker
	fails int       // in a row
	since time.Time // of the last one
}

func newSlot(h *Host, start func(context.Context) (*worker, error)) *slot {
	return &slot{host: h, start: start, turn: make(chan struct{}, 1)}
}

// hold takes the turn, unless ctx is done first.
func (s *slot) hold(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.host.life.Done():
		return ErrClosed
	}
}

// paused says that a worker is not started for now.
type paused struct {
	times int
	wait  time.Duration
}

func (p paused) Error() string {
	return fmt.Sprintf("the program that the code runs in has ended %d times in a row, and is started again in %v", p.times, p.wait.Round(time.Second))
}

// take returns a worker that lives, counted in. Whoever has it says with leave how it
// went.
func (s *slot) take(ctx context.Context) (*worker, error) {
	if err := s.hold(ctx); err != nil {
		return nil, err
	}
	defer func() { <-s.turn }()
	if s.w != nil {
		s.w.known(ctx)
		if s.w.dead() {
			s.failed()
			s.w = nil
		}
	}
	if s.w != nil && s.w.use() {
		return s.w, nil
	}
	if wait := s.pause(); wait > 0 {
		return nil, paused{s.fails, wait}
	}
	w, err := s.start(ctx)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, ErrClosed) {
			s.failed()
		}
		return nil, err
	}
	s.w = w
	s.now.Store(w)
	w.use()
	return w, nil
}

func (s *slot) failed() {
	s.fails++
	s.since = s.host.c.Now()
}

// pause is how long nothing is started.
func (s *slot) pause() time.Duration {
	if s.fails < freeStarts {
		return 0
	}
	wait := lastPause
	if n := s.fails - freeStarts; n < 9 {
		wait = min(wait, firstPause<<n)
	}
	return wait - s.host.c.Now().Sub(s.since)
}

// worked forgets how often workers had ended.
func (s *slot) worked() {
	select {
	case s.turn <- struct{}{}:
		s.fails = 0
		<-s.turn
	default: // somebody starts the next one, and looks at it then
	}
}

// renew has the next call start another worker than w, which goes on with what it has.
func (s *slot) renew(ctx context.Context, w *worker) error {
	if err := s.hold(ctx); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	if s.w == w {
		s.w = nil
	}
	w.retire()
	return nil
}
