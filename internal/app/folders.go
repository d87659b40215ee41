package app

import (
	"path/filepath"

	"dure/internal/app/config"
	"dure/internal/knowledge/memory"
	"dure/internal/safety/sandbox"
)

// memoryFiles are the instruction files of any folder.
func (o Options) memoryFiles(m config.Memory, home string) memory.Config {
	c := memory.Config{
		Disk: memory.OS(), Managed: m.Managed, User: []string{home}, Own: m.User, Home: o.UserHome,
		Outside: m.Outside, Excludes: m.Excludes, Depth: m.Depth, Chars: m.Chars,
	}
	if o.UserHome != "" {
		c.User = []string{filepath.Join(o.UserHome, ".claude"), home}
	}
	for scope, layer := range map[memory.Scope]config.Layer{memory.User: config.User, memory.Project: config.Project, memory.Local: config.Local} {
		if !o.Flags.reads(layer) {
			c.Without = append(c.Without, scope)
		}
	}
	return c
}

// Hidden are files and folders that nobody is to see: they have secrets of the user, or are the
// program's own.
func (a *App) Hidden() []string {
	return append(sandbox.Hidden(a.opts.UserHome, a.opts.Environ), a.cfg.Home, a.cfg.Data)
}
