package responses

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
	cfg.BaseURL = wire.Or(cfg.BaseURL, srv.URL)
	cfg.Info = reader
	m := New(cfg)
	t.Cleanup(m.Close)
	return m
}

func TestAnswersThatAreErrors(t *testing.T) {
	said := func(kind, code, message string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%s}}`, message, kind, code)
	}
	invalid := func(code, message string) string { return said("invalid_request_error", code, message) }
	header := func(pairs ...string) http.Header {
		h := http.Header{"Content-Type": {"application/json"}}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	const (
		noModel = "The model `x` does not exist or you do not have access to it."
		tooLong = "Your input exceeds the context window of this model. Please adjust your input and try again."
		noQuota = "You exceeded your current quota, please check your plan and billing details."
		tpm     = "Request too large for gpt-6.2-sol on tokens per min (TPM): Limit 30000, Requested 41000."
	)
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		body   string
		want   agent.ModelError
	}{
		{"bad request", 400, nil, invalid(`null`, "Unknown parameter: 'x'."), agent.ModelError{Class: agent.FailInvalid, Code: "invalid_request_error", Message: "Unknown parameter: 'x'."}},
		{"not to be processed", 422, nil, invalid(`null`, "no"), agent.ModelError{Class: agent.FailInvalid, Code: "invalid_request_error", Message: "no"}},
		{"reasoning of another account", 400, nil, invalid(`"invalid_encrypted_content"`, "The encrypted content for item rs_1 could not be verified."), agent.ModelError{Class: agent.FailInvalid, Code: "invalid_encrypted_content", Message: "The encrypted content for item rs_1 could not be verified."}},
		{"filtered by a gateway", 400, nil, said("", `"content_filter"`, "filtered"), agent.ModelError{Class: agent.FailInvalid, Code: "content_filter", Message: "filtered"}},
		{"too long", 400, nil, invalid(`"context_length_exceeded"`, tooLong), agent.ModelError{Class: agent.FailContext, Code: "context_length_exceeded", Message: tooLong}},
		{"too long, in words", 400, nil, invalid(`null`, "This model's maximum context length is 8192 tokens."), agent.ModelError{Class: agent.FailContext, Code: "invalid_request_error", Message: "This model's maximum context length is 8192 tokens."}},
		{"too long a text", 400, nil, invalid(`"string_above_max_length"`, "Invalid 'input'"), agent.ModelError{Class: agent.FailContext, Code: "string_above_max_length", Message: "Invalid 'input'"}},
		{"wrong key", 401, nil, invalid(`"invalid_api_key"`, "Incorrect API key provided"), agent.ModelError{Class: agent.FailAuth, Code: "invalid_api_key", Message: "Incorrect API key provided"}},
		{"no key", 401, nil, invalid(`null`, "You didn't provide an API key."), agent.ModelError{Class: agent.FailAuth, Code: "invalid_request_error", Message: "You didn't provide an API key."}},
		{"wrong key at a gateway", 401, nil, `{"statusCode":401,"message":"Access denied due to invalid subscription key."}`, agent.ModelError{Class: agent.FailAuth, Message: "Access denied due to invalid subscription key."}},
		{"not in this country", 403, nil, said("request_forbidden", `"unsupported_country_region_territory"`, "no"), agent.ModelError{Class: agent.FailAuth, Code: "unsupported_country_region_territory", Message: "no"}},
		{"no such model", 404, nil, invalid(`"model_not_found"`, noModel), agent.ModelError{Class: agent.FailNotFound, Code: "model_not_found", Message: noModel}},
		{"no model for this project", 403, nil, invalid(`"model_not_found"`, "Project does not have access to model x"), agent.ModelError{Class: agent.FailNotFound, Code: "model_not_found", Message: "Project does not have access to model x"}},
		{"no such deployment", 404, nil, said("", `"DeploymentNotFound"`, "gone"), agent.ModelError{Class: agent.FailNotFound, Code: "DeploymentNotFound", Message: "gone"}},
		{"no such model at a local server", 404, nil, `{"error":"model 'x' not found"}`, agent.ModelError{Class: agent.FailNotFound, Message: "model 'x' not found"}},
		{"a code that is a number", 404, nil, `{"object":"error","message":"no x","type":"NotFoundError","param":null,"code":404}`, agent.ModelError{Class: agent.FailNotFound, Code: "NotFoundError", Message: "no x"}},
		{"an item that is stored nowhere", 404, nil, invalid(`null`, "Item with id 'rs_1' not found."), agent.ModelError{Class: agent.FailInvalid, Code: "invalid_request_error", Message: "Item with id 'rs_1' not found."}},
		{"another API", 404, nil, invalid(`null`, "Invalid URL (POST /v1/responses)"), agent.ModelError{Class: agent.FailProtocol, Code: "invalid_request_error", Message: "Invalid URL (POST /v1/responses)"}},
		{"too large", 413, nil, invalid(`null`, "32 MB"), agent.ModelError{Class: agent.FailContext, Code: "invalid_request_error", Message: "32 MB"}},
		{"too many", 429, header("Retry-After", "7", "X-Request-Id", "req_head"), said("requests", `"rate_limit_exceeded"`, "Please try again in 1s."), agent.ModelError{Class: agent.FailRate, Code: "rate_limit_exceeded", Message: "Please try again in 1s.", RetryAfter: 7 * time.Second, RequestID: "req_head"}},
		{"too many, in words", 429, nil, said("requests", `"rate_limit_exceeded"`, "Limit 200. Please try again in 7m12s."), agent.ModelError{Class: agent.FailRate, Code: "rate_limit_exceeded", Message: "Limit 200. Please try again in 7m12s.", RetryAfter: 432 * time.Second}},
		{"too many, in milliseconds", 429, header("Retry-After-Ms", "1500"), said("tokens", `"rate_limit_exceeded"`, "slow"), agent.ModelError{Class: agent.FailRate, Code: "rate_limit_exceeded", Message: "slow", RetryAfter: 1500 * time.Millisecond}},
		{"too many at a gateway", 429, nil, said("", `"429"`, "Please retry after 26 seconds."), agent.ModelError{Class: agent.FailRate, Message: "Please retry after 26 seconds.", RetryAfter: 26 * time.Second}},
		{"more than a minute may take", 429, nil, said("tokens", `"rate_limit_exceeded"`, tpm), agent.ModelError{Class: agent.FailContext, Code: "rate_limit_exceeded", Message: tpm}},
		{"all spent", 429, nil, said("insufficient_quota", `"insufficient_quota"`, noQuota), agent.ModelError{Class: agent.FailQuota, Code: "insufficient_quota", Message: noQuota}},
		{"all spent, in new words", 429, nil, said("insufficient_quota", `"credit_balance_exhausted"`, "none left"), agent.ModelError{Class: agent.FailQuota, Code: "credit_balance_exhausted", Message: "none left"}},
		{"not paid", 402, nil, said("", `null`, "pay"), agent.ModelError{Class: agent.FailQuota, Message: "pay"}},
		{"too many, do not come back", 429, header("X-Should-Retry", "false"), said("", `"slow_down"`, "slow"), agent.ModelError{Class: agent.FailQuota, Code: "slow_down", Message: "slow"}},
		{"too steep", 429, nil, said("rate_limit_error", `"slow_down"`, "slow"), agent.ModelError{Class: agent.FailRate, Code: "slow_down", Message: "slow"}},
		{"broken", 500, nil, said("server_error", `null`, "oops"), agent.ModelError{Class: agent.FailServer, Code: "server_error", Message: "oops"}},
		{"broken, and says it was asked wrongly", 500, nil, invalid(`null`, "oops"), agent.ModelError{Class: agent.FailServer, Code: "invalid_request_error", Message: "oops"}},
		{"broken for good", 500, header("X-Should-Retry", "false"), said("server_error", `null`, "oops"), agent.ModelError{Class: agent.FailInvalid, Code: "server_error", Message: "oops"}},
		{"overloaded", 503, nil, said("service_unavailable_error", `"server_is_overloaded"`, "busy"), agent.ModelError{Class: agent.FailServer, Code: "server_is_overloaded", Message: "busy"}},
		{"timed out", 408, nil, said("timeout", `null`, "slow"), agent.ModelError{Class: agent.FailTimeout, Code: "timeout", Message: "slow"}},
		{"a gateway", 502, header("Content-Type", "text/html"), "<h1>Bad\n Gateway</h1>", agent.ModelError{Class: agent.FailServer, Message: "Bad Gateway. It said: <h1>Bad Gateway</h1>"}},
		{"a wrong path", 404, header("Content-Type", "text/plain"), "404 page not found", agent.ModelError{Class: agent.FailProtocol, Message: "the endpoint does not speak the Responses API; check the base URL. It said: 404 page not found"}},
		{"a wrong path of another server", 404, nil, `{"detail":"Not Found"}`, agent.ModelError{Class: agent.FailProtocol, Message: `the endpoint does not speak the Responses API; check the base URL. It said: {"detail":"Not Found"}`}},
		{"a web page", 200, header("Content-Type", "text/html; charset=utf-8"), "<p>Sign in", agent.ModelError{Class: agent.FailProtocol, Message: "the endpoint does not speak the Responses API; check the base URL. It said: <p>Sign in"}},
		{"an error that says it is none", 200, nil, said("server_error", `null`, "x"), agent.ModelError{Class: agent.FailServer, Code: "server_error", Message: "x"}},
		{"moved", 307, header("Location", "https://elsewhere.example/"), "", agent.ModelError{Class: agent.FailProtocol, Message: "the endpoint redirects, which is not followed: set the base URL to the address it moved to"}},
		{"nothing said", 503, header("Content-Type", "text/plain"), "", agent.ModelError{Class: agent.FailServer, Message: "Service Unavailable"}},
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

func TestHowLongToWait(t *testing.T) {
	for words, want := range map[string]time.Duration{
		"please try again in 20ms. visit":     20 * time.Millisecond,
		"try again in 5.448s.":                5448 * time.Millisecond,
		"try again in 1h2m3s":                 time.Hour + 2*time.Minute + 3*time.Second,
		"try again in 17 seconds.":            17 * time.Second,
		"try again in 1 second":               time.Second,
		"try again in 0.5 seconds":            500 * time.Millisecond,
		"please retry after 26 seconds":       26 * time.Second,
		"try again in 999999h":                maxAsked,
		"try again in a while":                0,
		"try again in 9999999 seconds":        0,
		"adjust your input and try again":     0,
		"try again in 99999999999999999999ms": 0,
	} {
		if got := asked(words); got != want {
			t.Errorf("%q: got %v, want %v", words, got, want)
		}
	}
}

const secret = "sk-proj-very-secret-0123456789"

func TestTheKeyIsInNoError(t *testing.T) {
	all := func(r *http.Request) string {
		return r.Header.Get("Authorization") + r.Header.Get("Api-Key") + r.Header.Get("X-Team-Key")
	}
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","code":"%s"}}`, all(r), all(r))
	}
	page := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<p>", all(r))
	}
	broken := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"type\":\"error\",\"code\":%q,\"message\":%q}\n\n", all(r), all(r))
	}
	failed := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"x\",\"message\":%q}}}\n\n", all(r))
	}
	for name, h := range map[string]http.HandlerFunc{"error": echo, "page": page, "stream": broken, "failed": failed} {
		for how, cfg := range map[string]wire.Config{
			"key":    {Key: secret},
			"header": {Header: http.Header{"X-Team-Key": {secret}, "Authorization": {"Bearer " + secret}}},
		} {
			_, _, err := drain(t.Context(), serve(t, cfg, h))
			if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v %v", err, err, err, errors.Unwrap(err)), secret) {
				t.Errorf("%s, %s: %#v", name, how, err)
			}
		}
	}
	control := New(wire.Config{Info: reader, Key: "sk\nX-Evil: 1"})
	if _, _, err := drain(t.Context(), control); agent.ClassOf(err) != agent.FailAuth || strings.Contains(err.Error(), "X-Evil") {
		t.Errorf("a key of two lines: %v", err)
	}
}

