package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dure/agent"
)

// get asks for a URL and returns "status body", where a redirect led that was
// not followed, or the code of the error.
func get(t *testing.T, w *Web, raw string) string {
	t.Helper()
	to, err := parseTarget(raw)
	if err != nil {
		t.Fatal(err)
	}
	r, moved, err := w.client.get(t.Context(), to, nil)
	switch te, ok := errors.AsType[*agent.ToolError](err); {
	case ok:
		return string(te.Code) + " " + te.Message
	case err != nil:
		return "error without a code: " + err.Error()
	case moved != nil:
		return fmt.Sprint(moved.status, " to ", moved.to)
	}
	return fmt.Sprint(r.status, " ", string(r.body))
}

func TestRedirects(t *testing.T) {
	var asked []string
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host+r.URL.Path)
		to := map[string]string{
			"/a": "/b", "/b": "http://www." + r.Host + "/c", "/abs": "//" + r.Host + "/end",
			"/other": "https://evil.example/?q=1", "/meta": "http://169.254.169.254/latest", "/local": "http://[::1]:80/",
			"/file": "file:///etc/passwd", "/user": "http://u:p@" + r.Host + "/", "/odd": "http://\x7f/", "/loop": "/loop", "/redis": "http://a.example:6379/",
			"/subdomain": "http://x." + r.Host + "/", "/port": "http://a.example:8080/", "/nowhere": "",
		}
		if p, ok := to[r.URL.Path]; ok {
			if p != "" {
				w.Header().Set("Location", p)
			}
			w.WriteHeader(http.StatusFound)
			return
		}
		io.WriteString(w, "the end")
	})
	w := New(Config{Permit: func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") }, Lookup: names})
	for _, tt := range []struct{ path, want, asked string }{
		{"/a", "200 the end", "/a /b www./c"},
		{"/abs", "200 the end", "/abs /end"},
		{"/other", "302 to https://evil.example/?q=1", "/other"},
		{"/subdomain", "302 to http://x.a.example:PORT/", "/subdomain"},
		{"/port", "302 to http://a.example:8080/", "/port"},
		{"/nowhere", "302 ", "/nowhere"},
		{"/meta", "E_WEB_ADDRESS 169.254.169.254 is a cloud metadata address, and not to be asked", "/meta"},
		{"/local", "E_WEB_ADDRESS ::1 is a loopback address, and not to be asked", "/local"},
		{"/redis", "E_WEB_ADDRESS port 6379 is closed to web tools", "/redis"},
		{"/file", `E_WEB_FETCH a.example redirects to "file:///etc/passwd", which cannot be fetched`, "/file"},
		{"/user", `E_WEB_FETCH a.example redirects to "http://u:p@a.example:PORT/", which cannot be fetched`, "/user"},
		{"/loop", "E_WEB_FETCH a.example redirects more than 10 times", strings.TrimSpace(strings.Repeat("/loop ", 11))},
	} {
		asked = nil
		got := strings.ReplaceAll(get(t, w, "http://a.example:"+port+tt.path), port, "PORT")
		hops := strings.NewReplacer("www.a.example:"+port, "www.", "a.example:"+port, "").Replace(strings.Join(asked, " "))
		if got != tt.want || hops != tt.asked {
			t.Errorf("%s: %q by %q", tt.path, got, hops)
		}
	}
}

// A name that leads to a public address when it is looked at, and to this
// machine when the connection is made, does not get through.
func TestRebinding(t *testing.T) {
	var asked atomic.Int32
	port := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, tt := range []struct {
		name    string
		answers []string
		want    string
	}{
		{"private at once", []string{"127.0.0.1"}, "leads to 127.0.0.1, which is a loopback address"},
		{"one of several", []string{"8.8.8.8", "127.0.0.1"}, "leads to 127.0.0.1, which is a loopback address"},
		{"mapped", []string{"::ffff:127.0.0.1"}, "leads to ::ffff:127.0.0.1, which is a loopback address"},
		{"unspecified", []string{"0.0.0.0"}, "leads to 0.0.0.0, which is a reserved address"},
	} {
		w := New(Config{Lookup: func(context.Context, string) ([]netip.Addr, error) {
			var list []netip.Addr
			for _, s := range tt.answers {
				list = append(list, netip.MustParseAddr(s))
			}
			return list, nil
		}})
		if got := get(t, w, "http://rebind.example:"+port+"/"); !strings.HasPrefix(got, "E_WEB_ADDRESS") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.name, got)
		}
	}

	// The first lookup passes the check for a proxy; the second one is that of the
	// connection. Both are checked, and the connection goes to what was checked.
	var turn atomic.Int32
	w := New(Config{
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			if turn.Add(1) == 1 {
				return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
	})
	if err := w.client.behindProxy(t.Context(), target{url: &url.URL{}, host: "rebind.example"}); err != nil {
		t.Fatal(err)
	}
	if got := get(t, w, "http://rebind.example:"+port+"/"); !strings.HasPrefix(got, "E_WEB_ADDRESS") {
		t.Error(got)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
}

// The check right before a connection stands on its own.
func TestControl(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	checks := 0
	w := New(Config{Lookup: names, Permit: func(netip.Addr) bool { checks++; return checks == 1 }})
	_, err = w.client.dial(t.Context(), "tcp", "a.example:"+fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
	if te, ok := errors.AsType[*agent.ToolError](err); !ok || te.Code != ErrWebAddress || checks != 2 {
		t.Errorf("%v after %d checks", err, checks)
	}
}

func TestProxy(t *testing.T) {
	var through []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through = append(through, r.Method+" "+r.URL.String())
		io.WriteString(w, "by proxy")
	}))
	defer proxy.Close()
	at, _ := url.Parse(proxy.URL)
	known := func(_ context.Context, host string) ([]netip.Addr, error) {
		switch host {
		case "public.example":
			return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
		case "inner.example":
			return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	cfg := Config{Transport: &http.Transport{Proxy: http.ProxyURL(at)}, Lookup: known}
	for _, tt := range []struct{ url, want string }{
		{"http://public.example/x", "200 by proxy"},
		{"http://8.8.8.8/", "200 by proxy"},
		{"http://unknown.example/", "200 by proxy"}, // the proxy may know it
		{"http://inner.example/", "E_WEB_ADDRESS inner.example leads to 10.0.0.1, which is a private address, and not to be asked"},
		{"http://127.0.0.1/", "E_WEB_ADDRESS 127.0.0.1 is a loopback address, and not to be asked"},
		{"http://[::ffff:10.0.0.1]/", "E_WEB_ADDRESS ::ffff:10.0.0.1 is a private address, and not to be asked"},
		{"http://intranet/", "E_WEB_ADDRESS intranet is a name of an internal network"},
		{"http://metadata.google.internal/", "E_WEB_ADDRESS metadata.google.internal is a name of an internal network"},
		{"http://printer.local/", "E_WEB_ADDRESS printer.local is a name of an internal network"},
		{"http://x.localhost/", "E_WEB_ADDRESS x.localhost is a name of an internal network"},
	} {
		if got := get(t, New(cfg), tt.url); got != tt.want {
			t.Errorf("%s: %s", tt.url, got)
		}
	}
	if got := strings.Join(through, ", "); got != "GET http://public.example/x, GET http://8.8.8.8/, GET http://unknown.example/" {
		t.Errorf("through the proxy: %s", got)
	}

	// What goes past the proxy is dialled under guard, the proxy's own host too.
	cfg.Transport = &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}
	if got := get(t, New(cfg), proxy.URL); !strings.HasPrefix(got, "E_WEB_ADDRESS") {
		t.Error(got)
	}
	cfg.Transport = &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("secret") }}
	if got := get(t, New(cfg), "http://public.example/"); got != "E_WEB_FETCH the proxy settings cannot be read" {
		t.Error(got)
	}

	cfg = Config{Transport: &http.Transport{Proxy: http.ProxyURL(at)}, Lookup: known, Mode: Internal, AllowHosts: []string{"inner.example"}}
	if got := get(t, New(cfg), "http://inner.example/"); got != "200 by proxy" {
		t.Error(got)
	}
}

