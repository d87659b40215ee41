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
	"net/http"

	"dure/agent"
	"dure/internal/models/wire"
)

const (
	api         = "the Messages API"
	version     = "2023-06-01"
	bindingBeta = "thinking-binding-controls-2026-08-01"
)

// New returns the model that cfg describes. Its provider defaults to
// "anthropic"; the key is sent as x-api-key.
func New(cfg wire.Config) *wire.Model {
	cfg.Info.Provider = wire.Or(cfg.Info.Provider, "anthropic")
	header := http.Header{"Anthropic-Version": {version}}
	if cfg.Info.Thinking == thinkPreserved {
		header.Set("Anthropic-Beta", bindingBeta)
	}
	e := &encoder{info: cfg.Info}
	return wire.New(cfg, wire.Dialect{
		API: api, URL: "https://api.anthropic.com", Path: "/v1/messages", Header: header, KeyHeader: "X-Api-Key",
		Exchange: func(r agent.Request) wire.Exchange {
			return wire.Exchange{
				Body:    func() (*wire.Payload, error) { return e.encode(r) },
				Explain: explain,
				Answer:  func(a wire.Answer) wire.Reader { return &answer{Answer: a} },
			}
		},
	})
}
