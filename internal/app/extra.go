package app

import (
	"context"
	"sync"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// extra is what a session should have before its model besides what is said.
type extra func(context.Context, plug.Moment) []agent.ContextAdded

// sources returns what a session in a folder has besides its conversation. denied
// reports what deny rules keep from being read.
func (a *App) sources(b plug.Session, workdir, kind string, denied func(path string) bool) extra {
	known := a.instructions(workdir, denied)
	if b.Child != nil && b.Child.Bare {
		known.off = true
	}
	a.remember(b.ID, known)
	return extras(a.guarded(known.extra), a.guarded(a.notebook(workdir, kind).extra))
}

// guarded masks the secrets in what files say that nobody has asked for, and takes out
// what a person who looks at them would not see. A text that has not changed is looked
// at once.
func (a *App) guarded(source extra) extra {
	type told struct{ raw, text string }
	var mu sync.Mutex
	known := map[string]told{} // by what it is; guarded by mu
	return func(ctx context.Context, at plug.Moment) []agent.ContextAdded {
		all := source(ctx, at)
		mu.Lock()
		defer mu.Unlock()
		for i, c := range all {
			key := c.Source + "\x00" + c.Key
			if was, ok := known[key]; !ok || was.raw != c.Text {
				known[key] = told{c.Text, a.patterns.Redact(c.Text)}
			}
			all[i].Text = known[key].text
		}
		return all
	}
}

// extras joins the sources of a session, in their order.
func extras(sources ...extra) extra {
	return func(ctx context.Context, at plug.Moment) (all []agent.ContextAdded) {
		for _, source := range sources {
			if source != nil {
				all = append(all, source(ctx, at)...)
			}
		}
		return all
	}
}
