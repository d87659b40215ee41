// Package anthropic speaks the Anthropic Messages API: it writes requests whose
// prefix stays byte-identical while a conversation grows, and reads the answer
// event by event. One Stream is one request on the wire; nothing is tried twice
// here, redirects are refused, and a stream that ends without its last event is
// an error.
//
// It keeps the encoded form of the conversations it saw last. It starts no
// goroutines but for timers that end a request, dials nothing before the first request, and never puts
// a key into an error.
package anthropic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dure/agent"
)

// Defaults of [Config].
const (
	DefaultURL         = "https://api.anthropic.com"
	DefaultVersion     = "2023-06-01"
	DefaultHeaderLimit = 300 * time.Second
	DefaultIdleLimit   = 60 * time.Second
	DefaultPingLimit   = 300 * time.Second
)

const (
	maxErrorBody = 64 << 10               // of an answer that is no stream
	maxDrain     = 16 << 10               // behind the last event, so that the connection can be used again
	drainLimit   = 100 * time.Millisecond // how long that may take
	bindingBeta  = "thinking-binding-controls-2026-08-01"
)

// Config says whom to ask, and as whom. Only Info.ID is required.
type Config struct {
	// Info is the model. Provider defaults to "anthropic"; it names who can read
	// signatures and raw blocks, and other providers' are left out of requests.
	Info agent.ModelInfo

	BaseURL   string // with or without /v1
	Key       string // sent as x-api-key
	AuthToken string // sent as a bearer token
	Version   string // of the API
	Betas     []string
	UserAgent string
	Header    http.Header // replaces headers of the same name

	// HTTP is used for its transport and cookies are left out; redirects and
	// Timeout are not obeyed. Nil means a transport of its own with Proxy.
	HTTP  *http.Client
	Proxy func(*http.Request) (*url.URL, error)

	HeaderLimit time.Duration // until the answer begins
	IdleLimit   time.Duration // without a byte
	PingLimit   time.Duration // with nothing but pings
}

// Model is one model at one endpoint. It is safe for concurrent use.
type Model struct {
	cfg     Config
	url     string
	host    string
	broken  error // the configuration cannot work
	http    *http.Client
	encoder encoder
}

var _ agent.Model = (*Model)(nil)

// New returns the model that cfg describes. A configuration that cannot work is
// reported by Stream.
func New(cfg Config) *Model {
	if cfg.Info.Provider == "" {
		cfg.Info.Provider = "anthropic"
	}
	cfg.BaseURL = or(cfg.BaseURL, DefaultURL)
	cfg.Version = or(cfg.Version, DefaultVersion)
	cfg.UserAgent = or(cfg.UserAgent, "dure")
	cfg.HeaderLimit = or(cfg.HeaderLimit, DefaultHeaderLimit)
	cfg.IdleLimit = or(cfg.IdleLimit, DefaultIdleLimit)
	cfg.PingLimit = or(cfg.PingLimit, DefaultPingLimit)
	cfg.Key, cfg.AuthToken = strings.TrimSpace(cfg.Key), strings.TrimSpace(cfg.AuthToken)
	if cfg.Info.Thinking == thinkPreserved {
		cfg.Betas = append(cfg.Betas[:len(cfg.Betas):len(cfg.Betas)], bindingBeta)
	}

	m := &Model{cfg: cfg, http: client(cfg), encoder: encoder{info: cfg.Info}}
	m.url, m.host, m.broken = endpoint(cfg.BaseURL)
	if m.broken == nil && strings.ContainsFunc(cfg.Key+cfg.AuthToken, func(r rune) bool { return r < ' ' || r > '~' }) {
		m.broken = &agent.ModelError{Class: agent.FailAuth, Message: "the key has characters that no key has; copy it again"}
	}
	return m
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// endpoint returns the address of the Messages API below base.
func endpoint(base string) (address, host string, err error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", "", &agent.ModelError{
			Class:   agent.FailInvalid,
			Message: "the base URL of the model is no http or https address, such as " + DefaultURL,
		}
	}
	path := strings.TrimSuffix(u.Path, "/")
	if !strings.HasSuffix(path, "/v1") {
		path += "/v1"
	}
	u.Path, u.RawPath = path+"/messages", ""
	return u.String(), u.Host, nil
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

