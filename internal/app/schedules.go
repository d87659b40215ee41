package app

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/base/cron/tab"
	"dure/internal/extend/inbound"
	"dure/internal/kernel/session"
)

const (
	cronTurns  = 2 // of scheduled runs, at once
	nextTimes  = 3 // that are shown
	schedulesF = "schedules.json"
)

// tab is what the person has scheduled. It lies with their own data, where no repository
// brings any.
func (a *App) tab() *tab.Tab {
	return &tab.Tab{Path: filepath.Join(a.cfg.Data, schedulesF), Now: time.Now}
}

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

// Schedules lists what is scheduled, with the next times of what is not disabled.
func (a *App) Schedules() ([]agent.Schedule, error) {
	list, err := a.tab().List()
	if err != nil {
		return nil, storeProblem(err, a.cfg.Data)
	}
	for i := range list {
		when, err := tab.Parse(list[i])
		if err != nil {
			list[i].Disabled, list[i].Error = true, err.Error()
		}
		if list[i].Disabled {
			continue
		}
		for at := when.Next(time.Now()); !at.IsZero() && len(list[i].Next) < nextTimes; at = when.Next(at) {
			list[i].Next = append(list[i].Next, at)
		}
	}
	return slices.Clip(list), nil
}

// AddSchedule schedules a prompt for the folder of the program.
func (a *App) AddSchedule(ctx context.Context, s agent.Schedule) (agent.Schedule, error) {
	if s.Zone == "" {
		s.Zone = "Local"
	}
	s.Workdir = a.opts.Workdir
	if s.Agent != "" {
		if _, ok := a.types(s.Workdir).Find(s.Agent); !ok {
			return s, scheduleProblem("", errors.New("there is no agent "+s.Agent))
		}
	}
	s, err := a.tab().Add(ctx, s)
	if err != nil {
		return s, scheduleProblem("", err)
	}
	if when, err := tab.Parse(s); err == nil {
		s.Next = []time.Time{when.Next(time.Now())}
	}
	return s, nil
}

// RemoveSchedule forgets a schedule.
func (a *App) RemoveSchedule(ctx context.Context, id string) error {
	return scheduleProblem(id, a.tab().Remove(ctx, id))
}

// EnableSchedule has a schedule run again that was disabled.
func (a *App) EnableSchedule(ctx context.Context, id string) error {
	return scheduleProblem(id, a.tab().Enable(ctx, id))
}

// RunSchedule runs a schedule now, from the folder of the program.
func (a *App) RunSchedule(ctx context.Context, id string) (agent.ScheduleNote, error) {
	list, err := a.tab().List()
	if err != nil {
		return agent.ScheduleNote{}, storeProblem(err, a.cfg.Data)
	}
	i := slices.IndexFunc(list, func(s agent.Schedule) bool { return s.ID == id })
	switch {
	case i < 0:
		return agent.ScheduleNote{}, scheduleProblem(id, tab.ErrUnknown)
	case !a.schedules(list[i]):
		return agent.ScheduleNote{}, scheduleProblem("", errors.New("it is for another folder: "+list[i].Workdir))
	}
	return a.planned(nil).Once(ctx, list[i], time.Now()), nil
}

// RunSchedules runs what is scheduled for the folder of the program, until ctx is done.
func (a *App) RunSchedules(ctx context.Context, note func(agent.ScheduleNote)) error {
	return a.planned(note).Run(ctx)
}

func (a *App) planned(note func(agent.ScheduleNote)) *inbound.Planned {
	return &inbound.Planned{
		Tab: a.tab(), Client: a.Client(), Now: time.Now, Note: note, Mine: a.schedules,
		Open: func(s agent.Schedule) agent.Open {
			return agent.Open{Workdir: s.Workdir, Agent: s.Agent, Title: "schedule " + s.ID, Lane: session.LaneCron}
		},
	}
}

// schedules reports whether a schedule is for the folder of the program, whose settings and
// rules are those that count.
func (a *App) schedules(s agent.Schedule) bool { return s.Workdir == a.opts.Workdir }

// scheduleProblem is what a person has to mend.
func scheduleProblem(id string, err error) error {
	if err == nil {
		return nil
	}
	return &agent.Problem{
		Code: agent.ProblemUsage, Message: strings.TrimSpace(id + " " + err.Error()), Err: err,
		Fix:  "IDs are listed by: dure schedule list",
		Args: map[string]string{"schedule": id, "error": err.Error()},
	}
}
