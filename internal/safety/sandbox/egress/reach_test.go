package egress

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// Every spelling of a host is asked for by CONNECT and by SOCKS, and leads to the
// same thing.
func TestHosts(t *testing.T) {
	w := &world{
		names: map[string]string{
			"go.dev": "8.8.8.8", "a.go.dev": "8.8.8.8", "a.b.go.dev": "2606:4700::1", "evilgo.dev": "9.9.9.9",
			"xn--bcher-kva.example": "8.8.4.4", "odd.example": "8.8.8.8", "wiki.corp": "10.1.2.3",
			"rebind.example": "127.0.0.1", "half.example": "8.8.8.8 10.0.0.1", "cloud.example": "169.254.169.254",
			"six.example": "::ffff:169.254.169.254", "nat.example": "64:ff9b::7f00:1", "tunnel.example": "2002:a00:1::1",
			"two.example": "2606:4700::2 9.9.9.9", "localhost": "127.0.0.1",
		},
		servers: map[string]string{"*": answering(t, echo)},
	}
	standard := Config{
		Allow: []string{
			"go.dev", "*.go.dev", "Bücher.example", "odd.example:8443", "wiki.corp", "rebind.example", "half.example", "cloud.example",
			"six.example", "nat.example", "tunnel.example", "two.example", "localhost", "8.8.8.8", "[2606:4700::3]:443", "gone.example",
			"metadata.google.internal",
		},
		Deny: []string{"denied.go.dev", "9.9.9.9"},
	}
	inner := standard
	inner.Allow = append([]string{"10.0.0.0/8", "127.0.0.1:8080", "169.254.0.0/16", "::1"}, standard.Allow...)
	star := Config{Allow: []string{"*"}, Deny: []string{"*.go.dev"}}
	for _, tt := range []struct {
		cfg  *Config
		host string
		port uint16
		want string
	}{
		{&standard, "go.dev", 443, "look up go.dev; dial 8.8.8.8:443"},
		{&standard, "GO.DEV.", 80, "look up go.dev; dial 8.8.8.8:80"},
		{&standard, "a.go.dev", 443, "look up a.go.dev; dial 8.8.8.8:443"},
		{&standard, "a.b.go.dev", 443, "look up a.b.go.dev; dial [2606:4700::1]:443"},
		{&standard, "xn--bcher-kva.example", 443, "look up xn--bcher-kva.example; dial 8.8.4.4:443"},
		{&standard, "odd.example", 8443, "look up odd.example; dial 8.8.8.8:8443"},
		{&standard, "8.8.8.8", 443, "dial 8.8.8.8:443"},
		{&standard, "2606:4700::3", 443, "dial [2606:4700::3]:443"},
		{&standard, "2606:4700:0::0:3", 443, "dial [2606:4700::3]:443"},

		{&standard, "evilgo.dev", 443, "denied evilgo.dev:443 host"},
		{&standard, "go.dev.evil.example", 443, "denied go.dev.evil.example:443 host"},
		{&standard, "denied.go.dev", 443, "denied denied.go.dev:443 denied"},
		{&standard, "two.example", 443, "look up two.example; denied two.example:443 denied"},
		{&standard, "go.dev", 22, "denied go.dev:22 port"},
		{&standard, "odd.example", 443, "denied odd.example:443 port"},
		{&standard, "2606:4700::3", 80, "denied 2606:4700::3:80 port"},
		{&standard, "2606:4700::4", 443, "denied 2606:4700::4:443 host"},
		{&standard, "wiki.corp", 443, "look up wiki.corp; denied wiki.corp:443 address"},
		{&standard, "rebind.example", 443, "look up rebind.example; denied rebind.example:443 address"},
		{&standard, "half.example", 443, "look up half.example; denied half.example:443 address"},
		{&standard, "cloud.example", 80, "look up cloud.example; denied cloud.example:80 address"},
		{&standard, "six.example", 80, "look up six.example; denied six.example:80 address"},
		{&standard, "nat.example", 443, "look up nat.example; denied nat.example:443 address"},
		{&standard, "tunnel.example", 443, "look up tunnel.example; denied tunnel.example:443 address"},
		{&standard, "localhost", 80, "look up localhost; denied localhost:80 address"},
		{&standard, "metadata.google.internal", 80, "denied metadata.google.internal:80 address"},
		{&standard, "127.0.0.1", 80, "denied 127.0.0.1:80 host"},
		{&standard, "gone.example", 443, "look up gone.example"},

		{&standard, "127.1", 80, "denied :80 name"},
		{&standard, "0x7f.0.0.1", 80, "denied :80 name"},
		{&standard, "0177.0.0.1", 80, "denied :80 name"},
		{&standard, "2130706433", 80, "denied :80 name"},
		{&standard, "::ffff:8.8.8.8", 443, "denied :443 name"},
		{&standard, "go..dev", 443, "denied :443 name"},
		{&standard, "g_o.dev", 443, "denied :443 name"},
		{&standard, "-a.go.dev", 443, "denied :443 name"},
		{&standard, strings.Repeat("a.", 124) + "go.dev", 443, "denied :443 name"},

		{&inner, "wiki.corp", 443, "look up wiki.corp; dial 10.1.2.3:443"},
		{&inner, "10.0.0.7", 80, "dial 10.0.0.7:80"},
		{&inner, "10.0.0.7", 22, "denied 10.0.0.7:22 port"},
		{&inner, "127.0.0.1", 8080, "dial 127.0.0.1:8080"},
		{&inner, "127.0.0.1", 80, "denied 127.0.0.1:80 port"},
		{&inner, "127.0.0.2", 80, "denied 127.0.0.2:80 host"},
		{&inner, "rebind.example", 80, "look up rebind.example; denied rebind.example:80 address"},
		{&inner, "::1", 80, "dial [::1]:80"},
		{&inner, "169.254.1.1", 80, "dial 169.254.1.1:80"},
		{&inner, "169.254.169.254", 80, "denied 169.254.169.254:80 address"},
		{&Config{Allow: []string{"169.254.169.254"}}, "169.254.169.254", 80, "dial 169.254.169.254:80"},
		{&Config{Allow: []string{"100.100.100.200/32", "cloud.example"}}, "100.100.100.200", 80, "dial 100.100.100.200:80"},

		{&star, "evilgo.dev", 443, "look up evilgo.dev; dial 9.9.9.9:443"},
		{&star, "a.go.dev", 443, "denied a.go.dev:443 denied"},
		{&star, "10.0.0.1", 443, "denied 10.0.0.1:443 address"},
		{&star, "evilgo.dev", 25, "denied evilgo.dev:25 port"},
		{&Config{}, "go.dev", 443, "denied go.dev:443 host"},
		{&Config{Allow: []string{"localhost", "wiki.corp"}, AllowLoopback: true}, "localhost", 80, "look up localhost; dial 127.0.0.1:80"},
		{&Config{Allow: []string{"localhost", "wiki.corp"}, AllowLoopback: true}, "wiki.corp", 80, "look up wiki.corp; denied wiki.corp:80 address"},
		{&Config{Allow: []string{"wiki.corp"}, AllowPrivate: true}, "wiki.corp", 80, "look up wiki.corp; dial 10.1.2.3:80"},
		{&Config{Allow: []string{"go.dev"}, Ports: []uint16{443}}, "go.dev", 80, "denied go.dev:80 port"},
	} {
		_, addr := w.start(t, *tt.cfg)
		got := say(t, addr, "CONNECT "+net.JoinHostPort(tt.host, strconv.Itoa(int(tt.port)))+" HTTP/1.1\r\n\r\nping")
		seen := w.seen()
		if seen != tt.want {
			t.Errorf("CONNECT %s:%d: %s, want %s", tt.host, tt.port, seen, tt.want)
		}
		through := strings.Contains(seen, "dial")
		if through != (got == "HTTP/1.1 200 Connection established\r\n\r\nping") || strings.Contains(seen, "denied") != strings.HasPrefix(got, "HTTP/1.1 403 ") {
			t.Errorf("CONNECT %s:%d: %s", tt.host, tt.port, got)
		}
		got = say(t, addr, socksTo(tt.host, tt.port)+"ping")
		if seen := w.seen(); seen != tt.want {
			t.Errorf("SOCKS %s:%d: %s, want %s", tt.host, tt.port, seen, tt.want)
		}
		if through != strings.HasSuffix(got, "ping") || strings.Contains(seen, "denied") != strings.HasPrefix(got, "\x05\x00\x05\x02") {
			t.Errorf("SOCKS %s:%d: %q", tt.host, tt.port, got)
		}
	}
}

