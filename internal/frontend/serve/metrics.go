package serve

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"

	"dure/internal/base/meter"
)

// durations are upper bounds of how long requests take, in seconds. Those that have a turn
// run, and readers of events, take as long as that.
var durations = []float64{0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// figures are what the server counts of itself. What is said is in none of them: a label is
// a method, a route, a status or a reason of the program's own.
type figures struct {
	requests meter.Histogram
	active   meter.Gauge
	refused  meter.Counter
}

func newFigures(r *meter.Registry) figures {
	if r == nil {
		return figures{} // nothing is counted
	}
	return figures{
		requests: r.Histogram("http.server.request.duration", "s", "How long requests took, by route.", durations,
			"http.request.method", "http.route", "http.response.status_code"),
		active:  r.Gauge("http.server.active_requests", "{request}", "Requests that are being answered."),
		refused: r.Counter("dure.serve.refused", "{request}", "Requests that were not let in, by why.", "dure.reason"),
	}
}

// metricRoutes have a route for the figures, if they are kept.
func (s *Server) metricRoutes() []Route {
	if s.cfg.Meter == nil {
		return nil
	}
	s.cfg.Meter.Ask("dure.serve.readers", "{reader}", "Readers of events that are connected.", func() float64 { return float64(s.readers.Load()) })
	s.cfg.Meter.Ask("dure.serve.working", "{request}", "Requests that have a turn run.", func() float64 { return float64(s.works.count()) })
	return []Route{{
		Method: http.MethodGet, Path: "/metrics", Serve: s.metrics, Name: "metrics", OutType: metricsType,
		Summary: "The figures of the program, as Prometheus reads them.",
	}}
}

// metricsType is the type of the text that Prometheus reads.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	if err := s.cfg.Meter.WriteText(&text); err != nil {
		Refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", metricsType)
	_, _ = w.Write(text.Bytes()) // whoever has gone does not read it
}

// tally is what is counted of a request.
type tally struct {
	route  string // "" = there is none
	status int
}

type tallyKey struct{}

// tallyOf returns that of a request.
func tallyOf(ctx context.Context) *tally {
	if t, ok := ctx.Value(tallyKey{}).(*tally); ok {
		return t
	}
	return &tally{}
}

// counted counts what is answered.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &tally{status: http.StatusOK}
		began := time.Now()
		s.figures.active.Add(1)
		defer func() {
			s.figures.active.Add(-1)
			s.figures.requests.Record(time.Since(began).Seconds(), method(r.Method), t.route, strconv.Itoa(t.status))
		}()
		next.ServeHTTP(&counting{w, t}, r.WithContext(context.WithValue(r.Context(), tallyKey{}, t)))
	})
}

// method is a method as it is counted: one that nobody knows is none of many.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "_OTHER"
}

// counting takes the status of an answer down.
type counting struct {
	http.ResponseWriter
	t *tally
}

// Unwrap is for [http.ResponseController].
func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader begins the answer.
func (c *counting) WriteHeader(status int) {
	c.t.status = status
	c.ResponseWriter.WriteHeader(status)
}
