package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dure/agent"
)

// patience is longer than anything takes here on a machine that does much else.
const patience = time.Minute

// until waits until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("it does not come to this: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// goroutines is how many there may be, with a few of the server that may still have to begin.
func goroutines() int { return runtime.NumGoroutine() + 8 }

// heap is what the test has in memory, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// many returns a client that keeps so many connections.
func (g *rig) many(n int) *http.Client {
	tr := &http.Transport{MaxIdleConnsPerHost: n}
	g.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 2 * patience}
}

// Ten thousand requests of all kinds, one after the other on eight connections, are answered,
// and leave nothing behind.
func TestManyRequests(t *testing.T) {
	g := start(t, nil)
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	asks := g.many(8)
	before, memory := goroutines(), heap()
	kinds := []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/v1/about", "", 200},
		{"GET", "/healthz", "", 200},
		{"GET", "/v1/sessions/s", "", 200},
		{"GET", "/v1/sessions", "", 200},
		{"POST", "/v1/queries/system", "{}", 200},
		{"POST", "/v1/queries/session", "{", 400},
		{"POST", "/v1/sessions/none/commands/interrupt", "{}", 404},
		{"GET", "/v1/sessions/s/events?follow=false", "", 200},
		{"POST", "/v1/sessions/s/close", `{"user":"nobody"}`, 404},
		{"PATCH", "/v1/about", "", 405},
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		wg.Go(func() {
			for {
				n := next.Add(1)
				if n > 10_000 {
					return
				}
				k := kinds[int(n)%len(kinds)]
				r := g.request(k.method, k.path, k.body)
				res, err := asks.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != k.want {
					t.Errorf("%s %s: %d %v", k.method, k.path, res.StatusCode, err)
				}
			}
		})
	}
	wg.Wait()
	asks.CloseIdleConnections()
	until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	if more := heap() - memory; more > 32<<20 {
		t.Errorf("%d bytes are left in memory", more)
	}
}

