package app

import (
	"os"
	"path/filepath"

	"dure/internal/app/config"
	"dure/internal/knowledge/memory"
)

// memoryFiles are the instruction files of any folder.
func (a *App) memoryFiles() memory.Config {
	m := a.cfg.Memory
	c := memory.Config{
		Disk: memory.OS(), Managed: m.Managed, User: []string{a.cfg.Home}, Own: m.User, Home: a.opts.UserHome,
		Outside: m.Outside, Excludes: m.Excludes, Depth: m.Depth, Chars: m.Chars,
	}
	if a.opts.UserHome != "" {
		c.User = []string{filepath.Join(a.opts.UserHome, ".claude"), a.cfg.Home}
	}
	for scope, layer := range map[memory.Scope]config.Layer{memory.User: config.User, memory.Project: config.Project, memory.Local: config.Local} {
		if !a.opts.Flags.reads(layer) {
			c.Without = append(c.Without, scope)
		}
	}
	return c
}

// project returns the root of the project that a folder belongs to, and whether what
// it brings may be read. That is the repository's if it is trusted, else the folder.
func (a *App) project(workdir string) (root string, trusted bool) {
	if top := gitTop(workdir); top != "" && top != workdir && a.trusts(top) {
		return top, true
	}
	return workdir, a.trusts(workdir)
}

// trusts reports whether a folder is trusted with what it brings now; that of this
// run, as it was when the program was started.
func (a *App) trusts(dir string) bool {
	if dir == a.opts.Workdir || a.cfg.Trust == "never" {
		return dir == a.opts.Workdir && a.cfg.Trusted
	}
	f, err := folderOf(dir, trustStore(a.cfg))
	return err == nil && f.State.Trusted
}

// gitTop returns the folder at or above dir that has a .git; "" = there is none.
func gitTop(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}