// Info returns the model's entry of the catalog.
func (m *Model) Info() agent.ModelInfo { return m.cfg.Info }

// Close closes connections that nobody uses. The model can still be asked.
func (m *Model) Close() { m.http.CloseIdleConnections() }

// Encode returns the body of the request that Stream would send.
func (m *Model) Encode(r agent.Request) ([]byte, error) {
	p, err := m.encoder.encode(r)
	if err != nil {
		return nil, err
	}
	body := make([]byte, 0, p.size)
	for _, part := range p.parts {
		body = append(body, part...)
	}
	return body, nil
}

// errLeft says that whoever reads the deltas has stopped.
var errLeft = errors.New("nobody reads the answer")

// Stream asks the model. The request is sent when the first delta is asked for.
func (m *Model) Stream(ctx context.Context, r agent.Request) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		inner, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		err := m.ask(inner, cancel, r, func(d agent.Delta) error {
			if !yield(d, nil) {
				return errLeft
			}
			return nil
		})
		switch {
		case err == nil || errors.Is(err, errLeft):
		case ctx.Err() != nil:
			yield(agent.Delta{}, context.Cause(ctx))
		default:
			yield(agent.Delta{}, m.explain(inner, err))
		}
	}
}

// ask sends the request and reads the answer to its end.
func (m *Model) ask(ctx context.Context, cancel context.CancelCauseFunc, r agent.Request, emit func(agent.Delta) error) error {
	req, err := m.request(ctx, r)
	if err != nil {
		return err
	}
	waiting := time.AfterFunc(m.cfg.HeaderLimit, func() { cancel(errNoAnswer) })
	resp, err := m.http.Do(req)
	waiting.Stop()
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	w := &watch{src: resp.Body, idle: m.cfg.IdleLimit, stall: m.cfg.PingLimit, last: time.Now()}
	w.timer = time.AfterFunc(w.idle, func() { cancel(errIdle) })
	defer w.timer.Stop()
	if err := m.refused(resp, w); err != nil {
		return err
	}
	a := answer{
		req: r, provider: m.cfg.Info.Provider, watch: w, emit: emit,
		requestID: requestID(resp.Header),
	}
	err = a.read()
	if a.complete {
		w.idle = drainLimit
		_, _ = io.CopyN(io.Discard, w, maxDrain) // what is behind the last event is of no interest
	}
	return err
}

// request builds the HTTP request. Its body can be read again, which the
// transport does only when nothing of it had left.
func (m *Model) request(ctx context.Context, r agent.Request) (*http.Request, error) {
	if m.broken != nil {
		return nil, m.broken
	}
	p, err := m.encoder.encode(r)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, p.reader())
	if err != nil {
		return nil, fmt.Errorf("building the request: %w", err)
	}
	req.ContentLength = p.size
	req.GetBody = func() (io.ReadCloser, error) { return p.reader(), nil }

	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	h.Set("Accept-Encoding", "identity") // no transport unpacks what a limit has to see
	h.Set("Anthropic-Version", m.cfg.Version)
	h.Set("User-Agent", m.cfg.UserAgent)
	if len(m.cfg.Betas) > 0 {
		h.Set("Anthropic-Beta", strings.Join(m.cfg.Betas, ","))
	}
	if m.cfg.Key != "" {
		h.Set("X-Api-Key", m.cfg.Key)
	}
	if m.cfg.AuthToken != "" {
		h.Set("Authorization", "Bearer "+m.cfg.AuthToken)
	}
	for name, values := range m.cfg.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	h.Del("Idempotency-Key") // either would let the transport send the request twice
	h.Del("X-Idempotency-Key")
	return req, nil
}

// watch is a body that is given up when nothing, or nothing but pings, comes
// for too long. Time that the reader of the answer takes does not count.
type watch struct {
	src         io.Reader
	idle, stall time.Duration
	timer       *time.Timer // ends the request

	progress bool // an event that is no ping came since last
	last     time.Time
	bytes    int
}

func (w *watch) Read(p []byte) (int, error) {
	now := time.Now()
	if w.progress {
		w.progress, w.last = false, now
	} else if now.Sub(w.last) > w.stall {
		return 0, errPingsOnly
	}
	w.timer.Reset(w.idle)
	n, err := w.src.Read(p)
	w.timer.Stop()
	w.bytes += n
	return n, err
}
