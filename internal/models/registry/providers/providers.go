// Package providers says who can be asked here: the providers with their addresses and keys,
// the models that names mean, and the servers on this machine. Of itself it asks only those
// servers, once; a diagnosis looks whether others answer, and a person can try a model. It
// starts no goroutines but one for the keychain, see [keys.Store].
package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/base/hosts"
	"dure/internal/base/keys"
	"dure/internal/kernel/plug"
	"dure/internal/models/registry"
)

const (
	first  = "anthropic" // the provider whose address and token have settings of their own
	script = "script"    // the provider of the scripted model
)

// Config says what settings and environment say of models. All functions are required.
type Config struct {
	Models    *registry.Catalog
	Providers map[string]registry.Setting // the user's own, and changes to the known ones
	BaseURL   string                      // of Anthropic's API; "" = the usual one
	AuthToken string                      // of Anthropic
	Model     string                      // that is asked when none is named
	Small     string                      // for digests and the like; "" = that of the provider
	Fallback  []string
	OfWork    []string                              // the models of kinds of work
	Profile   string                                // the kind of work when none is named
	Work      func(profile string) string           // the model of a kind of work; "" = the usual one
	Origin    func(setting string) Origin           // where the value of a setting comes from
	NoAI      bool                                  // no model is asked
	Reach     hosts.Reach                           // whom the network mode lets be asked
	OwnProxy  bool                                  // settings name the proxy, and not the environment
	Getenv    func(name string) string              // reads the environment
	Keys      keys.Store                            // where keys are kept
	Transport *http.Transport                       // to everybody
	Dialects  map[string]func(Endpoint) agent.Model // by the type of the provider

	// Servers asks the addresses of this machine whether they serve models, and yields those
	// that do.
	Servers func(ctx context.Context, bases []string) iter.Seq2[string, []agent.ModelInfo]
}

// Origin is where the value of a setting comes from.
type Origin struct {
	Where    string // for people
	BuiltIn  bool   // nobody has set it
	Explicit bool   // it was chosen for this run
}

// Endpoint is where and as whom a model is asked.
type Endpoint struct {
	Info           agent.ModelInfo
	URL            string
	Key, AuthToken string
	Header         http.Header
}

// Extension knows the models and who serves them. It is safe for concurrent use.
type Extension struct {
	plug.NoSession
	Config

	mu      sync.Mutex
	served  map[string]agent.Model // by name
	servers []server               // on this machine
	looked  bool                   // servers is known
}

type server struct {
	base   string
	models []agent.ModelInfo
}

// New returns the extension.
func New(c Config) *Extension { return &Extension{Config: c, served: map[string]agent.Model{}} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "models" }

// Provider is a provider as this installation reaches it.
type Provider struct {
	registry.Provider
	header http.Header
}