// What only one of the two protocols can say.
func TestSpellings(t *testing.T) {
	w := &world{names: map[string]string{"go.dev": "8.8.8.8"}, servers: map[string]string{"*": answering(t, echo)}}
	_, addr := w.start(t, Config{Allow: []string{"go.dev", "::1"}})
	for _, line := range []string{
		"CONNECT user@go.dev:443", "CONNECT go.dev:443/x", "CONNECT go.dev:443?x", "CONNECT go.dev", "CONNECT go.dev:0", "CONNECT go.dev:65979",
		"CONNECT go.dev:x", "CONNECT http://go.dev:443", "CONNECT /go.dev:443", "CONNECT go.dev%00.evil:443", "CONNECT [go.dev]:443", "CONNECT ::1:443",
		"CONNECT [::1%25lo]:443", "CONNECT [::1", "GET /", "GET *", "GET https://go.dev/", "GET ftp://go.dev/", "GET //go.dev/", "GET http://user@go.dev/",
		"GET http:go.dev", "GET http://", "GET http://go.dev:0/", "GET http://go.dev\\@x/", "PRI *", "GET http://[::1%25lo]/",
	} {
		got := say(t, addr, line+" HTTP/1.1\r\nHost: go.dev\r\n\r\n")
		if seen := w.seen(); strings.Contains(seen, "dial") || !strings.HasPrefix(got, "HTTP/1.1 400 ") && !strings.HasPrefix(got, "HTTP/1.1 403 ") {
			t.Errorf("%s: %s: %s", line, seen, got)
		}
	}
	for _, host := range []string{"go.dev\x00.evil.example", "go.dev\n", "user@go.dev", "[::1]", "", "go.dev:443", "gö\xff.dev"} {
		got := say(t, addr, socksTo(host, 443))
		if seen := w.seen(); seen != "denied :443 name" || !strings.HasPrefix(got, "\x05\x00\x05\x02") {
			t.Errorf("%q: %s: %q", host, seen, got)
		}
	}
}

