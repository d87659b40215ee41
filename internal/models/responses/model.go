// Package responses speaks the OpenAI Responses API, and keeps nothing at the
// provider: every request has the whole conversation, with the encrypted
// reasoning of earlier answers in its place, and its prefix stays byte-identical
// while the conversation grows. One Stream is one request on the wire; nothing
// is tried twice here, and a stream that ends without its last event is an
// error.
//
// It keeps the encoded form of the conversations it saw last. It starts no
// goroutines but for timers that end a request, dials nothing before the first
// request, and never puts a key into an error.
package responses

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
const DefaultURL = "https://api.openai.com"

const api = "the Responses API"

// Config says whom to ask, and as whom. Only Info.ID is required.
type Config struct {
	// Info is the model. Provider defaults to "openai"; it names who can read
	// reasoning and raw blocks, and other providers' are left out of requests.
	//
	// A model with Thinking reasons: it is asked for its encrypted reasoning and
	// takes no temperature. A model whose Price has a rate for CacheWrite takes
	// cache marks; of others the provider caches what it likes.
	Info agent.ModelInfo

	BaseURL   string // with or without /v1
	Key       string
	UserAgent string
	Header    http.Header // replaces headers of the same name

	// KeyHeader is the header that carries the key, as with Azure's api-key. ""
	// means a bearer token.
	KeyHeader string

	// CacheKey brings requests of one conversation to the same cache of the
	// provider. "" means one made of the conversation's first message.
	CacheKey string

	// Summary is how reasoning is summed up for a person, when a request asks for
	// thinking: auto, the default, concise or detailed; "none" asks for no summary, which some
	// organizations are not given.
	Summary string

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
	cfg.Info.Provider = wire.Or(cfg.Info.Provider, "openai")
	cfg.Summary = wire.Or(cfg.Summary, "auto")
	cfg.Key = strings.TrimSpace(cfg.Key)
	m := &Model{cfg: cfg, header: http.Header{}, encoder: encoder{
		info: cfg.Info, cacheKey: cfg.CacheKey, summary: cfg.Summary, marks: marked(cfg.Info),
	}}
	m.conn = wire.New(wire.Config{
		BaseURL: wire.Or(cfg.BaseURL, DefaultURL), Path: "/v1/responses", API: api, Example: DefaultURL,
		UserAgent: cfg.UserAgent, Header: cfg.Header, Secrets: []string{cfg.Key},
		HTTP: cfg.HTTP, Proxy: cfg.Proxy,
		HeaderLimit: cfg.HeaderLimit, IdleLimit: cfg.IdleLimit, PingLimit: cfg.PingLimit,
	})
	switch {
	case cfg.Key == "":
	case cfg.KeyHeader != "":
		m.header.Set(cfg.KeyHeader, cfg.Key)
	default:
		m.header.Set("Authorization", "Bearer "+cfg.Key)
	}
	return m
}

// marked reports whether a model takes cache marks: the models that do are those
// whose provider charges for what is written to the cache.
func marked(info agent.ModelInfo) bool { return info.Price != nil && info.Price.CacheWrite != nil }

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
			a := m.answer(r, in, emit)
			err := a.read()
			return a.complete, err
		},
		Whole: func(body []byte, in *wire.Body, emit wire.Emit) error {
			return m.answer(r, in, emit).whole(body)
		},
	})
}

func (m *Model) answer(r agent.Request, in *wire.Body, emit wire.Emit) *answer {
	return &answer{
		req: r, provider: m.cfg.Info.Provider, writes: marked(m.cfg.Info), in: in, emit: emit,
		ids: make(map[string]bool),
	}
}
