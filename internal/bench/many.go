package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
)

// The sessions that live at once, and what each is told: manyText in pieces of
// manyChunk bytes, one every manyDelay milliseconds, which is twenty seconds.
const (
	manyChunk  = 16
	manyDeltas = 200
	manyDelay  = 100
	senders    = 32 // prompts that are sent at once
)

var manyText = strings.Repeat("sixteen letters ", manyDeltas*manyChunk/16)

// crowd is what was seen of many sessions.
type crowd struct {
	Sessions int     `json:"sessions"`
	IdleMB   float64 `json:"idle_mb"` // heap and stacks of all of them, nothing running
	Live     int64   `json:"live"`    // sessions that streamed at the same time
	Stored   int64   `json:"stored"`  // events that readers got
	Shown    int64   `json:"shown"`   // sessions whose whole answer was shown while it came
}

// manyChild opens sessions in one process, has all of them stream at once, and
// reads each of them.
func manyChild(args []string) (any, error) {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	if err := needFiles(uint64(8 * n)); err != nil {
		return nil, err
	}
	a, err := program(args[0])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	out, err := gather(ctx, a, n)
	return out, closing(a, err)
}

func gather(ctx context.Context, a *app.App, n int) (crowd, error) {
	out := crowd{Sessions: n}
	c := a.Client()
	first, err := c.Open(ctx, agent.Open{}) // what all of them share is made with it
	if err != nil {
		return out, err
	}
	before := held()
	sessions := []*client.Session{first}
	for len(sessions) < n {
		s, err := c.Open(ctx, agent.Open{})
		if err != nil {
			return out, fmt.Errorf("opening session %d: %w", len(sessions)+1, err)
		}
		sessions = append(sessions, s)
	}
	out.IdleMB = float64(held()-before) / 1e6
	w := watch{ctx: ctx}
	var all sync.WaitGroup
	errs := make([]error, n)
	for i, s := range sessions {
		all.Go(func() { errs[i] = w.follow(s) })
	}
	prompts := make(chan *client.Session)
	failed := make([]error, senders)
	for i := range senders {
		all.Go(func() {
			for s := range prompts {
				failed[i] = errors.Join(failed[i], s.Send(ctx, agent.Prompt{Text: "Do the task."}))
			}
		})
	}
	for _, s := range sessions {
		prompts <- s
	}
	close(prompts)
	all.Wait()
	out.Live, out.Stored, out.Shown = w.most.Load(), w.stored.Load(), w.shown.Load()
	return out, errors.Join(errors.Join(failed...), errors.Join(errs...))
}

// held returns the bytes of heap and stacks that are in use.
func held() int64 {
	runtime.GC()
	runtime.GC() // what had finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// A watch reads sessions. It is safe for concurrent use.
type watch struct {
	ctx                       context.Context
	live, most, stored, shown atomic.Int64
}

// follow reads a session up to the end of its turn. That a stored event is
// missing, or the answer is another, is an error.
func (w *watch) follow(s *client.Session) error {
	var seq int64
	var now strings.Builder
	streaming := false
	for e, err := range s.Events(w.ctx, 0) {
		if err != nil {
			return err
		}
		if !e.Live() {
			if e.Seq != seq+1 {
				return fmt.Errorf("session %s: event %d follows event %d", s.Info.ID, e.Seq, seq)
			}
			seq = e.Seq
			w.stored.Add(1)
		}
		switch b := e.Body.(type) {
		case agent.Fragment:
			if !streaming {
				streaming = true
				raise(&w.most, w.live.Add(1))
			}
			now.WriteString(b.Text)
		case agent.ModelAnswered:
			w.live.Add(-1)
			if got := b.Message.Text(); got != manyText {
				return fmt.Errorf("session %s: the answer has %d bytes instead of %d", s.Info.ID, len(got), len(manyText))
			}
			if now.String() == manyText {
				w.shown.Add(1)
			}
		case agent.TurnEnded:
			if b.Reason != agent.EndDone {
				return fmt.Errorf("session %s: the turn ended as %s: %s", s.Info.ID, b.Reason, b.Error)
			}
			return nil
		}
	}
	return fmt.Errorf("session %s: the events end within the turn", s.Info.ID)
}

// raise makes v at least n.
func raise(v *atomic.Int64, n int64) {
	for old := v.Load(); old < n && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}
