// Package chat speaks OpenAI's Chat Completions API, and with it to every
// server that imitates it: it writes requests whose prefix stays byte-identical
// while a conversation grows, reads answers in all the forms in which such
// servers send them, and finds servers on this machine. One Stream is one
// request on the wire; an answer without a reason for its end is an error.
//
// It keeps the encoded form of the conversations it saw last, and which
// optional parameters an endpoint refused. Goroutines run only inside Discover,
// which waits for them. It never puts a key into an error.
package chat

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

const (
	api  = "Chat Completions"
	path = "/v1/chat/completions"
)

// Config says whom to ask, and as whom. Only Info.ID is required.
type Config struct {
	// Info is the model. Provider defaults to "openai"; it names who can read
	// reasoning that goes back, and other providers' is left out of requests.
	// Any value of Thinking means that the model understands an effort.
	Info agent.ModelInfo

	BaseURL   string // with or without /v1
	Key       string // sent as a bearer token; a server on this machine may need none
	UserAgent string
	Header    http.Header // replaces headers of the same name

	// Compat is what is peculiar to the endpoint. The zero value gets on with
	// most servers; [CompatFor] knows the well-known ones.
	Compat Compat

	// HTTP is used for its transport; cookies are left out; redirects and
	// Timeout are not obeyed. Nil means a transport of its own with Proxy.
	HTTP  *http.Client
	Proxy func(*http.Request) (*url.URL, error)

	HeaderLimit time.Duration // until the answer begins; 0 = 5 min
	IdleLimit   time.Duration // without a byte; 0 = 1 min
	PingLimit   time.Duration // with nothing but pings, or events that add nothing; 0 = 5 min
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
	cfg.Key = strings.TrimSpace(cfg.Key)
	return &Model{
		cfg: cfg, conn: connect(cfg, path), header: authorization(cfg.Key),
		encoder: encoder{info: cfg.Info, compat: cfg.Compat},
	}
}

// connect returns the endpoint of cfg at path.
func connect(cfg Config, path string) *wire.Conn {
	return wire.New(wire.Config{
		BaseURL: wire.Or(cfg.BaseURL, DefaultURL), Path: path, API: api, Example: DefaultURL,
		UserAgent: cfg.UserAgent, Header: cfg.Header, Secrets: []string{cfg.Key},
		HTTP: cfg.HTTP, Proxy: cfg.Proxy,
		HeaderLimit: cfg.HeaderLimit, IdleLimit: cfg.IdleLimit, PingLimit: cfg.PingLimit,
	})
}

func authorization(key string) http.Header {
	h := http.Header{}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}

// Info returns the model's entry of the catalog.
func (m *Model) Info() agent.ModelInfo { return m.cfg.Info }

// Close closes connections that nobody uses. The model can still be asked.
func (m *Model) Close() { m.conn.Close() }

// Encode returns the body of the request that Stream would send.
func (m *Model) Encode(r agent.Request) ([]byte, error) {
	p, err := m.encoder.encode(r, m.encoder.options(r))
	if err != nil {
		return nil, err
	}
	return p.Bytes(), nil
}

// Stream asks the model. The request is sent when the first delta is asked for.
//
// An endpoint that refuses an optional parameter by name is not sent it again,
// and the refusal is reported as worth another attempt.
func (m *Model) Stream(ctx context.Context, r agent.Request) iter.Seq2[agent.Delta, error] {
	read := func(in *wire.Body, emit wire.Emit) *answer {
		return &answer{
			req: r, provider: m.cfg.Info.Provider, in: in, emit: emit,
			tags: tags{on: m.cfg.Compat.ThinkTags}, keepDetails: m.cfg.Compat.ReasoningDetails,
		}
	}
	options := m.encoder.options(r)
	return m.conn.Stream(ctx, wire.Exchange{
		Header: m.header,
		Body:   func() (*wire.Payload, error) { return m.encoder.encode(r, options) },
		Explain: func(status int, body []byte) *agent.ModelError {
			said, ok := explanation(body)
			if !ok {
				return nil
			}
			return m.encoder.learn(options, classify(status, said), said.param)
		},
		Read: func(in *wire.Body, emit wire.Emit) (bool, error) {
			a := read(in, emit)
			err := a.read()
			return a.complete, err
		},
		Whole: func(body []byte, in *wire.Body, emit wire.Emit) error {
			return read(in, emit).readWhole(body)
		},
	})
}
