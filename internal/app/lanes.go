package app

import (
	"cmp"
	"path/filepath"

	"dure/internal/extend/bundle/inbound/schedules"
	"dure/internal/kernel/session"
)

const cronTurns = 2 // of scheduled runs, at once

// lanes are the lanes as the settings have them.
func (a *App) lanes() map[string]session.LaneConfig {
	all := map[string]session.LaneConfig{session.LaneCron: {Concurrency: cronTurns}}
	for name, l := range a.cfg.Lanes {
		c := all[name]
		c.Concurrency, c.Queue = cmp.Or(l.Turns, c.Concurrency), cmp.Or(l.Queue, c.Queue)
		all[name] = c
	}
	return all
}

// newSchedules makes what has the schedules.
func (a *App) newSchedules() *schedules.Extension {
	return schedules.New(schedules.Config{
		Path: filepath.Join(a.cfg.Data, schedules.File), Workdir: a.opts.Workdir, Lane: session.LaneCron, Client: a.Client,
		Agent:   func(name string) bool { _, ok := a.agents.Types(a.opts.Workdir).Find(name); return ok },
		Problem: func(err error) error { return storeProblem(err, a.cfg.Data) },
	})
}

// Schedules returns what has the schedules.
func (a *App) Schedules() *schedules.Extension { return a.schedules }
