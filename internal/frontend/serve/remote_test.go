package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/client/remote"
)

func (g *rig) remote(change func(*remote.Config)) *remote.Remote {
	g.t.Helper()
	cfg := remote.Config{URL: g.url, Token: secret}
	if change != nil {
		change(&cfg)
	}
	r, err := remote.New(cfg)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		if err := r.Shutdown(context.Background()); err != nil {
			g.t.Logf("leaving: %v", err) // the server may have gone
		}
	})
	return r
}

// A front-end reads the same over HTTP as in the server's own process.
func TestRemote(t *testing.T) {
	g := start(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	one, two := g.remote(nil), g.remote(nil)
	c, other := client.New(one), client.New(two)
	s, err := c.Open(ctx, agent.Open{New: "s", Approver: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(ctx, agent.Open{Session: "s"}); err != nil {
		t.Fatal(err)
	}
	g.logs.store("s", note(1), agent.ApprovalAsked{ID: "ap"}, note(2))
	for i, err := range []error{
		s.Send(ctx, agent.Prompt{ID: "1", Text: "hello"}),
		s.Send(ctx, agent.Resolve{ID: "ap", Decision: agent.Decision{Verdict: agent.Allow}}),
		other.Attach("s").Send(ctx, agent.Resolve{ID: "ap", Decision: agent.Decision{Verdict: agent.Deny}}),
	} {
		if err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	var kinds []string
	for e, err := range other.Attach("s").Events(ctx, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if kinds = append(kinds, e.Kind()); len(kinds) == 4 {
			break
		}
	}
	if got := strings.Join(kinds, " "); got != "note approval.asked note approval.resolved" {
		t.Errorf("events: %s", got)
	}
	system, err := client.Query[query.System](ctx, c, query.DescribeSystem{})
	if err != nil || system.OS != "test" {
		t.Errorf("%+v, %v", system, err)
	}
	if _, err := client.Query[agent.SessionInfo](ctx, c, agent.FindSession{Name: "none"}); agent.ProblemOf(err) == nil || agent.ProblemOf(err).Code != agent.ProblemMissing {
		t.Errorf("what is missing: %v", err)
	}
	for _, err := range c.Attach("none").Events(ctx, 0) {
		if agent.ProblemOf(err) == nil || agent.ProblemOf(err).Code != agent.ProblemMissing {
			t.Errorf("events of what is missing: %v", err)
		}
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(ctx); err != nil { // another time it is nothing
		t.Fatal(err)
	}
	if i, err := client.Query[agent.SessionInfo](ctx, c, agent.FindSession{Name: "s"}); err != nil || i.Status != "running" {
		t.Errorf("the other one uses it still: %+v, %v", i, err)
	}
	if err := two.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range c.Attach("s").Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d events of a session that has ended", n)
	}
}

// breaking cuts the connections of streams again and again.
type breaking struct {
	next  http.RoundTripper
	every int64 // bytes
	cuts  atomic.Int64
}

func (b *breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/events") {
		res.Body = &cut{ReadCloser: res.Body, left: b.every, of: b}
		b.every += 37
	}
	return res, err
}

type cut struct {
	io.ReadCloser
	left int64
	of   *breaking
}

func (c *cut) Read(p []byte) (int, error) {
	if c.left <= 0 {
		c.of.cuts.Add(1)
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.ReadCloser.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// Connections break anywhere, and each stored event comes once and in order.
func TestRemoteComesBack(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	b := &breaking{next: &http.Transport{}, every: 100}
	c := client.New(g.remote(func(c *remote.Config) { c.HTTP = &http.Client{Transport: b} }))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := c.Open(ctx, agent.Open{New: "s"})
	if err != nil {
		t.Fatal(err)
	}
	const many = 400
	go func() {
		for i := range many {
			g.logs.store("s", note(i))
		}
	}()
	want := int64(1)
	for e, err := range s.Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Live() {
			continue
		}
		if e.Seq != want {
			t.Fatalf("event %d came, not %d", e.Seq, want)
		}
		if want++; want == many+1 {
			break
		}
	}
	if b.cuts.Load() < 20 {
		t.Errorf("%d cuts: nothing was shown", b.cuts.Load())
	}
	b.next.(*http.Transport).CloseIdleConnections()
}

// A server that is gone is looked for as long as somebody is patient; one that says nothing
// any more is left.
func TestRemoteGone(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	r := g.remote(func(c *remote.Config) { c.Patience, c.Silence = 200*time.Millisecond, time.Minute })
	c := client.New(r)
	if _, err := c.Open(t.Context(), agent.Open{New: "s"}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		once := sync.OnceFunc(func() { close(begun) })
		for _, err := range c.Attach("s").Events(context.Background(), 0) {
			if once(); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	<-begun
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	if p := agent.ProblemOf(<-ended); p == nil || p.Code != agent.ProblemEndpoint || errors.Is(p, client.ErrDisconnected) {
		t.Errorf("the server is gone: %v", p)
	}
	if _, err := r.Query(t.Context(), query.DescribeSystem{}); agent.ProblemOf(err) == nil {
		t.Errorf("%v", err)
	}

	mute, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	asked, over := atomic.Int64{}, make(chan struct{})
	defer close(over)
	answer := func(conn net.Conn) {
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return // nothing is asked over it
		}
		if asked.Add(1) == 1 {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n:\n\n")
			<-over
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	}
	go func() {
		for {
			conn, err := mute.Accept()
			if err != nil {
				return
			}
			go answer(conn)
		}
	}()
	m, err := remote.New(remote.Config{URL: "http://" + mute.Addr().String(), Token: secret, Silence: 50 * time.Millisecond, Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range client.New(m).Attach("s").Events(t.Context(), 0) {
		if err != nil {
			t.Errorf("a server that says nothing: %v", err)
		}
	}
	if asked.Load() < 2 {
		t.Error("nobody came back to a server that says nothing")
	}
	if err := m.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// Nothing is sent to what is no server of ours.
func TestRemoteAddress(t *testing.T) {
	for _, u := range []string{"", "127.0.0.1:80", "ftp://x", "http://", "http://u:p@x", "http://x/?a=b", "http://x/path", "http://\x00"} {
		if _, err := remote.New(remote.Config{URL: u, Token: secret}); err == nil {
			t.Errorf("%q is taken for a server", u)
		}
	}
	if _, err := remote.New(remote.Config{URL: "http://x"}); err == nil {
		t.Error("no token is needed")
	}
}

// The token is not carried on to where a server points.
func TestRemoteStays(t *testing.T) {
	g := start(t, nil)
	moved := http.RedirectHandler("http://evil.example/", http.StatusTemporaryRedirect)
	seen := roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "evil.example" {
			t.Errorf("a request went to %s with %q", r.URL, r.Header.Get("Authorization"))
		}
		w := &taken{h: http.Header{}}
		moved.ServeHTTP(w, r)
		return &http.Response{StatusCode: w.status, Status: "307", Header: w.h, Body: io.NopCloser(&w.b), Request: r}, nil
	})
	r := g.remote(func(c *remote.Config) { c.HTTP = &http.Client{Transport: seen} })
	if _, err := r.Query(t.Context(), query.DescribeSystem{}); err == nil {
		t.Error("a redirect is an answer")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type taken struct {
	h      http.Header
	b      bytes.Buffer
	status int
}

func (w *taken) Header() http.Header         { return w.h }
func (w *taken) Write(p []byte) (int, error) { return w.b.Write(p) }
func (w *taken) WriteHeader(status int)      { w.status = status }
