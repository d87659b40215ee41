package serve

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// Who waits for work waits until there is none, however much begins meanwhile, or as long as
// there is time.
func TestWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w works
		w.wait(t.Context())
		w.begin()
		w.begin()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		w.wait(short)
		if time.Since(began) != time.Second {
			t.Errorf("it waited %v", time.Since(began))
		}
		go func() {
			time.Sleep(time.Minute)
			w.end()
			w.end()
		}()
		go w.wait(t.Context())
		began = time.Now()
		w.wait(t.Context())
		if time.Since(began) != time.Minute {
			t.Errorf("it waited %v", time.Since(began))
		}
		w.wait(t.Context())
	})
}

// No work begins once the server is to end.
func TestNoWorkAtTheEnd(t *testing.T) {
	s := &Server{}
	s.draining, s.leave = context.WithCancel(t.Context())
	answer := s.working(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for _, want := range []int{http.StatusNoContent, http.StatusServiceUnavailable} {
		w := httptest.NewRecorder()
		answer(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
		if w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
		s.leave()
	}
}
