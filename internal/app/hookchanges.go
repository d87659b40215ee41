package app

import (
	"context"
	"maps"
	"sync"

	"dure/internal/app/config"
	"dure/internal/extend/hooks"
)

// settingsWatch looks at the files of the settings between the steps of a turn, and tells
// the hooks of those that are others than they were. While hooks keep one of them from
// the session, nothing is taken over, whatever else changes: settings are read as a whole.
// They are asked again when that file changes again. What the administrator changes is
// taken over all the same.
type settingsWatch struct {
	mu      sync.Mutex
	begun   bool
	stamp   config.Stamp
	held    map[string]bool // files whose change is not taken over
	refresh func()          // takes rules over
}

// changeSources are the layers of settings as hooks know them.
var changeSources = map[config.Layer]string{
	config.User: "user_settings", config.Project: "project_settings", config.Local: "local_settings",
	config.Inline: "user_settings", config.Managed: "policy_settings",
}

// start looks at the files for the first time.
func (c *settingsWatch) start(h *hooked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.begun {
		c.begun = true
		c.stamp, _ = config.Changed(h.app.permissions.source(), config.Stamp{})
	}
}

// look asks the hooks about what has changed, and takes it over.
func (c *settingsWatch) look(ctx context.Context, h *hooked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !h.set.Has(hooks.ConfigChange) {
		h.refresh()
		return
	}
	stamp, changed := config.Changed(h.app.permissions.source(), c.stamp)
	if !changed {
		return
	}
	admin := false
	for _, f := range stamp.Since(c.stamp) {
		out := h.set.Fire(ctx, hooks.Moment{Event: hooks.ConfigChange, Match: changeSources[f.Layer], Fields: map[string]any{
			"source": changeSources[f.Layer], "file_path": f.Path,
		}})
		if ctx.Err() != nil {
			return // nobody has answered: it is asked about again
		}
		delete(c.held, f.Path)
		switch {
		case f.Layer == config.Managed:
			admin = true
		case out.Block || out.Stop:
			if c.held == nil {
				c.held = map[string]bool{}
			}
			c.held[f.Path] = true
			h.note("warn", by(out)+" keeps a change of "+f.Path+" from this session")
		}
	}
	c.stamp = stamp
	if admin {
		clear(c.held)
	}
	if len(c.held) == 0 {
		h.refresh()
		c.refresh()
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
