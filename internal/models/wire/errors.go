package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/models/sse"
)

// Why a request was given up by its own clock.
var (
	errNoAnswer  = errors.New("the answer did not begin")
	errIdle      = errors.New("nothing came")
	errPingsOnly = errors.New("only pings came")
)

// What is kept of an endpoint's own words, in bytes.
const (
	MaxMessage = 2000 // of an explanation
	MaxCode    = 100  // of its code
	MaxID      = 200  // of the request's ID
)

const (
	maxRetryAfter = 24 * time.Hour // a longer wish is taken as this

	// minSecret is the length from which on a secret is looked for in texts;
	// a shorter one is a word, and protects nothing.
	minSecret = 4
)

// Protocol returns the error of an endpoint that does not speak the protocol.
func Protocol(message string) *agent.ModelError {
	return &agent.ModelError{Class: agent.FailProtocol, Message: message}
}

// Cut says what it means that the stream ended with err before the answer was
// complete: a retryable truncation, unless it never was a stream. seen says
// whether any event came.
func (b *Body) Cut(err error, seen bool) error {
	switch {
	case errors.Is(err, sse.ErrTooLarge):
		return Protocol("an event of the answer is larger than 32 MiB")
	case err != io.EOF:
		return err
	case !seen && !begunEvent(b.head):
		return Protocol("the endpoint answered with something that is no event stream")
	}
	return &agent.ModelError{
		Class: agent.FailServer, Code: "cut", RequestID: b.RequestID, Err: io.ErrUnexpectedEOF,
		Message: "the stream was cut before the answer was complete",
	}
}

// begunEvent reports whether head, the first bytes of an answer, can be the
// beginning of a stream of events. No bytes can.
func begunEvent(head []byte) bool {
	const mark = "\xef\xbb\xbf" // a byte order mark
	text := strings.TrimLeft(strings.TrimPrefix(string(head), mark), "\r\n")
	if strings.HasPrefix(mark, text) {
		return true
	}
	return slices.ContainsFunc([]string{"data:", "event:", "id:", "retry:", ":"}, func(field string) bool {
		return strings.HasPrefix(text, field) || strings.HasPrefix(field, text)
	})
}

// Damaged is the error of an event that cannot be read. begun says whether one
// could be before: without, this is another protocol.
func (b *Body) Damaged(api string, begun bool, err error) error {
	if !begun {
		return Protocol("the endpoint streams something else than " + api + "; check the base URL")
	}
	return &agent.ModelError{
		Class: agent.FailServer, Code: "damaged", RequestID: b.RequestID, Err: err,
		Message: "the stream is damaged: an event could not be read",
	}
}

// refused returns the error that resp is, or the document when the answer came
// as one and documents can be read. Both are nil when it is a stream.
func (c *Model) refused(resp *http.Response, body io.Reader, explain func(int, []byte) *agent.ModelError, documents bool) ([]byte, error) {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	stream := !strings.HasSuffix(kind, "json") && !strings.HasSuffix(kind, "html")
	ok := resp.StatusCode == http.StatusOK
	if ok && stream {
		return nil, nil
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		e := Protocol("the endpoint redirects, which is not followed: set the base URL to the address it moved to")
		e.Status = resp.StatusCode
		return nil, e
	}
	most := int64(maxErrorBody)
	if ok && documents && strings.HasSuffix(kind, "json") {
		most = maxWhole
	}
	text, err := io.ReadAll(io.LimitReader(body, most))
	if err != nil && (ok && (len(text) == 0 || most == maxWhole)) {
		return nil, err
	}
	clean := c.scrub(string(text)) // before anything is cut: no half of a key is left
	e := explain(resp.StatusCode, []byte(clean))
	if e == nil && most == maxWhole {
		return text, nil
	}
	if e == nil {
		e = c.unexplained(resp.StatusCode, clean)
	}
	e.Status = resp.StatusCode
	e.RequestID = Or(requestID(resp.Header), Bound(e.RequestID, MaxID))
	if after := retryAfter(resp.Header, time.Now()); after > 0 {
		e.RetryAfter = after
	}
	e.RetryAfter = min(max(e.RetryAfter, 0), maxRetryAfter)
	advised(e, resp.Header.Get("X-Should-Retry"))
	c.tidy(e)
	return nil, e
}

