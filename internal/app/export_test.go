package app

import (
	"context"
	"os"
	"sync"

	"dure/internal/kernel/plug"
	"dure/internal/kernel/session"
	"dure/internal/state/journal"
	"dure/internal/state/worktree"
)

// Watch lets a test see what sessions are built from. It comes before the first
// session is opened.
func (a *App) Watch(see func(plug.Session)) {
	a.sessions.open = sync.OnceValues(func() (*session.Registry, error) {
		store, err := journal.NewLocal(journal.LocalOptions{Dir: a.cfg.Data, Durability: a.cfg.Durability})
		if err != nil {
			return nil, err
		}
		a.sessions.mu.Lock()
		defer a.sessions.mu.Unlock()
		a.sessions.store = store
		a.sessions.reg = session.New(session.Config{
			Store: store, Query: a.query, Logger: a.opts.Logger, PID: os.Getpid(),
			Build: func(ctx context.Context, b plug.Session) (session.Parts, error) {
				see(b)
				return a.build(ctx, b)
			},
		})
		return a.sessions.reg, nil
	})
}

// Masked returns a text as results of tools carry it back.
func (a *App) Masked(text string) string { return a.patterns.Redact(text) }

// MendTrees looks after the work trees as a start of the program does, and returns how
// many it found that nobody works in.
func (a *App) MendTrees(ctx context.Context) (int, error) {
	if _, err := a.sessions.open(); err != nil {
		return 0, err
	}
	list := a.house.Trees().Mend(ctx, a.sessions.store.Owned)
	for _, m := range list {
		if m.Err != nil {
			return len(list), m.Err
		}
	}
	return len(list), nil
}

// MakeTree makes a work tree for a session, as for an agent of it.
func (a *App) MakeTree(ctx context.Context, session string) (path string, err error) {
	t, _, err := a.house.Trees().Create(ctx, worktree.Request{Dir: a.opts.Workdir, Owner: session, Key: "left", Kind: "worker"})
	return t.Path, err
}
