package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
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

// serve returns a model that asks h over a real connection.
func serve(t *testing.T, cfg Config, h http.HandlerFunc) *wire.Model {
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
	openAI := func(kind, code, message string) string {
		b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code}})
		return string(b)
	}
	const (
		invalid  = agent.FailInvalid
		auth     = agent.FailAuth
		quota    = agent.FailQuota
		rate     = agent.FailRate
		server   = agent.FailServer
		window   = agent.FailContext
		missing  = agent.FailNotFound
		protocol = agent.FailProtocol
		timeout  = agent.FailTimeout
	)
	for _, c := range []struct {
		name   string
		status int
		body   string
		class  agent.FailureClass
		code   string
		say    string
		wait   time.Duration
	}{
		{"OpenAI: bad request", 400, openAI("invalid_request_error", "", "you must provide a model parameter"), invalid, "invalid_request_error", "you must provide a model parameter", 0},
		{"OpenAI: wrong key", 401, openAI("invalid_request_error", "invalid_api_key", "Incorrect API key provided"), auth, "invalid_api_key", "Incorrect API key provided", 0},
		{"OpenAI: no country", 403, openAI("request_forbidden", "unsupported_country_region_territory", "not supported"), auth, "unsupported_country_region_territory", "not supported", 0},
		{"OpenAI: no such model", 404, openAI("invalid_request_error", "model_not_found", "The model `x` does not exist or you do not have access to it."), missing, "model_not_found", "does not exist", 0},
		{"OpenAI: a wrong path", 404, openAI("invalid_request_error", "", "Invalid URL (POST /v2/chat/completions)"), protocol, "invalid_request_error", "Invalid URL", 0},
		{"OpenAI: too long", 400, openAI("invalid_request_error", "context_length_exceeded", "This model's maximum context length is 128000 tokens."), window, "context_length_exceeded", "maximum context", 0},
		{"OpenAI: too many", 429, openAI("requests", "rate_limit_exceeded", "Rate limit reached for gpt-5.4 on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s. Visit the site."), rate, "rate_limit_exceeded", "Rate limit", 20 * time.Second},
		{"OpenAI: too many tokens", 429, openAI("tokens", "rate_limit_exceeded", "Rate limit reached on tokens per min. Please try again in 6m0.5s."), rate, "rate_limit_exceeded", "Rate limit", 6*time.Minute + 500*time.Millisecond},
		{"OpenAI: too many, hardly", 429, openAI("tokens", "rate_limit_exceeded", "Please try again in 86ms."), rate, "rate_limit_exceeded", "try again", 86 * time.Millisecond},
		{"OpenAI: more than ever fits", 429, openAI("tokens", "rate_limit_exceeded", "Request too large for gpt-5.4 on tokens per min (TPM): Limit 30000, Requested 40000."), window, "rate_limit_exceeded", "Request too large", 0},
		{"OpenAI: all spent", 429, openAI("insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."), quota, "insufficient_quota", "current quota", 0},
		{"OpenAI: no credit", 429, openAI("insufficient_quota", "credit_balance_exhausted", "Add credits"), quota, "credit_balance_exhausted", "Add credits", 0},
		{"OpenAI: broken", 500, openAI("server_error", "", "The server had an error"), server, "server_error", "had an error", 0},
		{"OpenAI: overloaded", 503, openAI("service_unavailable_error", "server_is_overloaded", "busy"), server, "server_is_overloaded", "busy", 0},
		{"OpenAI: slower", 503, openAI("service_unavailable_error", "slow_down", "slow down"), server, "slow_down", "slow down", 0},
		{"Azure: filtered", 400, openAI("", "content_filter", "The response was filtered"), invalid, "content_filter", "filtered", 0},
		{"OpenRouter: no credit", 402, `{"error":{"code":402,"message":"Insufficient credits. Add more credits."},"user_id":"u"}`, quota, "402", "Insufficient credits", 0},
		{"OpenRouter: moderation", 403, `{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["x"],"flagged_input":"y"}}}`, invalid, "403", "flagged", 0},
		{"OpenRouter: the provider's limit", 429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"m is temporarily rate-limited upstream","provider_name":"P","headers":{"Retry-After":"7"}}}}`, rate, "429", "Provider returned error: m is temporarily rate-limited upstream", 7 * time.Second},
		{"OpenRouter: nobody", 503, `{"error":{"code":503,"message":"No available model provider"}}`, server, "503", "No available", 0},
		{"DeepSeek: no balance", 402, openAI("unknown_error", "invalid_request_error", "Insufficient Balance"), quota, "invalid_request_error", "Insufficient Balance", 0},
		{"DeepSeek: thinking is missing", 400, openAI("invalid_request_error", "invalid_request_error", "The `reasoning_content` in the thinking mode must be passed back to the API."), invalid, "invalid_request_error", "reasoning_content", 0},
		{"Mistral: wrong key", 401, `{"message":"Unauthorized","request_id":"r"}`, auth, "", "Unauthorized", 0},
		{"Mistral: wrong key, newer", 401, `{"detail":"Unauthorized"}`, auth, "", "Unauthorized", 0},
		{"Mistral: bad request", 422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","foo"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","code":"1"}`, invalid, "1", "Extra inputs are not permitted", 0},
		{"Mistral: too long", 400, `{"object":"error","message":"Prompt contains 40000 tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`, window, "3051", "too large", 0},
		{"xAI: wrong key", 400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***zz."}`, auth, "Client specified an invalid argument", "Incorrect API key", 0},
		{"xAI: no such model", 404, `{"code":"Some requested entity was not found","error":"The model x does not exist or your team does not have access to it."}`, missing, "Some requested entity was not found", "does not exist", 0},
		{"xAI: too long", 400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 145321 tokens."}`, window, "Client specified an invalid argument", "maximum prompt length", 0},
		{"xAI: all spent", 403, `{"code":"The caller does not have permission","error":"Your team has either used all available credits or reached its monthly spending limit."}`, quota, "The caller does not have permission", "credits", 0},
		{"Groq: no such model", 404, openAI("invalid_request_error", "model_not_found", "The model `x` does not exist"), missing, "model_not_found", "does not exist", 0},
		{"Groq: a model of the past", 400, openAI("invalid_request_error", "model_decommissioned", "The model `x` has been decommissioned"), missing, "model_decommissioned", "decommissioned", 0},
		{"Groq: more than fits", 413, openAI("tokens", "rate_limit_exceeded", "Request too large for model `x` on tokens per minute (TPM)"), window, "rate_limit_exceeded", "too large", 0},
		{"Ollama: no such model", 404, `{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`, missing, "api_error", "not found", 0},
		{"Ollama: no tools", 400, `{"error":{"message":"registry.ollama.ai/library/x does not support tools","type":"api_error","param":null,"code":null}}`, invalid, "api_error", "does not support tools", 0},
		{"llama.cpp: too long", 400, `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":4}}`, window, "400", "context size", 0},
		{"llama.cpp: loading", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, server, "503", "Loading model", 0},
		{"llama.cpp: a wrong path", 404, `{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}`, protocol, "404", "File Not Found", 0},
		{"vLLM: no such model", 404, `{"object":"error","message":"The model x does not exist.","type":"NotFoundError","param":null,"code":404}`, missing, "404", "does not exist", 0},
		{"vLLM: too long", 400, `{"object":"error","message":"This model's maximum context length is 16384 tokens. However, you requested 122946 tokens. Please reduce the length of the messages.","type":"BadRequestError","param":null,"code":400}`, window, "400", "maximum context length", 0},
		{"FastAPI: a wrong path", 404, `{"detail":"Not Found"}`, protocol, "", "does not speak Chat Completions", 0},
		{"FastAPI: bad request", 422, `{"detail":[{"loc":["body","messages"],"msg":"field required"}]}`, invalid, "", "field required", 0},
		{"LiteLLM: wrong key", 401, openAI("auth_error", "401", "Authentication Error, no key"), auth, "401", "Authentication Error", 0},
		{"LiteLLM: timed out", 408, openAI("timeout", "408", "Request timed out"), timeout, "408", "timed out", 0},
		{"LM Studio: text", 400, `{"error":"Model unloaded."}`, invalid, "", "Model unloaded.", 0},
		{"Gemini: a list", 429, `[{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}]`, rate, "429", "exhausted", 0},
		{"a code that is another status", 400, `{"error":{"message":"x","code":500}}`, invalid, "500", "x", 0},
		{"words of a request that is repeated", 422, `{"detail":[{"msg":"field required","input":"` + strings.Repeat("x", 1000) + `context window"}]}`, invalid, "", "field required", 0},
		{"an error that says nothing", 500, `{"error":{"code":null}}`, server, "", "did not say", 0},
		{"an error that says it is none", 200, `{"error":{"message":"x"}}`, server, "", "x", 0},
		{"a page", 502, "<h1>Bad\n Gateway</h1>", server, "", "Bad Gateway. It said: <h1>Bad Gateway</h1>", 0},
		{"JSON of something else", 200, `{"hello":1}`, protocol, "", "something else than Chat Completions", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := drain(t.Context(), New(Config{Config: wire.Config{Info: reader, HTTP: answers("application/json", c.status, says(c.body))}}))
			e, ok := err.(*agent.ModelError)
			if !ok || e.Class != c.class || e.Code != c.code || !strings.Contains(e.Message, c.say) || e.RetryAfter != c.wait {
				t.Errorf("got %+v", err)
			}
		})
	}
}