// tidy takes the key out of what the endpoint said, and bounds it then.
func (c *Model) tidy(e *agent.ModelError) {
	e.Message = short(c.scrub(e.Message), MaxMessage)
	e.Code = short(c.scrub(e.Code), MaxCode)
	e.RequestID = c.scrub(e.RequestID)
}

// unexplained is the error of an answer that is not the API's: a proxy, a
// gateway, another server.
func (c *Model) unexplained(status int, text string) *agent.ModelError {
	e := &agent.ModelError{Class: ByStatus(status)}
	switch {
	case status == http.StatusOK || status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		e.Class = agent.FailProtocol
		e.Message = "the endpoint does not speak " + c.dialect.API + "; check the base URL"
	default:
		e.Message = Or(http.StatusText(status), "unknown status")
	}
	if text = strings.Join(strings.Fields(text), " "); text != "" {
		e.Message += ". It said: " + Bound(text, 200)
	}
	return e
}

// ByStatus returns the class of failure that an HTTP status stands for when
// nothing else is known; 0 is an error inside a stream.
func ByStatus(status int) agent.FailureClass {
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
	return Bound(Or(h.Get("Request-Id"), h.Get("X-Request-Id")), MaxID)
}

// explain turns whatever ended a request into the error that the caller sees.
func (c *Model) explain(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*agent.ModelError](err); ok {
		clean := *e
		clean.Err = c.clean(e.Err)
		c.tidy(&clean)
		return &clean
	}
	e := &agent.ModelError{Class: agent.FailServer}
	switch cause := context.Cause(ctx); {
	case errors.Is(err, errPingsOnly):
		e.Class, e.Message = agent.FailTimeout, fmt.Sprintf("%s sent nothing but pings for %v", c.host, c.cfg.PingLimit)
	case errors.Is(cause, errIdle):
		e.Class, e.Message = agent.FailTimeout, fmt.Sprintf("%s sent nothing for %v", c.host, c.cfg.IdleLimit)
	case errors.Is(cause, errNoAnswer):
		e.Class, e.Message = agent.FailTimeout, fmt.Sprintf("%s did not begin to answer within %v", c.host, c.cfg.HeaderLimit)
	default:
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the address may hold a secret
		}
		e.Class, e.Message = c.network(err)
		e.Err = c.clean(err)
	}
	return e
}

// network says what a failure below HTTP means.
func (c *Model) network(err error) (agent.FailureClass, string) {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
	)
	if errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &invalid) {
		return agent.FailProtocol, "the certificate of " + c.host + " is not trusted: " + c.scrub(err.Error())
	}
	if errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return agent.FailProtocol, c.host + " does not speak TLS; check whether the base URL begins with http or https"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return agent.FailDown, "cannot connect to " + c.host + ": " + c.scrub(op.Err.Error())
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "proxyconnect" || op.Op == "socks connect") {
		return agent.FailDown, "cannot reach " + c.host + " through the proxy: " + c.scrub(op.Err.Error())
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return agent.FailDown, "cannot find " + c.host
	}
	return agent.FailServer, "the connection to " + c.host + " was lost: " + c.scrub(err.Error())
}

// scrub removes the key from a text, whoever put it there.
func (c *Model) scrub(s string) string {
	for _, secret := range c.secrets() {
		s = strings.ReplaceAll(s, secret, "[key]")
	}
	return s
}

// secrets returns what must not be shown.
func (c *Model) secrets() []string {
	secrets := []string{}
	add := func(s string) {
		if len(s) >= minSecret {
			secrets = append(secrets, s)
		}
	}
	add(c.cfg.Key)
	add(c.cfg.AuthToken)
	if u, err := url.Parse(c.cfg.BaseURL); err == nil {
		password, _ := u.User.Password()
		add(password)
		for name, values := range u.Query() {
			if sensitive(name) {
				for _, v := range values {
					add(v)
				}
			}
		}
	}
	for name, values := range c.cfg.Header {
		if !sensitive(name) {
			continue
		}
		for _, v := range values {
			add(v)
			add(v[strings.LastIndexByte(v, ' ')+1:])
		}
	}
	return secrets
}

// sensitive reports whether what goes by name is a secret.
func sensitive(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"auth", "key", "token", "cookie", "secret"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// clean returns err, or its scrubbed text when the text has the key in it.
func (c *Model) clean(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); c.scrub(text) != text {
		return errors.New(c.scrub(text))
	}
	return err
}

func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return Bound(s, most) + "…"
}
