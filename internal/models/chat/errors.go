package chat

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/models/wire"
)

// said is how an endpoint explains itself, whatever the form.
type said struct {
	message, kind, code, param string
	retry                      time.Duration
}

// failure is an explanation in any of the forms in which servers give one:
// {"error":{…}}, {"error":"…"}, {"object":"error","message":…}, {"message":…},
// {"detail":…}. Members whose type differs between servers are raw.
type failure struct {
	Object   string          `json:"object"`
	Choices  json.RawMessage `json:"choices"`
	Error    json.RawMessage `json:"error"`
	Message  json.RawMessage `json:"message"`
	Detail   json.RawMessage `json:"detail"`
	Type     json.RawMessage `json:"type"`
	Code     json.RawMessage `json:"code"`
	Status   json.RawMessage `json:"status"`
	Param    json.RawMessage `json:"param"`
	Metadata struct {
		Raw     json.RawMessage `json:"raw"`
		Headers struct {
			RetryAfter json.RawMessage `json:"Retry-After"`
		} `json:"headers"`
	} `json:"metadata"`
}

// explanation reads the body of an answer, or an event of a stream, that is an
// error. It reports false when it is something else.
func explanation(body []byte) (said, bool) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0] // some wrap it into a list
	}
	var f failure
	if !wire.Object(body) || !decoded(json.Unmarshal(body, &f)) {
		return said{}, false
	}
	switch {
	case given(f.Error):
		return f.error(), true
	case given(f.Choices):
		return said{}, false
	case given(f.Message) && f.Object == "error", f.bare(body):
		return f.said(f.Message), true
	case given(f.Detail) && plain(f.Detail) != "Not Found": // of a path that nobody serves
		return f.said(f.Detail), true
	}
	return said{}, false
}

// bare reports whether body is no more than the text of an error, with what
// belongs to one.
func (f failure) bare(body []byte) bool {
	if !given(f.Message) || f.Message[0] != '"' {
		return false
	}
	var m map[string]json.RawMessage
	return given(f.Type) || given(f.Code) || given(f.Status) || json.Unmarshal(body, &m) == nil && len(m) <= 2 && m["role"] == nil
}

// decoded reports whether a value was read; members of another type than
// expected are left out.
func decoded(err error) bool {
	_, odd := err.(*json.UnmarshalTypeError) //nolint:errorlint // it comes unwrapped, by the contract of json.Unmarshal
	return err == nil || odd
}

// given reports whether a member is there and not null, false, or empty.
func given(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", `""`, "false", "{}":
		return false
	}
	return true
}

// plain returns a string as it is, and anything else as JSON.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return strings.TrimSpace(string(raw))
}

// error reads the member error: an object with the same members, or a text.
func (f failure) error() said {
	var inner failure
	if wire.Object(f.Error) && decoded(json.Unmarshal(f.Error, &inner)) {
		s := inner.said(inner.Message)
		if s.message == "" && given(inner.Error) {
			s.message = plain(inner.Error)
		}
		return s
	}
	return f.said(f.Error)
}

func (f failure) said(message json.RawMessage) said {
	s := said{message: plain(message), kind: plain(f.Type), code: plain(f.Code), param: plain(f.Param)}
	if raw := plain(f.Metadata.Raw); raw != "" && raw != "null" {
		s.message += ": " + raw // what the provider behind a gateway said
	}
	if seconds, err := strconv.ParseFloat(plain(f.Metadata.Headers.RetryAfter), 64); err == nil && seconds > 0 {
		s.retry = time.Duration(min(seconds, maxWait.Seconds()) * float64(time.Second))
	}
	for _, p := range []*string{&s.kind, &s.code, &s.param} {
		if *p == "null" {
			*p = ""
		}
	}
	return s
}

const (
	maxWait  = 24 * time.Hour // a longer wish is taken as this
	maxWords = 1000           // bytes of a message that classify it; behind them requests are repeated
)

var tryAgain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?(?:ms|[hms]))+)`)
})

// wished returns how long a message asks to wait, as OpenAI's do: "Please try
// again in 6m0s." 0 = it does not.
func wished(message string) time.Duration {
	m := tryAgain().FindStringSubmatch(message[:min(len(message), wire.MaxMessage)])
	if m == nil {
		return 0
	}
	d, err := time.ParseDuration(m[1])
	if err != nil || d < 0 {
		return 0
	}
	return min(d, maxWait)
}

// classify turns an explanation into an error. status is 0 inside a stream,
// where the code alone may tell. What was said is still as it came.
func classify(status int, s said) *agent.ModelError {
	if n, err := strconv.Atoi(s.code); err == nil && status < 400 && n >= 400 && n < 600 {
		status = n
	}
	e := &agent.ModelError{
		Class: wire.ByStatus(status), Code: wire.Or(s.code, s.kind), Message: s.message,
		RetryAfter: wire.Or(s.retry, wished(s.message)),
	}
	if e.Message == "" {
		e.Message = wire.Or(e.Code, "the endpoint did not say what is wrong")
	}
	if status == 200 {
		e.Class = agent.FailServer
	}
	words := s.message[:min(len(s.message), maxWords)]
	if class := classOf(status, strings.ToLower(s.kind+" "+s.code), strings.ToLower(words)); class != "" {
		e.Class = class
	}
	return e
}

// classOf returns the class that the words of an explanation stand for, or ""
// when its status has to tell.
func classOf(status int, code, text string) agent.FailureClass {
	switch {
	case wire.Holds(code, "context_length_exceeded", "exceed_context_size"),
		wire.Holds(text, "context length", "context window", "context size", "prompt is too long", "prompt length", "input is too long",
			"too many input tokens", "reduce the length", "request too large", "exceeds the maximum number of tokens"):
		return agent.FailContext
	case wire.Holds(code, "insufficient_quota", "insufficient_balance", "credit_balance", "billing", "credits_exhausted", "quota_exceeded"),
		wire.Holds(text, "exceeded your current quota", "insufficient balance", "insufficient credit", "insufficient funds", "credit balance",
			"more credits", "available credits", "spending limit", "spend limit", "billing"):
		return agent.FailQuota
	case wire.Holds(code, "invalid_api_key", "authentication_error", "invalid_authentication", "permission_error", "permission_denied"),
		wire.Holds(text, "incorrect api key", "invalid api key", "api key not valid"):
		return agent.FailAuth
	case wire.Holds(text, "invalid url (", "file not found", "unknown request url"):
		return agent.FailProtocol
	case wire.Holds(code, "model_not_found", "model_decommissioned"),
		(status == 400 || status == 404) && wire.Holds(text, "model") && wire.Holds(text, "not found", "does not exist", "no such model", "decommissioned", "not exist"):
		return agent.FailNotFound
	case wire.Holds(code, "content_filter", "content_policy", "moderation"), status == 403 && wire.Holds(text, "flagged", "moderation"):
		return agent.FailInvalid
	case wire.Holds(code, "overloaded", "slow_down", "server_error", "service_unavailable", "internal_error"):
		return agent.FailServer
	case wire.Holds(code, "rate_limit"), status == 0 && wire.Holds(text, "rate limit"):
		return agent.FailRate
	case status == 0 && wire.Holds(code, "invalid_request", "badrequest"):
		return agent.FailInvalid
	case wire.Holds(code, "timeout"):
		return agent.FailTimeout
	}
	return ""
}
