package session

import (
	"context"
	"iter"
	"testing"
	"time"

	"dure/agent"
)

func nothingStored(context.Context, int64) iter.Seq2[agent.Event, error] {
	return func(func(agent.Event, error) bool) {}
}

// lateContext is cancelled right after somebody has found that it is not.
type lateContext struct {
	context.Context
	cancel func()
}

func (c lateContext) Err() error {
	err := c.Context.Err()
	if err == nil {
		c.cancel()
		<-time.After(20 * time.Millisecond) // whoever waits for the end has been told by now
	}
	return err
}

// A reader that leaves at the very moment in which it begins to wait is not
// forgotten.
func TestReadersCanAlwaysLeave(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, left := newFeed(0), make(chan struct{})
	go func() {
		defer close(left)
		for range f.follow(lateContext{ctx, cancel}, 0, nothingStored) {
			t.Error("an event out of nothing")
		}
	}()
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Fatal("the reader did not leave")
	}
}

func TestFragmentsAreMergedUntilTheyAreSeen(t *testing.T) {
	f := newFeed(0)
	f.show(agent.Event{Body: agent.Fragment{Text: "nobody reads"}})
	f.readers = 1
	pos := f.first
	say := func(what agent.DeltaKind, index int, text string) {
		f.show(agent.Event{Body: agent.Fragment{What: what, Index: index, Text: text}})
	}
	texts := func() (out []string) {
		batch, _, _ := f.wait(t.Context(), 0, &pos)
		for _, l := range batch {
			out = append(out, l.event.Body.(agent.Fragment).Text)
		}
		return out
	}
	say(agent.DeltaText, 0, "a")
	say(agent.DeltaText, 0, "b")
	say(agent.DeltaText, 1, "c")
	say(agent.DeltaThinking, 1, "d")
	if got := texts(); len(got) != 3 || got[0] != "ab" {
		t.Errorf("merged into %q", got)
	}
	say(agent.DeltaThinking, 1, "e")
	if got := texts(); len(got) != 1 || got[0] != "e" {
		t.Errorf("what was seen changed: %q", got)
	}
	for range 3 * maxLive {
		say(agent.DeltaCall, 2, "x")
	}
	if n := len(f.live); n > maxLive {
		t.Errorf("%d live events are kept, the bound is %d", n, maxLive)
	}
}
