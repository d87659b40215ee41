// Package wire is what the adapters of all providers share: one request over
// HTTP with its clocks, the errors that come of it, and how text, tool inputs
// and conversations are written so that a growing request stays the same in
// front.
//
// One Stream is one request; nothing is tried twice, redirects are refused, and
// no key gets into an error. It starts no goroutines but for timers that end a
// request.
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dure/agent"
)

const (
	maxErrorBody = 64 << 10               // of an answer that is no stream
	maxWhole     = 64 << 20               // of an answer that came as one document
	maxAnswer    = 256 << 20              // of a stream; the longest answers take a quarter of it
	maxDrain     = 16 << 10               // behind the last event, so that the connection can be used again
	drainLimit   = 100 * time.Millisecond // how long that may take
)

// Config says whom to ask, and as whom. Only Info.ID is required.
type Config struct {
	// Info is the model. Its Provider, which has a default in each dialect, names
	// who can read signatures, reasoning and raw blocks; other providers' are left
	// out of requests.
	Info agent.ModelInfo

	BaseURL   string // with or without the version of the API, such as /v1
	Key       string // a server on this machine may need none
	AuthToken string // sent as a bearer token
	UserAgent string
	Header    http.Header // replaces headers of the same name

	// HTTP is used for its transport; cookies are left out; redirects and
	// Timeout are not obeyed. Nil means a transport of its own with Proxy.
	HTTP  *http.Client
	Proxy func(*http.Request) (*url.URL, error)

	HeaderLimit time.Duration // until the answer begins; 0 = 5 min
	IdleLimit   time.Duration // without a byte; 0 = 1 min
	PingLimit   time.Duration // with nothing but pings, or events that add nothing; 0 = 5 min
}

// A Dialect is the API of an endpoint.
type Dialect struct {
	API string // for explanations: the Messages API
	URL string // the base URL when a configuration has none

	// Path is what a request adds to the base URL. When it begins with a version
	// such as /v1 that the address ends with already, that is not written twice.
	Path string

	Header    http.Header // of every request
	KeyHeader string      // carries the key; "" = a bearer token

	// Exchange says how a request is written and its answer is read.
	Exchange func(agent.Request) Exchange
}

// Model is one model at one endpoint. It is safe for concurrent use.
type Model struct {
	cfg     Config
	dialect Dialect
	header  http.Header
	url     string
	host    string
	broken  error // the configuration cannot work
	http    *http.Client
}

var _ agent.Model = (*Model)(nil)

// New returns the model that cfg describes. A configuration that cannot work is
// reported by Stream.
func New(cfg Config, d Dialect) *Model {
	cfg.BaseURL = Or(cfg.BaseURL, d.URL)
	cfg.Key, cfg.AuthToken = strings.TrimSpace(cfg.Key), strings.TrimSpace(cfg.AuthToken)
	cfg.UserAgent = Or(cfg.UserAgent, "dure")
	cfg.HeaderLimit = Or(cfg.HeaderLimit, 300*time.Second)
	cfg.IdleLimit = Or(cfg.IdleLimit, 60*time.Second)
	cfg.PingLimit = Or(cfg.PingLimit, 300*time.Second)
	c := &Model{cfg: cfg, dialect: d, header: http.Header{}, http: client(cfg)}
	c.url, c.host, c.broken = endpoint(cfg.BaseURL, d)
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	if c.broken == nil && strings.ContainsFunc(cfg.Key+cfg.AuthToken, odd) {
		c.broken = &agent.ModelError{Class: agent.FailAuth, Message: "the key has characters that no key has; copy it again"}
	}
	maps.Copy(c.header, d.Header)
	bearer := cfg.AuthToken
	switch {
	case cfg.Key == "":
	case d.KeyHeader != "":
		c.header.Set(d.KeyHeader, cfg.Key)
	default:
		bearer = cfg.Key
	}
	if bearer != "" {
		c.header.Set("Authorization", "Bearer "+bearer)
	}
	return c
}

