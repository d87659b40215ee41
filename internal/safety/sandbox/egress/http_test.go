package egress

import (
	"bufio"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// asked is a web server that answers with what it was asked, byte for byte but
// for the order of the header, and then says extra.
func asked(reply string) func(net.Conn) {
	return func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n")
			return
		}
		body, _ := io.ReadAll(req.Body)
		var b strings.Builder
		_, _ = b.WriteString(req.Method + " " + req.RequestURI + " Host:" + req.Host)
		for _, name := range []string{"Accept", "Authorization", "Connection", "Content-Type", "Expect", "Forwarded", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Upgrade", "User-Agent", "Via", "X-Forwarded-For", "X-Hop"} {
			if v := req.Header.Get(name); v != "" && v != "close" {
				_, _ = b.WriteString(" " + name + ":" + v)
			}
		}
		if req.Close {
			_, _ = b.WriteString(" close")
		}
		_, _ = b.WriteString(" " + strings.Join(req.TransferEncoding, ",") + "[" + string(body) + "]")
		_, _ = io.WriteString(c, strings.ReplaceAll(strings.ReplaceAll(reply, "BODY", b.String()), "LENGTH", lengthOf(b.String())))
	}
}

func lengthOf(s string) string {
	const digits = "0123456789"
	n, out := len(s), ""
	for ; n > 0; n /= 10 {
		out = string(digits[n%10]) + out
	}
	return out
}

const plainReply = "HTTP/1.1 200 OK\r\nContent-Length: LENGTH\r\n\r\nBODY"

