package app

import (
	"cmp"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"dure/internal/base/frontmatter"
	"dure/internal/extend/hooks"
	"dure/internal/extend/plugins"
	"dure/internal/extend/plugins/active"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/trust/folders"
)

// newPlugins makes the capability that has the plugins.
func (a *App) newPlugins() *active.Extension {
	f := a.opts.Flags
	return active.New(active.Config{
		Workdir: a.opts.Workdir, Home: a.opts.UserHome, Dirs: f.PluginDirs, Serverless: f.ServerlessDirs,
		Settings: a.cfg.Extend.Settings, Layer: func(key string) string { return string(a.cfg.Origins[key].Layer) },
		Store: sync.OnceValue(func() *plugins.Store {
			return &plugins.Store{
				Dir: filepath.Join(a.cfg.Data, "plugins"), Version: a.opts.Version, Allow: a.cfg.Extend.Settings.Allow(),
				Get: plugins.Web{Transport: a.http.Transport, Version: a.opts.Version, May: a.reach.Check}.Get,
				Git: func() string {
					return sandbox.Outside(func(path string) bool {
						rel, err := filepath.Rel(a.opts.Workdir, path)
						return err == nil && filepath.IsLocal(rel)
					})("git")
				},
				Env: a.commandEnv(), Box: a.pluginBox,
			}
		}),
		Keys: a.keys, Logger: a.opts.Logger, Now: time.Now,
		Skills:  func(workdir string) []frontmatter.Place { return a.trust.Places(workdir, folders.Skills) },
		Trusted: func() string { return a.trust.Mark() }, SetSetting: a.settings.Set, SetOption: a.settings.Option,
	})
}

// pluginBox is what git fetches plugins in: it writes one folder, and asks the hosts that
// are named.
func (a *App) pluginBox(dir string, hosts []string) (*sandbox.Box, error) {
	for _, host := range hosts {
		if err := a.reach.Check(&url.URL{Scheme: "https", Host: host}); err != nil {
			return nil, err
		}
	}
	if a.cfg.Sandbox.Off {
		return sandbox.New(sandbox.Config{Temp: a.temp()}), nil
	}
	c := sandbox.Confinement{
		Roots: []string{dir}, Read: []string{dir}, Net: sandbox.NetOff,
		Hide: a.boxes.Hidden(),
	}
	if len(hosts) > 0 {
		c.Net, c.Egress = sandbox.NetProxy, a.boxes.Egress()
		c.Egress.Allow = hosts
	}
	return sandbox.New(sandbox.Config{Temp: a.temp(), Confine: &c, Mechanisms: a.opts.Mechanisms}), nil
}

// moreHooks returns the hooks of plugins, and of the embedding program. Secrets reach those
// of plugins in their environment alone.
func (a *App) moreHooks(workdir string) (all []hooks.Defined) {
	all = a.opts.Host.sources()
	for _, p := range a.plugins.In(workdir) {
		options := a.plugins.Values(p)
		for _, h := range p.Hooks {
			raw, told := plugins.Expand(h.Raw, p.Options)
			for _, text := range told {
				a.opts.Logger.Warn("hooks of a plugin", "plugin", p.ID, "file", h.File, "problem", text)
			}
			all = append(all, hooks.Defined{
				Source: hooks.Source{
					Layer: "plugin", Name: p.ID, File: filepath.Join(p.Root, filepath.FromSlash(cmp.Or(h.File, "plugin.json"))),
					Root: p.Root, Data: p.Data, Options: options,
				},
				JSON: raw, Managed: p.Managed,
			})
		}
	}
	return all
}
