package web

import (
	"net/url"
	"strings"
	"testing"
)

func TestTargets(t *testing.T) {
	for _, tt := range []struct{ in, url, dial string }{
		{"https://go.dev", "https://go.dev/", "go.dev:443"},
		{" HTTPS://Go.Dev:443/a?b=c#d ", "https://go.dev/a?b=c", "go.dev:443"},
		{"http://go.dev:80/", "http://go.dev/", "go.dev:80"},
		{"http://go.dev:443/", "http://go.dev:443/", "go.dev:443"},
		{"http://go.dev./x", "http://go.dev/x", "go.dev:80"},
		{"http://go.dev/?q=a b&c=ü%20+", "http://go.dev/?q=a%20b&c=%C3%BC%20+", "go.dev:80"},
		{"https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC", "xn--bcher-kva.example:443"},
		{"https://한국.example", "https://xn--3e0b707e.example/", "xn--3e0b707e.example:443"},
		{"https://ｇｏ.dev", "https://go.dev/", "go.dev:443"},
		{"http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x", "127.0.0.1:8080"},
		{"http://[::1]/", "http://[::1]/", "[::1]:80"},
		{"http://[0:0:0:0:0:0:0:1]/", "http://[::1]/", "[::1]:80"},
		{"http://[::FFFF:7F00:1]:81/", "http://[::ffff:127.0.0.1]:81/", "[::ffff:127.0.0.1]:81"},
	} {
		got, err := parseTarget(tt.in)
		if err != nil || got.String() != tt.url || got.dial() != tt.dial {
			t.Errorf("%q: %v, %v", tt.in, got, err)
		}
	}
	for _, in := range []string{
		"", "go.dev", "//go.dev", "file:///etc/passwd", "ftp://go.dev", "gopher://go.dev", "javascript:alert(1)", "data:text/plain,x",
		"http:", "http://", "http:///x", "http:go.dev", "https://user@go.dev", "https://user:secret@go.dev", "https://@go.dev",
		"http://go.dev:0/", "http://go.dev:65536/", "http://go.dev:x/", "http://go.dev:-1/",
		"http://go.dev\\@evil.example/", "http://go dev/", "http://go\x00.dev/", "http://go.dev\r\nHost: x/", "http://go%00.dev/", "http://go_dev.example/",
		"http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://1.2.3.4.5/", "http://127.0.0.1.1/", "http://a.0x1/",
		"http://[::1%25eth0]/", "http://[::1", "http://[1.2.3.4]/x", "http://..", "http://-a.example/", "http://" + strings.Repeat("a.", 130) + "example/",
		"http://go.dev/" + strings.Repeat("x", maxURL),
	} {
		if got, err := parseTarget(in); err == nil {
			t.Errorf("%q was taken as %s", in, got)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestSameSite(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{"https://a.example/x", "https://a.example/y", true},
		{"http://a.example/", "https://a.example/", true},
		{"http://a.example/", "https://www.a.example/", true},
		{"https://www.a.example/", "https://a.example/", true},
		{"https://a.example/", "http://a.example/", false},
		{"https://a.example/", "https://b.example/", false},
		{"https://a.example/", "https://x.a.example/", false},
		{"https://a.example/", "https://a.example:8443/", false},
		{"http://a.example:8080/", "https://a.example/", false},
		{"http://a.example/", "https://a.example:8443/", false},
		{"https://a.example/", "https://www.www.a.example/", false},
	} {
		from, err := parseTarget(tt.from)
		if err != nil {
			t.Fatal(err)
		}
		to, err := parseTarget(tt.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := from.sameSite(to); got != tt.want {
			t.Errorf("%s to %s: %v", tt.from, tt.to, got)
		}
	}
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{
		"https://go.dev/a?b#c", "http://user:p@h/", "http://[::ffff:1.2.3.4]:80/", "http://0x7f.1/", "https://bücher.example", "http://a.example\\@b", "http://a.\u3002b/", "//x", "http://%31/", "http://0\x80",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := parseTarget(raw)
		if err != nil {
			return
		}
		s := got.String()
		u, err := url.Parse(s)
		if err != nil || u.Hostname() != got.host || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			t.Fatalf("%q became %q, which others read as %+v", raw, s, u)
		}
		if strings.Trim(got.host, "abcdefghijklmnopqrstuvwxyz0123456789.-:") != "" {
			t.Fatalf("%q has the host %q", raw, got.host)
		}
		if strings.ContainsAny(s, " \r\n\t\x00") {
			t.Fatalf("%q became %q", raw, s)
		}
		again, err := parseTarget(s)
		if len(s) <= maxURL && (err != nil || again.String() != s || again.dial() != got.dial()) {
			t.Fatalf("%q became %q and then %v, %v", raw, s, again, err)
		}
	})
}
