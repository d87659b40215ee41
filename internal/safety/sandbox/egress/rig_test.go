package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world has names, and addresses behind which test servers are, and writes down
// what is looked up, connected to and refused.
type world struct {
	names   map[string]string // host to addresses, with spaces between
	servers map[string]string // address and port to where its server listens

	mu  sync.Mutex
	log []string
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// seen returns what was written down since the last time.
func (w *world) seen() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := strings.Join(w.log, "; ")
	w.log = nil
	return s
}

func (w *world) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	w.note("look up %s", host)
	var list []netip.Addr
	for a := range strings.FieldsSeq(w.names[host]) {
		list = append(list, netip.MustParseAddr(a))
	}
	if list == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.9.9.9:53", IsNotFound: true}
	}
	return list, nil
}

func (w *world) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.note("dial %s", addr)
	at := w.servers[addr]
	if at == "" {
		at = w.servers["*"]
	}
	return new(net.Dialer).DialContext(ctx, network, at)
}

// start runs a server of c in the world and returns its address.
func (w *world) start(t testing.TB, c Config) (*Server, string) {
	t.Helper()
	if c.Resolve == nil {
		c.Resolve = w.resolve
	}
	c.Dial = w.dial
	c.Denied = func(host string, port int, why string) {
		if why == WhyName {
			if raw, err := strconv.Unquote(host); err != nil || len(raw) > maxQuoted {
				t.Errorf("the host that cannot be read is %s", host)
			}
			host = ""
		}
		w.note("denied %s:%d %s", host, port, why)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s, serve(t, s)
}

// serve lets s listen until the test ends.
func serve(t testing.TB, s *Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// answering listens until the test ends and gives every connection to answer.
func answering(t testing.TB, answer func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				answer(c)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		all.Wait()
	})
	return ln.Addr().String()
}

// echo sends back what it gets, and its end.
func echo(c net.Conn) {
	_, _ = io.Copy(c, c)
	_ = c.(*net.TCPConn).CloseWrite()
}

// say sends bytes to addr, all at once, and returns everything that comes back
// until the other side has nothing more to say.
func say(t *testing.T, addr, bytes string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, bytes); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// client returns an HTTP client that goes through a proxy.
func client(t *testing.T, proxy string) *http.Client {
	t.Helper()
	u, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{Proxy: http.ProxyURL(u)}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// socksTo returns what a client sends to be connected to a name.
func socksTo(host string, port uint16) string {
	return "\x05\x01\x00" + "\x05\x01\x00\x03" + string([]byte{byte(len(host))}) + host + string([]byte{byte(port >> 8), byte(port)})
}

// lines returns the lines of a message without their ends, its header sorted.
func lines(r io.Reader) string {
	var all []string
	sc := bufio.NewScanner(r)
	for sc.Scan() && sc.Text() != "" {
		all = append(all, strings.TrimRight(sc.Text(), "\r"))
	}
	if len(all) > 1 {
		slices.Sort(all[1:])
	}
	return strings.Join(all, "\n")
}
