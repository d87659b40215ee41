package app

import (
	"context"
	"iter"
	"net/http"
	"path/filepath"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/extend/release"
	"dure/internal/models/anthropic"
	"dure/internal/models/chat"
	"dure/internal/models/gemini"
	"dure/internal/models/registry"
	"dure/internal/models/registry/providers"
	"dure/internal/models/responses"
	modelwire "dure/internal/models/wire"
)

// newModels makes what knows models and providers, by the settings of now.
func (a *App) newModels() *providers.Extension {
	c := a.cfg
	var ofWork []string
	for _, p := range c.Profiles {
		if p.Model != nil {
			ofWork = append(ofWork, *p.Model)
		}
	}
	return providers.New(providers.Config{
		Models: registry.New(c.Models), Providers: c.Providers, BaseURL: c.BaseURL, AuthToken: string(c.AuthToken),
		Model: c.Model, Small: c.SmallModel, Fallback: c.Fallback, OfWork: ofWork, Profile: c.Profile, NoAI: c.NoAI,
		Work: func(profile string) string {
			w, _ := c.Work(profile)
			return w.Model
		},
		Origin: func(key string) providers.Origin {
			o := c.Origins[key]
			return providers.Origin{Where: c.From(key), BuiltIn: o.BuiltIn(), Explicit: o.Explicit()}
		},
		Reach: a.reach, OwnProxy: c.Network.Proxy != "",
		Getenv: getenv(a.opts.Environ), Keys: a.keys, Transport: a.transport, Dialects: dialects(a.http, "dure/"+a.opts.Version, a.cfg.Limits),
		Servers: func(ctx context.Context, bases []string) iter.Seq2[string, []agent.ModelInfo] {
			return func(yield func(string, []agent.ModelInfo) bool) {
				for _, f := range chat.Discover(ctx, a.http, bases) {
					if !yield(f.Base, f.Models) {
						return
					}
				}
			}
		},
	})
}

// dialects are the protocols that providers speak.
func dialects(by *http.Client, userAgent string, limits config.Limits) map[string]func(providers.Endpoint) agent.Model {
	config := func(e providers.Endpoint) modelwire.Config {
		return modelwire.Config{
			Info: e.Info, BaseURL: e.URL, Key: e.Key, AuthToken: e.AuthToken, HTTP: by, UserAgent: userAgent, Header: e.Header,
			HeaderLimit: limits.Header, IdleLimit: limits.Idle, PingLimit: limits.Ping,
		}
	}
	return map[string]func(providers.Endpoint) agent.Model{
		"anthropic": func(e providers.Endpoint) agent.Model { return anthropic.New(config(e)) },
		"responses": func(e providers.Endpoint) agent.Model { return responses.New(config(e)) },
		"gemini":    func(e providers.Endpoint) agent.Model { return gemini.New(config(e)) },
		"chat": func(e providers.Endpoint) agent.Model {
			return chat.New(chat.Config{Config: config(e), Compat: chat.CompatFor(e.URL)})
		},
	}
}

// newUpdates makes the capability that looks for newer versions of the program.
func (a *App) newUpdates() *release.Extension {
	return release.New(release.Config{
		Check: a.cfg.Updates.Check, URL: a.cfg.Updates.URL, Version: a.opts.Version,
		Path: filepath.Join(a.cfg.Data, release.File), Scratch: a.opts.Flags.Scratch,
		Transport: a.http.Transport, May: a.reach.May, Logger: a.opts.Logger,
	})
}