func packed(n int) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	chunk := make([]byte, 1<<20)
	for ; n > 0; n -= len(chunk) {
		z.Write(chunk[:min(n, len(chunk))])
	}
	z.Close()
	return b.Bytes()
}

func TestBodies(t *testing.T) {
	bomb := packed(maxBody + 1<<20)
	var b bytes.Buffer // a bomb in a parcel is unpacked once
	z := gzip.NewWriter(&b)
	z.Write(bomb)
	z.Close()
	twice := b.Bytes()
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("asked for %q", r.Header.Get("Accept-Encoding"))
		}
		switch r.URL.Path {
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb)
		case "/twice":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(twice)
		case "/br":
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "x")
		case "/broken":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed(5000)[:20])
		case "/no-gzip":
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "plain text")
		case "/short":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "short")
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		case "/headers":
			for i := range 5000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 100))
			}
		case "/none":
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusNotModified)
		}
	})
	w := New(Config{Permit: loopback, Lookup: names})
	for _, tt := range []struct {
		path string
		size int
		cut  bool
		err  string
	}{
		{path: "/bomb", size: maxBody, cut: true},
		{path: "/twice", size: len(bomb)},
		{path: "/endless", size: maxBody, cut: true},
		{path: "/none"},
		{path: "/br", err: "packed in a way that is not understood"},
		{path: "/broken", err: "reading the answer: unexpected EOF"},
		{path: "/no-gzip", err: "unpacking: gzip: invalid header"},
		{path: "/short", err: "reading the answer: unexpected EOF"},
		{path: "/headers", err: "server response headers exceeded"},
	} {
		to, _ := parseTarget("http://a.example:" + port + tt.path)
		r, _, err := w.client.get(t.Context(), to, nil)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", tt.path, err)
			}
			continue
		}
		if err != nil || len(r.body) != tt.size || r.cut != tt.cut {
			t.Errorf("%s: %+v, %v", tt.path, r, err)
		}
	}
}

