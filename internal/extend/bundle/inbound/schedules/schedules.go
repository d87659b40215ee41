// Package schedules lists and changes what a person has scheduled, and runs it. It starts no
// goroutines but those of [inbound.Planned].
package schedules

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/base/cron/tab"
	"dure/internal/extend/bundle/inbound"
	"dure/internal/kernel/plug"
)

// File is the usual name of the file with the schedules.
const File = "schedules.json"

const nextTimes = 3 // that are shown

// Config says where schedules are, and how they are run.
type Config struct {
	// Path is the file with the schedules. It lies with the person's own data, where no
	// repository brings any.
	Path string

	Workdir string // whose schedules are run: its settings and rules are those that count
	Lane    string // of the runs
	Client  func() client.Client
	Agent   func(name string) bool // whether there is a type of agents
	Problem func(err error) error  // says what is wrong with the folder of Path
}

// Extension has the schedules.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(cfg Config) *Extension { return &Extension{cfg: cfg} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "schedules" }

// Answers returns the queries that the extension answers. They need no session.
func (x *Extension) Answers() []plug.Answer {
	all := []plug.Answer{plug.Answers(x.list), plug.Answers(x.change), plug.Answers(x.once)}
	for i := range all {
		all[i].NoStore = true
	}
	return all
}

func (x *Extension) tab() *tab.Tab { return &tab.Tab{Path: x.cfg.Path, Now: time.Now} }

// list lists what is scheduled, with the next times of what is not disabled.
func (x *Extension) list(context.Context, query.ListSchedules) ([]agent.Schedule, error) {
	list, err := x.tab().List()
	if err != nil {
		return nil, x.cfg.Problem(err)
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

// change adds a schedule for the folder of the program, forgets one, or has one run again that
// was disabled.
func (x *Extension) change(ctx context.Context, q query.ChangeSchedule) (agent.Schedule, error) {
	s := q.Schedule
	switch q.Do {
	case query.ScheduleAdd:
		return x.add(ctx, s)
	case query.ScheduleRemove:
		return s, problem(s.ID, x.tab().Remove(ctx, s.ID))
	case query.ScheduleEnable:
		return s, problem(s.ID, x.tab().Enable(ctx, s.ID))
	}
	return s, problem("", errors.New("nothing to do with a schedule: "+q.Do))
}

func (x *Extension) add(ctx context.Context, s agent.Schedule) (agent.Schedule, error) {
	if s.Zone == "" {
		s.Zone = "Local"
	}
	s.Workdir = x.cfg.Workdir
	if s.Agent != "" && !x.cfg.Agent(s.Agent) {
		return s, problem("", errors.New("there is no agent "+s.Agent))
	}
	s, err := x.tab().Add(ctx, s)
	if err != nil {
		return s, problem("", err)
	}
	if when, err := tab.Parse(s); err == nil {
		s.Next = []time.Time{when.Next(time.Now())}
	}
	return s, nil
}

// once runs a schedule now, from the folder of the program.
func (x *Extension) once(ctx context.Context, q query.RunSchedule) (agent.ScheduleNote, error) {
	list, err := x.tab().List()
	if err != nil {
		return agent.ScheduleNote{}, x.cfg.Problem(err)
	}
	i := slices.IndexFunc(list, func(s agent.Schedule) bool { return s.ID == q.ID })
	switch {
	case i < 0:
		return agent.ScheduleNote{}, problem(q.ID, tab.ErrUnknown)
	case !x.mine(list[i]):
		return agent.ScheduleNote{}, problem("", errors.New("it is for another folder: "+list[i].Workdir))
	}
	return x.planned(nil).Once(ctx, list[i], time.Now()), nil
}

// Run runs what is scheduled for the folder of the program, until ctx is done.
func (x *Extension) Run(ctx context.Context, note func(agent.ScheduleNote)) error {
	return x.planned(note).Run(ctx)
}

func (x *Extension) planned(note func(agent.ScheduleNote)) *inbound.Planned {
	return &inbound.Planned{
		Tab: x.tab(), Client: x.cfg.Client(), Now: time.Now, Note: note, Mine: x.mine,
		Open: func(s agent.Schedule) agent.Open {
			return agent.Open{Workdir: s.Workdir, Agent: s.Agent, Title: "schedule " + s.ID, Lane: x.cfg.Lane}
		},
	}
}

func (x *Extension) mine(s agent.Schedule) bool { return s.Workdir == x.cfg.Workdir }

// problem is what a person has to fix.
func problem(id string, err error) error {
	if err == nil {
		return nil
	}
	return &agent.Problem{
		Code: agent.ProblemUsage, Message: strings.TrimSpace(id + " " + err.Error()), Err: err,
		Fix:  "IDs are listed by: dure schedule list",
		Args: map[string]string{"schedule": id, "error": err.Error()},
	}
}
