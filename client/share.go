package client

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"dure/agent"
)

// Share returns a transport by which several front-ends of one program use the
// same sessions. Opening a session that is open over it already joins it: it
// runs as whoever opened it first has said, and the info is that of the moment.
// Each Close takes away one of those who have opened it, and the last one ends
// the session; one that was not opened over this transport ends at once.
//
// Joining a session whose end is under way waits for it, and opens it anew.
func Share(t Transport) Transport {
	return &share{t: t, held: map[string]*holding{}}
}

// share counts who uses which session.
type share struct {
	t Transport

	mu   sync.Mutex
	held map[string]*holding // guarded by mu
}

// holding is a session with those who use it.
type holding struct {
	users int           // guarded by mu of the share
	turn  chan struct{} // has a value while somebody opens or closes the session
	want  int           // who waits for turn or has it; guarded by mu of the share
}

// change runs f while nobody else opens or closes a session. f is told how many use
// it, and returns how many do then.
func (s *share) change(ctx context.Context, id string, f func(users int) (int, error)) error {
	s.mu.Lock()
	h := s.held[id]
	if h == nil {
		h = &holding{turn: make(chan struct{}, 1)}
		s.held[id] = h
	}
	h.want++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.want--; h.want == 0 && h.users == 0 {
			delete(s.held, id)
		}
	}()
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.turn }()
	s.mu.Lock()
	users := h.users
	s.mu.Unlock()
	users, err := f(users)
	s.mu.Lock()
	h.users = users
	s.mu.Unlock()
	return err
}

// Open opens a session, or joins it.
func (s *share) Open(ctx context.Context, o agent.Open) (info agent.SessionInfo, err error) {
	if o.Session == "" { // a new one: nobody else knows it yet
		if info, err = s.t.Open(ctx, o); err != nil {
			return info, err
		}
		return info, s.change(context.WithoutCancel(ctx), info.ID, func(users int) (int, error) { return users + 1, nil })
	}
	err = s.change(ctx, o.Session, func(users int) (int, error) {
		info, err = s.t.Open(ctx, o)
		if p := agent.ProblemOf(err); users > 0 && p != nil && p.Code == agent.ProblemOwned {
			info, err = s.now(ctx, o.Session)
		}
		if err != nil {
			return users, err
		}
		return users + 1, nil
	})
	return info, err
}

// now returns what is known of a session that is open.
func (s *share) now(ctx context.Context, id string) (agent.SessionInfo, error) {
	a, err := s.t.Query(ctx, agent.FindSession{Name: id})
	if err != nil {
		return agent.SessionInfo{}, err
	}
	info, ok := a.(agent.SessionInfo)
	if !ok || info.ID != id {
		return agent.SessionInfo{}, fmt.Errorf("joining session %s: it is not found", id)
	}
	return info, nil
}

// Close takes one of those away who use a session, and ends it with the last one.
func (s *share) Close(ctx context.Context, id string) error {
	return s.change(ctx, id, func(users int) (int, error) {
		if users > 1 {
			return users - 1, nil
		}
		return 0, s.t.Close(ctx, id)
	})
}

// Send hands a command to a session.
func (s *share) Send(ctx context.Context, id string, c agent.Command) error {
	return s.t.Send(ctx, id, c)
}

// Events yields the events of a session.
func (s *share) Events(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return s.t.Events(ctx, id, after)
}

// Query answers questions.
func (s *share) Query(ctx context.Context, q agent.Query) (any, error) { return s.t.Query(ctx, q) }
