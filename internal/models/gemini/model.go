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
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

const api = "the Gemini API"

// New returns the model that cfg describes. Its provider defaults to "google"; the
// key is sent as x-goog-api-key. The ID is part of the address, so that this model
// is asked whatever model a request names.
func New(cfg wire.Config) *wire.Model {
	cfg.Info.Provider = wire.Or(cfg.Info.Provider, "google")
	e := &encoder{info: cfg.Info}
	return wire.New(cfg, wire.Dialect{
		API: api, URL: "https://generativelanguage.googleapis.com", Path: path(cfg), KeyHeader: "X-Goog-Api-Key",
		Exchange: func(r agent.Request) wire.Exchange {
			return wire.Exchange{
				Body:    func() (*wire.Payload, error) { return e.encode(r) },
				Explain: explain,
				Answer:  func(a wire.Answer) wire.Reader { return &answer{Answer: a} },
			}
		},
	})
}

// path returns what comes behind the base URL. One that has /publishers/ in it,
// as Vertex AI's have, is complete up to /models.
func path(cfg wire.Config) string {
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
