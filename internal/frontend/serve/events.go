package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/frontend/auth"
)

// catchUp is how many stored events are sent at once to who is behind.
const catchUp = 64

func (s *Server) eventRoutes() []Route {
	return []Route{{
		Method: http.MethodGet, Path: "/v1/sessions/{id}/events", Serve: s.events, Stream: true, Name: "events", OutType: "text/event-stream",
		Summary: "The stored events of a session after one, then stored and live ones as they happen.",
		Query: []Parameter{
			{Name: "after", Type: reflect.Int64, Summary: "sequence number behind which to begin; 0 = all"},
			{Name: "follow", Type: reflect.Bool, Summary: "false = the stream ends with what is stored now"},
		},
		Header: []Parameter{{Name: "Last-Event-ID", Type: reflect.Int64, Summary: "in the place of after, when a reader comes back"}},
	}}
}

// events sends the events of a session. A reader that takes nothing for a time is gone; the
// log has what it has not seen.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	last, back := r.Header.Get("Last-Event-ID"), r.Header.Get("Last-Event-ID") != ""
	after, err := number("after", r.URL.Query().Get("after"))
	if back {
		after, err = number("Last-Event-ID", last)
	}
	follow, wrong := flag(r, "follow", true)
	if err = errors.Join(err, wrong); err != nil {
		Refuse(w, err)
		return
	}
	info, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		Refuse(w, err)
		return
	}
	if (back || after > 0) && after >= info.Head && info.Status != "running" {
		w.WriteHeader(http.StatusNoContent) // browsers come back until they read this
		return
	}
	defer s.readers.Add(-1)
	if s.readers.Add(1) > maxReaders {
		write(w, Problem{Status: http.StatusServiceUnavailable, Code: "too-many", Detail: "too many readers at once", Fix: "wait as long as Retry-After says"})
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	to := s.reader(ctx, w, cancel)
	defer to.close()
	stop := context.AfterFunc(s.draining, func() { to.say("drain", Draining{Seconds: s.cfg.Drain.Seconds()}) })
	defer stop()
	sent, why := s.copy(ctx, to, info, after, follow)
	switch {
	case s.life.Err() != nil:
		s.rest(ctx, to, info.ID, sent)
		fallthrough
	case s.draining.Err() != nil && why == nil && ctx.Err() == nil:
		to.say("bye", Ended{Reason: "the server ends"})
	case why != nil && ctx.Err() == nil:
		to.say("error", full(problemOf(why)))
	case ctx.Err() == nil:
		to.say("end", Ended{Reason: "there is no more"})
	}
}

// rest sends what is stored behind the last event that was sent, when the server ends.
func (s *Server) rest(ctx context.Context, to *reader, session string, last int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime/2)
	defer cancel()
	info, err := s.find(ctx, session)
	if err == nil {
		_, err = s.copy(ctx, to, info, last, false)
	}
	if err != nil {
		s.cfg.Logger.Debug("a reader has not seen the end", "session", session, "error", err)
	}
}

// copy sends events until there are no more, and returns the number of the last one.
func (s *Server) copy(ctx context.Context, to *reader, info agent.SessionInfo, after int64, follow bool) (last int64, err error) {
	last = after
	err = to.put([]byte("retry: "+strconv.FormatInt(readerRetry.Milliseconds(), 10)+"\n\n"), true)
	if err != nil || !follow && after >= info.Head {
		return last, err
	}
	n := 0
	for e, err := range s.cfg.Client.Attach(info.ID).Events(ctx, after) {
		if err != nil {
			return last, err
		}
		if e.Live() && !follow {
			continue
		}
		n++
		if err := to.event(e, e.Live() || e.Seq >= info.Head || n%catchUp == 0); err != nil || !follow && e.Seq >= info.Head {
			return last, err
		}
		if !e.Live() {
			last = e.Seq
		}
	}
	return last, nil
}

// Draining is said to readers when the server is about to end.
type Draining struct {
	Seconds float64 `json:"seconds"` // that turns have to come to their end
}

// Ended is why no more events come.
type Ended struct {
	Reason string `json:"reason"`
}

// reader is who reads events. Nothing is kept for it but what the connection does. It is
// safe for concurrent use.
type reader struct {
	w       http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	gone    context.CancelFunc

	mu   sync.Mutex
	err  error       // why nothing is written any more; guarded by mu
	beat *time.Timer // guarded by mu
	buf  []byte      // guarded by mu
}

var errGone = errors.New("the reader has gone")

// reader begins an answer of events, which ends when whoever reads them has no access any more.
func (s *Server) reader(ctx context.Context, w http.ResponseWriter, gone context.CancelFunc) *reader {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	to := &reader{w: w, control: http.NewResponseController(w), stall: s.cfg.stall, gone: gone}
	to.mu.Lock()
	defer to.mu.Unlock()
	to.beat = time.AfterFunc(s.cfg.beat, func() {
		if !auth.Still(ctx) {
			to.expel()
			return
		}
		if to.put([]byte(":\n\n"), true) == nil {
			to.mu.Lock()
			defer to.mu.Unlock()
			if to.err == nil {
				to.beat.Reset(s.cfg.beat)
			}
		}
	})
	return to
}

// put writes to the reader. Whoever takes nothing for too long has gone.
func (to *reader) put(data []byte, flush bool) error {
	to.mu.Lock()
	defer to.mu.Unlock()
	return to.putLocked(data, flush)
}

func (to *reader) putLocked(data []byte, flush bool) error {
	if to.err != nil {
		return to.err
	}
	err := to.control.SetWriteDeadline(time.Now().Add(to.stall))
	if err == nil {
		_, err = to.w.Write(data)
	}
	if err == nil && flush {
		err = to.control.Flush()
	}
	if err != nil {
		to.err = err
		to.gone()
	}
	return err
}

// event writes an event: a stored one with its number as ID.
func (to *reader) event(e agent.Event, flush bool) error {
	data, err := json.Marshal(e) // one line, whatever is in it
	if err != nil {
		return err
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	b := to.buf[:0]
	if !e.Live() {
		b = append(b, "id: "...)
		b = strconv.AppendInt(b, e.Seq, 10)
		b = append(b, '\n')
	}
	b = append(b, "data: "...)
	b = append(b, data...)
	b = append(b, "\n\n"...)
	if to.buf = b; cap(b) > maxKept {
		to.buf = nil
	}
	return to.putLocked(b, flush)
}

// maxKept is how large a buffer of a reader is that is used again, in bytes.
const maxKept = 4 << 10

// say tells the reader something about the stream itself.
func (to *reader) say(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		return // what the server says always encodes
	}
	_ = to.put([]byte("event: "+name+"\ndata: "+string(data)+"\n\n"), true) // a reader that has gone is not told
}

// expel has nothing more be written, and the answer end.
func (to *reader) expel() {
	to.mu.Lock()
	defer to.mu.Unlock()
	to.err = errGone
	to.gone()
}

// close ends the answer.
func (to *reader) close() {
	to.mu.Lock()
	defer to.mu.Unlock()
	to.beat.Stop()
	to.err = errGone
}
