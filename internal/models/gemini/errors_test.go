package gemini

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"dure/agent"
	"dure/internal/models/wire"
	"dure/internal/models/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns a model that asks h over a real connection.
func serve(t *testing.T, cfg wire.Config, h http.HandlerFunc) *wire.Model {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	cfg.BaseURL, cfg.Info = srv.URL, reader
	m := New(cfg)
	t.Cleanup(m.Close)
	return m
}

func TestAnswersThatAreErrors(t *testing.T) {
	said := func(code int, status, message string, details ...string) string {
		return fmt.Sprintf(`{"error": {"code": %d,"message": %q,"status": %q,"details": [%s]}}`, code, message, status, strings.Join(details, ","))
	}
	const (
		badKey  = `{"@type": "type.googleapis.com/google.rpc.ErrorInfo","reason": "API_KEY_INVALID","domain": "googleapis.com","metadata": {"service": "generativelanguage.googleapis.com"}}`
		noBill  = `{"@type": "type.googleapis.com/google.rpc.ErrorInfo","reason": "BILLING_DISABLED"}`
		minute  = `{"@type": "type.googleapis.com/google.rpc.QuotaFailure","violations": [{"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaValue": "5"}]}`
		day     = `{"@type": "type.googleapis.com/google.rpc.QuotaFailure","violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue": "20"}]}`
		none    = `{"@type": "type.googleapis.com/google.rpc.QuotaFailure","violations": [{"quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier","quotaValue": "0"}]}`
		retry   = `{"@type": "type.googleapis.com/google.rpc.RetryInfo","retryDelay": "34.074824224s"}`
		odd     = `{"@type": 7,"violations": "many","retryDelay": {}}`
		current = "You exceeded your current quota, please check your plan and billing details."
		tooLong = "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."
	)
	header := func(pairs ...string) http.Header {
		h := http.Header{"Content-Type": {"application/json; charset=UTF-8"}}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	wait := 34074824224 * time.Nanosecond
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		body   string
		want   agent.ModelError
	}{
		{"bad request", 400, nil, said(400, "INVALID_ARGUMENT", "bad"), agent.ModelError{Class: agent.FailInvalid, Code: "INVALID_ARGUMENT", Message: "bad"}},
		{"wrong key", 400, nil, said(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", badKey), agent.ModelError{Class: agent.FailAuth, Code: "API_KEY_INVALID", Message: "API key not valid. Please pass a valid API key."}},
		{"old key", 400, nil, said(400, "INVALID_ARGUMENT", "API key expired. Please renew the API key."), agent.ModelError{Class: agent.FailAuth, Code: "INVALID_ARGUMENT", Message: "API key expired. Please renew the API key."}},
		{"too long", 400, nil, said(400, "INVALID_ARGUMENT", tooLong), agent.ModelError{Class: agent.FailContext, Code: "INVALID_ARGUMENT", Message: tooLong}},
		{"too long, in a list", 400, nil, "[" + said(400, "INVALID_ARGUMENT", tooLong) + "\n]", agent.ModelError{Class: agent.FailContext, Code: "INVALID_ARGUMENT", Message: tooLong}},
		{"too large", 400, nil, said(400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."), agent.ModelError{Class: agent.FailContext, Code: "INVALID_ARGUMENT", Message: "Request payload size exceeds the limit: 20971520 bytes."}},
		{"not here", 400, nil, said(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), agent.ModelError{Class: agent.FailInvalid, Code: "FAILED_PRECONDITION", Message: "User location is not supported for the API use."}},
		{"not without billing", 400, nil, said(400, "FAILED_PRECONDITION", "Please enable billing."), agent.ModelError{Class: agent.FailQuota, Code: "FAILED_PRECONDITION", Message: "Please enable billing."}},
		{"no key", 401, nil, said(401, "UNAUTHENTICATED", "no"), agent.ModelError{Class: agent.FailAuth, Code: "UNAUTHENTICATED", Message: "no"}},
		{"not permitted", 403, nil, said(403, "PERMISSION_DENIED", "no"), agent.ModelError{Class: agent.FailAuth, Code: "PERMISSION_DENIED", Message: "no"}},
		{"not paid", 403, nil, said(403, "PERMISSION_DENIED", "no", noBill), agent.ModelError{Class: agent.FailQuota, Code: "BILLING_DISABLED", Message: "no"}},
		{"no such model", 404, nil, said(404, "NOT_FOUND", "models/x is not found"), agent.ModelError{Class: agent.FailNotFound, Code: "NOT_FOUND", Message: "models/x is not found"}},
		{"too many a minute", 429, nil, said(429, "RESOURCE_EXHAUSTED", current, minute, retry), agent.ModelError{Class: agent.FailRate, Code: "RESOURCE_EXHAUSTED", Message: current, RetryAfter: wait}},
		{"too many a day", 429, nil, said(429, "RESOURCE_EXHAUSTED", current, day, retry), agent.ModelError{Class: agent.FailQuota, Code: "RESOURCE_EXHAUSTED", Message: current, RetryAfter: wait}},
		{"no quota", 429, nil, said(429, "RESOURCE_EXHAUSTED", current, none), agent.ModelError{Class: agent.FailQuota, Code: "RESOURCE_EXHAUSTED", Message: current}},
		{"no quota, in words", 429, nil, said(429, "RESOURCE_EXHAUSTED", "* Quota exceeded for metric: x, limit: 0, model: y"), agent.ModelError{Class: agent.FailQuota, Code: "RESOURCE_EXHAUSTED", Message: "* Quota exceeded for metric: x, limit: 0, model: y"}},
		{"all spent", 429, nil, said(429, "RESOURCE_EXHAUSTED", "Your project has exceeded its monthly spending cap."), agent.ModelError{Class: agent.FailQuota, Code: "RESOURCE_EXHAUSTED", Message: "Your project has exceeded its monthly spending cap."}},
		{"too many, when in words", 429, nil, said(429, "RESOURCE_EXHAUSTED", "slow\nPlease retry in 1h2m5.5s."), agent.ModelError{Class: agent.FailRate, Code: "RESOURCE_EXHAUSTED", Message: "slow\nPlease retry in 1h2m5.5s.", RetryAfter: time.Hour + 2*time.Minute + 5500*time.Millisecond}},
		{"too many, when in a header", 429, header("Retry-After", "7", "X-Request-Id", "req_head"), said(429, "RESOURCE_EXHAUSTED", "slow", retry), agent.ModelError{Class: agent.FailRate, Code: "RESOURCE_EXHAUSTED", Message: "slow", RetryAfter: 7 * time.Second, RequestID: "req_head"}},
		{"far too long to wait", 429, nil, said(429, "RESOURCE_EXHAUSTED", "slow", `{"retryDelay": "99999999s"}`), agent.ModelError{Class: agent.FailRate, Code: "RESOURCE_EXHAUSTED", Message: "slow", RetryAfter: 24 * time.Hour}},
		{"details of another form", 429, nil, said(429, "RESOURCE_EXHAUSTED", "slow", odd), agent.ModelError{Class: agent.FailRate, Code: "RESOURCE_EXHAUSTED", Message: "slow"}},
		{"cancelled", 499, nil, said(499, "CANCELLED", "x"), agent.ModelError{Class: agent.FailServer, Code: "CANCELLED", Message: "x"}},
		{"broken", 500, nil, said(500, "INTERNAL", "oops"), agent.ModelError{Class: agent.FailServer, Code: "INTERNAL", Message: "oops"}},
		{"overloaded", 503, nil, said(503, "UNAVAILABLE", "The model is overloaded."), agent.ModelError{Class: agent.FailServer, Code: "UNAVAILABLE", Message: "The model is overloaded."}},
		{"timed out", 504, nil, said(504, "DEADLINE_EXCEEDED", "slow"), agent.ModelError{Class: agent.FailTimeout, Code: "DEADLINE_EXCEEDED", Message: "slow"}},
		{"an unknown status", 503, nil, said(503, "NEW_STATUS", "?"), agent.ModelError{Class: agent.FailServer, Code: "NEW_STATUS", Message: "?"}},
		{"an error that says it is none", 200, nil, said(503, "UNAVAILABLE", "x"), agent.ModelError{Class: agent.FailServer, Code: "UNAVAILABLE", Message: "x"}},
		{"a gateway", 502, header("Content-Type", "text/html"), "<h1>Bad\n Gateway</h1>", agent.ModelError{Class: agent.FailServer, Message: "Bad Gateway. It said: <h1>Bad Gateway</h1>"}},
		{"a wrong path", 404, header("Content-Type", "text/html"), "", agent.ModelError{Class: agent.FailProtocol, Message: "the endpoint does not speak the Gemini API; check the base URL"}},
		{"a web page", 200, header("Content-Type", "text/html; charset=utf-8"), "<p>Sign in", agent.ModelError{Class: agent.FailProtocol, Message: "the endpoint does not speak the Gemini API; check the base URL. It said: <p>Sign in"}},
		{"moved", 307, header("Location", "https://elsewhere.example/"), "", agent.ModelError{Class: agent.FailProtocol, Message: "the endpoint redirects, which is not followed: set the base URL to the address it moved to"}},
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
			if *got != want || requests != 1 {
				t.Errorf("%d requests\ngot  %+v\nwant %+v", requests, *got, want)
			}
		})
	}
}

const secret = "AIzaVerySecret0123456789abcdefghijklmno"

func TestTheKeyIsInNoError(t *testing.T) {
	keys := func(r *http.Request) string {
		return r.Header.Get("X-Goog-Api-Key") + " " + r.Header.Get("Authorization") + " " + r.Header.Get("X-Team-Key")
	}
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"error": {"code": 403,"message": "no: %s","status": "PERMISSION_DENIED %s","details": [{"@type": "google.rpc.ErrorInfo","reason": %q}]}}`, keys(r), keys(r), keys(r))
	}
	page := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<p>", keys(r))
	}
	broken := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"error\": {\"code\": 500,\"message\": %q,\"status\": \"INTERNAL\"}}\n\n", keys(r))
	}
	lost := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"candidates\": [{\"finishReason\": %q,\"finishMessage\": %q}],\"usageMetadata\": {}}\n\n", keys(r), keys(r))
	}
	for name, h := range map[string]http.HandlerFunc{"error": echo, "page": page, "stream": broken, "reason": lost} {
		for how, cfg := range map[string]wire.Config{
			"key":    {Key: secret},
			"token":  {AuthToken: secret},
			"header": {Header: http.Header{"X-Team-Key": {secret}, "X-Goog-Api-Key": {secret}, "Authorization": {"Bearer " + secret}}},
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
	control := New(wire.Config{Info: reader, Key: "AIza\nX-Evil: 1"})
	if _, _, err := drain(t.Context(), control); agent.ClassOf(err) != agent.FailAuth || strings.Contains(err.Error(), "X-Evil") {
		t.Errorf("a key of two lines: %v", err)
	}
}

func TestAddressesAndHeaders(t *testing.T) {
	var got *http.Request
	for _, c := range []struct{ base, id, want string }{
		{"", "m", "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse"},
		{"http://127.0.0.1:8080/", "models/m", "http://127.0.0.1:8080/v1beta/models/m:streamGenerateContent?alt=sse"},
		{"http://127.0.0.1:8080/v1", "m", "http://127.0.0.1:8080/v1/models/m:streamGenerateContent?alt=sse"},
		{"https://proxy.example/google?x=1", "m", "https://proxy.example/google/v1beta/models/m:streamGenerateContent?alt=sse&x=1"},
		{"https://aiplatform.example/v1/projects/p/locations/global/publishers/google", "gemini-2.5-pro@001", "https://aiplatform.example/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-pro@001:streamGenerateContent?alt=sse"},
		{"https://proxy.example", "google/m", "https://proxy.example/v1beta/models/google/m:streamGenerateContent?alt=sse"},
	} {
		m := New(wire.Config{
			Info: agent.ModelInfo{ID: c.id}, BaseURL: c.base, Key: " k1\n", AuthToken: "t1",
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
	want := "Accept: text/event-stream\r\nAccept-Encoding: identity\r\nAuthorization: Bearer t1\r\nContent-Type: application/json\r\nUser-Agent: mine\r\nX-Extra: 1\r\nX-Goog-Api-Key: k1\r\n"
	if lines.String() != want || got.ContentLength <= 0 {
		t.Errorf("length %d, headers\n%s", got.ContentLength, lines.String())
	}
	for _, base := range []string{"ftp://x", "generativelanguage.googleapis.com", "http://", "://"} {
		if _, _, err := drain(t.Context(), New(wire.Config{Info: reader, BaseURL: base})); agent.ClassOf(err) != agent.FailInvalid {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// paced returns a model whose answer is written by write, in fake time.
func paced(write func(w io.Writer)) *wire.Model {
	return New(wire.Config{Info: reader, HTTP: wiretest.Paced(0, write)})
}

func TestClocks(t *testing.T) {
	text := `data: {"candidates": [{"content": {"parts": [{"text": "a"}],"role": "model"},"index": 0}]}` + "\n\n"
	empty := `data: {"candidates": [{"content": {"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 1}}` + "\n\n"
	for _, c := range []struct {
		name  string
		write func(io.Writer)
		class agent.FailureClass // "" = it works
		after time.Duration
	}{
		{"silence", func(w io.Writer) {
			_, _ = io.WriteString(w, text)
			<-time.After(time.Hour)
		}, agent.FailTimeout, 60 * time.Second},
		{"only empty chunks", func(w io.Writer) {
			for _, err := io.WriteString(w, empty); err == nil; _, err = io.WriteString(w, empty) {
				<-time.After(10 * time.Second)
			}
		}, agent.FailTimeout, 310 * time.Second},
		{"only comments", func(w io.Writer) {
			for _, err := io.WriteString(w, ": alive\n\n"); err == nil; _, err = io.WriteString(w, ": alive\n\n") {
				<-time.After(10 * time.Second)
			}
		}, agent.FailTimeout, 310 * time.Second},
		{"nothing but calls", func(w io.Writer) {
			for range 10 {
				_, _ = io.WriteString(w, strings.Split(stream("STOP", callsOne), "\n\n")[0]+"\n\n")
				<-time.After(50 * time.Second)
			}
			_, _ = io.WriteString(w, stream("STOP"))
		}, "", 500 * time.Second},
		{"slow, but alive", func(w io.Writer) {
			for range 40 {
				_, _ = io.WriteString(w, text)
				<-time.After(50 * time.Second)
			}
			_, _ = io.WriteString(w, stream("STOP"))
			<-time.After(time.Hour) // the connection is not closed
		}, "", 2000 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begun := time.Now()
				_, _, err := drain(ctx, paced(c.write))
				if took := time.Since(begun).Round(time.Second); agent.ClassOf(err) != c.class || took != c.after {
					t.Errorf("after %v: %v", took, err)
				}
				<-time.After(2 * time.Hour) // whoever still writes comes to an end
			})
		})
	}
}

func TestCancelling(t *testing.T) {
	wiretest.Cancelling(t, func(t *testing.T, h http.HandlerFunc) agent.Model { return serve(t, wire.Config{}, h) }, hi, `data: {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}`+"\n\n")
}

func TestClosedWithinTheAnswer(t *testing.T) {
	m := serve(t, wire.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if _, _, err := drain(t.Context(), m); agent.ClassOf(err) != agent.FailServer {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsDialledBeforeTheFirstRequest(t *testing.T) {
	m := serve(t, wire.Config{}, func(http.ResponseWriter, *http.Request) { t.Error("somebody called") })
	_ = m.Stream(t.Context(), hi)
	if m.Info().ID != reader.ID || wire.Or(m.Info().Provider, "") != "google" {
		t.Error("the model forgot who it is")
	}
}
