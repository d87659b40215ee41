package run

import (
	"context"
	"maps"
	"sync"

	"dure/internal/extend/hooks"
)

// settingsWatch looks at the files of the settings between the steps of a turn, and tells
// the hooks of those that are others than they were. While hooks keep one of them from
// the session, nothing is taken over, whatever else changes: settings are read as a whole.
// They are asked again when that file changes again. What the administrator changes is
// taken over all the same.
type settingsWatch struct {
	mu   sync.Mutex
	look func() ([]Change, func()) // see [Config.Changes]; nil = it has not begun
	held map[string]bool           // files whose change is not taken over
}

// Change is a file of settings that has changed.
type Change struct{ Layer, Path string }

// settingsOf names the settings of a layer for hooks.
func settingsOf(layer string) string {
	switch layer {
	case "managed":
		return "policy_settings"
	case "project", "local":
		return layer + "_settings"
	}
	return "user_settings"
}

// start looks at the files for the first time.
func (c *settingsWatch) start(h *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.look == nil {
		c.look = h.c.Changes()
	}
}

// ask asks the hooks about what has changed, and takes it over.
func (c *settingsWatch) ask(ctx context.Context, h *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !h.set.Has(hooks.ConfigChange) {
		h.refresh()
		return
	}
	changed, take := c.look()
	if take == nil {
		return
	}
	admin := false
	for _, f := range changed {
		out := h.set.Fire(ctx, configChange(settingsOf(f.Layer), f.Path))
		if ctx.Err() != nil {
			return // nobody has answered: it is asked about again
		}
		delete(c.held, f.Path)
		switch {
		case f.Layer == "managed":
			admin = true
		case out.Block || out.Stop:
			if c.held == nil {
				c.held = map[string]bool{}
			}
			c.held[f.Path] = true
			h.note("warn", by(out)+" keeps a change of "+f.Path+" from this session")
		}
	}
	take()
	if admin {
		clear(c.held)
	}
	if len(c.held) == 0 {
		h.refresh()
		h.Refresh()
	}
}

// holds returns the files whose change is kept from the session; nil = there are none.
func (c *settingsWatch) holds() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) == 0 {
		return nil
	}
	return maps.Clone(c.held)
}

// configChange is the moment at which a file of settings or instructions has changed.
func configChange(source, path string) hooks.Moment {
	return hooks.Moment{Event: hooks.ConfigChange, Match: source, Fields: map[string]any{"source": source, "file_path": path}}
}
