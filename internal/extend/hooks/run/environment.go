package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"dure/internal/extend/hooks"
)

// environment is the file in which hooks leave an environment for later commands, and what
// they have left.
type environment struct {
	mu    sync.Mutex
	dir   string
	vars  []string
	noted string // the mistakes that were told
}

// envFile returns the file; "" = there is none.
func (h *Session) envFile() string {
	e := &h.env
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dir == "" {
		dir, err := os.MkdirTemp(h.c.Temp(), "hook-env-")
		if err != nil {
			return ""
		}
		if err := os.WriteFile(filepath.Join(dir, "env"), nil, 0o600); err != nil {
			_ = os.RemoveAll(dir)
			return ""
		}
		e.dir = dir
	}
	return filepath.Join(e.dir, "env")
}

// readEnv takes over what hooks have left.
func (h *Session) readEnv() {
	e := &h.env
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dir == "" {
		return
	}
	path := filepath.Join(e.dir, "env")
	if i, err := os.Lstat(path); err != nil || !i.Mode().IsRegular() {
		return // a hook has put something else there
	}
	data, err := h.c.ReadFile(path)
	if err != nil {
		return
	}
	h.mu.Lock()
	allowed := h.settings.Leave
	h.mu.Unlock()
	vars, faults := hooks.ParseEnv(data, allowed...)
	e.vars = vars
	if told := strings.Join(faults, "; "); told != e.noted {
		if e.noted = told; told != "" {
			h.note("warn", "the environment that hooks have left: "+told)
		}
	}
}

// Left returns what hooks have left for commands, also for those of the sessions that
// work for one.
func (h *Session) Left() []string {
	if h == nil {
		return nil
	}
	vars := h.parent.Left()
	h.env.mu.Lock()
	defer h.env.mu.Unlock()
	return slices.Concat(vars, h.env.vars)
}

func (e *environment) remove() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dir != "" {
		_ = os.RemoveAll(e.dir) // what is left of it goes with the other temporary files
	}
}
