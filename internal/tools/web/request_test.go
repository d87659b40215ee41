package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
)

func TestRequest(t *testing.T) {
	var seen string
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h := r.Header.Clone()
		h.Del("Accept-Encoding")
		h.Del("User-Agent")
		seen = fmt.Sprint(r.Method, " ", r.URL.RequestURI(), " ", len(body), " ", r.TransferEncoding)
		for _, k := range slices.Sorted(maps.Keys(h)) {
			seen += " " + k + "=" + strings.Join(h[k], "|")
		}
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")
		switch r.URL.Path {
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-RateLimit-Remaining", "5")
			io.WriteString(w, `{"b":[1,2],"a":"x"}`)
		case "/echo":
			w.Header().Set("Link", r.Header.Get("Authorization"))
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprintf(w, "%s / %s / %s", r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.Header.Get("X-Name"))
		case "/bad":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			io.WriteString(w, `{"title":"no"}`)
		case "/moved":
			http.Redirect(w, r, "/json", http.StatusSeeOther)
		case "/binary":
			w.Header().Set("Content-Type", "application/zip")
			w.Write([]byte("PK\x03\x04\x00\x00"))
		case "/long":
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, strings.Repeat("x", 500))
		case "/made":
			w.WriteHeader(http.StatusCreated)
		}
	})
	w := New(Config{Permit: loopback, Lookup: names})
	at := "http://a.example:" + port
	for _, tt := range []struct {
		name   string
		fields map[string]any
		seen   string
		text   string
		code   agent.ErrorCode
	}{
		{
			"JSON",
			map[string]any{"url": at + "/json?q=a b", "headers": map[string]string{"accept": "application/json"}},
			"GET /json?q=a%20b 0 [] Accept=application/json Connection=close",
			"GET URL/json?q=a%20b: HTTP 200 OK\n<<\nContent-Type: application/json\nX-Ratelimit-Remaining: 5\n\n{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": \"x\"\n}\n>>", "",
		},
		{
			"what changes something has a key",
			map[string]any{"url": at + "/made", "method": "post", "body": "a=b", "headers": map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
			"POST /made 3 [] Connection=close Content-Length=3 Content-Type=application/x-www-form-urlencoded Idempotency-Key=key-1",
			"POST URL/made: HTTP 201 Created", "",
		},
		{
			"the key of the API's own",
			map[string]any{"url": at + "/made", "method": "DELETE", "headers": map[string]string{"idempotency-key": "mine"}},
			"DELETE /made 0 [] Connection=close Idempotency-Key=mine",
			"DELETE URL/made: HTTP 201 Created", "",
		},
		{
			"head",
			map[string]any{"url": at + "/json", "method": "HEAD"},
			"HEAD /json 0 [] Connection=close",
			"HEAD URL/json: HTTP 200 OK\n<<\nContent-Type: application/json\nX-Ratelimit-Remaining: 5\n>>", "",
		},
		{
			"secrets do not come back",
			map[string]any{"url": at + "/echo", "headers": map[string]string{"Authorization": "Bearer abcdefgh1234", "X-Api-Key": "key-key-key", "X-Name": "visible-name"}},
			"GET /echo 0 [] Authorization=Bearer abcdefgh1234 Connection=close X-Api-Key=key-key-key X-Name=visible-name",
			"GET URL/echo: HTTP 200 OK\n<<\nContent-Type: text/plain\nLink: [secret]\n\n[secret] / [secret] / visible-name\n>>", "",
		},
		{
			"an error with its body",
			map[string]any{"url": at + "/bad", "method": "PUT"},
			"PUT /bad 0 [] Connection=close Content-Length=0 Idempotency-Key=key-1",
			"PUT URL/bad: HTTP 422 Unprocessable Entity\n<<\nContent-Type: application/problem+json\n\n{\n  \"title\": \"no\"\n}\n>>", ErrWebStatus,
		},
		{
			"a redirect is not followed",
			map[string]any{"url": at + "/moved", "method": "PATCH"},
			"PATCH /moved 0 [] Connection=close Content-Length=0 Idempotency-Key=key-1",
			"PATCH URL/moved: HTTP 303 See Other\n<<\nLocation: /json\n>>", ErrWebStatus,
		},
		{
			"binary",
			map[string]any{"url": at + "/binary"},
			"GET /binary 0 [] Connection=close",
			"GET URL/binary: HTTP 200 OK\n<<\nContent-Type: application/zip\n\n[binary data: application/zip, 6 bytes, sha256 be0c7ebd8b5fd4585f4b493d0325f974789b089cf31d26fe1078df41a5412fe3]\n>>", "",
		},
		{
			"bounded",
			map[string]any{"url": at + "/long", "max_bytes": 10},
			"GET /long 0 [] Connection=close",
			"GET URL/long: HTTP 200 OK\n<<\nContent-Type: text/plain\n\nxxxxxxxxxx\n>>\n[only the first 10 bytes of the body were read; ask for more with max_bytes]", "",
		},
	} {
		r := run(t, w, "http__request", tt.fields)
		if d := cmp.Diff(tt.text, strings.ReplaceAll(r.Text, at, "URL")); d != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, d)
		}
		if seen != tt.seen || code(r) != tt.code || r.Failed() != (tt.code != "") {
			t.Errorf("%s: code %q, the server saw %s", tt.name, code(r), seen)
		}
		if !json.Valid(r.Output) {
			t.Errorf("%s: %s", tt.name, r.Output)
		}
	}
}

