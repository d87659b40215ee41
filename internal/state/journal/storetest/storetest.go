// Package storetest is what every [journal.Store] has to pass. It owns no store:
// a store's own tests call [Run] with a way to open one.
package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/state/journal"
)

// Harness is a store under test.
type Harness struct {
	Store journal.Store

	// Reopen ends the store with all its leases and opens it again on the same
	// data, as the next process would.
	Reopen func() journal.Store

	// Lines returns the stored bytes of a log; Load puts a log where the store
	// finds it. They are nil in a store without files.
	Lines func(id string) []byte
	Load  func(id string, lines []byte)
}

// Run runs the suite. open returns a new, empty store.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"sessions are made once", created},
		{"append completes events", appended},
		{"append is all or nothing", atomic},
		{"appends of many goroutines", concurrent},
		{"long and unknown bodies survive", bodies},
		{"one owner", owned},
		{"epochs rise", epochs},
		{"inbox", inbox},
		{"a message is taken once", taken},
		{"posts arrive once", posts},
		{"fork", fork},
		{"fork within an append", forkWithin},
		{"park, post, claim", claim},
		{"wake", wake},
		{"lanes and labels", lanes},
		{"list", list},
		{"blobs", blobs},
		{"snapshots", snapshots},
		{"seals", seals},
		{"export is import", export},
		{"closed", closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			s := &suite{T: t, h: h, store: h.Store, ctx: t.Context()}
			c.test(s)
			if err := s.store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// wholeRaw compares raw values whole: byte by byte it would take most of the time.
var wholeRaw = cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) })

// suite has short words for what the tests do. Their failure ends the test.
type suite struct {
	*testing.T
	h     Harness
	store journal.Store
	ctx   context.Context
}

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("got error %v, want %v", err, want)
	}
}

func (s *suite) reopen() {
	s.Helper()
	s.store = s.h.Reopen()
}

// create makes a session.
func (s *suite) create(id string) {
	s.Helper()
	var m journal.Meta
	m.ID = id
	s.ok(s.store.Create(s.ctx, m))
}

func (s *suite) acquire(id string) journal.Lease {
	s.Helper()
	l, err := s.store.Acquire(s.ctx, id, journal.Owner{ID: "test"})
	s.ok(err)
	return l
}

// session makes a session and opens it.
func (s *suite) session(id string) journal.Lease {
	s.Helper()
	s.create(id)
	return s.acquire(id)
}

func (s *suite) release(l journal.Lease, next journal.Next) {
	s.Helper()
	s.ok(l.Release(s.ctx, next, journal.Meta{}))
}

// add appends notes in one batch.
func (s *suite) add(l journal.Lease, texts ...string) []agent.Event {
	s.Helper()
	return s.batch(l, journal.Batch{Events: notes(texts...), Sync: journal.Barrier})
}

func (s *suite) batch(l journal.Lease, b journal.Batch) []agent.Event {
	s.Helper()
	events, err := l.Append(s.ctx, b)
	s.ok(err)
	return events
}

func notes(texts ...string) []agent.Event {
	events := make([]agent.Event, len(texts))
	for i, text := range texts {
		events[i].Body = agent.Note{Text: text}
	}
	return events
}

// log reads a session as its store has it.
func (s *suite) log(id string, after int64) []agent.Event {
	s.Helper()
	var events []agent.Event
	for e, err := range s.store.Read(s.ctx, id, after) {
		s.ok(err)
		events = append(events, e)
	}
	return events
}

func (s *suite) owned(l journal.Lease, after int64) []agent.Event {
	s.Helper()
	var events []agent.Event
	for e, err := range l.Read(s.ctx, after) {
		s.ok(err)
		events = append(events, e)
	}
	return events
}

// words are the texts of notes, and the kinds of other events.
func words(events []agent.Event) []string {
	words := []string{}
	for _, e := range events {
		if n, ok := e.Body.(agent.Note); ok {
			words = append(words, n.Text)
		} else {
			words = append(words, e.Kind())
		}
	}
	return words
}

func (s *suite) ids(l journal.Lease) []string {
	s.Helper()
	msgs, err := l.Inbox(s.ctx)
	s.ok(err)
	ids := []string{}
	for _, m := range msgs {
		ids = append(ids, m.ID)
	}
	return ids
}

// soon is a context for what must not wait.
func (s *suite) soon(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	s.Cleanup(cancel)
	return ctx
}
