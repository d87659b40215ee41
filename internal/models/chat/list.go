package chat

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dure/agent"
)

const (
	maxModelID = 200 // bytes
	maxWindow  = 1 << 31
)

// listing is a list of models, with what various servers tell of each.
type listing struct {
	Object string   `json:"object"`
	Data   []listed `json:"data"`
}

type listed struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	OwnedBy string `json:"owned_by"`
	Type    string `json:"type"` // llm, vlm, embeddings, chat, ...

	// Tokens of context, by whoever tells.
	Loaded        float64 `json:"loaded_context_length"`
	ContextLength float64 `json:"context_length"`
	ContextWindow float64 `json:"context_window"`
	MaxModelLen   float64 `json:"max_model_len"`
	MaxContext    float64 `json:"max_context_length"`
	Meta          struct {
		Context      float64 `json:"n_ctx"`
		TrainContext float64 `json:"n_ctx_train"`
	} `json:"meta"`

	MaxCompletion float64 `json:"max_completion_tokens"`
	TopProvider   struct {
		MaxCompletion float64 `json:"max_completion_tokens"`
	} `json:"top_provider"`

	Capabilities json.RawMessage `json:"capabilities"` // an object of switches, or a list of words
	Architecture struct {
		Input []string `json:"input_modalities"`
	} `json:"architecture"`
	Parameters []string `json:"supported_parameters"`
	Pricing    struct {
		Prompt     json.RawMessage `json:"prompt"` // US dollars for a token
		Completion json.RawMessage `json:"completion"`
		CacheRead  json.RawMessage `json:"input_cache_read"`
		CacheWrite json.RawMessage `json:"input_cache_write"`
	} `json:"pricing"`
}

// parseList reads a list of models, and reports whether it is one. Some servers
// send the list alone.
func parseList(body []byte) (listing, bool) {
	var l listing
	err := json.Unmarshal(body, &l)
	if len(body) > 0 && body[0] == '[' {
		err = json.Unmarshal(body, &l.Data)
	}
	known := l.Object == "list" || slices.ContainsFunc(l.Data, func(m listed) bool { return m.ID != "" })
	return l, decoded(err) && known
}

// infos returns the models that can be talked to, at most most.
func (l listing) infos(provider string, most int) []agent.ModelInfo {
	var infos []agent.ModelInfo
	seen := map[string]bool{}
	for _, m := range l.Data {
		if len(infos) == most {
			break
		}
		if seen[m.ID] || !sensible(m.ID) || strings.HasPrefix(m.Type, "embedding") {
			continue
		}
		seen[m.ID] = true
		infos = append(infos, m.info(provider))
	}
	return infos
}

func (m listed) info(provider string) agent.ModelInfo {
	i := agent.ModelInfo{
		ID: m.ID, Provider: provider,
		Window: first(m.Loaded, m.Meta.Context, m.MaxModelLen, m.ContextWindow, m.ContextLength, m.MaxContext, m.Meta.TrainContext),
		MaxOut: first(m.MaxCompletion, m.TopProvider.MaxCompletion),
		Images: m.Type == "vlm" || slices.Contains(m.Architecture.Input, "image") || m.can("vision"),
		PDF:    slices.Contains(m.Architecture.Input, "file"),
		Price:  m.price(),
	}
	if m.Name != m.ID && sensible(m.Name) {
		i.Name = m.Name
	}
	if slices.Contains(m.Parameters, "reasoning_effort") || slices.Contains(m.Parameters, "reasoning") {
		i.Thinking = "effort"
	}
	return i
}

// can reports whether the server says that the model is capable of something.
func (m listed) can(what string) bool {
	var switches map[string]json.RawMessage
	if json.Unmarshal(m.Capabilities, &switches) == nil {
		return string(switches[what]) == "true"
	}
	var words []string
	return json.Unmarshal(m.Capabilities, &words) == nil && slices.Contains(words, what)
}

// price returns the prices that the server tells, for a million tokens, or nil.
func (m listed) price() *agent.Price {
	rate := func(raw json.RawMessage) *float64 {
		n, err := strconv.ParseFloat(plain(raw), 64)
		if err != nil || !(n >= 0 && n < 1) {
			return nil
		}
		n *= 1e6
		return &n
	}
	p := agent.Price{
		Input: rate(m.Pricing.Prompt), Output: rate(m.Pricing.Completion),
		CacheRead: rate(m.Pricing.CacheRead), CacheWrite: rate(m.Pricing.CacheWrite),
	}
	if p.Input == nil || p.Output == nil {
		return nil
	}
	return &p
}

// first returns the first count that says anything, 0 for none.
func first(counts ...float64) int {
	for _, n := range counts {
		if n >= 1 && n <= maxWindow {
			return int(n)
		}
	}
	return 0
}

// sensible reports whether a name can be shown and sent.
func sensible(name string) bool {
	return name != "" && len(name) <= maxModelID && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}
