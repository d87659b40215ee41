// Package anthropic speaks the Anthropic Messages API: it writes requests whose
// prefix stays byte-identical while a conversation grows, and reads the answer
// event by event. One Stream is one request on the wire; nothing is tried twice
// here, and a stream that ends without its last event is an error.
//
// It keeps the encoded form of the conversations it saw last. It starts no
// goroutines but for timers that end a request, dials nothing before the first
// request, and never puts a key into an error.
package anthropic

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

// DefaultURL is the base URL when [Config] has none.
const DefaultURL = "https://api.anthropic.com"

const (
	api         = "the Messages API"
	bindingBeta = "thinking-binding-controls-2026-08-01"
)

// Config says whom to ask, and as whom. Only Info.ID is required.
type Config struct {
	// Info is the model. Provider defaults to "anthropic"; it names who can read
	// signatures and raw blocks, and other providers' are left out of requests.
	Info agent.ModelInfo

	BaseURL   string // with or without /v1
	Key       string // sent as x-api-key
	AuthToken string // sent as a bearer token
	Version   string // of the API; "" = 2023-06-01
	Betas     []string
	UserAgent string
	Header    http.Header // replaces headers of the same name

	// HTTP is used for its transport; cookies are left out; redirects and
	// Timeout are not obeyed. Nil means a transport of its own with Proxy.
	HTTP  *http.Client
	Proxy func(*http.Request) (*url.URL, error)

	HeaderLimit time.Duration // until the answer begins; 0 = 5 min
	IdleLimit   time.Duration // without a byte; 0 = 1 min
	PingLimit   time.Duration // with nothing but pings; 0 = 5 min
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
	cfg.Info.Provider = wire.Or(cfg.Info.Provider, "anthropic")
	cfg.Version = wire.Or(cfg.Version, "2023-06-01")
	cfg.Key, cfg.AuthToken = strings.TrimSpace(cfg.Key), strings.TrimSpace(cfg.AuthToken)
	if cfg.Info.Thinking == thinkPreserved {
		cfg.Betas = append(cfg.Betas[:len(cfg.Betas):len(cfg.Betas)], bindingBeta)
	}
	m := &Model{cfg: cfg, encoder: encoder{info: cfg.Info}, header: http.Header{"Anthropic-Version": {cfg.Version}}}
	m.conn = wire.New(wire.Config{
		BaseURL: wire.Or(cfg.BaseURL, DefaultURL), Path: "/v1/messages", API: api, Example: DefaultURL,
		UserAgent: cfg.UserAgent, Header: cfg.Header, Secrets: []string{cfg.Key, cfg.AuthToken},
		HTTP: cfg.HTTP, Proxy: cfg.Proxy,
		HeaderLimit: cfg.HeaderLimit, IdleLimit: cfg.IdleLimit, PingLimit: cfg.PingLimit,
	})
	if len(cfg.Betas) > 0 {
		m.header.Set("Anthropic-Beta", strings.Join(cfg.Betas, ","))
	}
	if cfg.Key != "" {
		m.header.Set("X-Api-Key", cfg.Key)
	}
	if cfg.AuthToken != "" {
		m.header.Set("Authorization", "Bearer "+cfg.AuthToken)
	}
	return m
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
			a := answer{req: r, provider: m.cfg.Info.Provider, in: in, emit: emit}
			err := a.read()
			return a.complete, err
		},
	})
}
