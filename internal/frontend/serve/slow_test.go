package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dure/client"
	"dure/internal/frontend/auth"
)

// piped is a listener whose connections are in memory, for clocks that are not real.
type piped struct {
	came chan net.Conn
	once sync.Once
	over chan struct{}
}

func newPiped() *piped { return &piped{came: make(chan net.Conn), over: make(chan struct{})} }

func (l *piped) Accept() (net.Conn, error) {
	select {
	case c := <-l.came:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

func (l *piped) Close() error {
	l.once.Do(func() { close(l.over) })
	return nil
}

func (l *piped) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// dribble sends at once what comes first, and then slow over and over, a piece each second,
// until the server does not want any more. It returns what the server said, and after which
// time it closed the connection.
func (l *piped) dribble(first, slow string) (said string, after time.Duration) {
	ours, theirs := net.Pipe()
	began := time.Now()
	l.came <- theirs
	go func() {
		defer ours.Close()
		if _, err := io.WriteString(ours, first); err != nil {
			return
		}
		for slow != "" {
			time.Sleep(time.Second)
			if _, err := io.WriteString(ours, slow); err != nil {
				return
			}
		}
		<-l.over
	}()
	data, _ := io.ReadAll(ours) // the end is what counts
	return string(data), time.Since(began)
}

// Whoever sends slowly, or nothing, has so much time and no more, whether they may come in or
// not; and one that reads events stays.
func TestSlowSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs()
		s, err := New(Config{Client: client.New(l), Token: secret, Version: "1", Workdir: t.TempDir(), Drain: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		port, ended := newPiped(), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- s.Serve(ctx, port) }()
		const host, bearer = " HTTP/1.1\r\nHost: 127.0.0.1\r\n", "Authorization: Bearer " + secret + "\r\n"
		const long = "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
		const chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
		port.dribble("POST /v1/sessions"+host+bearer+"Content-Type: application/json\r\nConnection: close\r\nContent-Length: 11\r\n\r\n"+`{"new":"s"}`, "")
		var wg sync.WaitGroup
		for name, tt := range map[string]struct {
			first, slow string
			status      string // "" = none
			most        time.Duration
		}{
			"silent":                  {most: auth.HeadTime},
			"half a line":             {first: "GET /hea", status: "400", most: auth.HeadTime},
			"a header, slowly":        {first: "GET /healthz" + host + "X-Slow: ", slow: "a", most: auth.HeadTime},
			"headers, slowly":         {first: "GET /healthz" + host, slow: "X-A: b\r\n", most: auth.HeadTime},
			"a body, slowly":          {first: "POST /v1/queries/system" + host + bearer + long, slow: " ", status: "400", most: auth.BodyTime},
			"a body of pieces":        {first: "POST /v1/queries/system" + host + bearer + chunked, slow: "1\r\n \r\n", status: "400", most: auth.BodyTime},
			"a body that never comes": {first: "POST /v1/sessions" + host + bearer + long, status: "400", most: auth.BodyTime},
			"without a token":         {first: "POST /v1/sessions" + host + long, slow: " ", status: "401", most: auth.BodyTime},
			"under another name":      {first: "POST /healthz HTTP/1.1\r\nHost: evil.example\r\n" + long, status: "403", most: auth.BodyTime},
			"no such path":            {first: "POST /nothing" + host + bearer + long, status: "400", most: auth.BodyTime},
			"looking at health":       {first: "GET /healthz" + host + long, slow: " ", status: "413", most: auth.BodyTime},
			"a little with health":    {first: "GET /healthz" + host + "Content-Length: 10\r\n\r\n", status: "400", most: auth.BodyTime},
			"a description":           {first: "GET /openapi.json" + host + chunked, slow: "1\r\n \r\n", status: "400", most: auth.BodyTime},
			"a reader":                {first: "GET /v1/sessions/s/events" + host + bearer + chunked, slow: "1\r\n \r\n", status: "400", most: auth.BodyTime},
			"nothing more":            {first: "GET /healthz" + host + "\r\n", status: "200", most: auth.IdleTime},
		} {
			wg.Go(func() {
				said, after := port.dribble(tt.first, tt.slow)
				const closing = 2 * time.Second // of a connection
				if after > tt.most+closing {
					t.Errorf("%s: the connection lasted %v", name, after)
				}
				if got, _ := strings.CutPrefix(said, "HTTP/1.1 "); !strings.HasPrefix(got, tt.status) || tt.status == "" && said != "" {
					t.Errorf("%s: %q", name, said)
				}
			})
		}
		wg.Wait()
		reads, done := context.WithCancel(t.Context())
		n, lasts := readsOn(reads, t, port, "GET /v1/sessions/s/events"+host+bearer+"\r\n"), 10*time.Minute
		time.Sleep(lasts)
		done()
		if beats := <-n; beats < int(lasts/beatTime)-1 {
			t.Errorf("%d signs of life in %v", beats, lasts)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// readsOn reads until ctx is done, and tells how many signs of life came.
func readsOn(ctx context.Context, t *testing.T, l *piped, request string) <-chan int {
	ours, theirs := net.Pipe()
	l.came <- theirs
	n := make(chan int, 1)
	stop := context.AfterFunc(ctx, func() { ours.Close() })
	go func() {
		defer stop()
		if _, err := io.WriteString(ours, request); err != nil {
			t.Error(err)
		}
		data, err := io.ReadAll(ours)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) || ctx.Err() == nil {
			t.Errorf("a reader is left: %v", err)
		}
		n <- strings.Count(string(data), "\n:\n")
	}()
	return n
}

// What is larger than anybody needs is not read, let alone kept.
func TestGiants(t *testing.T) {
	g := start(t, nil)
	const bearer = "Host: 127.0.0.1\r\nAuthorization: Bearer " + secret + "\r\nContent-Type: application/json\r\nConnection: close\r\n"
	for name, tt := range map[string]struct {
		send string
		want string // one of these
	}{
		"a body that says its size": {"POST /v1/queries/system HTTP/1.1\r\n" + bearer + "Content-Length: 1099511627776\r\n\r\n", "413"},
		"a body of many pieces":     {"POST /v1/queries/system HTTP/1.1\r\n" + bearer + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("100000\r\n"+strings.Repeat(" ", 1<<20)+"\r\n", 18), "413"},
		"a negative body":           {"POST /v1/queries/system HTTP/1.1\r\n" + bearer + "Content-Length: -1\r\n\r\n", "400"},
		"two lengths":               {"POST /v1/queries/system HTTP/1.1\r\n" + bearer + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "400"},
		"a size that overflows":     {"POST /v1/queries/system HTTP/1.1\r\n" + bearer + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "400"},
		"a header":                  {"GET /healthz HTTP/1.1\r\n" + bearer + "X: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", "431"},
		"many headers":              {"GET /healthz HTTP/1.1\r\n" + bearer + strings.Repeat("X: y\r\n", 1<<18) + "\r\n", "431"},
		"an address":                {"GET /" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\n" + bearer + "\r\n", "431"},
		"a token":                   {"GET /v1/about HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer " + strings.Repeat("a", 32<<10) + "\r\n\r\n", "401"},
		"an ID":                     {"GET /v1/sessions/" + strings.Repeat("a", 32<<10) + " HTTP/1.1\r\n" + bearer + "\r\n", "404"},
		"no HTTP":                   {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00\x00\r\n\r\n", "400"},
		"a later HTTP":              {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "403"},
		"a tunnel":                  {"CONNECT 127.0.0.1:1 HTTP/1.1\r\n" + bearer + "\r\n", "404"},
		"an address of others":      {"GET http://evil.example/healthz HTTP/1.1\r\n" + bearer + "\r\n", "403"},
		"a name of two lines":       {"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n", "400"},
		"another upgrade":           {"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n", "200"},
	} {
		data, err := io.ReadAll(g.raw(tt.send))
		if got := strings.TrimPrefix(string(data), "HTTP/1.1 "); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %.300q, %v", name, data, err)
		}
	}
	g.call("GET", "/v1/about", "", 200, nil)
}

// What is no JSON, or no JSON of ours, is an error of who sends it.
func TestGarbage(t *testing.T) {
	g := start(t, nil)
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	for _, body := range []string{
		"{", "}", "nul", `{"text":}`, `{"text":"a"`, `{"text":"a"}}`, `{"text":"a"} {"text":"b"}`, `[]`, `"x"`, `1e999`, `{"text":1}`, `{"text":{"a":[]}}`,
		"\x00", "\xff\xfe{\x00}\x00", "{\"text\":\"\x01\"}", `{"text":"\u12"}`, "<?xml version='1.0'?>", "text=hello",
		strings.Repeat("[", 20_000), strings.Repeat(`{"blocks":[`, 20_000), `{"blocks":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "}",
		`{"id":` + strings.Repeat("9", 100_000) + `}`,
	} {
		for _, path := range []string{"/v1/sessions", "/v1/sessions/s/commands/prompt", "/v1/sessions/s/close", "/v1/sessions/s/fork"} {
			status, data := g.do(g.request("POST", path, body))
			if status != 400 || !strings.Contains(string(data), `"code":"bad-request"`) {
				t.Errorf("%s %.60q: %d %.200s", path, body, status, data)
			}
		}
	}
	for _, body := range []string{"{", `{"name":1}`, `{"name":"s"} x`, "\x00", strings.Repeat(`{"name":[`, 20_000)} {
		g.call("POST", "/v1/queries/session", body, 400, nil)
	}
	if n := len(g.logs.of["s"].came); n != 0 {
		t.Errorf("%d commands came", n)
	}
	for _, id := range []string{"-1", "1.5", "x", "0x10", "9223372036854775808", "1,2", " ", "\t1\t2", fmt.Sprint(strings.Repeat("1", 1000))} {
		r := g.request("GET", "/v1/sessions/s/events?follow=false", "")
		r.Header.Set("Last-Event-ID", id)
		want := 400
		if strings.TrimSpace(id) == "" {
			want = 200 // as if it were not there
		}
		if status, data := g.do(r); status != want {
			t.Errorf("Last-Event-ID %.30q: %d %.200s", id, status, data)
		}
	}
}