func TestRequestInput(t *testing.T) {
	headers := func(name, value string) map[string]any {
		return map[string]any{"url": "https://a.example", "headers": map[string]string{name: value}}
	}
	many := map[string]string{}
	for i := range maxRequestHeaders + 1 {
		many[fmt.Sprint("X-", i)] = ""
	}
	for _, tt := range []struct {
		fields map[string]any
		want   string
	}{
		{headers("X-A", "a\r\nHost: evil"), "the value of the header X-A has control characters, or more than 8192 bytes"},
		{headers("X-A", "a\x00"), "the value of the header X-A has control characters, or more than 8192 bytes"},
		{headers("X-A", strings.Repeat("x", maxHeaderValue+1)), "the value of the header X-A has control characters, or more than 8192 bytes"},
		{headers("X-A: b\r\nX-B", "c"), `the header name "X-A: b\r\nX-B" cannot exist`},
		{headers("", "c"), `the header name "" cannot exist`},
		{headers("host", "evil"), "the header Host is set by the connection"},
		{headers("Content-length", "1"), "the header Content-Length is set by the connection"},
		{headers("TRANSFER-ENCODING", "chunked"), "the header Transfer-Encoding is set by the connection"},
		{headers("Connection", "keep-alive"), "the header Connection is set by the connection"},
		{headers("Proxy-Authorization", "x"), "the header Proxy-Authorization is set by the connection"},
		{headers("accept-encoding", "br"), "the header Accept-Encoding is set by the connection"},
		{map[string]any{"url": "https://a.example", "headers": map[string]string{"x-a": "1", "X-A": "2"}}, "the header X-A is given twice"},
		{map[string]any{"url": "https://a.example", "headers": many}, "there are more than 64 headers"},
		{map[string]any{"url": "https://a.example", "method": "GET / HTTP/1.1\r\n"}, `the method "GET / HTTP/1.1\r\n" cannot exist`},
		{map[string]any{"url": "https://a.example", "method": "CONNECT"}, "CONNECT is not made for APIs"},
		{map[string]any{"url": "https://a.example", "method": "trace"}, "TRACE is not made for APIs"},
		{map[string]any{"url": "https://a.example", "body": strings.Repeat("x", maxRequestBody+1)}, "the body has more than 5242880 bytes"},
		{map[string]any{"url": "ftp://a.example"}, `the URL "ftp://a.example" is neither http nor https`},
	} {
		_, err := toolsOf(New(Config{}))["http__request"].Plan(t.Context(), agent.ToolContext{}, agent.Call{Input: input(tt.fields)})
		if te, ok := errors.AsType[*agent.ToolError](err); !ok || te.Message != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

// A request that may have changed something is sent once, even when the server
// drops the connection at the worst time.
func TestSentOnce(t *testing.T) {
	var n atomic.Int32
	port := serve(t, func(http.ResponseWriter, *http.Request) {
		n.Add(1)
		panic(http.ErrAbortHandler)
	})
	w := New(Config{Permit: loopback, Lookup: names})
	for range 3 {
		r := run(t, w, "http__request", map[string]any{"url": "http://a.example:" + port, "method": "POST"})
		if code(r) != ErrWebFetch || r.Error.Suggestion != "Whether it took effect is not known: look before you send it again." {
			t.Errorf("%+v", r)
		}
	}
	if n.Load() != 3 {
		t.Errorf("three calls made %d requests", n.Load())
	}
}