func TestAddressesAndHeaders(t *testing.T) {
	var got *http.Request
	ask := func(cfg wire.Config) {
		cfg.Info = reader
		cfg.HTTP = &http.Client{Timeout: time.Nanosecond, Transport: wiretest.Transport(func(r *http.Request) (*http.Response, error) {
			got = r
			return nil, io.EOF
		})}
		if _, _, err := drain(t.Context(), New(cfg)); agent.ClassOf(err) != agent.FailServer {
			t.Errorf("%v", err)
		}
	}
	for _, c := range []struct{ base, want string }{
		{"", "https://api.openai.com/v1/responses"},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/responses"},
		{"http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1/responses"},
		{"https://me.openai.azure.com/openai/v1?api-version=preview", "https://me.openai.azure.com/openai/v1/responses?api-version=preview"},
	} {
		if ask(wire.Config{BaseURL: c.base}); got.URL.String() != c.want {
			t.Errorf("%q: asked %s", c.base, got.URL)
		}
	}
	const rest = "Content-Type: application/json\r\nUser-Agent: mine\r\n"
	for name, c := range map[string]struct {
		cfg  wire.Config
		want string
	}{
		"a header": {wire.Config{Header: http.Header{"User-Agent": {"mine"}, "Idempotency-Key": {"1"}}}, "Accept: text/event-stream\r\nAccept-Encoding: identity\r\n" + rest},
		"a key":    {wire.Config{Key: " k1\n", UserAgent: "mine"}, "Accept: text/event-stream\r\nAccept-Encoding: identity\r\nAuthorization: Bearer k1\r\n" + rest},
		"no key":   {wire.Config{UserAgent: "mine"}, "Accept: text/event-stream\r\nAccept-Encoding: identity\r\n" + rest},
	} {
		ask(c.cfg)
		var lines bytes.Buffer
		_ = got.Header.WriteSubset(&lines, nil)
		if lines.String() != c.want || got.ContentLength <= 0 {
			t.Errorf("%s: length %d, headers\n%s", name, got.ContentLength, lines.String())
		}
	}
}

