package anthropic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dure/agent"
)

// Why a request was given up by its own clock.
var (
	errNoAnswer  = errors.New("the answer did not begin")
	errIdle      = errors.New("nothing came")
	errPingsOnly = errors.New("only pings came")
)

const (
	maxRetryAfter = 24 * time.Hour // a longer wish is taken as this
	maxMessage    = 2000           // bytes of an explanation that are kept
	maxCode       = 100            // of its code
	maxID         = 200            // of the request's ID

	// minSecret is the length from which on a secret is looked for in texts;
	// a shorter one is a word, and protects nothing.
	minSecret = 4
)

// errorMessage is how the API explains itself.
type errorMessage struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Details struct {
		Code string `json:"error_code"`
	} `json:"details"`
}

func protocol(message string) *agent.ModelError {
	return &agent.ModelError{Class: agent.FailProtocol, Message: message}
}

// refused returns the error that resp is, or nil when it is a stream.
func (m *Model) refused(resp *http.Response, body io.Reader) error {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	stream := !strings.HasSuffix(kind, "json") && !strings.HasSuffix(kind, "html")
	if resp.StatusCode == http.StatusOK && stream {
		return nil
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		e := protocol("the endpoint redirects, which is not followed: set the base URL to the address it moved to")
		e.Status = resp.StatusCode
		return e
	}
	text, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if err != nil && len(text) == 0 && resp.StatusCode == http.StatusOK {
		return err
	}
	text = []byte(m.scrub(string(text))) // before anything is cut: no half of a key is left
	var said struct {
		Error     errorMessage `json:"error"`
		RequestID string       `json:"request_id"`
	}
	e := unexplained(resp.StatusCode, string(text))
	if json.Unmarshal(text, &said) == nil && said.Error.Type != "" {
		e = classify(resp.StatusCode, said.Error)
	}
	e.Status = resp.StatusCode
	e.RequestID = or(requestID(resp.Header), boundedID(said.RequestID))
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	advised(e, resp.Header.Get("X-Should-Retry"))
	m.tidy(e)
	return e
}

// tidy takes the key out of what the endpoint said, and bounds it then.
func (m *Model) tidy(e *agent.ModelError) {
	e.Message = short(m.scrub(e.Message), maxMessage)
	e.Code = short(m.scrub(e.Code), maxCode)
	e.RequestID = m.scrub(e.RequestID)
}

// classify turns an explanation of the API into an error. status is 0 inside a
// stream, where the type alone tells. What was said is still as it came.
func classify(status int, said errorMessage) *agent.ModelError {
	e := &agent.ModelError{Class: agent.FailInvalid, Code: said.Type, Message: said.Message}
	text := strings.ToLower(said.Message)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	switch said.Type {
	case "authentication_error", "permission_error":
		e.Class = agent.FailAuth
	case "billing_error":
		e.Class = agent.FailQuota
	case "not_found_error":
		e.Class = agent.FailNotFound
	case "rate_limit_error":
		e.Class = agent.FailRate
		if said.Details.Code == "enforced_spend_limit_reached" || has("spend limit") {
			e.Class = agent.FailQuota
		}
	case "request_too_large":
		e.Class = agent.FailContext
	case "overloaded_error", "api_error", "conflict_error":
		e.Class = agent.FailServer
	case "timeout_error":
		e.Class = agent.FailTimeout
	case "invalid_request_error":
		switch {
		case has("prompt is too long", "exceed context limit", "context window"):
			e.Class = agent.FailContext
		case has("credit balance", "spend limit", "usage limit"):
			e.Class = agent.FailQuota
		}
	default:
		e.Class = byStatus(status)
	}
	if said.Details.Code != "" {
		e.Code = said.Details.Code
	}
	return e
}

// unexplained is the error of an answer that is not the API's: a proxy, a
// gateway, another server.
func unexplained(status int, text string) *agent.ModelError {
	e := &agent.ModelError{Class: byStatus(status)}
	switch {
	case status == http.StatusOK || status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		e.Class = agent.FailProtocol
		e.Message = "the endpoint does not speak the Messages API; check the base URL"
	default:
		e.Message = or(http.StatusText(status), "unknown status")
	}
	if text = strings.Join(strings.Fields(text), " "); text != "" {
		e.Message += ". It said: " + strings.ToValidUTF8(text[:min(len(text), 200)], "")
	}
	return e
}