// Of a thousand requests at once so many are served as there is room for; the others are told
// at once to come again, and do.
func TestAtOnce(t *testing.T) {
	const all = 1000
	inside, goOn := make(chan struct{}, all), make(chan struct{})
	g := start(t, func(c *Config) {
		c.Routes = []Route{{Method: "GET", Path: "/v1/wait", Name: "wait", Summary: "Waits.", Serve: func(w http.ResponseWriter, _ *http.Request) {
			inside <- struct{}{}
			<-goOn
			w.WriteHeader(http.StatusNoContent)
		}}}
	})
	asks := g.many(all)
	before := goroutines()
	var wg sync.WaitGroup
	var served, refused, other atomic.Int64
	for range all {
		wg.Go(func() {
			res, err := asks.Do(g.request("GET", "/v1/wait", ""))
			if err != nil {
				t.Error(err)
				other.Add(1)
				return
			}
			defer res.Body.Close()
			data, _ := io.ReadAll(res.Body)
			switch {
			case res.StatusCode == http.StatusNoContent:
				served.Add(1)
			case res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "" && strings.Contains(string(data), `"code":"too-many"`):
				refused.Add(1)
			default:
				other.Add(1)
				t.Errorf("%d %s", res.StatusCode, data)
			}
		})
	}
	until(t, "all but those that are served are refused", func() bool { return refused.Load()+other.Load() >= all-maxRequests })
	if status, _ := g.do(g.request("GET", "/healthz", "")); status != 200 {
		t.Errorf("with all places taken, health is answered %d", status)
	}
	close(goOn)
	wg.Wait()
	if served.Load() != maxRequests || len(inside) != maxRequests {
		t.Errorf("%d are served, of %d that came in", served.Load(), len(inside))
	}
	if status, data := g.do(g.request("GET", "/v1/wait", "")); status != http.StatusNoContent {
		t.Errorf("afterwards: %d %s", status, data)
	}
	asks.CloseIdleConnections()
	g.http.CloseIdleConnections()
	until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// A reader that takes nothing any more is left alone, holds nobody else up and costs no
// memory; what it has not seen it gets when it comes back.
func TestStoppedReader(t *testing.T) {
	g := start(t, func(c *Config) { c.stall = 300 * time.Millisecond })
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	stopped := g.raw("GET /v1/sessions/s/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + secret + "\r\n\r\n")
	until(t, "the reader is there", func() bool { return g.server.readers.Load() == 1 })
	memory := heap()
	const events, size = 600, 64 << 10
	large := strings.Repeat("x", size) // all of them have the same one
	for i := range events {
		g.logs.store("s", agent.Note{Code: fmt.Sprint(i), Text: large})
	}
	until(t, "the reader is given up", func() bool { return g.server.readers.Load() == 0 })
	if more := heap() - memory; more > 16<<20 {
		t.Errorf("a reader that stopped costs %d bytes", more)
	}
	stopped.Close()
	last, came, back := int64(0), 0, 0
	for ; last < events+1; back++ {
		if back > 10*events {
			t.Fatalf("it came back %d times, and is at %d", back, last)
		}
		r := g.request("GET", "/v1/sessions/s/events?follow=false", "")
		r.Header.Set("Last-Event-ID", fmt.Sprint(last))
		last, came = g.some(r, last, came, 50)
	}
	if came != events+1 || back < 2 {
		t.Errorf("%d events came to who came back %d times", came, back)
	}
}

// some reads at most so many events and breaks the connection; it returns the last one.
func (g *rig) some(r *http.Request, last int64, came, most int) (int64, int) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	res, err := g.http.Do(r.WithContext(ctx))
	if err != nil {
		g.t.Fatal(err)
	}
	s := newStream(res, cancel)
	defer s.close()
	for range most {
		m, ok := s.next()
		if !ok || m.event != "" {
			break // it is at the end, or the machine was slower than the server waits
		}
		if m.id != last+1 {
			g.t.Fatalf("event %d came behind %d", m.id, last)
		}
		last, came = m.id, came+1
	}
	return last, came
}

// Readers that are killed, in whatever way, are forgotten.
func TestKilledReaders(t *testing.T) {
	g := start(t, nil)
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	before := goroutines()
	var conns []net.Conn
	for range 50 {
		conns = append(conns, g.raw("GET /v1/sessions/s/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "+secret+"\r\n\r\n"))
	}
	until(t, "they are there", func() bool { return g.server.readers.Load() == 50 })
	for i, c := range conns {
		if i%2 == 0 {
			if err := c.(*net.TCPConn).SetLinger(0); err != nil { // as when a process is killed
				t.Fatal(err)
			}
		}
		g.logs.store("s", note(i))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	until(t, "they are forgotten", func() bool { return g.server.readers.Load() == 0 })
	g.http.CloseIdleConnections()
	until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// Where a reader says it is, in whatever order and however often, is where it goes on.
func TestReadersGoBackAndForth(t *testing.T) {
	g := start(t, nil)
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	for i := range 10 {
		g.logs.store("s", note(i))
	}
	for _, after := range []int64{5, 5, 2, 10, 0, 11, 3} {
		s := g.read("/v1/sessions/s/events?follow=false&after=1", "Last-Event-ID", fmt.Sprint(after))
		for want := after + 1; want <= 11; want++ {
			if e := s.next1(t); e.Seq != want {
				t.Errorf("after %d: %d, want %d", after, e.Seq, want)
			}
		}
		if m, ok := s.next(); !ok || m.event != "end" {
			t.Errorf("after %d: %+v", after, m)
		}
	}
	s := g.read("/v1/sessions/s/events?follow=false", "Last-Event-ID", fmt.Sprint(int64(1)<<62))
	if m, ok := s.next(); !ok || m.event != "end" {
		t.Errorf("behind all there is: %+v", m)
	}
}

// Before its end the server refuses what is new, tells readers, and has turns that run come
// to their end.
func TestDrains(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *Config) { c.Drain = patience })
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	g.logs.store("s", agent.TurnStarted{Turn: "t1"})
	s := g.read("/v1/sessions/s/events?after=2")
	ended := make(chan error, 1)
	go func() { ended <- g.stop() }()
	until(t, "it is not ready any more", func() bool {
		status, _ := g.do(g.request("GET", "/readyz", ""))
		return status == http.StatusServiceUnavailable
	})
	var d Draining
	if m, ok := s.next(); !ok || m.event != "drain" || json.Unmarshal([]byte(m.data), &d) != nil || d.Seconds != patience.Seconds() {
		t.Errorf("the reader is told %+v", m)
	}
	for _, tt := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/v1/sessions", `{}`, 503},
		{"POST", "/v1/sessions", `{"session":"s"}`, 503},
		{"POST", "/v1/sessions/s/fork", `{}`, 503},
		{"POST", "/v1/sessions/s/commands/prompt", `{"text":"x"}`, 503},
		{"POST", "/v1/sessions/s/commands/continue", `{}`, 503},
		{"POST", "/v1/sessions/s/commands/compact", `{}`, 503},
		{"GET", "/healthz", "", 200},
		{"GET", "/v1/sessions/s", "", 200},
		{"POST", "/v1/sessions/s/commands/interrupt", `{}`, 200},
	} {
		r := g.request(tt.method, tt.path, tt.body)
		if status, data := g.do(r); status != tt.want || status == 503 && !strings.Contains(string(data), `"code":"draining"`) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, data)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("it has not waited for the turn: %v", err)
	default:
	}
	g.logs.store("s", agent.TurnEnded{Turn: "t1", Reason: agent.EndDone})
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if e := s.next1(t); e.Kind() != "turn.ended" {
		t.Errorf("the last event: %+v", e)
	}
	if m, ok := s.next(); !ok || m.event != "bye" {
		t.Errorf("at the end: %+v %v", m, ok)
	}
	if g.logs.of["s"].open {
		t.Error("the session is open")
	}
}

// A turn that does not come to its end is not waited for longer than was said.
func TestDrainsNoLonger(t *testing.T) {
	g := start(t, func(c *Config) { c.Drain = 10 * time.Millisecond })
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	g.logs.store("s", agent.TurnStarted{Turn: "t1"})
	if err := g.stop(); err != nil || g.logs.of["s"].open {
		t.Errorf("%v, open: %v", err, g.logs.of["s"].open)
	}
}
