// Package gemini speaks the Google Gemini API, at its own address or at one
// that looks like Vertex AI: it writes requests whose prefix stays
// byte-identical while a conversation grows, in turns that alternate and answer
// every call, and reads the answer chunk by chunk. One Stream is one request on
// the wire; nothing is tried twice here, and a stream that ends without a
// finish reason is an error.
//
// It keeps the encoded form of the conversations it saw last. It starts no
// goroutines but for timers that end a request, dials nothing before the first
// request, and never puts a key into an error.
package gemini

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/models/wire"
)

// DefaultURL is the address of the Gemini API.
const DefaultURL = "https://generativelanguage.googleapis.com"

const api = "the Gemini API"

// Config says whom to ask, and as whom. Only Info.ID is required.
type Config struct {
	// Info is the model; its ID is part of the address, so that it is asked
	// whatever model a request names. Provider defaults to "google"; it names who
	// can read signatures and raw blocks, and other providers' are left out of
	// requests.
	Info agent.ModelInfo

	// BaseURL is with or without /v1beta. One that has /publishers/ in it, as
	// Vertex AI's have, is complete up to /models.
	BaseURL   string
	Key       string // sent as x-goog-api-key
	AuthToken string // sent as a bearer token
	UserAgent string
	Header    http.Header // replaces headers of the same name

	// HTTP is used for its transport; cookies are left out; redirects and
	// Timeout are not obeyed. Nil means a transport of its own with Proxy.
	HTTP  *http.Client
	Proxy func(*http.Request) (*url.URL, error)

	HeaderLimit time.Duration // until the answer begins; 0 = 5 min
	IdleLimit   time.Duration // without a byte; 0 = 1 min
	PingLimit   time.Duration // with nothing but empty chunks; 0 = 5 min
}

// Model is one model at one endpoint. It is safe for concurrent use.
type Model struct {
	cfg     Config
	conn    *wire.Conn
	header  http.Header
	encoder encoder
}

var _ agent.Model = (*Model)(nil)

// New returns the model that cfg describes. A configuration that cannot work is
// reported by Stream.
func New(cfg Config) *Model {
	cfg.Info.Provider = wire.Or(cfg.Info.Provider, "google")
	cfg.Key, cfg.AuthToken = strings.TrimSpace(cfg.Key), strings.TrimSpace(cfg.AuthToken)
	m := &Model{cfg: cfg, encoder: encoder{info: cfg.Info}, header: http.Header{}}
	m.conn = wire.New(wire.Config{
		BaseURL: wire.Or(cfg.BaseURL, DefaultURL), Path: path(cfg), API: api, Example: DefaultURL,
		UserAgent: cfg.UserAgent, Header: cfg.Header, Secrets: []string{cfg.Key, cfg.AuthToken},
		HTTP: cfg.HTTP, Proxy: cfg.Proxy,
		HeaderLimit: cfg.HeaderLimit, IdleLimit: cfg.IdleLimit, PingLimit: cfg.PingLimit,
	})
	if cfg.Key != "" {
		m.header.Set("X-Goog-Api-Key", cfg.Key)
	}
	if cfg.AuthToken != "" {
		m.header.Set("Authorization", "Bearer "+cfg.AuthToken)
	}
	return m
}

// path returns what comes behind the base URL.
func path(cfg Config) string {
	name := strings.TrimPrefix(cfg.Info.ID, "models/")
	path := "/models/" + inPath(name) + ":streamGenerateContent?alt=sse"
	if strings.Contains(cfg.BaseURL, "/publishers/") {
		return path
	}
	return "/v1beta" + path
}

// inPath returns the name of a model as it can stand in a path: it leads nowhere
// else, whatever a list of models says.
func inPath(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-/@:", r):
			return r
		}
		return '_'
	}, name)
	return strings.ReplaceAll(name, "..", "_")
}

// Info returns the model's entry of the catalog.
func (m *Model) Info() agent.ModelInfo { return m.cfg.Info }

// Close closes connections that nobody uses. The model can still be asked.
func (m *Model) Close() { m.conn.Close() }

// Encode returns the body of the request that Stream would send.
func (m *Model) Encode(r agent.Request) ([]byte, error) {
	p, err := m.encoder.encode(r)
	if err != nil {
		return nil, err
	}
	return p.Bytes(), nil
}

// Stream asks the model. The request is sent when the first delta is asked for.
func (m *Model) Stream(ctx context.Context, r agent.Request) iter.Seq2[agent.Delta, error] {
	return m.conn.Stream(ctx, wire.Exchange{
		Header:  m.header,
		Body:    func() (*wire.Payload, error) { return m.encoder.encode(r) },
		Explain: explain,
		Read: func(in *wire.Body, emit wire.Emit) (bool, error) {
			a := newAnswer(r, m.cfg.Info.Provider, in, emit)
			err := a.read()
			return a.complete, err
		},
		Whole: func(body []byte, in *wire.Body, emit wire.Emit) error {
			return newAnswer(r, m.cfg.Info.Provider, in, emit).whole(body)
		},
	})
}
