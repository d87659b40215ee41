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
	"dure/agent"
	"dure/internal/models/wire"
)

const api = "the Responses API"

// New returns the model that cfg describes. Its provider defaults to "openai". A
// model with Thinking reasons: it is asked for its encrypted reasoning and takes no
// temperature.
func New(cfg wire.Config) *wire.Model {
	cfg.Info.Provider = wire.Or(cfg.Info.Provider, "openai")
	e := &encoder{info: cfg.Info, marks: marked(cfg.Info)}
	return wire.New(cfg, wire.Dialect{
		API: api, URL: "https://api.openai.com", Path: "/v1/responses",
		Exchange: func(r agent.Request) wire.Exchange {
			return wire.Exchange{
				Body:    func() (*wire.Payload, error) { return e.encode(r) },
				Explain: explain,
				Read: func(in *wire.Body, emit wire.Emit) (bool, error) {
					a := newAnswer(cfg.Info, r, in, emit)
					err := a.read()
					return a.complete, err
				},
				Whole: func(body []byte, in *wire.Body, emit wire.Emit) error {
					return newAnswer(cfg.Info, r, in, emit).whole(body)
				},
			}
		},
	})
}

// marked reports whether a model takes cache marks: the models that do are those
// whose provider charges for what is written to the cache. Of others the provider
// caches what it likes.
func marked(info agent.ModelInfo) bool { return info.Price != nil && info.Price.CacheWrite != nil }

func newAnswer(info agent.ModelInfo, r agent.Request, in *wire.Body, emit wire.Emit) *answer {
	return &answer{req: r, provider: info.Provider, writes: marked(info), in: in, emit: emit, ids: make(map[string]bool)}
}