// All returns the known providers with what settings and environment say about them, and
// the user's own.
func (x *Extension) All() []Provider {
	var list []Provider
	for _, known := range registry.Providers() {
		p := Provider{Provider: known}
		for _, name := range known.Base {
			if u := strings.TrimSpace(x.Getenv(name)); u != "" {
				p.URL = strings.TrimRight(u, "/")
				if p.Type == "responses" { // what stands in for the original mostly speaks the older format
					p.Type = "chat"
				}
				break
			}
		}
		if known.Name == first && x.BaseURL != "" {
			p.URL = x.BaseURL
		}
		list = append(list, p)
	}
	for name, set := range x.Providers {
		i := slices.IndexFunc(list, func(p Provider) bool { return p.Name == name })
		if i < 0 {
			i = len(list)
			list = append(list, Provider{Provider: registry.Provider{Name: name, Title: name, Type: "chat", Local: hosts.Here(set.BaseURL)}})
		}
		p := &list[i]
		p.Type, p.Model = cmp.Or(set.Type, p.Type), cmp.Or(set.Model, p.Model)
		if set.BaseURL != "" {
			p.URL, p.Local = set.BaseURL, hosts.Here(set.BaseURL)
		}
		if set.KeyEnv != "" {
			p.Keys = append([]string{set.KeyEnv}, p.Keys...)
		}
		for k, v := range set.Headers {
			if p.header == nil {
				p.header = http.Header{}
			}
			p.header.Set(k, v)
		}
	}
	slices.SortStableFunc(list[len(registry.Providers()):], func(a, b Provider) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Find returns the provider of a name. The scripted model is served wherever the base URL
// leads.
func (x *Extension) Find(name string) (Provider, bool) {
	if name == script && x.BaseURL != "" {
		name = first
	}
	for _, p := range x.All() {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// of returns the provider of a model.
func (x *Extension) of(info agent.ModelInfo) (Provider, error) {
	p, ok := x.Find(info.Provider)
	if ok {
		return p, nil
	}
	return p, &agent.Problem{
		Code:    agent.ProblemSettings,
		Message: fmt.Sprintf("the model %s is served by %q, which is no provider", info.ID, info.Provider),
		Fix:     "add it to \"providers\" in your settings, with its type and baseUrl",
		Args:    map[string]string{"path": "models", "error": "no provider " + info.Provider},
	}
}

// key returns the key of a provider and says where it comes from: a variable, or where
// dure login has put it.
func (x *Extension) key(p Provider) (key, from string, err error) {
	for _, name := range p.Keys {
		if v := strings.TrimSpace(x.Getenv(name)); v != "" {
			return v, "environment (" + name + ")", nil
		}
	}
	key, place, err := x.Keys.Get(p.Name)
	switch {
	case err == nil:
		return key, string(place), nil
	case errors.Is(err, keys.ErrNone):
		return "", "", nil
	}
	return "", "", x.Keys.Problem(err)
}

// Key returns the key of a provider, or the problem that there is none. A server on this
// machine may need none.
func (x *Extension) Key(p Provider) (string, error) {
	key, _, err := x.key(p)
	if err != nil || key != "" || p.Local || hosts.Here(p.URL) || p.header != nil || x.bearer(p) != "" {
		return key, err
	}
	variable := "providers." + p.Name + ".keyEnv"
	if len(p.Keys) > 0 {
		variable = p.Keys[0]
	}
	return "", &agent.Problem{
		Code:    agent.ProblemNoKey,
		Message: "there is no key for " + p.Title,
		Fix:     fmt.Sprintf("store one with: dure login %s; or set %s; a model server on this machine needs none; see it work without one with: dure demo", p.Name, variable),
		Args:    map[string]string{"provider": p.Title, "name": p.Name, "variable": variable},
	}
}

// bearer is the token that stands for a key of Anthropic.
func (x *Extension) bearer(p Provider) string {
	if p.Name == first {
		return x.AuthToken
	}
	return ""
}

// reachable reports whether the network mode lets a provider be asked.
func (x *Extension) reachable(p Provider) error {
	if where := x.Origin("ai").Where; x.NoAI {
		return &agent.Problem{
			Code: agent.ProblemNoAI, Message: "asking models is switched off", Fix: "change \"ai\" where it is set: " + where,
			Args: map[string]string{"where": where},
		}
	}
	u, err := url.Parse(p.URL)
	if err != nil || x.Reach.May(u) {
		return nil // an address that is none is reported by whoever asks
	}
	return &agent.Problem{
		Code:    agent.ProblemNetwork,
		Message: fmt.Sprintf("the network mode %s does not let models be asked at %s", x.Reach.Mode, u.Hostname()),
		Fix:     "take a model that is served nearer, add the host to network.allowHosts, or change network.mode in your settings",
		Args:    map[string]string{"host": u.Hostname(), "mode": x.Reach.Mode},
	}
}

// patience is how long servers on this machine are looked for.
const patience = 300 * time.Millisecond

// local returns the model servers that answer on this machine. They are looked for once.
func (x *Extension) local(ctx context.Context, limit time.Duration) []server {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.looked {
		return x.servers
	}
	var bases []string
	for _, p := range x.All() {
		if p.Local && p.Type == "chat" {
			bases = append(bases, p.URL)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for base, models := range x.Config.Servers(ctx, bases) {
		x.servers = append(x.servers, server{base, models})
	}
	x.looked = true
	return x.servers
}

// localModels returns the models of the servers on this machine. The provider is the one
// whose address it is.
func (x *Extension) localModels(ctx context.Context) []agent.ModelInfo {
	var list []agent.ModelInfo
	all := x.All()
	for _, s := range x.local(ctx, patience) {
		i := slices.IndexFunc(all, func(p Provider) bool { return p.URL == s.base })
		for _, m := range s.models {
			if i >= 0 {
				m.Provider = all[i].Name
			}
			list = append(list, m)
		}
	}
	return list
}
