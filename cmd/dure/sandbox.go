package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

func (p *program) sandboxCommand() *cobra.Command {
	explain := p.command("explain [COMMAND]", text.HelpSandboxExplain, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		return tell(ctx, p, c.Client, query.ExplainSandbox{Command: strings.Join(args, "")}, asJSON, p.showSandbox)
	})
	run := p.command("run COMMAND [ARGUMENT...]", text.HelpSandboxRun, 1, p.runConfined)
	run.Args = cobra.ArbitraryArgs
	localAs("sandbox.run", run)
	run.Flags().SetInterspersed(false) // what stands behind the command is its own
	return p.group("sandbox", text.HelpSandbox, explain, run)
}

func (p *program) showSandbox(b *strings.Builder, r query.SandboxReport) {
	level := p.text.Word("level." + r.Level)
	if r.Mechanism != "" {
		level += " (" + r.Mechanism + ")"
	}
	fmt.Fprintln(b, p.text.Say(text.SandboxLevel, "level", level))
	if r.Off {
		fmt.Fprintln(b, p.text.Say(text.SandboxOff))
	}
	for _, part := range r.Parts {
		sign := "-"
		if part.Used {
			sign = "+"
		}
		fmt.Fprintf(b, "  %s %s: %s\n", sign, part.Name, p.text.Phrase(text.OneLine(part.Detail)))
	}
	for _, list := range []struct {
		head  text.Key
		lines []string
	}{{text.SandboxEnforced, r.Enforced}, {text.SandboxMissing, r.Missing}, {text.SandboxMend, r.Mend}} {
		if len(list.lines) > 0 {
			fmt.Fprintln(b, p.text.Say(list.head))
		}
		for _, l := range list.lines {
			fmt.Fprintln(b, "  "+p.text.Phrase(text.OneLine(l)))
		}
	}
	if len(r.Mounts) > 0 {
		fmt.Fprintln(b, p.text.Say(text.SandboxMounts))
	}
	for _, m := range r.Mounts {
		fmt.Fprintf(b, "  %-8s %s\n", m.Access, text.OneLine(m.Path))
	}
}

// runConfined runs a command confined; its exit code is ours.
func (p *program) runConfined(ctx context.Context, c *cli.CLI, args []string, _ bool) error {
	if len(args) == 0 {
		return p.usage(p.text.Say(text.NoCommand), p.text.Say(text.FixNoCommand))
	}
	var in io.Reader
	if !cli.IsTerminal(p.in) {
		in = p.in
	}
	r, err := client.Query[query.ConfinedRun](ctx, c.Client, query.RunConfined{Argv: args, In: in, Out: p.out, Err: p.err})
	if err != nil {
		return err
	}
	if r.Refused != "" {
		fmt.Fprintln(p.err, text.Clean(r.Refused))
	}
	if r.Code != 0 {
		return &cli.Exited{Code: r.Code, Err: fmt.Errorf("%s ended with exit code %d", args[0], r.Code)}
	}
	return nil
}
