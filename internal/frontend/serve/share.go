package serve

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"dure/internal/frontend/auth"
)

// kind is what users have a share of.
type kind int

// The kinds of what there is room for.
const (
	ofRequests kind = iota // that are being answered
	ofReaders              // of events
	ofTurns                // that a request waits for
	ofOpenings             // of sessions, that nobody has closed
	kinds
)

// most is the share of a user in each kind, so that nobody leaves nothing to others, and what it
// is called. Whoever runs the server, and has its token, has no share: only all there is.
var most = [kinds]struct {
	n    int
	what string
	fix  string
}{
	ofRequests: {16, "requests", "send them one after the other"},
	ofReaders:  {256, "readers of events", "end some of them"},
	ofTurns:    {8, "turns of the chat API", "wait for one to end"},
	ofOpenings: {64, "openings of sessions", "close some of them: POST /v1/sessions/{id}/close"},
}

// maxOpenings is how many openings of sessions all users together may have.
const maxOpenings = 1024

// shares are what users have taken of what there is. It is safe for concurrent use.
type shares struct {
	mu       sync.Mutex
	of       map[string]*[kinds]int // by the names of users; without those who have nothing
	openings int                    // of all users
}

// take takes one of a kind for a user. give gives it back, and does nothing another time.
func (s *shares) take(name string, k kind) (give func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.of[name]
	if has == nil {
		has = new([kinds]int)
	}
	switch {
	case has[k] >= most[k].n:
		return nil, noRoom("a user has", most[k].n, k)
	case k == ofOpenings && s.openings >= maxOpenings:
		return nil, noRoom("all users have", maxOpenings, k)
	}
	if s.of == nil {
		s.of = map[string]*[kinds]int{}
	}
	s.of[name] = has
	has[k]++
	if k == ofOpenings {
		s.openings++
	}
	return sync.OnceFunc(func() { s.give(name, k) }), nil
}

func noRoom(who string, n int, k kind) error {
	return &refused{
		Status: http.StatusServiceUnavailable, Code: auth.TooMany, Detail: fmt.Sprintf("%s at most %d %s at once", who, n, most[k].what),
		Fix: most[k].fix, Args: map[string]string{"limit": strconv.Itoa(n)},
	}
}

func (s *shares) give(name string, k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.of[name]
	has[k]--
	if k == ofOpenings {
		s.openings--
	}
	if *has == [kinds]int{} {
		delete(s.of, name)
	}
}

// shared has those through who have room for one more of a kind. They have it from before
// their body is read, which may take them long.
func (s *Server) shared(k kind, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		give, err := s.shares.take(caller(r.Context()).Name, k)
		if err != nil {
			s.figures.refused.Add(1, auth.TooMany)
			Refuse(w, err)
			return
		}
		defer give()
		next.ServeHTTP(w, r)
	})
}
