package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/cmd/dure/demo"
	"dure/internal/app"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
)

func (p *program) demoCommand() *cobra.Command {
	keep, wire := false, script.Wires[0]
	cmd := &cobra.Command{
		Use: "demo", Short: p.text.Say(text.HelpDemo), Args: p.atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.demo(cmd.Context(), keep, wire) },
	}
	cmd.Flags().StringVar(&wire, "wire", wire, p.text.Say(text.FlagWire, "list", strings.Join(script.Wires, ", ")))
	cmd.Flags().BoolVar(&keep, "keep", false, p.text.Say(text.FlagKeep))
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	p.jsonFlag(cmd)
	complete(cmd, "wire", values(script.Wires...))
	return cmd
}

// demo lets the scripted model mend the sample, and then looks whether it did.
func (p *program) demo(ctx context.Context, keep bool, wire string) (err error) {
	if !slices.Contains(script.Wires, wire) {
		want := p.text.Say(text.WantOneOf, "list", strings.Join(script.Wires, ", "))
		return p.usage(p.text.Say(text.BadValue, "flag", "--wire", "value", wire, "wanted", want), "")
	}
	home, _ := os.UserHomeDir() // settings say what is missing without it
	d, err := demo.New(app.Options{
		Environ: os.Environ(), UserHome: home, Language: p.text.Language(), Version: version,
	}, wire)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, d.Close()); !keep {
			err = errors.Join(err, d.Remove())
		}
	}()
	if !p.asJSON {
		p.demoIntro(d)
	}
	p.watch()
	if err := p.demoTurn(ctx, d); err != nil {
		return err
	}
	ctx, done := p.signalled(ctx)
	defer done()
	const patience = time.Minute // the test is run once more
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stop := p.cliOf(d.Client()).Busy(text.BusyDemo)
	r, err := d.Report(ctx)
	stop()
	if exited, ok := errors.AsType[*cli.Exited](context.Cause(ctx)); ok {
		return exited
	}
	if err != nil {
		return err
	}
	if p.asJSON {
		err = p.demoObject(d, r)
	} else {
		p.demoReport(r)
	}
	if err != nil {
		return err
	}
	if !r.OK() {
		return &agent.Problem{Code: agent.ProblemInternal, Message: p.text.Say(text.DemoFailed), Fix: p.text.Say(text.FixInternal)}
	}
	return nil
}

// demoTurn shows the turn as line mode does, with nobody typing.
func (p *program) demoTurn(ctx context.Context, d *demo.Demo) error {
	t := p.terminal()
	t.In, t.Raw, t.Echo = strings.NewReader(""), nil, false
	if p.asJSON {
		t = cli.Terminal{In: t.In, Out: io.Discard, Size: func() (int, int) { return 0, 0 }}
	}
	return p.cliOf(d.Client()).Interact(ctx, cli.InteractOptions{
		Open: d.Open(), Prompt: d.Task, Terminal: t, Version: version, Quiet: true,
	})
}

func (p *program) say(k text.Key, args ...any) { fmt.Fprintln(p.out, p.text.Say(k, args...)) }

// demoIntro says what is going to be seen.
func (p *program) demoIntro(d *demo.Demo) {
	p.say(text.DemoIntro, "dir", d.Dir)
	p.say(text.DemoModel, "url", d.URL)
	p.say(text.DemoMode)
	if !d.WithGo {
		p.say(text.DemoNoGo)
	}
	fmt.Fprintln(p.out)
}

// demoObject writes what came of it for programs.
func (p *program) demoObject(d *demo.Demo, r demo.Report) error {
	return p.encode(struct {
		OK      bool               `json:"ok"`
		Dir     string             `json:"dir"`
		Diff    string             `json:"diff"`
		Passes  bool               `json:"passes"`
		Output  string             `json:"output,omitempty"` // of the test, when it fails
		Log     string             `json:"log"`
		Session agent.SessionInfo  `json:"session"`
		Seals   agent.SealReport   `json:"seals"`
		Replay  agent.ReplayReport `json:"replay"`
	}{r.OK(), d.Dir, r.Diff, r.Passes, r.Output, r.Log, r.Session, r.Seals, r.Replay})
}

// demoReport shows what came of it.
func (p *program) demoReport(r demo.Report) {
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
