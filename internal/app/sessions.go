package app

import (
	"cmp"
	"context"
	"sync"

	"dure/agent"
	"dure/internal/kernel/session"
	"dure/internal/state/journal"
)

// A sessionStore has the sessions of the program. It is opened when something first needs it.
type sessionStore struct {
	open func() (*session.Registry, error) // once

	mu     sync.Mutex
	store  *journal.Local // nil until it is opened
	reg    *session.Registry
	queues *session.Lanes
}

// registry returns the sessions, or nil if the store has not been opened.
func (s *sessionStore) registry() *session.Registry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reg
}

// find returns a session's row in the list, by its ID or a part of it.
func (s *sessionStore) find(ctx context.Context, name string) (row agent.SessionInfo, err error) {
	found, err := s.reg.Query(ctx, agent.FindSession{Name: name})
	if err == nil {
		row, _ = found.(agent.SessionInfo)
	}
	return row, err
}

func (s *sessionStore) list(ctx context.Context, q agent.ListSessions) (list agent.SessionList, err error) {
	found, err := s.reg.Query(ctx, q)
	if err == nil {
		list, _ = found.(agent.SessionList)
	}
	return list, err
}

// row returns the session of an ID as the list has it.
func (s *sessionStore) row(ctx context.Context, id string) (row agent.SessionInfo, ok bool, err error) {
	for m, err := range s.store.List(ctx, journal.Query{Prefix: id}) {
		if err != nil {
			return row, ok, err
		}
		if m.ID == id {
			row, ok = m.SessionInfo, true
		}
	}
	return row, ok, nil
}

// folder returns the folder of a session that is open, or else a given one.
func (s *sessionStore) folder(session, dir string) string {
	if reg := s.registry(); reg != nil && session != "" {
		return cmp.Or(reg.Workdir(session), dir)
	}
	return dir
}
