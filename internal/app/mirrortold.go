package app

import (
	"context"
)

// tells reports whether somebody is told what is written of sessions: the program that embeds
// this one, or the one that this is the process of an agent of.
func (a *App) tells() bool {
	return a.opts.Host != nil && a.opts.Host.Mirrored != nil || a.inherited.Tells
}

// Mirrored returns once an event of a session has been written where programs for agent
// sessions look for it, or will not be, or ctx is done.
func (a *App) Mirrored(ctx context.Context, session string, seq int64) {
	a.mirror.Wait(ctx, session, seq)
}
