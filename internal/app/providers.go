package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/base/keys"
	"dure/internal/extend/release"
	"dure/internal/models/anthropic"
	"dure/internal/models/chat"
	"dure/internal/models/gemini"
	"dure/internal/models/registry"
	"dure/internal/models/responses"
	"dure/internal/models/script"
)

// provider is a provider as this installation reaches it.
type provider struct {
	registry.Provider
	header http.Header
}

// providers returns the known providers with what settings and environment say
// about them, and the user's own.
func (a *App) providers() []provider {
	env := getenv(a.opts.Environ)
	var list []provider
	for _, known := range registry.Providers() {
		p := provider{Provider: known}
		for _, name := range known.Base {
			if u := strings.TrimSpace(env(name)); u != "" {
				p.URL = strings.TrimRight(u, "/")
				if p.Type == "responses" { // what stands in for the original mostly speaks the older format
					p.Type = "chat"
				}
				break
			}
		}
		if known.Name == "anthropic" && a.cfg.BaseURL != "" {
			p.URL = a.cfg.BaseURL
		}
		list = append(list, p)
	}
	for name, set := range a.cfg.Providers {
		i := slices.IndexFunc(list, func(p provider) bool { return p.Name == name })
		if i < 0 {
			i = len(list)
			list = append(list, provider{Provider: registry.Provider{Name: name, Title: name, Type: "chat", Local: loopback(set.BaseURL)}})
		}
		p := &list[i]
		p.Type, p.Model = cmp.Or(set.Type, p.Type), cmp.Or(set.Model, p.Model)
		if set.BaseURL != "" {
			p.URL, p.Local = set.BaseURL, loopback(set.BaseURL)
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
	slices.SortStableFunc(list[len(registry.Providers()):], func(a, b provider) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// provider returns the provider of a name. The scripted model is served wherever
// the base URL leads.
func (a *App) provider(name string) (provider, bool) {
	if name == script.Provider && a.cfg.BaseURL != "" {
		name = "anthropic"
	}
	list := a.providers()
	i := slices.IndexFunc(list, func(p provider) bool { return p.Name == name })
	if i < 0 {
		return provider{}, false
	}
	return list[i], true
}

// key returns the key of a provider and says where it comes from: a variable, or
// where dure login has put it.
func (a *App) key(p provider) (key, from string, err error) {
	env := getenv(a.opts.Environ)
	for _, name := range p.Keys {
		if v := strings.TrimSpace(env(name)); v != "" {
			return v, "environment (" + name + ")", nil
		}
	}
	key, place, err := a.keys().Get(p.Name)
	switch {
	case err == nil:
		return key, string(place), nil
	case errors.Is(err, keys.ErrNone):
		return "", "", nil
	}
	return "", "", a.keysProblem(err)
}

// keyed returns the key of a provider, or the problem that there is none. A server
// on this machine may need none.
func (a *App) keyed(p provider) (string, error) {
	key, _, err := a.key(p)
	if err != nil || key != "" || p.Local || loopback(p.URL) || p.header != nil || a.bearer(p) != "" {
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
func (a *App) bearer(p provider) string {
	if p.Name == "anthropic" {
		return string(a.cfg.AuthToken)
	}
	return ""
}

// adapter returns the model that speaks the provider's wire format.
func (a *App) adapter(p provider, info agent.ModelInfo) (agent.Model, error) {
	key, err := a.keyed(p)
	if err != nil {
		return nil, err
	}
	agentName, limits := "dure/"+a.opts.Version, a.cfg.Limits
	switch p.Type {
	case "anthropic":
		return anthropic.New(anthropic.Config{
			Info: info, BaseURL: p.URL, Key: key, AuthToken: a.bearer(p), HTTP: a.http, UserAgent: agentName, Header: p.header,
			HeaderLimit: limits.Header, IdleLimit: limits.Idle, PingLimit: limits.Ping,
		}), nil
	case "responses":
		return responses.New(responses.Config{
			Info: info, BaseURL: p.URL, Key: key, HTTP: a.http, UserAgent: agentName, Header: p.header,
			HeaderLimit: limits.Header, IdleLimit: limits.Idle, PingLimit: limits.Ping,
		}), nil
	case "gemini":
		return gemini.New(gemini.Config{
			Info: info, BaseURL: p.URL, Key: key, HTTP: a.http, UserAgent: agentName, Header: p.header,
			HeaderLimit: limits.Header, IdleLimit: limits.Idle, PingLimit: limits.Ping,
		}), nil
	}
	return chat.New(chat.Config{
		Info: info, BaseURL: p.URL, Key: key, HTTP: a.http, UserAgent: agentName, Header: p.header, Compat: chat.CompatFor(p.URL),
		HeaderLimit: limits.Header, IdleLimit: limits.Idle, PingLimit: limits.Ping,
	}), nil
}

// reachable reports whether the network mode lets a provider be asked.
func (a *App) reachable(p provider) error {
	if a.cfg.NoAI {
		return &agent.Problem{
			Code: agent.ProblemNoAI, Message: "asking models is switched off", Fix: "change \"ai\" where it is set: " + a.cfg.Origins["ai"].String(),
			Args: map[string]string{"where": a.cfg.Origins["ai"].String()},
		}
	}
	u, err := url.Parse(p.URL)
	if err != nil || a.near(u) {
		return nil // an address that is none is reported by whoever asks
	}
	return &agent.Problem{
		Code:    agent.ProblemNetwork,
		Message: fmt.Sprintf("the network mode %s does not let models be asked at %s", a.cfg.Network.Mode, u.Hostname()),
		Fix:     "take a model that is served nearer, add the host to network.allowHosts, or change network.mode in your settings",
		Args:    map[string]string{"host": u.Hostname(), "mode": string(a.cfg.Network.Mode)},
	}
}

// near reports whether the network mode lets an address be asked.
func (a *App) near(u *url.URL) bool {
	switch a.cfg.Network.Mode {
	case config.External:
		return true
	case config.Internal:
		return loopback(u.String()) || allowed(a.cfg.Network.AllowHosts, u.Hostname())
	}
	return loopback(u.String())
}

// Updates looks for newer versions of the program.
func (a *App) Updates() *release.Checker {
	return release.New(release.Config{
		Check: a.cfg.Updates.Check, URL: a.cfg.Updates.URL, Version: a.opts.Version,
		Path: filepath.Join(a.cfg.Data, release.File), Scratch: a.opts.Flags.Scratch,
		Transport: a.http.Transport, May: a.near, Logger: a.opts.Logger,
	})
}

// allowed reports whether a list of hosts, *.domains, addresses and networks has
// a host.
func allowed(list []string, host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	addr, err := netip.ParseAddr(host)
	for _, entry := range list {
		if p, perr := netip.ParsePrefix(entry); perr == nil {
			if err == nil && p.Contains(addr.Unmap()) {
				return true
			}
			continue
		}
		if domain, ok := strings.CutPrefix(entry, "*"); ok && strings.HasSuffix(host, domain) && host != domain[1:] || entry == host {
			return true
		}
	}
	return false
}

// loopback reports whether a URL leads to this machine.
func loopback(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}

// localPatience is how long servers on this machine are looked for.
const localPatience = 300 * time.Millisecond

// local returns the model servers that answer on this machine, once.
func (a *App) local(ctx context.Context) []chat.Found { return a.localWithin(ctx, localPatience) }

func (a *App) localWithin(ctx context.Context, limit time.Duration) []chat.Found {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.found != nil {
		return *a.found
	}
	var bases []string
	for _, p := range a.providers() {
		if p.Local && p.Type == "chat" {
			bases = append(bases, p.URL)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	found := chat.Discover(ctx, a.http, bases)
	a.found = &found
	return found
}

// localModels returns the models of the servers on this machine. The provider is
// the one whose address it is.
func (a *App) localModels(ctx context.Context) []agent.ModelInfo {
	var list []agent.ModelInfo
	providers := a.providers()
	for _, f := range a.local(ctx) {
		i := slices.IndexFunc(providers, func(p provider) bool { return p.URL == f.Base })
		for _, m := range f.Models {
			if i >= 0 {
				m.Provider = providers[i].Name
			}
			list = append(list, m)
		}
	}
	return list
}
