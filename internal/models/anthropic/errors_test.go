package anthropic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"dure/agent"
	"dure/internal/models/wire"
	"dure/internal/models/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns a model that asks h over a real connection, and the server.
func serve(t *testing.T, cfg wire.Config, h http.HandlerFunc) *wire.Model {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	cfg.BaseURL = wire.Or(cfg.BaseURL, srv.URL)
	cfg.Info = reader
	m := New(cfg)
	t.Cleanup(m.Close)
	return m
}

func TestAnswersThatAreErrors(t *testing.T) {
	said := func(kind, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_body"}`, kind, message)
	}
	header := func(pairs ...string) http.Header {
		h := http.Header{"Content-Type": {"application/json"}}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	spent := `{"type":"error","error":{"type":"rate_limit_error","message":"no more","details":{"error_code":"enforced_spend_limit_reached"}}}`
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		body   string
		want   agent.ModelError
	}{
		{"bad request", 400, nil, said("invalid_request_error", "max_tokens: field required"), agent.ModelError{Class: agent.FailInvalid, Code: "invalid_request_error", Message: "max_tokens: field required"}},
		{"too long", 400, nil, said("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), agent.ModelError{Class: agent.FailContext, Code: "invalid_request_error", Message: "prompt is too long: 210000 tokens > 200000 maximum"}},
		{"too long with the answer", 400, nil, said("invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 2"), agent.ModelError{Class: agent.FailContext, Code: "invalid_request_error", Message: "input length and `max_tokens` exceed context limit: 1 + 2 > 2"}},
		{"no credit", 400, nil, said("invalid_request_error", "Your credit balance is too low"), agent.ModelError{Class: agent.FailQuota, Code: "invalid_request_error", Message: "Your credit balance is too low"}},
		{"wrong key", 401, nil, said("authentication_error", "invalid x-api-key"), agent.ModelError{Class: agent.FailAuth, Code: "authentication_error", Message: "invalid x-api-key"}},
		{"not paid", 402, nil, said("billing_error", "pay"), agent.ModelError{Class: agent.FailQuota, Code: "billing_error", Message: "pay"}},
		{"not permitted", 403, nil, said("permission_error", "no"), agent.ModelError{Class: agent.FailAuth, Code: "permission_error", Message: "no"}},
		{"no such model", 404, nil, said("not_found_error", "model: x"), agent.ModelError{Class: agent.FailNotFound, Code: "not_found_error", Message: "model: x"}},
		{"too large", 413, nil, said("request_too_large", "32 MB"), agent.ModelError{Class: agent.FailContext, Code: "request_too_large", Message: "32 MB"}},
		{"too many", 429, header("Retry-After", "7", "Request-Id", "req_head"), said("rate_limit_error", "slow"), agent.ModelError{Class: agent.FailRate, Code: "rate_limit_error", Message: "slow", RetryAfter: 7 * time.Second, RequestID: "req_head"}},
		{"too many, in milliseconds", 429, header("Retry-After", "7", "Retry-After-Ms", "1500"), said("rate_limit_error", "slow"), agent.ModelError{Class: agent.FailRate, Code: "rate_limit_error", Message: "slow", RetryAfter: 1500 * time.Millisecond}},
		{"all spent", 429, nil, spent, agent.ModelError{Class: agent.FailQuota, Code: "enforced_spend_limit_reached", Message: "no more"}},
		{"too many, do not come back", 429, header("X-Should-Retry", "false"), said("rate_limit_error", "slow"), agent.ModelError{Class: agent.FailQuota, Code: "rate_limit_error", Message: "slow"}},
		{"broken", 500, nil, said("api_error", "oops"), agent.ModelError{Class: agent.FailServer, Code: "api_error", Message: "oops"}},
		{"broken for good", 500, header("X-Should-Retry", "false"), said("api_error", "oops"), agent.ModelError{Class: agent.FailInvalid, Code: "api_error", Message: "oops"}},
		{"busy with a conflict", 409, nil, said("conflict_error", "again"), agent.ModelError{Class: agent.FailServer, Code: "conflict_error", Message: "again"}},
		{"refused, but come back", 400, header("X-Should-Retry", "true"), said("invalid_request_error", "again"), agent.ModelError{Class: agent.FailServer, Code: "invalid_request_error", Message: "again"}},
		{"timed out", 504, nil, said("timeout_error", "slow"), agent.ModelError{Class: agent.FailTimeout, Code: "timeout_error", Message: "slow"}},
		{"overloaded", 529, nil, said("overloaded_error", "Overloaded"), agent.ModelError{Class: agent.FailServer, Code: "overloaded_error", Message: "Overloaded"}},
		{"an unknown type", 503, nil, said("new_error", "?"), agent.ModelError{Class: agent.FailServer, Code: "new_error", Message: "?"}},
		{"a gateway", 502, header("Content-Type", "text/html"), "<h1>Bad\n Gateway</h1>", agent.ModelError{Class: agent.FailServer, Message: "Bad Gateway. It said: <h1>Bad Gateway</h1>"}},
		{"a wrong path", 404, header("Content-Type", "text/plain"), "404 page not found", agent.ModelError{Class: agent.FailProtocol, Message: "the endpoint does not speak the Messages API; check the base URL. It said: 404 page not found"}},
		{"a web page", 200, header("Content-Type", "text/html; charset=utf-8"), "<p>Sign in", agent.ModelError{Class: agent.FailProtocol, Message: "the endpoint does not speak the Messages API; check the base URL. It said: <p>Sign in"}},
		{"JSON of another protocol", 200, nil, `{"choices":[]}`, agent.ModelError{Class: agent.FailProtocol, Message: `the endpoint does not speak the Messages API; check the base URL. It said: {"choices":[]}`}},
		{"an error that says it is none", 200, nil, said("overloaded_error", "x"), agent.ModelError{Class: agent.FailServer, Code: "overloaded_error", Message: "x"}},
		{"moved", 307, header("Location", "https://elsewhere.example/"), "", agent.ModelError{Class: agent.FailProtocol, Message: "the endpoint redirects, which is not followed: set the base URL to the address it moved to"}},
		{"nothing said", 503, header("Content-Type", "text/plain"), "", agent.ModelError{Class: agent.FailServer, Message: "Service Unavailable"}},
		{"much said", 400, nil, said("invalid_request_error", strings.Repeat("x", 100_000)), agent.ModelError{Class: agent.FailInvalid, Message: "Bad Request. It said: " + `{"type":"error","error":{"type":"invalid_request_error","message":"` + strings.Repeat("x", 133)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.header == nil {
				c.header = header()
			}
			requests := 0
			m := New(wire.Config{Info: reader, HTTP: &http.Client{Transport: wiretest.Transport(func(r *http.Request) (*http.Response, error) {
				requests++
				return &http.Response{StatusCode: c.status, Request: r, Header: c.header, Body: io.NopCloser(strings.NewReader(c.body))}, nil
			})}})
			_, _, err := drain(t.Context(), m)
			got, ok := err.(*agent.ModelError)
			if !ok {
				t.Fatalf("got %v", err)
			}
			want := c.want
			want.Status = c.status
			if want.RequestID == "" && strings.Contains(c.body, "req_body") && want.Code != "" {
				want.RequestID = "req_body"
			}
			if c.status == 307 {
				want.RequestID = ""
			}
			if *got != want || requests != 1 {
				t.Errorf("%d requests\ngot  %+v\nwant %+v", requests, *got, want)
			}
		})
	}
}

const secret = "sk-ant-very-secret-0123456789"

func TestTheKeyIsInNoError(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"authentication_error","message":"no such key: %s%s%s"}}`, r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"), r.Header.Get("X-Team-Key"))
	}
	page := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<p>", r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"))
	}
	broken := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":%q}}\n\n", r.Header.Get("X-Api-Key"))
	}
	for name, h := range map[string]http.HandlerFunc{"error": echo, "page": page, "stream": broken} {
		for how, cfg := range map[string]wire.Config{
			"key":    {Key: secret},
			"token":  {AuthToken: secret},
			"header": {Header: http.Header{"X-Team-Key": {secret}, "X-Api-Key": {secret}, "Authorization": {"Bearer " + secret}}},
		} {
			_, _, err := drain(t.Context(), serve(t, cfg, h))
			if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v %v", err, err, err, errors.Unwrap(err)), secret) {
				t.Errorf("%s, %s: %#v", name, how, err)
			}
		}
	}
	dead := New(wire.Config{Info: reader, BaseURL: "http://user:" + secret + "@127.0.0.1:1/?key=" + secret, Key: secret})
	if _, _, err := drain(t.Context(), dead); err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, errors.Unwrap(err)), secret) {
		t.Errorf("no connection: %#v", err)
	}
	control := New(wire.Config{Info: reader, Key: "sk\nX-Evil: 1"})
	if _, _, err := drain(t.Context(), control); agent.ClassOf(err) != agent.FailAuth || strings.Contains(err.Error(), "X-Evil") {
		t.Errorf("a key of two lines: %v", err)
	}
}

// An endpoint that repeats the key does so anywhere, also where its words are cut.
func TestNoHalfOfAKeyIsLeft(t *testing.T) {
	half := secret[:len(secret)/2]
	for _, c := range []struct{ kind, form string }{
		{"text/html", "%s%s"},
		{"application/json", `{"type":"error","error":{"type":"api_error","message":"%s%s"}}`},
		{"application/json", `{"type":"error","error":{"type":"%s%s","message":"no"}}`},
		{"application/json", `{"type":"error","request_id":"%s%s","error":{"type":"api_error","message":"no"}}`},
		{"text/event-stream", "data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"%s%s\"}}\n\n"},
		{"text/event-stream", "data: {\"type\":\"error\",\"error\":{\"type\":\"%s%s\",\"message\":\"no\"}}\n\n"},
	} {
		for _, cut := range []int{wire.MaxMessage, wire.MaxCode, wire.MaxID} {
			_, _, err := drain(t.Context(), serve(t, wire.Config{Key: secret}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				fmt.Fprintf(w, c.form, strings.Repeat("x", cut-len(secret)/2-1), secret)
			}))
			e, ok := err.(*agent.ModelError)
			if !ok || strings.Contains(fmt.Sprintf("%+v", *e), half[:10]) || len(e.Code) > wire.MaxCode+3 || len(e.RequestID) > wire.MaxID {
				t.Errorf("%s %s, %d: %+v", c.kind, c.form, cut, err)
			}
		}
	}
}

func TestConfigurationsThatCannotWork(t *testing.T) {
	for _, base := range []string{"ftp://x", "api.anthropic.com", "http://", "://", "http://[::1"} {
		if _, _, err := drain(t.Context(), New(wire.Config{Info: reader, BaseURL: base})); agent.ClassOf(err) != agent.FailInvalid {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestAddressesAndHeaders(t *testing.T) {
	var got *http.Request
	for _, c := range []struct{ base, want string }{
		{"", "https://api.anthropic.com/v1/messages"},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/messages"},
		{"http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1/messages"},
		{"http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1/messages"},
		{"https://proxy.example/anthropic?x=1", "https://proxy.example/anthropic/v1/messages?x=1"},
	} {
		m := New(wire.Config{
			Info: agent.ModelInfo{ID: "m", Thinking: thinkPreserved}, BaseURL: c.base, Key: " k1\n", AuthToken: "t1",
			Header: http.Header{"x-extra": {"1"}, "Idempotency-Key": {"1"}, "User-Agent": {"mine"}},
			HTTP: &http.Client{Timeout: time.Nanosecond, Transport: wiretest.Transport(func(r *http.Request) (*http.Response, error) {
				got = r
				return nil, io.EOF
			})},
		})
		if _, _, err := drain(t.Context(), m); agent.ClassOf(err) != agent.FailServer {
			t.Errorf("%v", err)
		}
		if got.URL.String() != c.want {
			t.Errorf("%q: asked %s", c.base, got.URL)
		}
	}
	var lines bytes.Buffer
	_ = got.Header.WriteSubset(&lines, nil)
	want := "Accept: text/event-stream\r\nAccept-Encoding: identity\r\nAnthropic-Beta: thinking-binding-controls-2026-08-01\r\nAnthropic-Version: 2023-06-01\r\nAuthorization: Bearer t1\r\n" +
		"Content-Type: application/json\r\nUser-Agent: mine\r\nX-Api-Key: k1\r\nX-Extra: 1\r\n"
	if lines.String() != want || got.ContentLength <= 0 {
		t.Errorf("length %d, headers\n%s", got.ContentLength, lines.String())
	}
}

func TestNetworkFailures(t *testing.T) {
	reset := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
	tls := httptest.NewTLSServer(http.HandlerFunc(reset))
	defer tls.Close()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + listener.Addr().String()
	_ = listener.Close()

	for _, c := range []struct {
		name, base string
		h          http.HandlerFunc
		want       agent.FailureClass
	}{
		{"nobody listens", dead, reset, agent.FailDown},
		{"reset before the answer", "", reset, agent.FailServer},
		{"closed before the answer", "", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, agent.FailServer},
		{"closed within the answer", "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"type":"message_start","message":{}}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, agent.FailServer},
		{"no TLS", strings.Replace(tls.URL, "https", "http", 1), reset, agent.FailInvalid},
		{"a certificate of nobody", tls.URL, reset, agent.FailProtocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n atomic.Int32
			m := serve(t, wire.Config{BaseURL: c.base}, func(w http.ResponseWriter, r *http.Request) {
				n.Add(1)
				c.h(w, r)
			})
			_, _, err := drain(t.Context(), m)
			if agent.ClassOf(err) != c.want || n.Load() > 1 {
				t.Errorf("%d requests: %v", n.Load(), err)
			}
		})
	}
}

func TestAHostThatNobodyKnows(t *testing.T) {
	unknown := &net.DNSError{Err: "no such host", Name: "model.example", IsNotFound: true}
	m := New(wire.Config{Info: reader, BaseURL: "http://model.example", HTTP: &http.Client{Transport: wiretest.Transport(func(*http.Request) (*http.Response, error) { return nil, unknown })}})
	_, _, err := drain(t.Context(), m)
	if agent.ClassOf(err) != agent.FailDown || !errors.Is(err, unknown) || !strings.Contains(err.Error(), "cannot find model.example") {
		t.Errorf("got %v", err)
	}
}

func TestAConnectionIsUsedAgainAndNothingIsSentTwice(t *testing.T) {
	var requests, connections atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if requests.Add(1) == 3 {
			panic(http.ErrAbortHandler) // on a connection that was used before
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, stream(`"end_turn"`))
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	m := New(wire.Config{Info: reader, BaseURL: srv.URL})
	defer m.Close()
	for i := range 2 {
		for d, err := range m.Stream(t.Context(), hi) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Final != nil {
				break // as callers do
			}
		}
		if n := connections.Load(); n != 1 {
			t.Fatalf("%d connections after request %d", n, i+1)
		}
	}
	if _, _, err := drain(t.Context(), m); agent.ClassOf(err) != agent.FailServer {
		t.Errorf("got %v", err)
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests, 3 were made", n)
	}
}

// paced returns a model whose answer is written by write, in fake time.
func paced(cfg wire.Config, headers time.Duration, write func(w io.Writer)) *wire.Model {
	cfg.Info, cfg.HTTP = reader, wiretest.Paced(headers, write)
	return New(cfg)
}

func TestClocks(t *testing.T) {
	event := func(w io.Writer, data string) bool {
		_, err := fmt.Fprintf(w, "data: %s\n\n", data)
		return err == nil
	}
	start, ping := `{"type":"message_start","message":{}}`, `{"type": "ping"}`
	for _, c := range []struct {
		name    string
		headers time.Duration
		write   func(io.Writer)
		class   agent.FailureClass // "" = it works
		after   time.Duration
		say     string
	}{
		{"no answer", time.Hour, func(io.Writer) {}, agent.FailTimeout, 300 * time.Second, "did not begin to answer within 5m0s"},
		{"silence from the start", 0, func(io.Writer) { <-time.After(time.Hour) }, agent.FailTimeout, 60 * time.Second, "sent nothing for 1m0s"},
		{"silence in the middle", 0, func(w io.Writer) {
			event(w, start)
			<-time.After(59 * time.Second)
			event(w, opensText)
			<-time.After(time.Hour)
		}, agent.FailTimeout, 119 * time.Second, "sent nothing for 1m0s"},
		{"only pings", 0, func(w io.Writer) {
			event(w, start)
			for event(w, ping) {
				<-time.After(10 * time.Second)
			}
		}, agent.FailTimeout, 310 * time.Second, "sent nothing but pings for 5m0s"},
		{"only comments", 0, func(w io.Writer) {
			event(w, start)
			for _, err := io.WriteString(w, ": alive\n\n"); err == nil; _, err = io.WriteString(w, ": alive\n\n") {
				<-time.After(10 * time.Second)
			}
		}, agent.FailTimeout, 310 * time.Second, "sent nothing but pings for 5m0s"},
		{"slow, but alive", 290 * time.Second, func(w io.Writer) {
			event(w, start)
			for range 29 {
				<-time.After(10 * time.Second)
				event(w, ping)
			}
			event(w, opensText)
			for range 29 {
				<-time.After(10 * time.Second)
				event(w, ping)
			}
			event(w, `{"type":"message_stop"}`)
		}, "", 870 * time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begun := time.Now()
				_, _, err := drain(ctx, paced(wire.Config{}, c.headers, c.write))
				if took := time.Since(begun).Round(time.Second); agent.ClassOf(err) != c.class || took != c.after || err != nil && !strings.Contains(err.Error(), c.say) {
					t.Errorf("after %v: %v", took, err)
				}
				<-time.After(2 * time.Hour) // whoever still writes comes to an end
			})
		})
	}
}

func TestTimeOfTheReaderDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := paced(wire.Config{}, 0, func(w io.Writer) { _, _ = io.WriteString(w, stream(`"end_turn"`, opensText, closes)) })
		for _, err := range m.Stream(t.Context(), hi) {
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour)
		}
	})
}

func TestCancelling(t *testing.T) {
	wiretest.Cancelling(t, func(t *testing.T, h http.HandlerFunc) agent.Model { return serve(t, wire.Config{}, h) }, hi, `data: {"type":"message_start","message":{}}`+"\n\n")
}

func TestNothingIsDialledBeforeTheFirstRequest(t *testing.T) {
	m := serve(t, wire.Config{}, func(w http.ResponseWriter, _ *http.Request) { t.Error("somebody called") })
	_ = m.Stream(t.Context(), hi)
	if m.Info().ID != reader.ID {
		t.Error("the model forgot who it is")
	}
}