func TestWhatIsWished(t *testing.T) {
	for message, want := range map[string]time.Duration{
		"Please try again in 1s.":             time.Second,
		"please retry after 1m30s":            90 * time.Second,
		"Try again in 1.5s":                   1500 * time.Millisecond,
		"try again in 99999h":                 maxWait,
		"try again in 999999999999999h":       0,
		"try again in a while":                0,
		"try again in 5 days":                 0,
		strings.Repeat("try again in ", 1000): 0,
	} {
		if got := wished(message); got != want {
			t.Errorf("%.40q: %v", message, got)
		}
	}
}

// An endpoint that refuses an optional member by name is not sent it again.
func TestRefusedOptionsAreLeftOut(t *testing.T) {
	no := false
	openAI := func(message, param string) string {
		b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "param": param, "code": "unsupported_parameter"}})
		return string(b)
	}
	full := Compat{CacheKey: true, Store: &no, Parallel: &no}
	r := agent.Request{Messages: hi.Messages, Tools: tools(), MaxTokens: 9, Thinking: 9}
	for _, c := range []struct{ name, body, member, instead string }{
		{"OpenAI", openAI("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens"), "max_tokens", "max_completion_tokens"},
		{"counts", openAI("Unrecognized request argument supplied: stream_options", ""), "stream_options", ""},
		{"counts, pydantic", `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error"}`, "stream_options", ""},
		{"effort", openAI("Function tools with reasoning_effort are not supported for x in /v1/chat/completions.", "reasoning_effort"), "reasoning_effort", ""},
		{"parallel calls", openAI("unknown field parallel_tool_calls", ""), "parallel_tool_calls", ""},
		{"store", openAI("property 'store' is unsupported", ""), "store", ""},
		{"cache key", openAI("unexpected keyword argument 'prompt_cache_key'", ""), "prompt_cache_key", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New(Config{Config: wire.Config{Info: reader, HTTP: answers("application/json", 400, says(c.body))}, Compat: full})
			if got := part(t, wiretest.MustEncode(t, m, r), c.member); got == "" {
				t.Fatal("it is not sent in the first place")
			}
			ask := func() error {
				for _, err := range m.Stream(t.Context(), r) {
					return err
				}
				return nil
			}
			if err := ask(); agent.ClassOf(err) != agent.FailServer {
				t.Errorf("the first refusal is %v", err)
			}
			body := wiretest.MustEncode(t, m, r)
			if got := part(t, body, c.member); got != "" {
				t.Errorf("it is sent again: %s", got)
			}
			if c.instead != "" && part(t, body, c.instead) != "9" {
				t.Errorf("%s is not sent instead: %s", c.instead, body)
			}
			if err := ask(); agent.ClassOf(err) != agent.FailInvalid {
				t.Errorf("the second refusal is %v", err)
			}
		})
	}
	for _, message := range []string{"max_tokens is too large: 9. This model supports at most 5.", "Unsupported value: 'temperature'", "the stored_options are unknown"} {
		e := &encoder{info: reader, compat: full}
		m := e.model(wire.Config{Info: reader, HTTP: answers("application/json", 400, says(openAI(message, "")))})
		if _, _, err := drain(t.Context(), m); agent.ClassOf(err) != agent.FailInvalid || e.refused.Load() != 0 {
			t.Errorf("%s: %v, %b", message, err, e.refused.Load())
		}
	}
}

