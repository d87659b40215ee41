package registry

import (
	_ "embed"
	"encoding/json"
	"slices"
	"sync"
)

//go:embed providers.json
var endpoints []byte

// Provider is whoever serves models at an address, in one wire format.
type Provider struct {
	Name  string   `json:"name"` // as in a model's entry, and in front of a model's name: name/model
	Title string   `json:"title"`
	Type  string   `json:"type"` // anthropic, chat, responses or gemini
	URL   string   `json:"url"`
	Keys  []string `json:"keys,omitempty"`  // variables that may hold the key, the strongest first
	Base  []string `json:"base,omitempty"`  // variables that may hold another address
	Local bool     `json:"local,omitempty"` // a server on this machine, which may need no key
	Model string   `json:"model,omitempty"` // to take when none is named; "" = the first of the catalog
	Small string   `json:"small,omitempty"` // for digests and the like
}

// Setting is an endpoint that serves models.
type Setting struct {
	Type    string            `json:"type,omitempty"` // the protocol: anthropic, chat, responses or gemini
	BaseURL string            `json:"baseUrl,omitempty"`
	KeyEnv  string            `json:"keyEnv,omitempty"` // variable that holds the key
	Headers map[string]string `json:"headers,omitempty"`
	Model   string            `json:"model,omitempty"` // the one to take when none is named
}

var providers = sync.OnceValue(func() []Provider {
	var list []Provider
	if err := json.Unmarshal(endpoints, &list); err != nil {
		panic("providers.json: " + err.Error()) // a test reads the same file
	}
	return list
})

// Providers returns the known providers, in the order in which a key decides for
// one of them. The slice is the caller's.
func Providers() []Provider { return slices.Clone(providers()) }
