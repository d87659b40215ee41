package app

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/models/anthropic"
)

// transport is the HTTP transport that all models share. Nothing is dialled
// before the first request.
func transport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // what is unpacked unseen has no bound
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// model returns the model that a name means; "" is the one of the settings.
func (a *App) model(name string) (agent.Model, error) {
	if name == "" {
		name = a.cfg.Model
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, ok := a.served[name]; ok {
		return m, nil
	}
	info, err := a.info(name)
	if err != nil {
		return nil, err
	}
	if err := a.checkKey(); err != nil {
		return nil, err
	}
	m := anthropic.New(anthropic.Config{
		Info: info, BaseURL: a.cfg.BaseURL, Key: string(a.cfg.Key), AuthToken: string(a.cfg.AuthToken),
		HTTP: a.http, UserAgent: "dure/" + a.opts.Version,
		IdleLimit: a.cfg.Limits.Idle, PingLimit: a.cfg.Limits.Ping,
	})
	a.served[name], a.served[info.ID] = m, m
	return m, nil
}

// info finds a model in the catalog. An endpoint of the user's own may serve
// models that the catalog does not have; their windows and prices are unknown.
func (a *App) info(name string) (agent.ModelInfo, error) {
	info, ok := a.models.Lookup(name)
	switch {
	case ok:
		return info, nil
	case a.cfg.BaseURL != "":
		return agent.ModelInfo{ID: name, Provider: "anthropic", MaxOut: 4096}, nil
	}
	p := &agent.Problem{
		Code:    agent.ProblemModel,
		Message: fmt.Sprintf("there is no model %q", name),
		Fix:     "see the list with: dure models; add a model that is missing to \"models\" in the settings",
		Args:    map[string]string{"model": name},
	}
	if near := a.models.Nearest(name); len(near) > 0 {
		p.Args["nearest"] = strings.Join(near, ", ")
		p.Message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return agent.ModelInfo{}, p
}

// checkKey reports a missing key. A server on this machine may need none.
func (a *App) checkKey() error {
	if a.cfg.Key != "" || a.cfg.AuthToken != "" || loopback(a.cfg.BaseURL) {
		return nil
	}
	return &agent.Problem{
		Code:    agent.ProblemNoKey,
		Message: "there is no key for Anthropic",
		Fix:     "set ANTHROPIC_API_KEY, or point ANTHROPIC_BASE_URL at a server on this machine; see it work without one with: dure demo",
		Args:    map[string]string{"provider": "Anthropic", "variable": "ANTHROPIC_API_KEY"},
	}
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
