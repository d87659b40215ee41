package egress

import (
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What comes back, byte for byte, for what a client of SOCKS sends.
func TestSOCKS(t *testing.T) {
	w := &world{
		names:   map[string]string{"go.dev": "8.8.8.8", "shut.example": "8.8.4.4"},
		servers: map[string]string{"8.8.8.8:443": answering(t, echo), "[2606:4700::1]:443": answering(t, echo), "8.8.4.4:443": closedPort(t)},
	}
	_, free := w.start(t, Config{Allow: []string{"go.dev", "shut.example", "gone.example", "8.8.8.8", "2606:4700::1"}})
	_, guarded := w.start(t, Config{Allow: []string{"go.dev"}, Token: "sesame"})
	const rest = "\x00\x01\x00\x00\x00\x00\x00\x00"
	for _, tt := range []struct{ name, addr, in, want string }{
		{"name", free, socksTo("go.dev", 443) + "ping", "\x05\x00\x05\x00" + rest + "ping"},
		{"IPv4", free, "\x05\x01\x00\x05\x01\x00\x01\x08\x08\x08\x08\x01\xbbping", "\x05\x00\x05\x00" + rest + "ping"},
		{"IPv6", free, "\x05\x01\x00\x05\x01\x00\x04\x26\x06\x47\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\xbbping", "\x05\x00\x05\x00" + rest + "ping"},
		{"IPv4 in IPv6", free, "\x05\x01\x00\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x08\x08\x08\x08\x01\xbbping", "\x05\x00\x05\x02" + rest},
		{"a needless password", free, "\x05\x01\x02\x01\x01u\x01p\x05\x01\x00\x03\x06go.dev\x01\xbbping", "\x05\x02\x01\x00\x05\x00" + rest + "ping"},
		{"not allowed", free, socksTo("evil.example", 443), "\x05\x00\x05\x02" + rest},
		{"port 0", free, socksTo("go.dev", 0), "\x05\x00\x05\x02" + rest},
		{"gone", free, socksTo("gone.example", 443), "\x05\x00\x05\x04" + rest},
		{"shut", free, socksTo("shut.example", 443), "\x05\x00\x05\x05" + rest},
		{"BIND", free, "\x05\x01\x00\x05\x02\x00\x01\x08\x08\x08\x08\x01\xbb", "\x05\x00\x05\x07" + rest},
		{"UDP", free, "\x05\x01\x00\x05\x03\x00\x01\x08\x08\x08\x08\x01\xbb", "\x05\x00\x05\x07" + rest},
		{"type of address", free, "\x05\x01\x00\x05\x01\x00\x02\x08\x08\x08\x08\x01\xbb", "\x05\x00\x05\x08" + rest},
		{"reserved", free, "\x05\x01\x00\x05\x01\x01\x01\x08\x08\x08\x08\x01\xbb", "\x05\x00"},
		{"another version", free, "\x05\x01\x00\x04\x01\x00\x01\x08\x08\x08\x08\x01\xbb", "\x05\x00"},
		{"SOCKS4", free, "\x04\x01\x01\xbb\x08\x08\x08\x08\x00", ""},
		{"TLS", free, "\x16\x03\x01", ""},
		{"no method", free, "\x05\x00", "\x05\xff"},
		{"a method that is not known", free, "\x05\x01\x01", "\x05\xff"},
		{"cut short", free, "\x05\x01\x00\x05\x01\x00\x03\x06go", "\x05\x00"},

		{"with the token", guarded, "\x05\x02\x00\x02\x01\x04dure\x06sesame\x05\x01\x00\x03\x06go.dev\x01\xbbping", "\x05\x02\x01\x00\x05\x00" + rest + "ping"},
		{"another token", guarded, "\x05\x01\x02\x01\x04dure\x06sesamf\x05\x01\x00\x03\x06go.dev\x01\xbb", "\x05\x02\x01\x01"},
		{"an empty token", guarded, "\x05\x01\x02\x01\x04dure\x00\x05\x01\x00\x03\x06go.dev\x01\xbb", "\x05\x02\x01\x01"},
		{"no token", guarded, socksTo("go.dev", 443), "\x05\xff"},
		{"another exchange of passwords", guarded, "\x05\x01\x02\x02\x04dure\x06sesame", "\x05\x02"},
	} {
		if got := say(t, tt.addr, tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// closedPort returns an address that takes no connections.
func closedPort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func TestReplies(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want byte
	}{
		{&refusal{}, replyNotAllowed},
		{&unreachable{"go.dev", syscall.ECONNREFUSED}, replyRefused},
		{&unreachable{"go.dev", syscall.ETIMEDOUT}, replyUnreachable},
		{errUpstream, replyUnreachable},
	} {
		if got := replyOf(tt.err); got != tt.want {
			t.Errorf("%v: %d", tt.err, got)
		}
	}
}

// silent is a client that has sent everything and reads everything.
type silent struct{ strings.Reader }

func (*silent) Write(p []byte) (int, error)      { return len(p), nil }
func (*silent) Close() error                     { return nil }
func (*silent) LocalAddr() net.Addr              { return nil }
func (*silent) RemoteAddr() net.Addr             { return nil }
func (*silent) SetDeadline(time.Time) error      { return nil }
func (*silent) SetReadDeadline(time.Time) error  { return nil }
func (*silent) SetWriteDeadline(time.Time) error { return nil }

func FuzzSOCKS(f *testing.F) {
	for _, s := range []string{
		socksTo("go.dev", 443), socksTo("go.dev\x00.evil", 80), "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50",
		"\x05\x01\x02\x01\x01u\x01p\x05\x01\x00\x03\x06go.dev\x01\xbb", "\x05\x01\x00\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x7f\x00\x00\x01\x00\x50", "\x05\xff",
	} {
		f.Add([]byte(s))
	}
	server, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		c := &silent{*strings.NewReader(string(in))}
		l := &link{server: server, client: c}
		head := newHeadReader(l)
		if l.greet(head.buf) != nil {
			return
		}
		to, reply, err := readRequest(head.buf)
		if (err == nil) != (to.host != "") || err != nil && to.host != "" {
			t.Fatalf("%+v, %d, %v", to, reply, err)
		}
		if err == nil {
			wellFormed(t, to)
		}
	})
}

func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		"CONNECT go.dev:443 HTTP/1.1\r\n\r\n", "GET http://go.dev/x HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "CONNECT [::ffff:1.2.3.4]:80 HTTP/1.1\r\n\r\n",
		"GET http://u:p@go.dev/ HTTP/1.1\r\n\r\n", "GET http://go.dev%00x/ HTTP/1.1\r\n\r\n", "CONNECT 0x7f.1:80 HTTP/1.1\r\n\r\n", "GET http:/x HTTP/1.1\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		req, err := readHead(in)
		if err != nil {
			return
		}
		if to, err := targetOf(req); err == nil {
			wellFormed(t, to)
		}
	})
}

// wellFormed proves that nobody can read a target in another way.
func wellFormed(t *testing.T, to target) {
	t.Helper()
	again, err := newTarget(to.host, to.port)
	if err != nil || again != to || to.port == 0 {
		t.Fatalf("%+v is %+v, %v", to, again, err)
	}
	a, err := netip.ParseAddr(to.host)
	if (err == nil) != to.addr.IsValid() || a != to.addr || a.Is4In6() || a.Zone() != "" {
		t.Fatalf("%+v", to)
	}
	if err != nil && strings.Trim(to.host, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		t.Fatalf("%+v", to)
	}
	if (rules{}).check(to) == nil {
		t.Fatalf("%+v is allowed by an empty list", to)
	}
}