func TestConfigurationsThatCannotWork(t *testing.T) {
	for _, base := range []string{"ftp://x", "api.openai.com", "http://", "://"} {
		if _, _, err := drain(t.Context(), New(wire.Config{Info: reader, BaseURL: base})); agent.ClassOf(err) != agent.FailInvalid {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// writes returns a model whose answer is written by write, in fake time.
func writes(write func(w io.Writer)) *wire.Model {
	return New(wire.Config{Info: reader, HTTP: wiretest.Paced(0, write)})
}

// Signs of life do not keep an answer alive for ever, and words do.
func TestClocks(t *testing.T) {
	const word = `{"type":"response.output_text.delta","output_index":0,"delta":"a"}`
	for event, want := range map[string]struct {
		class agent.FailureClass
		after time.Duration
	}{
		`{"type":"keepalive","sequence_number":1}`:      {agent.FailTimeout, 310 * time.Second},
		`{"type":"response.in_progress","response":{}}`: {agent.FailTimeout, 310 * time.Second},
		word: {"", 600 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := writes(func(w io.Writer) {
				fmt.Fprintf(w, "data: %s\n\n", word) // which announces the item
				for range 60 {
					if _, err := fmt.Fprintf(w, "data: %s\n\n", event); err != nil {
						return
					}
					<-time.After(10 * time.Second)
				}
				_, _ = io.WriteString(w, stream("completed", ""))
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			begun := time.Now()
			_, _, err := drain(ctx, m)
			if took := time.Since(begun).Round(time.Second); agent.ClassOf(err) != want.class || took != want.after {
				t.Errorf("%s: after %v: %v", event, took, err)
			}
			<-time.After(time.Hour) // whoever still writes comes to an end
		})
	}
}

func TestCancelling(t *testing.T) {
	wiretest.Cancelling(t, func(t *testing.T, h http.HandlerFunc) agent.Model { return serve(t, wire.Config{}, h) }, hi, `data: {"type":"response.created","response":{}}`+"\n\n")
}

func TestNothingIsDialledBeforeTheFirstRequest(t *testing.T) {
	m := serve(t, wire.Config{}, func(http.ResponseWriter, *http.Request) { t.Error("somebody called") })
	_ = m.Stream(t.Context(), hi)
	if m.Info().ID != reader.ID {
		t.Error("the model forgot who it is")
	}
}
