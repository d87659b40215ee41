package app

import (
	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/safety/workspace"
)

// care is what is done around the turns of a session without being asked for. Parts
// that are nil do nothing.
type care struct {
	app      *App
	named    *mentions
	learning *reflexion
	checking *verification
}

func (a *App) newCare(b plug.Session, ws *workspace.Workspace, workdir string, verify bool, pol *policy.Policy, tracker *workspace.Tracker, grd *guard.Guard) care {
	return care{a, a.newMentions(b, ws, pol, tracker, grd), a.newReflexion(b, cleaner(grd)), a.newVerification(ws, workdir, verify)}
}

func (c care) extras() []extra {
	return []extra{c.learning.extra, c.named.extra, c.checking.extra}
}

// wrap is the middleware of calls, the outermost first.
func (c care) wrap() (list []func(agent.Tool, plug.Run) plug.Run) {
	if c.learning != nil {
		list = append(list, c.learning.wrap)
	}
	if c.checking != nil {
		list = append(list, c.checking.wrap)
	}
	return list
}

func (c care) close() {
	c.learning.close()
	c.app.unname(c.named)
}
