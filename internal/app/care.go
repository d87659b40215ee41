package app

import (
	"dure/internal/kernel/plug"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/safety/workspace"
)

// care is what is done around the turns of a session without being asked for. Parts
// that are nil do nothing.
type care struct {
	named    *mentions
	learning *reflexion
	checking *verification
}

func (a *App) newCare(b plug.Session, ws *workspace.Workspace, workdir string, verify bool, pol *policy.Policy, tracker *workspace.Tracker, grd *guard.Guard) care {
	return care{a.newMentions(b, ws, pol, tracker, grd), a.newReflexion(b, cleaner(grd)), a.newVerification(ws, workdir, verify)}
}

func (r *reflexion) points() plug.Points {
	if r == nil {
		return plug.Points{}
	}
	return plug.Points{Wrap: []plug.Wrap{r.wrap}, Extra: r.extra, Hooks: plug.Hooks{Over: r.ended}, Close: r.close}
}

func (v *verification) points() plug.Points {
	if v == nil {
		return plug.Points{}
	}
	return plug.Points{Wrap: []plug.Wrap{v.wrap}, Extra: v.extra}
}
