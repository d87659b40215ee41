package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/internal/extend/mcp/servers"
)

// A server that ends again and again is started after growing pauses, and then not any
// more; after a steady time they are counted anew.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var mu sync.Mutex
		life := time.Nanosecond // of each connection: its first answers come first
		var starts []time.Duration
		begun := time.Now()
		r.scripts["s"] = func(p *peer, m message) bool {
			mu.Lock()
			defer mu.Unlock()
			if m.Method == "initialize" {
				starts = append(starts, time.Since(begun).Truncate(time.Millisecond))
			}
			if m.Method == "tools/list" {
				time.AfterFunc(life, p.quit)
			}
			return false
		}
		s := r.open(Config{Servers: stdio("s")})
		defer func() { s.Close(); r.wg.Wait() }()
		time.Sleep(time.Hour)
		if st := state(s, "s"); st.State != Failed || st.Problem == "" {
			t.Errorf("after an hour it is %s: %s", st.State, st.Problem)
		}
		want := []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond, 7500 * time.Millisecond, 15500 * time.Millisecond}
		if fmt.Sprint(starts) != fmt.Sprint(want) {
			t.Errorf("it was started at %v, not %v", starts, want)
		}
		wants(t, run(t, s, "mcp__s__t", `{}`), agent.ErrMCPUnavailable, "ask the user to connect it: /mcp reconnect s")
		mu.Lock()
		life, starts = 2*time.Minute, nil
		mu.Unlock()
		if err := s.Reconnect(t.Context(), "s"); err != nil {
			t.Error(err)
		}
		time.Sleep(30 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if n := len(starts); n < 14 {
			t.Errorf("one that runs for two minutes each time was started %d times in half an hour", n)
		}
	})
}

// A server over the network that has forgotten the session gets the call once more; one
// that is away costs one error a call, and is found again.
func TestWebComesBack(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	fresh := func() http.Handler {
		return sdk.NewStreamableHTTPHandler(hangUp(t, func(*http.Request) *sdk.Server {
			s := sdk.NewServer(&sdk.Implementation{Name: "s"}, nil)
			s.AddTool(&sdk.Tool{Name: "t", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				calls.Add(1)
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "ok"}}}, nil
			})
			return s
		}), nil)
	}
	var now atomic.Value // the http.Handler of today
	now.Store(fresh())
	var away atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		if q.Header.Get("Mcp-Method") == "server/discover" { // an old one, with sessions
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		now.Load().(http.Handler).ServeHTTP(w, q)
	}))
	defer srv.Close()
	defer srv.CloseClientConnections()
	r := newRig(t)
	s := r.open(Config{HTTP: plainHTTP(t), Servers: []servers.Server{{Name: "s", Type: servers.HTTP, URL: srv.URL}}})
	defer s.Close()
	if got := run(t, s, "mcp__s__t", `{}`); got.Text != "ok" {
		t.Fatalf("got %q (%+v)", got.Text, s.Status())
	}
	now.Store(fresh())
	if got := run(t, s, "mcp__s__t", `{}`); got.Text != "ok" || calls.Load() != 2 {
		t.Fatalf("after the session was forgotten: %q, %d calls", got.Text, calls.Load())
	}
	away.Store(true)
	wants(t, run(t, s, "mcp__s__t", `{}`), agent.ErrMCPUnavailable, "not available")
	away.Store(false)
	if err := s.Reconnect(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, "mcp__s__t", `{}`); got.Text != "ok" {
		t.Errorf("when it was back: %q", got.Text)
	}
}

