package app

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"dure/internal/app/config"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/sandbox/egress"
	"dure/internal/safety/workspace"
)

// newBox returns what starts the commands of a session, and says how far it
// confines them.
// What denied returns is asked for at the first command: rules forbid to read and
// to change it.
func (a *App) newBox(ws *workspace.Workspace, workdir string, denied func() (reads, edits []string)) (*sandbox.Box, func() string) {
	if a.cfg.Sandbox.Off {
		return sandbox.New(sandbox.Config{Temp: a.temp()}), func() string { return string(sandbox.None) }
	}
	c := a.confinement(ws, workdir)
	box := sandbox.New(sandbox.Config{
		Temp: a.temp(), Confine: &c, Mechanisms: a.opts.Mechanisms,
		Prepare: func(c *sandbox.Confinement) ([]string, error) {
			if denied != nil {
				reads, edits := denied()
				c.Hide, c.Protect = append(c.Hide, reads...), append(c.Protect, edits...)
			}
			return a.caches(c, ws.Root())
		},
	})
	return box, sync.OnceValue(func() string { return string(box.Explain().Level) })
}

// confinement is what commands may touch in a workspace.
func (a *App) confinement(ws *workspace.Workspace, workdir string) sandbox.Confinement {
	s := a.cfg.Sandbox
	hide := append(sandbox.Hidden(a.opts.UserHome, a.opts.Environ), a.cfg.Home, a.cfg.Data)
	reads, writes := a.plugins.Folders(workdir)
	return sandbox.Confinement{
		Roots:        []string{ws.Root(), workdir},
		Extra:        slices.Clone(a.cfg.AddDirs),
		Writable:     slices.Concat(s.Write, writes),
		Protect:      append(slices.Clone(s.Protect), a.ownHeld(ws, workdir, slices.Concat(s.Write, writes))...),
		ProtectNames: sandbox.ProtectNames(), PresentNames: sandbox.PresentNames(),
		Hide:   append(hide, s.DenyRead...),
		Read:   slices.Concat(s.AllowRead, reads),
		Net:    netOf(s),
		Egress: a.egress(s),
		Limits: sandbox.Limits{
			Processes: s.Limits.Processes, OpenFiles: s.Limits.OpenFiles, Memory: s.Limits.Memory, FileSize: s.Limits.FileSize,
		},
	}
}

// netOf is the network of commands whose own plan names no host.
func netOf(s config.Sandbox) sandbox.Net {
	if len(s.AllowHosts) > 0 {
		return sandbox.NetProxy
	}
	return sandbox.NetOff
}

// egress says which hosts confined commands reach, by the way that the user has.
func (a *App) egress(s config.Sandbox) egress.Config {
	return egress.Config{
		Allow: slices.Clone(s.AllowHosts), Deny: slices.Clone(s.DenyHosts), AllowPrivate: s.AllowPrivate,
		Upstream: func(host string) *url.URL {
			if a.transport.Proxy == nil {
				return nil
			}
			u, err := a.transport.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: host}})
			if err != nil {
				return nil
			}
			return u
		},
	}
}

// caches makes the caches that confined toolchains have in a workspace, and lets
// them write there.
func (a *App) caches(c *sandbox.Confinement, root string) ([]string, error) {
	if a.opts.UserHome == "" {
		return nil, nil
	}
	parent := filepath.Join(a.cfg.Data, "caches")
	if a.opts.Flags.Scratch { // nothing is kept: they go with the machine's other temporary files
		parent = filepath.Join(os.TempDir(), "dure-caches-"+filepath.Base(sandbox.CacheDir("", a.cfg.Data)))
	}
	dir := sandbox.CacheDir(parent, root)
	prepared, err := sandbox.PrepareCaches(sandbox.CacheConfig{
		Dir: dir, Roots: slices.Concat(c.Roots, c.Extra), Home: a.opts.UserHome, Env: a.opts.Environ, Net: c.Net, GOOS: runtime.GOOS,
	})
	if err != nil {
		return nil, err
	}
	c.Writable = append(c.Writable, prepared.Writable...)
	c.Read = append(c.Read, prepared.Read...)
	c.Layers = prepared.Layers
	if err := sandbox.PruneCaches(parent, dir, time.Now()); err != nil {
		a.opts.Logger.Debug("removing old caches", "error", err)
	}
	return prepared.Set, nil
}
