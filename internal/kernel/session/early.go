package session

import (
	"errors"
	"sync"

	"dure/agent"
)

// maxEarly bounds what is kept for the log of a session that is not open yet.
const maxEarly = 1000

// early keeps what capabilities have for the log until the session is open.
type early struct {
	mu     sync.Mutex
	over   bool         // the log may be written; guarded by mu
	bodies []agent.Body // guarded by mu
}

// hold keeps bodies, if it is too early for them.
func (e *early) hold(bodies []agent.Body) (held bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.over:
		return false, nil
	case len(e.bodies)+len(bodies) > maxEarly:
		return true, errors.New("the session is not open yet, and there is too much for its log")
	}
	e.bodies = append(e.bodies, bodies...)
	return true, nil
}

// Record puts bodies into the log of the session, or keeps them until it is open.
func (s *Session) Record(bodies ...agent.Body) error {
	if held, err := s.early.hold(bodies); held {
		return err
	}
	return s.rec.store(false, bodies...)
}

// storeEarly writes what was kept, before anything that comes later.
func (s *Session) storeEarly() error {
	s.early.mu.Lock()
	defer s.early.mu.Unlock()
	s.early.over = true
	if len(s.early.bodies) == 0 {
		return nil
	}
	bodies := s.early.bodies
	s.early.bodies = nil
	return s.rec.store(false, bodies...)
}