// Info returns the model's entry of the catalog.
func (c *Model) Info() agent.ModelInfo { return c.cfg.Info }

// Encode returns the body of the request that Stream would send.
func (c *Model) Encode(r agent.Request) ([]byte, error) {
	p, err := c.Payload(r)
	if err != nil {
		return nil, err
	}
	return p.Bytes(), nil
}

// Payload returns the same in parts.
func (c *Model) Payload(r agent.Request) (*Payload, error) { return c.dialect.Exchange(r).Body() }

// Close closes connections that nobody uses. The model can still be asked.
func (c *Model) Close() { c.http.CloseIdleConnections() }

// Or returns v, or fallback when v is its zero value.
func Or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// endpoint joins the base URL and the path.
func endpoint(baseURL string, d Dialect) (address, host string, err error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", "", &agent.ModelError{
			Class:   agent.FailInvalid,
			Message: "the base URL of the model is no http or https address, such as " + d.URL,
		}
	}
	base := strings.TrimSuffix(u.Path, "/")
	path, query, _ := strings.Cut(d.Path, "?")
	if version, rest, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/"); ok && versioned(base) {
		if strings.HasPrefix(version, "v") {
			path = "/" + rest
		}
	}
	u.Path, u.RawPath = base+path, ""
	if query != "" {
		q := u.Query()
		more, _ := url.ParseQuery(query) // ours
		for k, v := range more {
			q[k] = v
		}
		u.RawQuery = q.Encode()
	}
	return u.String(), u.Host, nil
}

// versioned reports whether a path ends with the version of an API: /v1, /v4,
// /v1beta.
func versioned(path string) bool {
	last := path[strings.LastIndexByte(path, '/')+1:]
	return len(last) >= 2 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9'
}

// client returns an HTTP client that follows nothing and cuts no stream.
func client(cfg Config) *http.Client {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if cfg.HTTP != nil {
		c.Transport = cfg.HTTP.Transport
		return c
	}
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	c.Transport = &http.Transport{
		Proxy:               cfg.Proxy,
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 15 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 8,
		DisableCompression:  true,
		ReadBufferSize:      16 << 10,
		WriteBufferSize:     32 << 10,
	}
	return c
}

// Emit gives a delta to whoever reads the answer. An error ends the reading.
type Emit func(agent.Delta) error

// An Exchange is one request and the reading of its answer.
type Exchange struct {
	// Body writes the request.
	Body func() (*Payload, error)

	// Explain turns the body of an answer that is no stream into an error. It
	// returns nil when the body is not the provider's. Status and everything
	// that stands in headers is filled in behind it.
	Explain func(status int, body []byte) *agent.ModelError

	// Answer returns what reads the answer. A DocumentReader reads one from an
	// endpoint that does not stream, too; without, such an answer is refused.
	Answer func(Answer) Reader
}

// A DocumentReader reads an answer that came as one JSON document.
type DocumentReader interface{ Document(body []byte) error }

// errLeft says that whoever reads the deltas has stopped.
var errLeft = errors.New("nobody reads the answer")

// Stream asks the model. The request is sent when the first delta is asked for.
func (c *Model) Stream(ctx context.Context, r agent.Request) iter.Seq2[agent.Delta, error] {
	x := c.dialect.Exchange(r)
	return func(yield func(agent.Delta, error) bool) {
		inner, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		err := c.ask(inner, cancel, x, Answer{Request: r, Provider: c.cfg.Info.Provider, Emit: func(d agent.Delta) error {
			if !yield(d, nil) {
				return errLeft
			}
			return nil
		}})
		switch {
		case err == nil || errors.Is(err, errLeft):
		case ctx.Err() != nil:
			yield(agent.Delta{}, context.Cause(ctx))
		default:
			yield(agent.Delta{}, c.explain(inner, err))
		}
	}
}

