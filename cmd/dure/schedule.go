package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// scheduleCommand lists and changes what is scheduled, and runs it.
func (p *program) scheduleCommand() *cobra.Command {
	list := func(use string, short text.Key) *cobra.Command {
		return p.command(use, short, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
			all, err := client.Query[[]agent.Schedule](ctx, c.Client, query.ListSchedules{})
			if err != nil {
				return err
			}
			return c.Schedules(all, asJSON)
		})
	}
	cmd := list("schedule", text.HelpSchedule)
	remove := p.changeSchedule("remove ID", text.HelpScheduleRemove, text.ScheduleRemoved, query.ScheduleRemove)
	enable := p.changeSchedule("enable ID", text.HelpScheduleEnable, text.ScheduleEnabled, query.ScheduleEnable)
	cmd.AddCommand(list("list", text.HelpScheduleList), p.scheduleAddCommand(), remove, enable, p.scheduleRunCommand())
	return cmd
}

func (p *program) scheduleAddCommand() *cobra.Command {
	var s agent.Schedule
	cmd := p.command("add TIMES PROMPT", text.HelpScheduleAdd, 2, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) < 2 {
			return p.usage(p.text.Say(text.ScheduleNeeds), p.text.Say(text.FixSchedule))
		}
		s.Cron, s.Prompt = args[0], args[1]
		added, err := client.Query[agent.Schedule](ctx, c.Client, query.ChangeSchedule{Do: query.ScheduleAdd, Schedule: s})
		if err != nil {
			return p.scheduleError(err)
		}
		return p.told(asJSON, added, p.text.Say(text.ScheduleAdded, "id", added.ID, "time", cli.ScheduleTime(added.Next[0]), "path", text.OneLine(added.Workdir)))
	})
	cmd.Flags().StringVar(&s.Zone, "time-zone", "", p.text.Say(text.FlagZone))
	cmd.Flags().StringVar(&s.Agent, "agent", "", p.text.Say(text.FlagScheduleAgent))
	complete(cmd, "time-zone", values())
	complete(cmd, "agent", values())
	return cmd
}

// changeSchedule is a command that changes one schedule.
func (p *program) changeSchedule(use string, short, said text.Key, do string) *cobra.Command {
	cmd := p.command(use, short, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.ScheduleUnknown, "id", "\"\""), p.text.Say(text.FixScheduleID))
		}
		q := query.ChangeSchedule{Do: do, Schedule: agent.Schedule{ID: args[0]}}
		if _, err := client.Query[agent.Schedule](ctx, c.Client, q); err != nil {
			return p.scheduleError(err)
		}
		return p.told(asJSON, map[string]any{"id": args[0]}, p.text.Say(said, "id", text.OneLine(args[0])))
	})
	cmd.ValidArgsFunction = p.first(p.scheduleIDs)
	return cmd
}

// scheduleRunCommand waits for the times of a folder, or runs one schedule at once.
func (p *program) scheduleRunCommand() *cobra.Command {
	cmd := p.command("run [ID]", text.HelpScheduleRun, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.waitForTimes(ctx, c, asJSON)
		}
		n, err := client.Query[agent.ScheduleNote](ctx, c.Client, query.RunSchedule{ID: args[0]})
		if err != nil {
			return p.scheduleError(err)
		}
		if err := p.scheduleEnded(c, n, asJSON); err != nil {
			return err
		}
		if n.Error != "" {
			return &cli.Exited{Code: cli.ExitFailed}
		}
		return nil
	})
	cmd.ValidArgsFunction = p.first(p.scheduleIDs)
	return cmd
}

// waitForTimes runs what is scheduled until a signal comes.
func (p *program) waitForTimes(ctx context.Context, c *cli.CLI, asJSON bool) error {
	if err := p.refuseLocal(p.at, ownTimes); err != nil {
		return err
	}
	p.notes()
	if next := p.nextTime(ctx, c); !next.IsZero() {
		fmt.Fprintln(p.err, p.text.Say(text.ScheduleWaits, "time", cli.ScheduleTime(next)))
	}
	var mu sync.Mutex
	return p.opened.Schedules.Run(ctx, func(n agent.ScheduleNote) {
		mu.Lock()
		defer mu.Unlock()
		_ = p.scheduleEnded(c, n, asJSON) // who reads it may be gone; the list keeps it
	})
}

// nextTime is when something is scheduled for this folder; the zero one = never.
func (p *program) nextTime(ctx context.Context, c *cli.CLI) (next time.Time) {
	all, err := client.Query[[]agent.Schedule](ctx, c.Client, query.ListSchedules{})
	if err != nil {
		return next // running them tells of it
	}
	for _, s := range all {
		if s.Workdir == p.flags.workdir && len(s.Next) > 0 && (next.IsZero() || s.Next[0].Before(next)) {
			next = s.Next[0]
		}
	}
	return next
}

// scheduleEnded writes what came of a run: what was said, and beside it how it ended.
func (p *program) scheduleEnded(c *cli.CLI, n agent.ScheduleNote, asJSON bool) error {
	if asJSON {
		return p.encode(n)
	}
	if n.Text != "" {
		if _, err := fmt.Fprintln(p.out, text.Clean(n.Text)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(p.err, c.ScheduleLine(n))
	return err
}

// runSchedules runs what is scheduled for a folder beside something else, and tells of it.
func (p *program) runSchedules(ctx context.Context, a *app.App, told func(string)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	c := p.cli()
	all.Go(func() {
		if err := a.Schedules.Run(ctx, func(n agent.ScheduleNote) { told(c.ScheduleLine(n)) }); err != nil && ctx.Err() == nil {
			told(text.OneLine(err.Error()))
		}
	})
	return func() { cancel(); all.Wait() }
}

// scheduleError says in the user's language what is wrong.
func (p *program) scheduleError(err error) error {
	pr := agent.ProblemOf(err)
	switch {
	case pr == nil || pr.Args["error"] == "" || errors.Is(err, context.Canceled):
		return err
	case pr.Args["schedule"] != "":
		return p.usage(p.text.Say(text.ScheduleUnknown, "id", text.OneLine(pr.Args["schedule"])), p.text.Say(text.FixScheduleID))
	}
	return p.usage(p.text.Say(text.ScheduleBad, "error", text.OneLine(pr.Args["error"])), p.text.Say(text.FixSchedule))
}

// scheduleIDs completes the IDs of schedules.
func (p *program) scheduleIDs(ctx context.Context) []cobra.Completion {
	return named(ctx, p, query.ListSchedules{}, func(s agent.Schedule) cobra.Completion {
		return cobra.CompletionWithDesc(s.ID, text.OneLine(s.Cron+" "+s.Prompt))
	})
}