func TestTimes(t *testing.T) {
	done := make(chan struct{})
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drip" {
			for {
				io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				select {
				case <-done:
					return
				case <-r.Context().Done():
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	defer close(done)
	w := New(Config{Permit: loopback, Lookup: names, Limits: Limits{Total: 150 * time.Millisecond, FirstByte: 50 * time.Millisecond}})
	at := "http://a.example:" + port
	patient := New(Config{Permit: loopback, Lookup: names, Limits: Limits{Total: time.Minute, FirstByte: 50 * time.Millisecond}})
	for path, w := range map[string]*Web{"/silent": patient, "/drip": w} {
		start := time.Now()
		r := run(t, w, "web__fetch", map[string]any{"url": at + path})
		if code(r) != agent.ErrTimeout || time.Since(start) > 30*time.Second {
			t.Errorf("%s: %+v after %s", path, r, time.Since(start))
		}
	}
	// A request has the time that it asks for.
	r := run(t, w, "http__request", map[string]any{"url": at + "/silent", "timeout": 100, "method": "POST"})
	if code(r) != agent.ErrTimeout || r.Error.Suggestion != "Whether it took effect is not known: look before you send it again." {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := runIn(t, ctx, w, "web__fetch", map[string]any{"url": at + "/silent"}); code(r) != agent.ErrAborted {
		t.Errorf("%+v", r)
	}
}

// The certificates of the given transport count, and only those.
func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	tr := s.Client().Transport.(*http.Transport).Clone()
	at := "https://example.com:" + portOf(t, s)
	if got := get(t, New(Config{Transport: tr, Permit: loopback, Lookup: names}), at); got != "200 HTTP/2.0" {
		t.Error(got)
	}
	if got := get(t, New(Config{Permit: loopback, Lookup: names}), at); !strings.HasPrefix(got, "E_WEB_FETCH example.com has a certificate that is not valid") {
		t.Error(got)
	}
	tr.DialTLSContext = func(context.Context, string, string) (net.Conn, error) { panic("dialled past the guard") }
	if got := get(t, New(Config{Transport: tr, Lookup: names}), at); !strings.HasPrefix(got, "E_WEB_ADDRESS") {
		t.Error(got)
	}
}

// Sessions that begin at once are given the same transport, which is filled in when it is
// first copied.
func TestBegunAtOnce(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "here") }))
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	shared := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got := get(t, New(Config{Transport: shared, Permit: loopback, Lookup: names}), "https://example.com:"+portOf(t, s)); got != "200 here" {
				t.Error(got)
			}
		})
	}
	all.Wait()
}

// The second address is tried when the first does not answer.
func TestSecondAddress(t *testing.T) {
	port := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "here") })
	w := New(Config{
		Permit: loopback, Limits: Limits{FirstByte: 2 * time.Second},
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.1.1.1"), netip.MustParseAddr("127.0.0.1")}, nil
		},
	})
	if got := get(t, w, "http://a.example:"+port); got != "200 here" {
		t.Error(got)
	}
	w = New(Config{Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, nil }})
	if got := get(t, w, "http://a.example:"+port); got != "E_WEB_FETCH a.example: looking up a.example: it has no address" {
		t.Error(got)
	}
}