// A server that dies while it has a call, or sends half an answer, costs that call.
func TestWebDies(t *testing.T) {
	t.Parallel()
	h := sdk.NewStreamableHTTPHandler(hangUp(t, each), &sdk.StreamableHTTPOptions{Stateless: true})
	var how atomic.Value
	how.Store("")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch how.Swap("") {
		case "":
			h.ServeHTTP(w, q)
			return
		case "busy":
			http.Error(w, "come back later", http.StatusServiceUnavailable)
			return
		case "stream":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": it begins\n\n")
		case "half":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0",`)
		case "junk":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `<html>`)
			return
		}
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	defer srv.CloseClientConnections()
	r := newRig(t)
	s := r.open(Config{HTTP: plainHTTP(t), Servers: []servers.Server{{Name: "every", Type: servers.HTTP, URL: srv.URL}}})
	defer s.Close()
	for _, end := range []string{"busy", "stream", "half", "junk"} {
		how.Store(end)
		if got := run(t, s, "mcp__every__echo", `{}`); !got.Failed() || end != "junk" && got.Error.Code != agent.ErrMCPUnavailable {
			t.Errorf("%s: %+v", end, got)
		}
		if err := s.Reconnect(t.Context(), "every"); err != nil {
			t.Fatal(err)
		}
		if got := run(t, s, "mcp__every__echo", `{}`); got.Failed() {
			t.Errorf("after %s: %q", end, got.Text)
		}
	}
}

// A server that sends its answer a byte at a time costs the time limit of the call.
func TestSlowLoris(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	var drip atomic.Bool
	h := sdk.NewStreamableHTTPHandler(hangUp(t, each), &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !drip.Load() {
			h.ServeHTTP(w, q)
			return
		}
		_, _ = io.Copy(io.Discard, q.Body)
		w.Header().Set("Content-Type", "application/json")
		for {
			if _, err := io.WriteString(w, " "); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-over:
				return
			case <-q.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}))
	defer srv.Close()
	defer close(over)
	defer srv.CloseClientConnections()
	r := newRig(t)
	s := r.open(Config{HTTP: plainHTTP(t), Servers: []servers.Server{{Name: "every", Type: servers.HTTP, URL: srv.URL, Timeout: 2 * time.Second}}})
	defer s.Close()
	drip.Store(true)
	wants(t, run(t, s, "mcp__every__echo", `{}`), agent.ErrTimeout, "within 2s")
	drip.Store(false)
	if got := run(t, s, "mcp__every__echo", `{}`); got.Failed() {
		t.Errorf("the next call: %q", got.Text)
	}
}

var errLate = errors.New("it is late")

// Ten servers with twenty tools each, one of which never answers, delay nobody.
func TestTwoHundredTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var names, list []string
		for i := range 20 {
			list = append(list, fmt.Sprintf(`{"name":"tool%d","description":%q,"inputSchema":{"type":"object"}}`, i, strings.Repeat("does a lot. ", 50)))
		}
		for i := range 11 {
			name := fmt.Sprintf("server%d", i)
			names = append(names, name)
			r.scripts[name] = func(p *peer, m message) bool {
				if m.Method == "tools/list" {
					time.Sleep(time.Second)
					p.reply(m, `{"tools":[`+strings.Join(list, ",")+`]}`)
					return true
				}
				return i == 10
			}
		}
		s := New(Config{Servers: stdio(names...), Start: r.start})
		defer func() { s.Close(); r.wg.Wait() }()
		begun := time.Now()
		s.Connect()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the start was delayed by %v", took)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errLate)
		defer cancel()
		if err := s.Wait(ctx); !errors.Is(err, errLate) {
			t.Errorf("waiting: %v", err)
		}
		if n := len(s.Tools()); n != 200 {
			t.Errorf("%d tools", n)
		}
		wants(t, s.Call(t.Context(), "server10", "t", nil), agent.ErrMCPUnavailable, "not connected")
	})
}

func BenchmarkTools(b *testing.B) {
	s := New(Config{Servers: stdio("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")})
	for _, v := range s.all {
		var list []*sdk.Tool
		for i := range 20 {
			list = append(list, &sdk.Tool{Name: fmt.Sprint("tool", i), Description: strings.Repeat("does a lot. ", 50), InputSchema: map[string]any{"type": "object"}})
		}
		v.takeTools(&v.offers, list)
	}
	for b.Loop() {
		if len(s.Tools()) != 200 {
			b.Fatal("tools are missing")
		}
	}
}
