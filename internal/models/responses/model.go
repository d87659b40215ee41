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
				Answer:  func(a wire.Answer) wire.Reader { return newAnswer(a, marked(cfg.Info)) },
			}
		},
	})
}

// marked reports whether a model takes cache marks: the models that do are those
// whose provider charges for what is written to the cache. Of others the provider
// caches what it likes.
func marked(info agent.ModelInfo) bool { return info.Price != nil && info.Price.CacheWrite != nil }

func newAnswer(a wire.Answer, writes bool) *answer {
	a.Foreign = api
	return &answer{Answer: a, writes: writes}
}
