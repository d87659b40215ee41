package hosts

import (
	"net/netip"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	label := strings.Repeat("a", 63)
	for _, tt := range []struct{ in, want string }{
		{"go.dev", "go.dev"},
		{"GO.Dev.", "go.dev"},
		{"localhost", "localhost"},
		{"a-b.example", "a-b.example"},
		{"0x7f.example", "0x7f.example"},
		{"1.2.3.4.example", "1.2.3.4.example"},
		{"bücher.example", "xn--bcher-kva.example"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"ｇｏ.dev", "go.dev"},
		{"go。dev", "go.dev"},
		{label + ".example", label + ".example"},
		{"127.0.0.1", "127.0.0.1"},
		{"::1", "::1"},
		{"0:0:0:0:0:0:0:1", "::1"},
		{"::FFFF:7F00:1", "::ffff:127.0.0.1"},

		{"", "cannot exist"},
		{".", "cannot exist"},
		{"..", "cannot exist"},
		{"a..b", "cannot exist"},
		{".example", "cannot exist"},
		{"a.example..", "cannot exist"},
		{"a。", "cannot exist"},
		{"-a.example", "cannot exist"},
		{"a-.example", "cannot exist"},
		{"a_b.example", "cannot exist"},
		{"*.example", "cannot exist"},
		{"a b.example", "cannot exist"},
		{"a\x00.example", "cannot exist"},
		{"a.example\x00.b.example", "cannot exist"},
		{"a.example\n", "cannot exist"},
		{"user@a.example", "cannot exist"},
		{"a.example/x", "cannot exist"},
		{"a\\b.example", "cannot exist"},
		{"[::1]", "cannot be read as an address"},
		{"xn--a.example", "cannot exist"},
		{label + "a.example", "cannot exist"},
		{strings.Repeat("a.", 126) + "aa", "cannot exist"},
		{strings.Repeat("ü.", 1000), "cannot exist"},
		{"127.1", "is a number but no address of four parts"},
		{"2130706433", "is a number but no address of four parts"},
		{"0x7f000001", "is a number but no address of four parts"},
		{"0x7f.0.0.0x1", "is a number but no address of four parts"},
		{"0177.0.0.1", "is a number but no address of four parts"},
		{"1.2.3.4.5", "is a number but no address of four parts"},
		{"256.1.1.1", "is a number but no address of four parts"},
		{"fe80::1%eth0", "cannot be read as an address"},
		{"1.2.3.4%25eth0", "cannot be read as an address"},
		{"a.example:80", "cannot be read as an address"},
		{"::1.2.3", "cannot be read as an address"},
	} {
		got, err := Name(tt.in)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestRules(t *testing.T) {
	for _, tt := range []struct {
		rule, host string
		port       uint16
		want       bool
	}{
		{"go.dev", "go.dev", 443, true},
		{"go.dev", "go.dev", 8080, true},
		{"Go.Dev.", "go.dev", 443, true},
		{"go.dev", "x.go.dev", 443, false},
		{"go.dev", "evilgo.dev", 443, false},
		{"go.dev", "go.dev.evil.example", 443, false},
		{"*.go.dev", "x.go.dev", 443, true},
		{"*.go.dev", "a.b.go.dev", 443, true},
		{"*.go.dev", "go.dev", 443, false},
		{"*.go.dev", "evilgo.dev", 443, false},
		{"go.dev:8443", "go.dev", 8443, true},
		{"go.dev:8443", "go.dev", 443, false},
		{"*.go.dev:8443", "x.go.dev", 8443, true},
		{"*.go.dev:8443", "x.go.dev", 443, false},
		{"10.0.0.1", "10.0.0.1", 80, true},
		{"10.0.0.1", "10.0.0.11", 80, false},
		{"[::1]:80", "::1", 80, true},
		{"[::1]:80", "::1", 81, false},
		{"::1", "::1", 81, true},
		{"10.0.0.0/8", "10.1.2.3", 80, true},
		{"10.0.0.0/8", "11.1.2.3", 80, false},
		{"10.0.0.0/8", "10.example", 80, false},
		{"bücher.example", "xn--bcher-kva.example", 443, true},
	} {
		r, err := ParseRule(tt.rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Fits(tt.host, tt.port); got != tt.want {
			t.Errorf("%s, %s:%d: %v", tt.rule, tt.host, tt.port, got)
		}
	}
	for _, bad := range []string{"", "*", "*.", "*x.example", "a.*.example", "a.example:0", "a.example:x", "a.example:65536", "https://a.example", "a.example/x", "*.10.0.0.1", "10.0.0.0/33", "wiki corp"} {
		if r, err := ParseRule(bad); err == nil {
			t.Errorf("%q was taken as %+v", bad, r)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"go.dev", "GO.dev.", "bücher.example", "127.0.0.1", "::ffff:1.2.3.4", "0x7f.1", "a\x00b", "a..b", "fe80::1%1", "a。b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		name, err := Name(raw)
		if err != nil {
			return
		}
		if again, err := Name(name); err != nil || again != name {
			t.Fatalf("%q is %q, and that is %q, %v", raw, name, again, err)
		}
		if _, err := netip.ParseAddr(name); err == nil {
			return
		}
		if len(name) > 253 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || strings.Contains("."+name+".", "..") {
			t.Fatalf("%q is %q", raw, name)
		}
	})
}
