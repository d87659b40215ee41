package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/client"
	"dure/internal/cli"
	"dure/internal/text"
)

// root returns the command line.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "dure [task]",
		Short:         p.text.Say(text.HelpRoot),
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          p.work,
	}
	p.define(root.Flags())
	p.shared(root.PersistentFlags())
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(p.flagError)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { p.help(cmd) })
	cobra.EnableCommandSorting = false // ours are in the order of use
	root.SetOut(p.out)
	root.SetErr(p.err)
	for _, c := range p.commands() {
		root.AddCommand(c)
	}
	root.SetHelpCommand(p.helpCommand())
	return root
}

// work is dure without a command: line mode where somebody sits in front of it,
// print mode elsewhere.
func (p *program) work(cmd *cobra.Command, args []string) error {
	if p.flags.version {
		return p.printVersion(false)
	}
	if err := p.check(cmd); err != nil {
		return err
	}
	if err := p.mistyped(cmd, args); err != nil {
		return err
	}
	ctx, prompt := cmd.Context(), strings.Join(args, " ")
	if p.flags.interactive || (!p.flags.print && p.flags.output == "" && p.interactive()) {
		return p.with(func(c *cli.CLI) error { return p.interact(ctx, c, prompt) })
	}
	prompt, err := p.withInput(prompt)
	if err != nil {
		return err
	}
	if prompt == "" && !p.flags.last && p.flags.resume == "" {
		return p.usage(p.text.Say(text.NoPrompt), p.text.Say(text.FixNoPrompt))
	}
	return p.with(func(c *cli.CLI) error { return p.print(ctx, c, prompt) })
}

// mistyped finds a command that was nearly typed: a single word that is not
// meant for the model.
func (p *program) mistyped(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || p.flags.print || strings.ContainsAny(args[0], " \n") {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	near := cli.Nearest(args[0], names)
	if near == "" {
		return nil
	}
	return p.usage(p.text.Say(text.UnknownCommand, "name", args[0]),
		p.text.Say(text.DidYouMean, "name", near)+" "+p.text.Say(text.SendAsPrompt, "name", args[0]))
}

// openOptions says which session to open.
func (p *program) openOptions(ctx context.Context, c *cli.CLI) (agent.Open, error) {
	f := p.flags
	o := agent.Open{Model: f.model, MaxSteps: f.maxTurns, Title: f.name, Scratch: f.scratch}
	if !f.last && f.resume == "" {
		o.New, o.Workdir, o.Mode = f.sessionID, f.workdir, p.opened.Config().Mode
		return o, nil
	}
	name := f.resume
	if name == pick {
		id, err := c.Pick(ctx, f.workdir)
		if err != nil {
			return o, err
		}
		name = id
	}
	if f.mode != "" || f.skip {
		o.Mode = p.opened.Config().Mode
	}
	find := agent.FindSession{Name: name}
	if f.last {
		find = agent.FindSession{Workdir: f.workdir}
	}
	info, err := client.Query[agent.SessionInfo](ctx, c.Client, find)
	o.Session = info.ID
	return o, err
}

// interact runs line mode.
func (p *program) interact(ctx context.Context, c *cli.CLI, prompt string) error {
	o, err := p.openOptions(ctx, c)
	if err != nil {
		return err
	}
	p.notes()
	p.watch()
	return c.Interact(ctx, cli.InteractOptions{
		Open: o, Prompt: prompt, Terminal: p.terminal(), History: p.historyFile(), Version: version,
	})
}

// print runs print mode.
func (p *program) print(ctx context.Context, c *cli.CLI, prompt string) error {
	o, err := p.openOptions(ctx, c)
	if err != nil {
		return err
	}
	p.notes()
	p.watch()
	format := cli.FormatText
	if p.flags.output != "" {
		format = cli.Format(p.flags.output)
	}
	return c.Print(ctx, cli.PrintOptions{
		Open: o, Prompt: prompt, Format: format, Live: p.flags.partial, Verbose: p.flags.verbose,
		Terminal: cli.IsTerminal(p.out), Progress: p.progress(), Columns: p.columns,
	})
}

// commands returns the commands that show something.
func (p *program) commands() []*cobra.Command {
	byName := func(run func(*cli.CLI, context.Context, string, string, bool) error) func(context.Context, *cli.CLI, []string, bool) error {
		return func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
			name, workdir := "", p.flags.workdir
			if len(args) == 1 {
				name, workdir = args[0], ""
			}
			return run(c, ctx, name, workdir, asJSON)
		}
	}
	sessions := p.command("sessions", text.HelpSessions, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		workdir := ""
		if p.flags.here {
			workdir = p.flags.workdir
		}
		return c.Sessions(ctx, workdir, asJSON)
	})
	sessions.Flags().BoolVar(&p.flags.here, "here", false, p.text.Say(text.FlagHere))
	replay := p.command("replay [ID]", text.HelpReplay, 1, byName((*cli.CLI).Replay))
	replay.Flags().BoolVar(&p.flags.verify, "verify", false, p.text.Say(text.FlagVerify))
	replay.PreRunE = func(*cobra.Command, []string) error {
		if !p.flags.verify {
			return p.usage(p.text.Say(text.ReplayOnly), "")
		}
		return nil
	}
	return []*cobra.Command{
		p.demoCommand(),
		p.command("doctor", text.HelpDoctor, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
			return c.Doctor(ctx, asJSON)
		}),
		sessions,
		p.command("show [ID]", text.HelpShow, 1, byName((*cli.CLI).Show)),
		replay,
		p.command("verify [ID]", text.HelpVerify, 1, byName((*cli.CLI).Verify)),
		p.command("models", text.HelpModels, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
			return c.Models(ctx, asJSON)
		}),
		p.versionCommand(),
	}
}

// command returns a command that takes up to most arguments and --json.
func (p *program) command(use string, short text.Key, most int, run func(context.Context, *cli.CLI, []string, bool) error) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: use, Short: p.text.Say(short),
		Args: p.atMost(most),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, done := p.signalled(cmd.Context())
			defer done()
			return p.with(func(c *cli.CLI) error {
				err := run(ctx, c, args, asJSON)
				if cause := context.Cause(ctx); err != nil && cause != nil {
					return cause
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, p.text.Say(text.FlagJSON))
	return cmd
}

func (p *program) atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return p.usage(p.text.Say(text.TooMany, "command", "dure "+cmd.Name(), "n", n),
			p.text.Say(text.UseArgs, "usage", "dure "+cmd.Use))
	}
}

func (p *program) versionCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "version", Short: p.text.Say(text.HelpVersion), Args: p.atMost(0),
		RunE: func(*cobra.Command, []string) error { return p.printVersion(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, p.text.Say(text.FlagJSON))
	return cmd
}

func (p *program) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: p.text.Say(text.HelpHelp), Args: p.atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all := cmd.Root().Commands()
			if len(args) == 0 {
				p.help(cmd.Root())
				return nil
			}
			i := slices.IndexFunc(all, func(c *cobra.Command) bool { return c.Name() == args[0] })
			if i < 0 {
				return p.mistypedHelp(all, args[0])
			}
			p.help(all[i])
			return nil
		},
	}
}

func (p *program) mistypedHelp(all []*cobra.Command, name string) error {
	var names []string
	for _, c := range all {
		names = append(names, c.Name())
	}
	fix := ""
	if near := cli.Nearest(name, names); near != "" {
		fix = p.text.Say(text.DidYouMean, "name", near)
	}
	return p.usage(p.text.Say(text.UnknownCommand, "name", name), fix)
}
