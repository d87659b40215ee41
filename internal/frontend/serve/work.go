package serve

import (
	"context"
	"net/http"
	"sync"

	"dure/internal/frontend/auth"
)

// works are requests that have a turn run: the end of the server waits for them. It is safe
// for concurrent use.
type works struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when there are none any more; nil = nobody waits
}

func (w *works) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
}

func (w *works) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.n == 0 && w.none != nil {
		close(w.none)
		w.none = nil
	}
}

// count is how many there are.
func (w *works) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// wait returns when there are none, or when ctx is done.
func (w *works) wait(ctx context.Context) {
	w.mu.Lock()
	none := make(chan struct{})
	switch {
	case w.n == 0:
		close(none)
	case w.none != nil:
		none = w.none
	default:
		w.none = none
	}
	w.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}

// working has a route wait for its turn to end, and begin none once the server is to end.
func (s *Server) working(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.works.begin()
		defer s.works.end()
		if s.draining.Err() != nil {
			Refuse(w, errEnding())
			return
		}
		next(w, r.WithContext(context.WithValue(r.Context(), endingKey{}, s.draining.Done())))
	}
}

type endingKey struct{}

// Ending returns what is closed when the server of a request is to end, which waits for the
// routes with Work; nil = the request is of no such route.
func Ending(ctx context.Context) <-chan struct{} {
	ends, _ := ctx.Value(endingKey{}).(<-chan struct{})
	return ends
}

// Full answers that too many are at it at once.
func Full(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	write(w, Problem{Status: http.StatusServiceUnavailable, Code: auth.TooMany, Detail: "too many at once", Fix: cures[auth.TooMany]})
}
