package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // descriptions
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed request.md
var requestText string

// Limits of a request.
const (
	requestTimeout    = 30 * time.Second
	maxRequestTimeout = 2 * time.Minute
	requestBudget     = 8_000   // characters of a result
	requestBytes      = 100_000 // of the answer's body
	maxRequestBytes   = 1 << 20
	maxRequestBody    = 5 << 20 // of our body
	maxRequestHeaders = 64
	maxHeaderValue    = 8 << 10
	prettyJSON        = 32 << 10 // bytes of JSON that are indented
	shownHeader       = 500      // bytes of a header of the answer
	shownHeaders      = 40
)

type requestInput struct {
	Method   string            `json:"method"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Body     string            `json:"body"`
	Timeout  kit.Whole         `json:"timeout"`
	MaxBytes kit.Whole         `json:"max_bytes"`
}

// requestAnswer is the structured answer.
type requestAnswer struct {
	URL       string            `json:"url"`
	Status    int               `json:"status"`
	Reason    string            `json:"statusText"`
	Headers   map[string]string `json:"headers"`
	Body      string            `json:"body"`
	Bytes     int               `json:"bytes"`
	Truncated bool              `json:"truncated"`
	Millis    int64             `json:"durationMs"`
}

func (w *Web) request() kit.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: "http__request", Description: kit.Describe(requestText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"method":{"type":"string","description":"default GET"},` +
				`"url":{"type":"string"},` +
				`"headers":{"type":"object","additionalProperties":{"type":"string"}},` +
				`"body":{"type":"string"},` +
				`"timeout":{"type":"integer","minimum":1,"maximum":120000,"description":"milliseconds, default 30000"},` +
				`"max_bytes":{"type":"integer","minimum":1,"maximum":1048576}},` +
				`"required":["url"],"additionalProperties":false}`),
			Class: agent.Unsafe, Group: "web", Risk: agent.RiskHigh, Limit: maxRequestTimeout + 10*time.Second, Budget: requestBudget,
			Aliases: map[string]string{"uri": "url", "data": "body", "verb": "method", "maxBytes": "max_bytes", "timeout_ms": "timeout"},
		},
		Touches: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			e, _, err := readRequest(c)
			if err != nil {
				return agent.Effects{}, err
			}
			effects := agent.Effects{Hosts: []string{e.to.dial()}}
			if reads(e.method) {
				effects.Class = agent.Read
			}
			return effects, nil
		},
		Does: w.runRequest,
	}
}

// reads reports whether a method only reads, by its definition.
func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// ownHeaders belong to the connection, and are not the model's to set.
var ownHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func readRequest(c agent.Call) (exchange, requestInput, error) {
	in, err := kit.Decode[requestInput](c)
	if err != nil {
		return exchange{}, in, err
	}
	refuse := func(what, next string) (exchange, requestInput, error) {
		return exchange{}, in, kit.Refuse(agent.ErrInput, what, next)
	}
	to, err := parseTarget(in.URL)
	if err != nil {
		return exchange{}, in, err
	}
	e := exchange{method: strings.ToUpper(strings.TrimSpace(in.Method)), to: to, body: in.Body, header: http.Header{}, patient: true}
	if e.method == "" {
		e.method = http.MethodGet
	}
	switch {
	case len(e.method) > 20 || strings.Trim(e.method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "":
		return refuse("the method "+kit.Quote(in.Method, 40)+" cannot exist", "Use GET, POST, PUT, PATCH, DELETE or the like.")
	case e.method == http.MethodConnect, e.method == http.MethodTrace:
		return refuse(e.method+" is not made for APIs", "Use another method.")
	case len(in.Body) > maxRequestBody:
		return refuse(fmt.Sprintf("the body has more than %d bytes", maxRequestBody), "Send it with a command.")
	case len(in.Headers) > maxRequestHeaders:
		return refuse(fmt.Sprintf("there are more than %d headers", maxRequestHeaders), "Send fewer.")
	}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		value, canonical := in.Headers[name], http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return refuse("the header name "+kit.Quote(name, 60)+" cannot exist", "Use letters, digits and hyphens.")
		case !httpguts.ValidHeaderFieldValue(value) || len(value) > maxHeaderValue:
			return refuse("the value of the header "+name+" has control characters, or more than 8192 bytes", "Send it in one plain line.")
		case slices.Contains(ownHeaders, canonical) || strings.HasPrefix(canonical, "Proxy-"):
			return refuse("the header "+canonical+" is set by the connection", "Leave it out.")
		case e.header[canonical] != nil:
			return refuse("the header "+canonical+" is given twice", "Give it once.")
		}
		e.header.Set(name, value)
	}
	e.limit = requestBytes
	if in.MaxBytes > 0 {
		e.limit = min(int64(in.MaxBytes), maxRequestBytes)
	}
	return e, in, nil
}