// What the target gets, for what the client sends.
func TestRequests(t *testing.T) {
	w := &world{names: map[string]string{"go.dev": "8.8.8.8"}, servers: map[string]string{"*": answering(t, asked(plainReply))}}
	_, addr := w.start(t, Config{Allow: []string{"go.dev", "go.dev:8080", "::1"}})
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "GET http://go.dev/a?b=%20 HTTP/1.1\r\nHost: go.dev\r\nUser-Agent: x\r\nAccept: y\r\n\r\n", "GET /a?b=%20 Host:go.dev Accept:y User-Agent:x close []"},
		{"the Host field does not matter", "GET http://GO.dev./ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "GET / Host:go.dev close []"},
		{"port", "GET http://go.dev:8080/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET / Host:go.dev:8080 close []"},
		{"address", "GET http://[0::1]:80/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET / Host:[::1] close []"},
		{"old version", "GET http://go.dev/ HTTP/1.0\r\n\r\n", "GET / Host:go.dev close []"},
		{
			"hop by hop", "GET http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\n" +
				"Proxy-Authorization: Basic secret\r\nTE: trailers\r\nUpgrade: h2c\r\nAuthorization: Basic mine\r\n\r\n",
			"GET / Host:go.dev Authorization:Basic mine close []",
		},
		{"body", "POST http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\nContent-Length: 5\r\nContent-Type: t\r\n\r\nhello", "POST / Host:go.dev Content-Type:t close [hello]"},
		{"chunked", "POST http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "POST / Host:go.dev close chunked[hello]"},
		{
			"length and chunks", "POST http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET http://evil.example/ HTTP/1.1\r\n\r\n",
			"POST / Host:go.dev close chunked[hello]",
		},
		{"a second request", "GET http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\n\r\nGET http://go.dev/second HTTP/1.1\r\nHost: go.dev\r\n\r\n", "GET / Host:go.dev close []"},
		{"two lengths", "POST http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nhello", ""},
		{"unknown encoding", "POST http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\nTransfer-Encoding: xchunked\r\n\r\nhello", ""},
		{"space before colon", "GET http://go.dev/ HTTP/1.1\r\nHost : go.dev\r\n\r\n", ""},
		{"control in a value", "GET http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\nX: a\x01b\r\n\r\n", ""},
		{"NUL in a value", "GET http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\nX: a\x00b\r\n\r\n", ""},
		{"header without end", "GET http://go.dev/ HTTP/1.1\r\nX: " + strings.Repeat("x", maxHead) + "\r\n\r\n", ""},
		{"another version", "GET http://go.dev/ HTTP/2.0\r\nHost: go.dev\r\n\r\n", ""},
		{"Expect", "POST http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", "POST / Host:go.dev close [hello]"},
	} {
		got := say(t, addr, tt.in)
		seen := w.seen()
		if tt.want == "" {
			if !strings.HasPrefix(got, "HTTP/1.1 400 ") || seen != "" {
				t.Errorf("%s: %s: %s", tt.name, got, seen)
			}
			continue
		}
		got = strings.TrimPrefix(got, "HTTP/1.1 100 Continue\r\n\r\n")
		if head, body, _ := strings.Cut(got, "\r\n\r\n"); !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || body != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// What the client gets, for what the target sends.
func TestAnswers(t *testing.T) {
	const ask = "GET http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\n\r\n"
	for _, tt := range []struct{ name, in, reply, want string }{
		{"length", ask, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nServer: x\r\n\r\nhi", "HTTP/1.1 200 OK\nConnection: close\nContent-Length: 2\nServer: x\n\nhi"},
		{"to its end", ask, "HTTP/1.0 200 OK\r\n\r\nhi", "HTTP/1.1 200 OK\nConnection: close\n\nhi"},
		{"chunked", ask, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "HTTP/1.1 200 OK\nConnection: close\nTransfer-Encoding: chunked\n\n2\nhi\n0\n\n"},
		{"chunked, for an old client", "GET http://go.dev/ HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "HTTP/1.1 200 OK\nConnection: close\n\nhi"},
		{
			"hop by hop", ask, "HTTP/1.1 204 No Content\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX: y\r\n\r\n",
			"HTTP/1.1 204 No Content\nConnection: close\nX: y\n\n",
		},
		{"early hints", ask, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "HTTP/1.1 200 OK\nConnection: close\nContent-Length: 2\n\nhi"},
		{"HEAD", "HEAD http://go.dev/ HTTP/1.1\r\nHost: go.dev\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 200 OK\nConnection: close\nContent-Length: 9\n\n"},
		{"a redirect is the client's", ask, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 302 Found\nConnection: close\nContent-Length: 0\nLocation: http://127.0.0.1/\n\n"},
		{"another protocol", ask, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", "bad gateway"},
		{"no answer", ask, "", "bad gateway"},
		{"no HTTP", ask, "SSH-2.0-x\r\n", "bad gateway"},
		{"hints without end", ask, strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 9), "bad gateway"},
		{"control in the header", ask, "HTTP/1.1 200 OK\r\nX: a\x01b\r\n\r\n", "bad gateway"},
		{"header without end", ask, "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHead), "bad gateway"},
	} {
		w := &world{names: map[string]string{"go.dev": "8.8.8.8"}, servers: map[string]string{"*": answering(t, asked(tt.reply))}}
		_, addr := w.start(t, Config{Allow: []string{"go.dev"}})
		got := strings.ReplaceAll(say(t, addr, tt.in), "\r", "")
		if tt.want == "bad gateway" {
			if !strings.HasPrefix(got, "HTTP/1.1 502 the host has sent no answer that can be read\n") {
				t.Errorf("%s: %s", tt.name, got)
			}
			continue
		}
		head, body, _ := strings.Cut(got, "\n\n")
		if got := lines(strings.NewReader(head)) + "\n\n" + body; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestAnswerCutShort(t *testing.T) {
	w := &world{names: map[string]string{"go.dev": "8.8.8.8"}, servers: map[string]string{"*": answering(t, asked("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"))}}
	_, addr := w.start(t, Config{Allow: []string{"go.dev"}})
	resp, err := client(t, "http://"+addr).Get("http://go.dev/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("%q passed for the whole", body)
	}
}

// A refusal says what and what to do, in both places where clients look.
func TestRefusal(t *testing.T) {
	w := &world{names: map[string]string{"in.example": "10.0.0.1"}}
	_, addr := w.start(t, Config{Allow: []string{"in.example", "gone.example", "shut.example"}})
	for _, tt := range []struct{ to, want string }{
		{"evil.example:443", "HTTP/1.1 403 host evil.example is not allowed|host evil.example is not allowed.\nAsk the user to allow it, or go on without it.\n"},
		{"in.example:22", "HTTP/1.1 403 port 22 of host in.example is not allowed|port 22 of host in.example is not allowed.\nAsk the user to allow it, or go on without it.\n"},
		{"in.example:443", "HTTP/1.1 403 host in.example leads to 10.0.0.1, which is a private address|host in.example leads to 10.0.0.1, which is a private address.\nGo on without it.\n"},
		{"127.1:443", "HTTP/1.1 403 the host is a number but no address of four parts|the host is a number but no address of four parts.\nUse a host name, or an address in its usual form.\n"},
		{"gone.example:443", "HTTP/1.1 502 looking up gone.example: no such host|looking up gone.example: no such host.\n"},
	} {
		got := strings.ReplaceAll(say(t, addr, "CONNECT "+tt.to+" HTTP/1.1\r\n\r\n"), "\r", "")
		head, body, _ := strings.Cut(got, "\n\n")
		status, _, _ := strings.Cut(head, "\n")
		if got := status + "|" + body; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.to, got, tt.want)
		}
	}
}

func TestToken(t *testing.T) {
	w := &world{names: map[string]string{"go.dev": "8.8.8.8"}, servers: map[string]string{"*": answering(t, asked(plainReply))}}
	_, addr := w.start(t, Config{Allow: []string{"go.dev"}, Token: "sesame"})
	for _, tt := range []struct {
		user string
		ok   bool
	}{{"", false}, {"dure:", false}, {"dure:sesam", false}, {"sesame:x", false}, {"dure:sesame", true}, {"x:sesame", true}} {
		for _, scheme := range []string{"http", "socks5"} {
			at := scheme + "://" + addr
			if tt.user != "" {
				at = scheme + "://" + tt.user + "@" + addr
			}
			resp, err := client(t, at).Get("http://go.dev/")
			if err == nil {
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if ok := resp.StatusCode == http.StatusOK; ok != tt.ok || strings.Contains(string(body), "sesame") || !ok && resp.StatusCode != http.StatusProxyAuthRequired {
					t.Errorf("%s: %s %s", at, resp.Status, body)
				}
			} else if tt.ok || scheme == "http" {
				t.Errorf("%s: %v", at, err)
			}
			if seen := w.seen(); (seen != "") != tt.ok {
				t.Errorf("%s: %s", at, seen)
			}
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(say(t, addr, "CONNECT go.dev:443 HTTP/1.1\r\nProxy-Authorization: Bearer "+base64.StdEncoding.EncodeToString([]byte(":sesame"))+"\r\n\r\n"))), nil)
	if err != nil || resp.StatusCode != http.StatusProxyAuthRequired || resp.Header.Get("Proxy-Authenticate") != `Basic realm="dure"` {
		t.Errorf("%+v, %v", resp, err)
	}
}

// The user's own proxy is a server of this package with a token.
func TestUpstream(t *testing.T) {
	far := &world{names: map[string]string{"go.dev": "8.8.8.8", "inner.corp": "9.9.9.9"}, servers: map[string]string{"*": answering(t, asked(plainReply))}}
	_, upstream := far.start(t, Config{Allow: []string{"go.dev", "inner.corp"}, Token: "sesame"})
	for _, scheme := range []string{"http", "socks5", "socks5h"} {
		near := &world{names: map[string]string{"go.dev": "8.8.8.8", "evil.example": "127.0.0.1"}, servers: map[string]string{"*": upstream}}
		at := &url.URL{Scheme: scheme, User: url.UserPassword("dure", "sesame"), Host: upstream}
		c := Config{Allow: []string{"go.dev", "inner.corp", "evil.example"}, Upstream: func(string) *url.URL { return at }}
		_, addr := near.start(t, c)
		c.Allow = []string{"*"}
		_, open := near.start(t, c)
		hello := "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
		for _, tt := range []struct{ addr, ask, want, nearby, beyond string }{
			{addr, "GET http://go.dev/ HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic bWU6bWU=\r\n\r\n", "GET / Host:go.dev close []", "look up go.dev; dial UP", "look up go.dev; dial 8.8.8.8:80"},
			{addr, "CONNECT go.dev:443 HTTP/1.1\r\n\r\n" + hello, "GET / Host:x []", "look up go.dev; dial UP", "look up go.dev; dial 8.8.8.8:443"},
			{addr, socksTo("go.dev", 443) + hello, "GET / Host:x []", "look up go.dev; dial UP", "look up go.dev; dial 8.8.8.8:443"},
			{addr, "CONNECT inner.corp:443 HTTP/1.1\r\n\r\n" + hello, "GET / Host:x []", "look up inner.corp; dial UP", "look up inner.corp; dial 9.9.9.9:443"},
			{open, "CONNECT inner.corp:443 HTTP/1.1\r\n\r\n" + hello, "HTTP/1.1 502 looking up inner.corp: no such host", "look up inner.corp", ""},
			{addr, "CONNECT evil.example:443 HTTP/1.1\r\n\r\n" + hello, "HTTP/1.1 403 host evil.example leads to 127.0.0.1, which is a loopback address", "look up evil.example; denied evil.example:443 address", ""},
		} {
			got := say(t, tt.addr, tt.ask)
			if !strings.Contains(got, tt.want) || strings.Contains(got, "sesame") {
				t.Errorf("%s: %q: %q", scheme, tt.ask, got)
			}
			if seen := near.seen(); seen != strings.ReplaceAll(tt.nearby, "UP", upstream) {
				t.Errorf("%s: %q: %s", scheme, tt.ask, seen)
			}
			if seen := far.seen(); seen != tt.beyond {
				t.Errorf("%s: %q: beyond it %s", scheme, tt.ask, seen)
			}
		}
		at.User = url.UserPassword("dure", "wrong")
		if got := say(t, addr, "CONNECT go.dev:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502 the proxy of") || strings.Contains(got, "wrong") {
			t.Errorf("%s: %s", scheme, got)
		}
		far.seen()
	}
}

// readHead reads a request as the server does.
func readHead(in []byte) (*http.Request, error) {
	return http.ReadRequest(newHeadReader(strings.NewReader(string(in))).buf)
}
