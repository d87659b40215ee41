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
	"dure/agent"
	"dure/internal/models/wire"
)

const api = "Chat Completions"

// Config says whom to ask, and as whom. Its provider defaults to "openai". Any
// value of Thinking means that the model understands an effort.
type Config struct {
	wire.Config

	// Compat is what is peculiar to the endpoint. The zero value gets on with
	// most servers; [CompatFor] knows the well-known ones.
	Compat Compat
}

// New returns the model that cfg describes.
//
// An endpoint that refuses an optional parameter by name is not sent it again,
// and the refusal is reported as worth another attempt.
func New(cfg Config) *wire.Model {
	cfg.Info.Provider = wire.Or(cfg.Info.Provider, "openai")
	e := &encoder{info: cfg.Info, compat: cfg.Compat}
	return e.model(cfg.Config)
}

func (e *encoder) model(cfg wire.Config) *wire.Model {
	return wire.New(cfg, wire.Dialect{API: api, URL: "https://api.openai.com", Path: "/v1/chat/completions", Exchange: e.exchange})
}

func (e *encoder) exchange(r agent.Request) wire.Exchange {
	options := e.options(r)
	return wire.Exchange{
		Body: func() (*wire.Payload, error) { return e.encode(r, options) },
		Explain: func(status int, body []byte) *agent.ModelError {
			said, ok := explanation(body)
			if !ok {
				return nil
			}
			return e.learn(options, classify(status, said), said.param)
		},
		Answer: func(a wire.Answer) wire.Reader { return newAnswer(a, e.compat) },
	}
}

func newAnswer(a wire.Answer, c Compat) *answer {
	a.Foreign = api
	return &answer{Answer: a, tags: tags{on: c.ThinkTags}, keepDetails: c.ReasoningDetails}
}
