package app

import (
	"context"
	"os"
	"sync"

	"dure/internal/journal"
	"dure/internal/session"
)

// Watch lets a test see what sessions are built from. It comes before the first
// session is opened.
func (a *App) Watch(see func(session.Build)) {
	a.open = sync.OnceValues(func() (*session.Registry, error) {
		store, err := journal.NewLocal(journal.LocalOptions{Dir: a.cfg.Data, Durability: a.cfg.Durability})
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.store = store
		a.reg = session.New(session.Config{
			Store: store, Query: a.query, Logger: a.opts.Logger, PID: os.Getpid(),
			Build: func(ctx context.Context, b session.Build) (session.Parts, error) {
				see(b)
				return a.build(ctx, b)
			},
		})
		return a.reg, nil
	})
}