func byStatus(status int) agent.FailureClass {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return agent.FailAuth
	case status == http.StatusPaymentRequired:
		return agent.FailQuota
	case status == http.StatusNotFound:
		return agent.FailNotFound
	case status == http.StatusRequestTimeout:
		return agent.FailTimeout
	case status == http.StatusRequestEntityTooLarge:
		return agent.FailContext
	case status == http.StatusTooManyRequests:
		return agent.FailRate
	case status >= 500 || status == http.StatusConflict || status == 0:
		return agent.FailServer
	}
	return agent.FailInvalid
}

// advised follows the advice of the X-Should-Retry header.
func advised(e *agent.ModelError, advice string) {
	switch {
	case advice == "true" && !e.Retryable():
		e.Class = agent.FailServer
	case advice == "false" && e.Class == agent.FailRate:
		e.Class = agent.FailQuota
	case advice == "false" && e.Retryable():
		e.Class = agent.FailInvalid
	}
}

// retryAfter returns how long the provider asks to wait: Retry-After-Ms, or
// Retry-After in seconds or as a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	var d time.Duration
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		d = wait(ms / 1000)
	} else if s := h.Get("Retry-After"); s != "" {
		if seconds, err := strconv.ParseFloat(s, 64); err == nil {
			d = wait(seconds)
		} else if at, err := http.ParseTime(s); err == nil {
			d = at.Sub(now)
		}
	}
	return min(max(d, 0), maxRetryAfter)
}

func wait(seconds float64) time.Duration {
	if !(seconds > 0) { // not a number is no wish either
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}

func requestID(h http.Header) string {
	return boundedID(or(h.Get("Request-Id"), h.Get("X-Request-Id")))
}

func boundedID(id string) string {
	return strings.ToValidUTF8(id[:min(len(id), maxID)], "")
}

// explain turns whatever ended a request into the error that the caller sees.
func (m *Model) explain(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*agent.ModelError](err); ok {
		clean := *e
		clean.Err = m.clean(e.Err)
		m.tidy(&clean)
		return &clean
	}
	e := &agent.ModelError{Class: agent.FailServer}
	switch cause := context.Cause(ctx); {
	case errors.Is(err, errPingsOnly):
		e.Class, e.Message = agent.FailTimeout, fmt.Sprintf("%s sent nothing but pings for %v", m.host, m.cfg.PingLimit)
	case errors.Is(cause, errIdle):
		e.Class, e.Message = agent.FailTimeout, fmt.Sprintf("%s sent nothing for %v", m.host, m.cfg.IdleLimit)
	case errors.Is(cause, errNoAnswer):
		e.Class, e.Message = agent.FailTimeout, fmt.Sprintf("%s did not begin to answer within %v", m.host, m.cfg.HeaderLimit)
	default:
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the address may hold a secret
		}
		e.Class, e.Message = m.network(err)
		e.Err = m.clean(err)
	}
	return e
}

// network says what a failure below HTTP means.
func (m *Model) network(err error) (agent.FailureClass, string) {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
	)
	if errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &invalid) {
		return agent.FailProtocol, "the certificate of " + m.host + " is not trusted: " + m.scrub(err.Error())
	}
	if errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return agent.FailProtocol, m.host + " does not speak TLS; check whether the base URL begins with http or https"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return agent.FailDown, "cannot connect to " + m.host + ": " + m.scrub(op.Err.Error())
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return agent.FailDown, "cannot find " + m.host
	}
	return agent.FailServer, "the connection to " + m.host + " was lost: " + m.scrub(err.Error())
}

// scrub removes the key from a text, whoever put it there.
func (m *Model) scrub(s string) string {
	for _, secret := range m.secrets() {
		s = strings.ReplaceAll(s, secret, "[key]")
	}
	return s
}

// secrets returns what must not be shown.
func (m *Model) secrets() []string {
	secrets := []string{}
	add := func(s string) {
		if len(s) >= minSecret {
			secrets = append(secrets, s)
		}
	}
	add(m.cfg.Key)
	add(m.cfg.AuthToken)
	if u, err := url.Parse(m.cfg.BaseURL); err == nil {
		password, _ := u.User.Password()
		add(password)
	}
	for name, values := range m.cfg.Header {
		name = strings.ToLower(name)
		if strings.Contains(name, "auth") || strings.Contains(name, "key") || strings.Contains(name, "token") || strings.Contains(name, "cookie") {
			for _, v := range values {
				add(v)
				add(v[strings.LastIndexByte(v, ' ')+1:])
			}
		}
	}
	return secrets
}

// clean returns err, or its scrubbed text when the text has the key in it.
func (m *Model) clean(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); m.scrub(text) != text {
		return errors.New(m.scrub(text))
	}
	return err
}

func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
