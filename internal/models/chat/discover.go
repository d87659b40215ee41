package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dure/agent"
)

const (
	maxProbe      = 1 << 20 // bytes of one answer of a server that may be anything
	maxFound      = 200     // models of one server
	maxAsked      = 32      // models of one server that are asked for one by one
	askedTogether = 4
)

// Kind is a sort of server.
type Kind string

// The servers that are told apart.
const (
	Ollama   Kind = "ollama"
	LMStudio Kind = "lmstudio"
	LlamaCpp Kind = "llamacpp"
	VLLM     Kind = "vllm"
	LiteLLM  Kind = "litellm"
	Other    Kind = "other"
)

// Found is a server on this machine and what it serves. A Window of 0 is
// unknown. Prices are zero, but for LiteLLM's, which hands on to others.
type Found struct {
	Base   string
	Kind   Kind
	Models []agent.ModelInfo
}

// localBases returns the addresses at which servers listen unless they are told
// otherwise: Ollama, LM Studio, llama.cpp, vLLM, LiteLLM.
func localBases() []string {
	return []string{
		"http://127.0.0.1:11434", "http://127.0.0.1:1234", "http://127.0.0.1:8080",
		"http://127.0.0.1:8000", "http://127.0.0.1:4000",
	}
}

// Discover asks the addresses of this machine among bases, all at once, whether
// a server of models is there, and returns those that are, in the order of
// bases. Nil bases mean where such servers usually listen. It takes as long as ctx lets it; what is
// not known by then stays unknown. Of client the transport is used; nil means
// one of its own, without a proxy.
//
// Whatever listens there may be anything: it is first asked for its models, and
// anything else only when it has them; no redirect is followed, an answer is
// read to 1 MiB and 200 models.
func Discover(ctx context.Context, client *http.Client, bases []string) []Found {
	if bases == nil {
		bases = localBases()
	}
	p := prober{http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if client != nil {
		p.http.Transport = client.Transport
	} else {
		p.http.Transport = &http.Transport{DisableCompression: true}
		defer p.http.CloseIdleConnections()
	}
	found := make([]*Found, len(bases))
	var wg sync.WaitGroup
	for i, base := range bases {
		if u, err := url.Parse(base); err == nil && u.Scheme == "http" && isLoopback(u.Hostname()) {
			wg.Go(func() { found[i] = p.probe(ctx, strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")) })
		}
	}
	wg.Wait()
	var list []Found
	for _, f := range found {
		if f != nil {
			list = append(list, *f)
		}
	}
	return list
}

type prober struct{ http *http.Client }

// probe returns what is at base, or nil.
func (p prober) probe(ctx context.Context, base string) *Found {
	body, header := p.get(ctx, base+"/v1/models")
	list, ok := parseList(body)
	if !ok {
		return nil
	}
	f := &Found{Base: base, Kind: Other}
	owner := func(name string) bool {
		return len(list.Data) > 0 && list.Data[0].OwnedBy == name
	}
	switch {
	case owner("llamacpp"):
		f.Kind, f.Models = LlamaCpp, list.infos(string(LlamaCpp), maxFound)
		p.props(ctx, f)
	case owner("vllm"):
		f.Kind, f.Models = VLLM, list.infos(string(VLLM), maxFound)
	case isLiteLLM(header):
		f.Kind, f.Models = LiteLLM, list.infos(string(LiteLLM), maxFound)
		return f // prices of others are not zero
	default:
		p.others(ctx, f, list)
	}
	for i := range f.Models {
		f.Models[i].Price = free()
	}
	return f
}

// free is the price of what runs on this machine.
func free() *agent.Price {
	zero := 0.0
	return &agent.Price{Input: &zero, Output: &zero, CacheRead: &zero, CacheWrite: &zero, CacheHour: &zero}
}

func isLiteLLM(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "X-Litellm-") {
			return true
		}
	}
	return false
}

// others tells apart the servers that are known by what else they answer.
func (p prober) others(ctx context.Context, f *Found, list listing) {
	var studio, tags []byte
	var wg sync.WaitGroup
	wg.Go(func() { studio, _ = p.get(ctx, f.Base+"/api/v0/models") })
	wg.Go(func() { tags, _ = p.get(ctx, f.Base+"/api/tags") })
	wg.Wait()
	if l, ok := parseList(studio); ok {
		f.Kind, f.Models = LMStudio, l.infos(string(LMStudio), maxFound)
		return
	}
	if names, ok := ollamaNames(tags); ok {
		f.Kind, f.Models = Ollama, p.ollama(ctx, f.Base, names)
		return
	}
	f.Models = list.infos(string(Other), maxFound)
}

// props adds what llama.cpp tells of the one model that it has loaded.
func (p prober) props(ctx context.Context, f *Found) {
	body, _ := p.get(ctx, f.Base+"/props")
	var props struct {
		Settings struct {
			Context float64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Modalities struct {
			Vision bool `json:"vision"`
		} `json:"modalities"`
	}
	if !decoded(json.Unmarshal(body, &props)) || len(f.Models) != 1 {
		return
	}
	m := &f.Models[0]
	m.Window = first(props.Settings.Context, float64(m.Window))
	m.Images = m.Images || props.Modalities.Vision
}

// ollamaNames reads the list of Ollama's own API.
func ollamaNames(body []byte) (names []string, ok bool) {
	var tags struct {
		Models []struct {
			Name  string `json:"name"`
			Model string `json:"model"`
		} `json:"models"`
	}
	if !decoded(json.Unmarshal(body, &tags)) || tags.Models == nil {
		return nil, false
	}
	for _, m := range tags.Models {
		name := m.Name
		if name == "" {
			name = m.Model
		}
		if sensible(name) && !slices.Contains(names, name) && len(names) < maxFound {
			names = append(names, name)
		}
	}
	return names, true
}

// ollama returns the models of an Ollama, and asks about the first of them.
func (p prober) ollama(ctx context.Context, base string, names []string) []agent.ModelInfo {
	infos := make([]agent.ModelInfo, len(names))
	embeds := make([]bool, len(names))
	turns := make(chan struct{}, askedTogether)
	var wg sync.WaitGroup
	for i, name := range names {
		infos[i] = agent.ModelInfo{ID: name, Provider: string(Ollama)}
		if i >= maxAsked {
			continue
		}
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			embeds[i] = p.show(ctx, base, &infos[i])
		})
	}
	loaded := p.running(ctx, base)
	wg.Wait()
	var list []agent.ModelInfo
	for i, m := range infos {
		if n := loaded[m.ID]; n > 0 {
			m.Window = n
		}
		if !embeds[i] {
			list = append(list, m)
		}
	}
	return list
}

// show adds what Ollama tells of a model, and reports whether it only embeds.
// The window is what the model is set to; unless that is said, or the model is
// loaded, it is the longest that the model can have.
func (p prober) show(ctx context.Context, base string, m *agent.ModelInfo) bool {
	question, err := json.Marshal(map[string]string{"model": m.ID})
	if err != nil {
		return false // not reached: a string always encodes
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/show", bytes.NewReader(question))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	body, _ := p.do(req)
	var about struct {
		Parameters   string                     `json:"parameters"` // a name and a value in each line
		Info         map[string]json.RawMessage `json:"model_info"`
		Capabilities []string                   `json:"capabilities"`
	}
	if !decoded(json.Unmarshal(body, &about)) {
		return false
	}
	for name, value := range about.Info {
		if n, err := strconv.ParseFloat(string(value), 64); err == nil && strings.HasSuffix(name, ".context_length") {
			m.Window = first(n)
		}
	}
	for line := range strings.Lines(about.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			if n, err := strconv.ParseFloat(f[1], 64); err == nil {
				m.Window = first(n, float64(m.Window))
			}
		}
	}
	m.Images = slices.Contains(about.Capabilities, "vision")
	if slices.Contains(about.Capabilities, "thinking") {
		m.Thinking = "effort"
	}
	return len(about.Capabilities) > 0 && !slices.Contains(about.Capabilities, "completion")
}

// running returns the windows of the models that an Ollama has loaded.
func (p prober) running(ctx context.Context, base string) map[string]int {
	body, _ := p.get(ctx, base+"/api/ps")
	var ps struct {
		Models []struct {
			Name    string  `json:"name"`
			Context float64 `json:"context_length"`
		} `json:"models"`
	}
	if !decoded(json.Unmarshal(body, &ps)) {
		return nil
	}
	windows := map[string]int{}
	for _, m := range ps.Models {
		windows[m.Name] = first(m.Context)
	}
	return windows
}

func (p prober) get(ctx context.Context, address string) ([]byte, http.Header) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil
	}
	return p.do(req)
}

// do returns the answer to req, and nothing when it is no success or too large.
func (p prober) do(req *http.Request) ([]byte, http.Header) {
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProbe+1))
	if err != nil || len(body) > maxProbe || resp.StatusCode != http.StatusOK {
		return nil, nil
	}
	return body, resp.Header
}
