package egress

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Addr() net.Addr { return nil }

func (p *pipes) Close() error {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	return nil
}

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// inTime runs test in a bubble of its own time, with a server of c that dials
// what dial returns.
func inTime(t *testing.T, c Config, test func(t *testing.T, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		p, done := newPipes(), make(chan error)
		go func() { done <- s.Serve(p) }()
		test(t, p)
		s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func public(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
}

// lasts returns how long it takes until the other side hangs up, and what it has
// said until then.
func lasts(c net.Conn) (time.Duration, string) {
	start := time.Now()
	said, _ := io.ReadAll(c)
	return time.Since(start), string(said)
}

func TestSlowClients(t *testing.T) {
	for _, start := range []string{"", "C", "CONNECT go.dev:443 HTTP/1.1\r\nX: ", "\x05", "\x05\x01\x00"} {
		inTime(t, Config{}, func(t *testing.T, p *pipes) {
			c := p.dial()
			go func() { _, _ = io.WriteString(c, start) }()
			if d, said := lasts(c); d != headTime || strings.Contains(said, " 200 ") {
				t.Errorf("%q: after %s, %q", start, d, said)
			}
		})
	}
}

func TestSlowLookup(t *testing.T) {
	hang := func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	inTime(t, Config{Allow: []string{"go.dev"}, Resolve: hang}, func(t *testing.T, p *pipes) {
		c := p.dial()
		_, _ = io.WriteString(c, "CONNECT go.dev:443 HTTP/1.1\r\n\r\n")
		if d, said := lasts(c); d != lookupTime || !strings.HasPrefix(said, "HTTP/1.1 502 looking up go.dev: no answer in time\r\n") {
			t.Errorf("after %s, %q", d, said)
		}
	})
}

func TestSlowTarget(t *testing.T) {
	many := func(context.Context, string) ([]netip.Addr, error) {
		var list []netip.Addr
		for i := range byte(9) {
			list = append(list, netip.AddrFrom4([4]byte{8, 8, 8, i}))
		}
		return list, nil
	}
	hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	inTime(t, Config{Allow: []string{"go.dev"}, Resolve: many, Dial: hang}, func(t *testing.T, p *pipes) {
		c := p.dial()
		_, _ = io.WriteString(c, "CONNECT go.dev:443 HTTP/1.1\r\n\r\n")
		if d, said := lasts(c); d != connectTime || !strings.HasPrefix(said, "HTTP/1.1 502 connecting to go.dev: no connection in time\r\n") {
			t.Errorf("after %s, %q", d, said)
		}
	})
}

// A tunnel ends when nothing has passed for a while, in whichever direction.
func TestIdleTunnel(t *testing.T) {
	far := make(chan net.Conn, 1)
	dial := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		far <- theirs
		return ours, nil
	}
	inTime(t, Config{Allow: []string{"go.dev"}, Resolve: public, Dial: dial}, func(t *testing.T, p *pipes) {
		c := p.dial()
		_, _ = io.WriteString(c, "CONNECT go.dev:443 HTTP/1.1\r\n\r\n")
		target := <-far
		start := time.Now()
		go func() {
			for range 3 {
				<-time.After(idleTime - time.Second)
				_, _ = io.WriteString(target, "x")
			}
		}()
		_, said := lasts(c)
		if d := time.Since(start); d != 4*idleTime-3*time.Second || said != "HTTP/1.1 200 Connection established\r\n\r\nxxx" {
			t.Errorf("after %s, %q", d, said)
		}
		if n, err := target.Read(make([]byte, 1)); err == nil {
			t.Errorf("the target still reads %d bytes", n)
		}
	})
}

func TestSilentTarget(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		return ours, nil
	}
	inTime(t, Config{Allow: []string{"go.dev"}, Resolve: public, Dial: dial}, func(t *testing.T, p *pipes) {
		c := p.dial()
		_, _ = io.WriteString(c, "GET http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\n\r\n")
		if d, said := lasts(c); d != idleTime || said != "" {
			t.Errorf("after %s, %q", d, said)
		}
	})
}

// Close ends whatever a connection is waiting for.
func TestClose(t *testing.T) {
	hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	inTime(t, Config{Allow: []string{"go.dev"}, Resolve: public, Dial: hang}, func(t *testing.T, p *pipes) {
		silent, dialling := p.dial(), p.dial()
		_, _ = io.WriteString(dialling, "CONNECT go.dev:443 HTTP/1.1\r\n\r\n")
		synctest.Wait()
		start := time.Now()
		t.Cleanup(func() {
			for _, c := range []net.Conn{silent, dialling} {
				_, _ = io.ReadAll(c)
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("it took %s", d)
			}
		})
	})
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	if err := s.Serve(newPipes()); err != nil {
		t.Error(err)
	}
}

// What is no longer allowed when it is connected at last is not used.
func TestRevokedWhileDialling(t *testing.T) {
	far, dialling, proceed := make(chan net.Conn, 1), make(chan bool), make(chan bool)
	dial := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		far <- theirs
		close(dialling)
		<-proceed
		return ours, nil
	}
	s, err := New(Config{Resolve: public, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := newPipes()
	done := make(chan error)
	go func() { done <- s.Serve(p) }()
	release, err := s.Allow("go.dev")
	if err != nil {
		t.Fatal(err)
	}
	c := p.dial()
	_, _ = io.WriteString(c, "CONNECT go.dev:443 HTTP/1.1\r\n\r\n")
	<-dialling
	release()
	close(proceed)
	if got, _ := io.ReadAll(<-far); len(got) != 0 {
		t.Errorf("the target read %q", got)
	}
	if got, _ := io.ReadAll(c); len(got) != 0 {
		t.Errorf("the client read %q", got)
	}
	s.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// More clients than there is room for wait for their turn.
func TestConns(t *testing.T) {
	inTime(t, Config{MaxConns: 2}, func(t *testing.T, p *pipes) {
		first, second, third := p.dial(), p.dial(), p.dial()
		answered := make(chan string)
		go func() {
			_, _ = io.WriteString(third, "CONNECT go.dev:443 HTTP/1.1\r\n\r\n")
			_, said := lasts(third)
			answered <- said
		}()
		synctest.Wait()
		select {
		case said := <-answered:
			t.Errorf("the third was served: %q", said)
		default:
		}
		first.Close()
		if said := <-answered; !strings.HasPrefix(said, "HTTP/1.1 403 ") {
			t.Error(said)
		}
		second.Close()
	})
}

func TestBudget(t *testing.T) {
	w := &world{names: map[string]string{"go.dev": "8.8.8.8"}, servers: map[string]string{"*": answering(t, func(c net.Conn) {
		_, _ = io.Copy(c, io.LimitReader(zeros{}, 1<<20))
	})}}
	s, addr := w.start(t, Config{Allow: []string{"go.dev"}, MaxBytes: 100_000})
	c := connect(t, addr, "go.dev:443")
	got, _ := io.Copy(io.Discard, c)
	if got > 100_000 || got < 30_000 || s.Spent() < 100_000 || s.Spent() > 200_000 {
		t.Errorf("%d bytes passed, and %d were counted", got, s.Spent())
	}
	if seen := w.seen(); seen != "look up go.dev; dial 8.8.8.8:443; denied go.dev:443 bytes" {
		t.Error(seen)
	}
	if got := say(t, addr, "CONNECT go.dev:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403 the 100000 bytes that may pass to and from the network are used up\r\n") {
		t.Error(got)
	}
	if got := say(t, addr, socksTo("go.dev", 443)); !strings.HasPrefix(got, "\x05\x00\x05\x02") {
		t.Errorf("%q", got)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