// A resolver that changes its mind after it has been checked is not asked again.
func TestRebinding(t *testing.T) {
	w := &world{servers: map[string]string{"8.8.8.8:443": answering(t, echo)}}
	var asked atomic.Int32
	_, addr := w.start(t, Config{Allow: []string{"go.dev"}, Resolve: func(context.Context, string) ([]netip.Addr, error) {
		if asked.Add(1)%2 == 1 {
			return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	const ask = "CONNECT go.dev:443 HTTP/1.1\r\n\r\n"
	say(t, addr, ask)
	if got := w.seen(); got != "dial 8.8.8.8:443" {
		t.Error(got)
	}
	say(t, addr, ask)
	if got := w.seen(); got != "denied go.dev:443 address" {
		t.Error(got)
	}
}

// The next address is tried when one takes no connections.
func TestNextAddress(t *testing.T) {
	w := &world{
		names:   map[string]string{"go.dev": "2606:4700::1 8.8.8.8"},
		servers: map[string]string{"8.8.8.8:443": answering(t, echo)},
	}
	_, addr := w.start(t, Config{Allow: []string{"go.dev"}})
	got := say(t, addr, "CONNECT go.dev:443 HTTP/1.1\r\n\r\nping")
	if got != "HTTP/1.1 200 Connection established\r\n\r\nping" {
		t.Error(got)
	}
	if got := w.seen(); got != "look up go.dev; dial [2606:4700::1]:443; dial 8.8.8.8:443" {
		t.Error(got)
	}
}

// What is allowed for a while is cut when the while is over.
func TestGrant(t *testing.T) {
	w := &world{names: map[string]string{"go.dev": "8.8.8.8", "b.example": "8.8.8.8"}, servers: map[string]string{"*": answering(t, echo)}}
	s, addr := w.start(t, Config{Allow: []string{"b.example"}, Deny: []string{"evil.example"}})
	first, err := s.Allow("go.dev", "evil.example")
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Allow("go.dev")
	if err != nil {
		t.Fatal(err)
	}
	held := connect(t, addr, "go.dev:443")
	kept := connect(t, addr, "b.example:443")
	if got := say(t, addr, "CONNECT evil.example:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Error(got)
	}
	first()
	first()
	ping(t, held)
	second()
	if n, err := held.Read(make([]byte, 1)); err == nil {
		t.Errorf("still open, with %d bytes", n)
	}
	ping(t, kept)
	if got := say(t, addr, "CONNECT go.dev:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Error(got)
	}
	if _, err := s.Allow("b.example", "no host"); err == nil {
		t.Error("a host that cannot exist was allowed")
	}
}

// connect returns a tunnel to a target.
func connect(t testing.TB, addr, to string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	const yes = "HTTP/1.1 200 Connection established\r\n\r\n"
	got := make([]byte, len(yes))
	if _, err := io.WriteString(c, "CONNECT "+to+" HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got); err != nil || string(got) != yes {
		t.Fatalf("%s: %q, %v", to, got, err)
	}
	return c
}

// ping proves that a tunnel to an echo works.
func ping(t *testing.T, c net.Conn) {
	t.Helper()
	got := make([]byte, 4)
	if _, err := io.WriteString(c, "ping"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "ping" {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestLists(t *testing.T) {
	for _, bad := range []string{"", "go..dev", "*x.dev", "http://go.dev", "go.dev:0", "::ffff:10.0.0.0/104", "fe80::1%eth0"} {
		if _, err := New(Config{Allow: []string{bad}}); err == nil {
			t.Errorf("%q may be allowed", bad)
		}
		if _, err := New(Config{Deny: []string{bad}}); err == nil {
			t.Errorf("%q may be denied", bad)
		}
	}
}