func (w *Web) runRequest(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	e, in, err := readRequest(c)
	if err != nil {
		return agent.Result{}, err
	}
	key := agent.CallEnvOf(ctx).Key
	if !reads(e.method) && key != "" && e.header.Get("Idempotency-Key") == "" {
		e.header.Set("Idempotency-Key", key)
	}
	timeout := requestTimeout
	if in.Timeout > 0 {
		timeout = min(time.Duration(in.Timeout)*time.Millisecond, maxRequestTimeout)
	}
	net, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	start := w.cfg.Now()
	r, err := w.client.do(net, e)
	if err != nil {
		return agent.Result{}, unsure(e.method, err)
	}
	a := requestAnswer{
		URL: e.to.String(), Status: r.status, Reason: http.StatusText(r.status), Bytes: len(r.body), Truncated: r.cut,
		Headers: chosen(r.header), Millis: w.cfg.Now().Sub(start).Milliseconds(),
	}
	a.Body = bodyText(r)
	veil(&a, e.header)
	return a.result(e.method, key), nil
}

// unsure adds to a failure of a request that may have changed something what is
// not known of it.
func unsure(method string, err error) error {
	te, ok := errors.AsType[*agent.ToolError](err)
	if !ok || reads(method) || te.Code != agent.ErrTimeout && te.Code != ErrWebFetch {
		return err
	}
	mended := *te
	mended.Suggestion = "Whether it took effect is not known: look before you send it again."
	return &mended
}

// result is what the model reads of an answer.
func (a requestAnswer) result(method, key string) agent.Result {
	first := strings.TrimSpace(fmt.Sprintf("%s %s: HTTP %d %s", method, a.URL, a.Status, a.Reason))
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		fmt.Fprintf(&b, "%s: %s\n", name, a.Headers[name])
	}
	if a.Body != "" {
		b.WriteString("\n" + a.Body)
	}
	text := first
	if b.Len() > 0 {
		text += "\n" + framed(key, b.String())
	}
	if a.Truncated {
		text += fmt.Sprintf("\n[only the first %d bytes of the body were read; ask for more with max_bytes]", a.Bytes)
	}
	r := agent.OK(text)
	if a.Status < 200 || a.Status > 299 {
		r.Status = agent.StatusError
		r.Error = &agent.ToolError{Code: ErrWebStatus, Message: first, Suggestion: "Read the answer, and mend the request if it can be mended."}
		if a.Status < 400 {
			r.Error.Suggestion = "It leads elsewhere: request the URL that it names if that is wanted."
		}
	}
	r.Output = kit.Structured(a)
	return r
}

// telling are the headers of an answer that say something to its reader. Cookies
// are none of them.
var telling = []string{
	"Allow", "Content-Disposition", "Content-Language", "Content-Range", "Content-Type", "Deprecation", "Etag",
	"Last-Modified", "Link", "Location", "Ratelimit", "Ratelimit-Policy", "Retry-After", "Sunset", "Warning",
	"Www-Authenticate", "X-Request-Id", "X-Total-Count",
}

// chosen returns the headers that are shown, with names as HTTP/1.1 writes them.
func chosen(h http.Header) map[string]string {
	m := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if len(m) < shownHeaders && (slices.Contains(telling, name) || strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Ratelimit-")) {
			m[name] = kit.Line(strings.ToValidUTF8(strings.Join(h[name], ", "), "\uFFFD"), shownHeader)
		}
	}
	return m
}

// bodyText is the body of an answer as text. Of binary data it says what it is.
func bodyText(r *reply) string {
	if len(r.body) == 0 {
		return ""
	}
	kind := mediaType(r)
	text, ok := decodeText(r.body, r.header.Get("Content-Type"))
	if !ok || !isText(kind) && !utf8.ValidString(text) {
		sum := sha256.Sum256(r.body)
		return fmt.Sprintf("[binary data: %s, %d bytes, sha256 %s]", kind, len(r.body), hex.EncodeToString(sum[:]))
	}
	if !r.cut && len(text) <= prettyJSON && (kind == "application/json" || strings.HasSuffix(kind, "+json")) {
		var b bytes.Buffer
		// Deeply nested JSON would become many spaces.
		if json.Indent(&b, []byte(text), "", "  ") == nil && b.Len() <= 4*prettyJSON {
			return b.String()
		}
	}
	return text
}

// veil takes out of an answer what the request carried as a secret: some servers
// echo what they are sent.
func veil(a *requestAnswer, sent http.Header) {
	var pairs []string
	for name, values := range sent {
		low := strings.ToLower(name)
		if !slices.ContainsFunc([]string{"auth", "cookie", "key", "token", "secret", "password", "signature"}, func(s string) bool {
			return strings.Contains(low, s)
		}) || name == "Idempotency-Key" {
			continue
		}
		for _, v := range values {
			for _, part := range append(strings.FieldsFunc(v, func(r rune) bool { return r == ' ' || r == ';' || r == ',' }), v) {
				if len(part) >= 8 {
					pairs = append(pairs, part, "[secret]")
				}
			}
		}
	}
	if len(pairs) == 0 {
		return
	}
	// The longest first: a part of a value may stand in another.
	sorted := slices.SortedFunc(slices.Values(pairs), func(x, y string) int { return len(y) - len(x) })
	pairs = pairs[:0]
	for _, s := range sorted {
		if s != "[secret]" {
			pairs = append(pairs, s, "[secret]")
		}
	}
	hide := strings.NewReplacer(pairs...)
	a.Body = hide.Replace(a.Body)
	for k, v := range a.Headers {
		a.Headers[k] = hide.Replace(v)
	}
}
