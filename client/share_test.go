package client

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"dure/agent"
)

// house is a transport that holds each session once.
type house struct {
	mu   sync.Mutex
	open map[string]int // how often each was opened
	ends int
	live map[string]bool
	stop chan struct{} // if not nil, Close waits for it
}

func (h *house) Open(_ context.Context, o agent.Open) (agent.SessionInfo, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := o.Session + o.New
	if h.live[id] {
		return agent.SessionInfo{}, &agent.Problem{Code: agent.ProblemOwned, Message: "owned"}
	}
	if id == "broken" {
		return agent.SessionInfo{}, errors.New("it does not open")
	}
	h.live[id] = true
	h.open[id]++
	return agent.SessionInfo{ID: id, Head: 1}, nil
}

func (h *house) Close(_ context.Context, id string) error {
	if h.stop != nil {
		<-h.stop
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live[id] = false
	h.ends++
	return nil
}

func (h *house) Query(_ context.Context, q agent.Query) (any, error) {
	return agent.SessionInfo{ID: q.(agent.FindSession).Name, Head: 7}, nil
}

func (*house) Send(context.Context, string, agent.Command) error { return nil }

func (*house) Events(context.Context, string, int64) iter.Seq2[agent.Event, error] {
	return func(func(agent.Event, error) bool) {}
}

func TestShare(t *testing.T) {
	ctx := t.Context()
	h := &house{open: map[string]int{}, live: map[string]bool{}}
	shared := Share(h)
	c := New(shared)
	first, err := c.Open(ctx, agent.Open{New: "s"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Open(ctx, agent.Open{Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if second.Info.Head != 7 || h.open["s"] != 1 {
		t.Errorf("joined with %+v, opened %d times", second.Info, h.open["s"])
	}
	if err := first.Close(ctx); err != nil || !h.live["s"] {
		t.Errorf("the first to leave: %v, open %v", err, h.live["s"])
	}
	if err := second.Close(ctx); err != nil || h.live["s"] {
		t.Errorf("the last to leave: %v, open %v", err, h.live["s"])
	}
	if third, err := c.Open(ctx, agent.Open{Session: "s"}); err != nil || third.Info.Head != 1 || h.open["s"] != 2 {
		t.Errorf("opened anew: %+v, %v", third, err)
	}
	if _, err := c.Open(ctx, agent.Open{Session: "broken"}); err == nil {
		t.Error("what does not open was joined")
	}
	if err := c.Attach("broken").Close(ctx); err != nil || h.ends != 2 {
		t.Errorf("one that was not opened here: %v, %d ends", err, h.ends)
	}
	if err := c.Attach("s").Close(ctx); err != nil {
		t.Error(err)
	}
	if left := len(shared.(*share).held); left != 0 {
		t.Errorf("%d sessions are remembered that nobody uses", left)
	}

	// Another process has it: that is not joined.
	h.live["elsewhere"] = true
	if _, err := c.Open(ctx, agent.Open{Session: "elsewhere"}); agent.ProblemOf(err) == nil {
		t.Errorf("joined what others own: %v", err)
	}
}

// Who joins while the last one leaves waits, and has the session anew.
func TestShareWhileItEnds(t *testing.T) {
	ctx := t.Context()
	h := &house{open: map[string]int{}, live: map[string]bool{}, stop: make(chan struct{})}
	c := New(Share(h))
	s, err := c.Open(ctx, agent.Open{New: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	gone, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("gone"))
	for range 20 {
		wg.Go(func() {
			s, err := c.Open(ctx, agent.Open{Session: "s"})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() { _ = c.Attach("t").Close(gone) }) // does not disturb, whichever way it ends
	}
	close(h.stop)
	wg.Wait()
	if h.live["s"] {
		t.Error("it is open, and nobody uses it")
	}
}
