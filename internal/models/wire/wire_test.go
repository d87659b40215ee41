package wire

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/models/sse"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		ms, after string
		want      time.Duration
	}{
		{"", "", 0},
		{"", "3", 3 * time.Second},
		{"", "0.25", 250 * time.Millisecond},
		{"", "Tue, 01 Jan 2030 12:00:09 GMT", 9 * time.Second},
		{"", "Tue, 01 Jan 2030 11:00:00 GMT", 0},
		{"", "soon", 0},
		{"", "-5", 0},
		{"", "NaN", 0},
		{"", "1e300", maxRetryAfter},
		{"", "Tue, 01 Jan 2999 12:00:00 GMT", maxRetryAfter},
		{"20.5", "3", 20500 * time.Microsecond},
		{"soon", "3", 3 * time.Second},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.after)
		h.Set("Retry-After-Ms", c.ms)
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%q, %q: got %v, want %v", c.ms, c.after, got, c.want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\r\t\x00\x1f", "é\xff\xed\xa0\x80 \u2028😀", "</script>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(Quote(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); len(got) < len(s) && got != want || strings.ToValidUTF8(got, "") != got {
			t.Fatalf("%q became %q", s, got)
		}
		if strings.ToValidUTF8(s, "") == s && got != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

func TestEndpoints(t *testing.T) {
	for _, c := range []struct{ base, path, want string }{
		{"https://h", "/v1/messages", "https://h/v1/messages"},
		{"https://h/", "/v1/messages", "https://h/v1/messages"},
		{"https://h/v1", "/v1/messages", "https://h/v1/messages"},
		{"https://h/v1/", "/v1/chat/completions", "https://h/v1/chat/completions"},
		{"https://h/api/v4", "/v1/chat/completions", "https://h/api/v4/chat/completions"},
		{"https://h/proxy", "/v1/responses", "https://h/proxy/v1/responses"},
		{"https://h/v1beta", "/v1beta/models/m:streamGenerateContent?alt=sse", "https://h/v1beta/models/m:streamGenerateContent?alt=sse"},
		{"https://h?api-version=2", "/v1/responses?a=b", "https://h/v1/responses?a=b&api-version=2"},
		{"ftp://h", "/v1/responses", ""},
		{"h", "/v1/responses", ""},
	} {
		if got, _, err := endpoint(c.base, Dialect{Path: c.path}); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s + %s: %s, %v; want %s", c.base, c.path, got, err, c.want)
		}
	}
}

// TestEndsBeforeTheFirstEvent ends answers before an event was whole. What may
// have become one is worth another attempt.
func TestEndsBeforeTheFirstEvent(t *testing.T) {
	for _, c := range []struct {
		body  string
		class agent.FailureClass
	}{
		{"", agent.FailServer},
		{"e", agent.FailServer},
		{"event: message_start\ndata: {\"type\"", agent.FailServer},
		{"data: {\"id\":\"1\"}\n", agent.FailServer},
		{": processing\n\n: processing\n\n", agent.FailServer},
		{"\r\n\r\nid: 1\n", agent.FailServer},
		{"\xef\xbb", agent.FailServer},
		{"\xef\xbb\xbfretry: 5", agent.FailServer},
		{"<html>", agent.FailProtocol},
		{"events are not here", agent.FailProtocol},
		{"{\"error\":{}}\n\n", agent.FailProtocol},
		{"\x00data: {}", agent.FailProtocol},
	} {
		for _, size := range []int{1, 100} { // bytes of a read
			in := NewBody(strings.NewReader(c.body))
			_, err := sse.NewDecoder(pieces{in, size}).Next()
			if got := agent.ClassOf(in.Cut(err, false)); got != c.class {
				t.Errorf("%q: %s, want %s", c.body, got, c.class)
			}
		}
	}
}

// pieces reads in pieces of a size.
type pieces struct {
	r    io.Reader
	size int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.size)]) }

// An answer that never ends is given up.
func TestEndlessAnswer(t *testing.T) {
	n, err := io.Copy(io.Discard, NewBody(endless{}))
	if e, ok := errors.AsType[*agent.ModelError](err); !ok || e.Retryable() || n < maxAnswer || n > maxAnswer+1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
