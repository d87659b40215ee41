package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/cli"
	"dure/internal/text"
)

func (p *program) demoCommand() *cobra.Command {
	keep := false
	cmd := &cobra.Command{
		Use: "demo", Short: p.text.Say(text.HelpDemo), Args: p.atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.demo(cmd.Context(), keep) },
	}
	cmd.Flags().BoolVar(&keep, "keep", false, p.text.Say(text.FlagKeep))
	return cmd
}

// demo lets the scripted model mend the sample, and then looks whether it did.
func (p *program) demo(ctx context.Context, keep bool) (err error) {
	home, _ := os.UserHomeDir() // settings say what is missing without it
	d, err := app.NewDemo(app.Options{
		Environ: os.Environ(), UserHome: home, Language: p.text.Language(), Version: version,
	})
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, d.Close()); !keep {
			err = errors.Join(err, d.Remove())
		}
	}()
	p.say(text.DemoIntro, "dir", d.Dir)
	p.say(text.DemoModel, "url", d.URL)
	p.say(text.DemoMode)
	if !d.WithGo {
		p.say(text.DemoNoGo)
	}
	fmt.Fprintln(p.out)
	p.watch()
	if err := p.demoTurn(ctx, d); err != nil {
		return err
	}
	ctx, done := p.signalled(ctx)
	defer done()
	const patience = time.Minute // the test is run once more
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := d.Report(ctx)
	if exited, ok := errors.AsType[*cli.Exited](context.Cause(ctx)); ok {
		return exited
	}
	if err != nil {
		return err
	}
	p.demoReport(r)
	if !r.OK() {
		return &agent.Problem{Code: agent.ProblemInternal, Message: p.text.Say(text.DemoFailed), Fix: p.text.Say(text.FixInternal)}
	}
	return nil
}

// demoTurn shows the turn as line mode does, with nobody typing.
func (p *program) demoTurn(ctx context.Context, d *app.Demo) error {
	t := p.terminal()
	t.In, t.Raw, t.Echo = strings.NewReader(""), nil, false
	return p.cliOf(d.Client()).Interact(ctx, cli.InteractOptions{
		Open: d.Open(), Prompt: d.Task, Terminal: t, Version: version, Quiet: true,
	})
}

func (p *program) say(k text.Key, args ...any) { fmt.Fprintln(p.out, p.text.Say(k, args...)) }

// demoReport shows what came of it.
func (p *program) demoReport(r app.DemoReport) {
	fmt.Fprintln(p.out)
	if r.Diff == "" {
		p.say(text.DemoUnchanged)
	} else {
		p.say(text.DemoDiff)
		fmt.Fprintln(p.out, strings.TrimRight(r.Diff, "\n"))
	}
	fmt.Fprintln(p.out)
	if r.Passes {
		p.say(text.DemoTestPasses)
	} else {
		p.say(text.DemoTestFails)
		fmt.Fprintln(p.out, text.Clean(r.Output))
	}
	money := p.text.Say(text.Unknown)
	if r.Session.Cost != nil {
		money = r.Session.Cost.String()
	}
	p.say(text.DemoCost, "cost", money)
	p.say(text.DemoLog, "path", r.Log)
	if r.Seals.OK {
		p.say(text.DemoSeals, "events", r.Seals.Events, "seals", r.Seals.Seals)
	} else {
		p.say(text.SealsBad, "session", r.Session.ID, "at", r.Seals.At, "problem", r.Seals.Problem)
	}
	if r.Replay.OK {
		p.say(text.DemoReplay, "n", r.Replay.Requests)
	} else {
		p.say(text.ReplayBad, "session", r.Session.ID, "at", r.Replay.At, "problem", r.Replay.Problem)
	}
	p.say(text.DemoNext)
}
