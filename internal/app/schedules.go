package app

import (
	"path/filepath"

	"dure/internal/extend/bundle/inbound/schedules"
	"dure/internal/kernel/session"
)

// newSchedules makes what has the schedules.
func (a *App) newSchedules() *schedules.Extension {
	return schedules.New(schedules.Config{
		Path: filepath.Join(a.cfg.Data, schedules.File), Workdir: a.opts.Workdir, Lane: session.LaneCron, Client: a.Client,
		Agent:   func(name string) bool { _, ok := a.agents.Types(a.opts.Workdir).Find(name); return ok },
		Problem: func(err error) error { return storeProblem(err, a.cfg.Data) },
	})
}