const secret = "sk-very-secret-0123456789"

func TestTheKeyIsInNoError(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"type":"%[1]s","code":"%[1]s","message":"no such key: %[1]s%[2]s","metadata":{"raw":"%[1]s"}}}`, r.Header.Get("Authorization"), r.Header.Get("X-Team-Key"))
	}
	page := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<p>", r.Header.Get("Authorization"))
	}
	broken := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"error\":{\"message\":%q}}\n\n", r.Header.Get("Authorization"))
	}
	event := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: error\ndata: %s\n\n", r.Header.Get("Authorization"))
	}
	for name, h := range map[string]http.HandlerFunc{"error": echo, "page": page, "stream": broken, "event": event} {
		for how, cfg := range map[string]wire.Config{
			"key":    {Key: secret},
			"header": {Header: http.Header{"X-Team-Key": {secret}, "Authorization": {"Bearer " + secret}}},
		} {
			m := serve(t, Config{Config: cfg}, h)
			_, _, err := drain(t.Context(), m)
			if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v %v", err, err, err, errors.Unwrap(err)), secret) {
				t.Errorf("%s, %s: %#v", name, how, err)
			}
		}
	}
	control := New(Config{Config: wire.Config{Info: reader, Key: "sk\nX-Evil: 1"}})
	if _, _, err := drain(t.Context(), control); agent.ClassOf(err) != agent.FailAuth || strings.Contains(err.Error(), "X-Evil") {
		t.Errorf("a key of two lines: %v", err)
	}
}

func TestAddressesAndHeaders(t *testing.T) {
	var got *http.Request
	for _, c := range []struct{ base, want string }{
		{"", "https://api.openai.com/v1/chat/completions"},
		{"http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/chat/completions"},
		{"http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1/chat/completions"},
		{"https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"},
		{"https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/chat/completions"},
		{"https://gateway.example/x?api-version=1", "https://gateway.example/x/v1/chat/completions?api-version=1"},
	} {
		m := New(Config{Config: wire.Config{
			Info: agent.ModelInfo{ID: "m"}, BaseURL: c.base, Key: " k1\n",
			Header: http.Header{"x-extra": {"1"}, "Idempotency-Key": {"1"}, "User-Agent": {"mine"}},
			HTTP: &http.Client{Timeout: time.Nanosecond, Transport: wiretest.Transport(func(r *http.Request) (*http.Response, error) {
				got = r
				return nil, io.EOF
			})},
		}})
		if _, _, err := drain(t.Context(), m); agent.ClassOf(err) != agent.FailServer {
			t.Errorf("%v", err)
		}
		if got.URL.String() != c.want {
			t.Errorf("%q: asked %s", c.base, got.URL)
		}
	}
	var lines bytes.Buffer
	_ = got.Header.WriteSubset(&lines, nil)
	want := "Accept: text/event-stream\r\nAccept-Encoding: identity\r\nAuthorization: Bearer k1\r\nContent-Type: application/json\r\nUser-Agent: mine\r\nX-Extra: 1\r\n"
	if lines.String() != want || got.ContentLength <= 0 {
		t.Errorf("length %d, headers\n%s", got.ContentLength, lines.String())
	}
	for _, base := range []string{"ftp://x", "api.openai.com", "http://", "://"} {
		if _, _, err := drain(t.Context(), New(Config{Config: wire.Config{Info: reader, BaseURL: base}})); agent.ClassOf(err) != agent.FailInvalid {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestEndpointsThatAreKnown(t *testing.T) {
	openAI := CompatFor("")
	if !openAI.CompletionTokens || CompatFor("https://api.openai.com/v1").Developer != openAI.Developer || CompatFor("https://eu.api.openai.com").CacheKey != true {
		t.Errorf("OpenAI is %+v", openAI)
	}
	for base, want := range map[string]Compat{
		"https://api.deepseek.com":         {Reasoning: "reasoning_content"},
		"https://api.mistral.ai/v1":        {NoUsage: true, Bridge: true, CallIDs: 9, EmptyText: true},
		"https://openrouter.ai/api/v1":     {ReasoningDetails: true},
		"http://localhost:11434":           {ThinkTags: true},
		"http://[::1]:8080":                {ThinkTags: true},
		"https://api.openai.com.evil.test": {},
		"https://gateway.example":          {},
		"://":                              {},
	} {
		if got := CompatFor(base); got != want {
			t.Errorf("%s: %+v", base, got)
		}
	}
}

func TestNetworkFailures(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + listener.Addr().String()
	_ = listener.Close()
	begin := func(w http.ResponseWriter, data string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, data)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	for _, c := range []struct {
		name, base string
		h          http.HandlerFunc
		want       agent.FailureClass
	}{
		{"nobody listens", dead, nil, agent.FailDown},
		{"closed before the answer", "", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, agent.FailServer},
		{"closed within the answer", "", func(w http.ResponseWriter, _ *http.Request) { begin(w, events(delta(`{"content":"a"}`))) }, agent.FailServer},
		{"closed behind the reason, uncleanly", "", func(w http.ResponseWriter, _ *http.Request) {
			begin(w, strings.TrimSuffix(stream(`"stop"`), "data: [DONE]\n\n"))
		}, agent.FailServer},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n atomic.Int32
			m := serve(t, Config{Config: wire.Config{BaseURL: c.base}}, func(w http.ResponseWriter, r *http.Request) {
				n.Add(1)
				c.h(w, r)
			})
			_, final, err := drain(t.Context(), m)
			if agent.ClassOf(err) != c.want || n.Load() > 1 || final != nil {
				t.Errorf("%d requests: %v", n.Load(), err)
			}
		})
	}
}

// paced returns a model whose answer is written by write, in fake time.
func paced(write func(w io.Writer)) *wire.Model {
	return New(Config{Config: wire.Config{Info: reader, HTTP: wiretest.Paced(0, write)}})
}

func TestClocks(t *testing.T) {
	put := func(w io.Writer, s string) bool {
		_, err := io.WriteString(w, s)
		return err == nil
	}
	for _, c := range []struct {
		name  string
		write func(io.Writer)
		class agent.FailureClass // "" = it works
		after time.Duration
	}{
		{"silence", func(io.Writer) { <-time.After(time.Hour) }, agent.FailTimeout, 60 * time.Second},
		{"only comments", func(w io.Writer) {
			for put(w, ": PROCESSING\n\n") {
				<-time.After(10 * time.Second)
			}
		}, agent.FailTimeout, 310 * time.Second},
		{"events that say nothing", func(w io.Writer) {
			for put(w, events(delta(`{"content":""}`))) {
				<-time.After(10 * time.Second)
			}
		}, agent.FailTimeout, 310 * time.Second},
		{"slow, but alive", func(w io.Writer) {
			for range 100 {
				put(w, events(delta(`{"content":"a"}`)))
				<-time.After(50 * time.Second)
			}
			put(w, stream(`"stop"`))
		}, "", 5000 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				_, _, err := drain(t.Context(), paced(c.write))
				if took := time.Since(begun).Round(time.Second); agent.ClassOf(err) != c.class || took != c.after {
					t.Errorf("after %v: %v", took, err)
				}
				<-time.After(2 * time.Hour) // whoever still writes comes to an end
			})
		})
	}
}

func TestCancelling(t *testing.T) {
	wiretest.Cancelling(t, func(t *testing.T, h http.HandlerFunc) agent.Model { return serve(t, Config{}, h) }, hi, events(delta(`{"content":"a"}`)))
}

func TestAConnectionIsUsedAgain(t *testing.T) {
	var connections atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, stream(`"stop"`))
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	m := New(Config{Config: wire.Config{Info: reader, BaseURL: srv.URL}})
	defer m.Close()
	for range 3 {
		if _, _, err := drain(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Requests of one model that run at the same time do not disturb each other,
// also while the endpoint refuses an option.
func TestSideBySide(t *testing.T) {
	m := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("stream_options")) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":{"message":"unknown field stream_options"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, stream(`"stop"`, delta(`{"content":"a"}`)))
	})
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wg.Go(func() {
			for range 2 { // one more attempt is enough for all
				if _, _, results[i] = drain(t.Context(), m); results[i] == nil || agent.ClassOf(results[i]) != agent.FailServer {
					return
				}
			}
		})
	}
	wg.Wait()
	if i := slices.IndexFunc(results, func(err error) bool { return err != nil }); i >= 0 {
		t.Errorf("request %d: %v", i, results[i])
	}
}

func TestNothingIsDialledBeforeTheFirstRequest(t *testing.T) {
	m := serve(t, Config{}, func(http.ResponseWriter, *http.Request) { t.Error("somebody called") })
	_ = m.Stream(t.Context(), hi)
	if m.Info().ID != reader.ID {
		t.Error("the model forgot who it is")
	}
}