// ask sends the request and reads the answer to its end.
func (c *Model) ask(ctx context.Context, cancel context.CancelCauseFunc, x Exchange, a Answer) error {
	req, err := c.request(ctx, x)
	if err != nil {
		return err
	}
	waiting := time.AfterFunc(c.cfg.HeaderLimit, func() { cancel(errNoAnswer) })
	resp, err := c.http.Do(req)
	waiting.Stop()
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	in := &Body{src: resp.Body, idle: c.cfg.IdleLimit, stall: c.cfg.PingLimit, last: time.Now(), RequestID: requestID(resp.Header)}
	in.timer = time.AfterFunc(in.idle, func() { cancel(errIdle) })
	defer in.timer.Stop()
	a.In = in
	reader := x.Answer(a)
	documents, _ := reader.(DocumentReader)
	document, err := c.refused(resp, in, x.Explain, documents != nil)
	if err != nil {
		return err
	}
	if document != nil {
		return documents.Document(document)
	}
	complete, err := Read(reader)
	if complete {
		in.idle = drainLimit
		_, _ = io.CopyN(io.Discard, in, maxDrain) // what is behind the last event is of no interest
	}
	return err
}

// request builds the HTTP request. Its body can be read again, which the
// transport does only when nothing of it had left.
func (c *Model) request(ctx context.Context, x Exchange) (*http.Request, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	p, err := x.Body()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, p.Reader())
	if err != nil {
		return nil, fmt.Errorf("building the request: %w", err)
	}
	req.ContentLength = p.size
	req.GetBody = func() (io.ReadCloser, error) { return p.Reader(), nil }

	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	c.setHeaders(req.Header)
	return req, nil
}

// setHeaders adds what every request has, and on top of it what the provider
// asks for and the configuration says.
func (c *Model) setHeaders(h http.Header) {
	h.Set("Accept-Encoding", "identity") // no transport unpacks what a limit has to see
	h.Set("User-Agent", c.cfg.UserAgent)
	for _, more := range []http.Header{c.header, c.cfg.Header} {
		for name, values := range more {
			h[http.CanonicalHeaderKey(name)] = values
		}
	}
	h.Del("Idempotency-Key") // either would let the transport send the request twice
	h.Del("X-Idempotency-Key")
}

// Body is the body of an answer. It is given up when nothing, or nothing but
// pings, comes for too long, and when it has more than 256 MiB. Time that its
// reader takes does not count.
type Body struct {
	RequestID string // the provider's name for the request

	src         io.Reader
	idle, stall time.Duration
	timer       *time.Timer // ends the request; may be nil

	progress bool // an event that is no ping came since last
	last     time.Time
	bytes    int
	head     []byte // the first ones, at most maxHead
}

// maxHead is how many bytes of an answer tell whether it is a stream of events.
const maxHead = 16

// NewBody returns a body without clocks, for tests.
func NewBody(r io.Reader) *Body {
	return &Body{src: r, idle: time.Hour, stall: time.Hour, last: time.Now()}
}

func (b *Body) Read(p []byte) (int, error) {
	now := time.Now()
	if b.progress {
		b.progress, b.last = false, now
	} else if now.Sub(b.last) > b.stall {
		return 0, errPingsOnly
	}
	if b.bytes > maxAnswer { // an endpoint that never ends would fill the memory
		return 0, Protocol(fmt.Sprintf("the answer is larger than %d MiB", maxAnswer>>20))
	}
	if b.timer != nil {
		b.timer.Reset(b.idle)
		defer b.timer.Stop()
	}
	n, err := b.src.Read(p)
	b.bytes += n
	if room := maxHead - len(b.head); room > 0 {
		b.head = append(b.head, p[:min(n, room)]...)
	}
	return n, err
}

// Progress says that something other than a ping has come.
func (b *Body) Progress() { b.progress = true }

// Bytes returns how much has been read.
func (b *Body) Bytes() int { return b.bytes }
