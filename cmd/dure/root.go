package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
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
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return p.refuseLocal(cmd, cmd.Annotations[localReason])
		},
	}
	local(ownTask, root)
	p.define(root.Flags())
	p.shared(root.PersistentFlags())
	p.completeFlags(root)
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
		if os.Getenv(entryVar) != "" || os.Getenv(hostVar) != "" {
			return p.hostVersion()
		}
		return p.printVersion(false)
	}
	if err := p.check(cmd); err != nil {
		return err
	}
	if err := p.combined(cmd.Flags(), args); err != nil {
		return err
	}
	if err := p.prompts(cmd); err != nil {
		return err
	}
	if err := p.readSchema(cmd); err != nil {
		return err
	}
	if p.flags.hosted() {
		return p.serve(cmd, args)
	}
	if err := p.mistyped(cmd, args); err != nil {
		return err
	}
	ctx, prompt := cmd.Context(), strings.Join(args, " ")
	if p.flags.setupOnly {
		return p.with(func(c *cli.CLI) error { return p.setUp(ctx, c) })
	}
	if p.flags.interactive || (!p.flags.print && p.flags.output == "" && p.flags.schema == nil && p.interactive()) {
		if p.interactive() {
			if err := p.trustFirst(); err != nil {
				return err
			}
		}
		return p.with(p.checked(func(c *cli.CLI) error { return p.interact(ctx, c, prompt) }))
	}
	p.flags.awaits = true
	prompt, err := p.withInput(prompt)
	if err != nil {
		return err
	}
	if prompt == "" && !p.flags.last && p.flags.resume == "" {
		return p.usage(p.text.Say(text.NoPrompt), p.text.Say(text.FixNoPrompt))
	}
	return p.with(p.checked(func(c *cli.CLI) error { return p.print(ctx, c, prompt) }))
}

// checked is f once what the flags name is known to be there.
func (p *program) checked(f func(*cli.CLI) error) func(*cli.CLI) error {
	return func(c *cli.CLI) error {
		if err := p.opened.CheckFlags(); err != nil {
			return err
		}
		return f(c)
	}
}

// setUp runs what makes the place ready, and nothing else.
func (p *program) setUp(ctx context.Context, c *cli.CLI) error {
	o, err := p.openOptions(ctx, c, c.Point)
	if err != nil {
		return err
	}
	p.notes()
	return c.Setup(ctx, o)
}

// mistyped finds a command that was nearly typed: a word that is not meant for the
// model, alone or before a command of what was meant.
func (p *program) mistyped(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || p.flags.print || strings.ContainsAny(args[0], " \n") {
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
	if len(args) > 1 { // several words are a task, unless the second is a command too
		meant, _, err := cmd.Find([]string{near, args[1]})
		if err != nil || meant.Name() != args[1] {
			return nil
		}
		near += " " + args[1]
	}
	return p.usage(p.text.Say(text.UnknownCommand, "name", args[0]),
		p.text.Say(text.DidYouMean, "name", near)+" "+p.text.Say(text.SendAsPrompt, "name", strings.Join(args, " ")))
}

// point finds the event of a session that somebody means by a name.
type point func(ctx context.Context, info agent.SessionInfo, name string) (int64, error)

// openOptions says which session to open.
func (p *program) openOptions(ctx context.Context, c *cli.CLI, point point) (agent.Open, error) {
	f := p.flags
	o := agent.Open{Model: f.model, Profile: f.profile, MaxSteps: f.maxTurns, Title: f.name, Scratch: f.scratch, Setup: f.trigger(), Schema: f.schema}
	if !f.last && f.resume == "" {
		o.New, o.Workdir, o.Mode = f.sessionID, f.workdir, p.mode()
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
		o.Mode = p.mode()
	}
	workdir := ""
	if f.last {
		name, workdir = "", f.workdir
	}
	info, err := c.Find(ctx, name, workdir)
	if prob := agent.ProblemOf(err); prob != nil && prob.Code == agent.ProblemMissing {
		there, adopting := p.opened.AdoptTranscript(ctx, name)
		if adopting != nil {
			return o, adopting
		}
		if there { // a program for agent sessions has made it
			info, err = c.Find(ctx, name, workdir)
		}
	}
	if f.last && f.profile != "" && err == nil { // the newest of that kind of work
		info, err = client.Query[agent.SessionInfo](ctx, c.Client, agent.FindSession{Workdir: f.workdir, Profile: f.profile})
	}
	if err != nil || !f.fork && f.forkAt == "" {
		o.Session, o.Takeover = info.ID, f.takeover
		return o, err
	}
	o.Fork, o.New = info.ID, f.sessionID
	if f.forkAt != "" {
		o.At, err = point(ctx, info, f.forkAt)
	}
	return o, err
}

// mode is the permission mode of a new session.
func (p *program) mode() agent.Mode {
	c := p.opened.Config()
	w, _ := c.Work(c.Profile)
	return w.Mode
}

// interact runs line mode.
func (p *program) interact(ctx context.Context, c *cli.CLI, prompt string) error {
	o, err := p.openOptions(ctx, c, c.Point)
	if err != nil {
		return err
	}
	p.notes()
	p.watch()
	notice, done := p.lookForUpdate(ctx)
	defer done()
	if line := p.overdue(ctx, c); line != "" {
		notice = line
	}
	options := p.chatOptions()
	options.Open, options.Prompt, options.Notice = o, prompt, notice
	lines, told := make(chan string), make(chan struct{})
	options.Told = lines
	stop := p.runSchedules(ctx, p.opened, func(line string) {
		for l := range strings.SplitSeq(line, "\n") {
			select {
			case lines <- l:
			case <-told: // nobody reads it any more
			}
		}
	})
	defer stop()
	defer close(told)
	return c.Interact(ctx, options)
}

// chatOptions are what line mode has of the program as it is now.
func (p *program) chatOptions() cli.InteractOptions {
	var edit func(context.Context, string) error
	if p.edits() {
		edit = func(ctx context.Context, path string) error {
			return p.opened.Desktop().Edit(ctx, path, p.in, p.out, p.err)
		}
	}
	move := func(_ context.Context, dir string, more []string) (cli.Place, error) {
		a, back, err := p.move(dir, more)
		if err != nil {
			return cli.Place{}, err
		}
		return cli.Place{Client: a.Client(), Options: p.chatOptions(), Enter: p.notes, Back: back}, nil
	}
	home, _ := os.UserHomeDir() // ~ is a name as any other without it
	return cli.InteractOptions{
		Home:     home,
		Terminal: p.terminal(), History: p.historyFile(), Version: version, Move: move,
		MakeMemory: p.makeMemory, Remember: p.remember, Edit: edit, Settings: p.configLines, EditRule: p.editRule,
		Notices: p.notices(), OpenAddress: p.opened.Desktop().Open,
	}
}

// print runs print mode.
func (p *program) print(ctx context.Context, c *cli.CLI, prompt string) error {
	o, err := p.openOptions(ctx, c, c.Point)
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

// commands returns the commands, in the order of use.
func (p *program) commands() []*cobra.Command {
	return slices.Concat(
		[]*cobra.Command{p.demoCommand()},
		p.accountCommands(),
		[]*cobra.Command{p.doctorCommand()},
		p.sessionCommands(),
		[]*cobra.Command{p.initCommand(), p.memoryCommand(), p.agentsCommand(), p.configCommand()},
		[]*cobra.Command{p.hooksCommand()},
		p.launchCommands(),
		[]*cobra.Command{p.pluginCommand(), p.bundleCommand(), p.serversCommand(), p.acpCommand(), p.controlCommand(), p.toolsCommand(), p.scheduleCommand(), p.serveCommand()},
		[]*cobra.Command{p.auditCommand(), p.policyCommand(), p.guardCommand(), p.contextCommand(), p.promptCommand(), p.trustCommand(), p.sandboxCommand(), p.usageCommand(), p.lessonsCommand(), p.skillsCommand(), p.completionCommand(), p.manCommand(), p.versionCommand()},
	)
}

func (p *program) sessionCommands() []*cobra.Command {
	byName := func(use string, short text.Key, run func(*cli.CLI, context.Context, string, string, bool) error) *cobra.Command {
		cmd := p.command(use, short, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
			name, workdir := "", p.flags.workdir
			if len(args) == 1 {
				name, workdir = args[0], ""
			}
			return run(c, ctx, name, workdir, asJSON)
		})
		cmd.ValidArgsFunction = p.first(p.sessionNames)
		return cmd
	}
	return []*cobra.Command{
		p.sessionsCommand(), p.searchCommand(), byName("show [ID]", text.HelpShow, (*cli.CLI).Show), p.diffCommand(), p.rewindCommand(), p.forkCommand(), p.exportCommand(),
		p.replayCommand(), p.compareCommand(), byName("verify [ID]", text.HelpVerify, (*cli.CLI).Verify),
		p.importCommand(),
	}
}

// newest is how many sessions are listed unless more are asked for.
const newest = 50

// sessionsCommand lists sessions, and has what is done with them.
func (p *program) sessionsCommand() *cobra.Command {
	cmd := p.listCommand("sessions")
	cmd.AddCommand(p.listCommand("list"))
	cmd.AddCommand(append(p.manageCommands(), p.checkCommand(), p.searchCommand())...)
	cmd.AddCommand(p.repairCommand(), p.deleteCommand(), p.cleanCommand())
	return cmd
}

// listCommand lists sessions.
func (p *program) listCommand(use string) *cobra.Command {
	var q agent.ListSessions
	var cmd *cobra.Command
	cmd = p.command(use, text.HelpSessions, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		switch {
		case q.Limit < 0:
			return p.badValue("--limit", strconv.Itoa(q.Limit), text.WantListed)
		case q.Archived && !cmd.Flags().Changed("limit"):
			q.Limit = 0
		}
		if p.flags.here {
			q.Workdir = p.flags.workdir
		}
		if err := c.Sessions(ctx, q, asJSON); err != nil {
			return err
		}
		if line := p.overdue(ctx, c); line != "" {
			fmt.Fprintln(p.err, line)
		}
		return nil
	})
	f := cmd.Flags()
	f.StringVar(&q.Tag, "tag", "", p.text.Say(text.FlagTag))
	f.StringVar(&q.Profile, "profile", "", p.text.Say(text.FlagListProfile))
	complete(cmd, "profile", p.profileNames)
	f.IntVar(&q.Limit, "limit", newest, p.text.Say(text.FlagListed))
	f.BoolVar(&q.Archived, "all", false, p.text.Say(text.FlagAll))
	f.BoolVar(&p.flags.here, "here", false, p.text.Say(text.FlagHere))
	complete(cmd, "tag", values())
	complete(cmd, "limit", values())
	return cmd
}

// command returns a command that takes up to most arguments and --json.
func (p *program) command(use string, short text.Key, most int, run func(context.Context, *cli.CLI, []string, bool) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: p.text.Say(short),
		Args: p.atMost(most), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, done := p.signalled(cmd.Context())
			defer done()
			return p.with(func(c *cli.CLI) error {
				err := run(ctx, c, args, p.asJSON)
				if cause := context.Cause(ctx); err != nil && cause != nil {
					return cause
				}
				return err
			})
		},
	}
	p.jsonFlag(cmd)
	return cmd
}

func (p *program) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.asJSON, "json", p.asJSON, p.text.Say(text.FlagJSON))
}

func (p *program) atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		p.at = cmd
		if len(args) <= n {
			return nil
		}
		if n == 0 && cmd.HasAvailableSubCommands() {
			return p.unknownWithin(cmd, args[0])
		}
		fix := p.text.Say(text.UseArgs, "usage", useOf(cmd))
		if strings.Contains(cmd.Use, "COMMAND") { // one word for the shell: it is in quotes
			fix = p.text.Say(text.FixQuotes, "line", cmd.CommandPath()+" '"+strings.Join(args, " ")+"'")
		}
		return p.usage(p.text.Say(text.TooMany, "command", cmd.CommandPath(), "n", n), fix)
	}
}

// unknownWithin says that a command has no such command within it, and which one may
// have been meant: one of its own, or one beside it.
func (p *program) unknownWithin(cmd *cobra.Command, name string) error {
	fix := p.seeHelp()
	for _, at := range []*cobra.Command{cmd, cmd.Parent()} {
		var names []string
		for _, c := range at.Commands() {
			names = append(names, c.Name())
		}
		if near := cli.Nearest(name, names); near != "" {
			fix = p.text.Say(text.DidYouMean, "name", at.CommandPath()+" "+near) + " " + fix
			break
		}
	}
	return p.usage(p.text.Say(text.UnknownWithin, "command", cmd.CommandPath(), "name", text.Cut(text.OneLine(name), 40)), fix)
}

// exclusive refuses a flag beside another one.
func (p *program) exclusive(cmd *cobra.Command, one, other string) error {
	if cmd.Flags().Changed(one) && cmd.Flags().Changed(other) {
		return p.usage(p.text.Say(text.Exclusive, "one", "--"+one, "other", "--"+other), "")
	}
	return nil
}

// needs refuses flags that mean nothing without one of others.
func (p *program) needs(cmd *cobra.Command, flags []string, others ...string) error {
	for _, name := range flags {
		if cmd.Flags().Changed(name) && !slices.ContainsFunc(others, cmd.Flags().Changed) {
			return p.usage(p.text.Say(text.OnlyWith, "one", "--"+name, "other", "--"+others[0]), "")
		}
	}
	return nil
}

func (p *program) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: p.text.Say(text.HelpHelp), Args: p.atMost(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, name := range args {
				all := at.Commands()
				i := slices.IndexFunc(all, func(c *cobra.Command) bool { return c.Name() == name })
				if i < 0 {
					return p.mistypedHelp(all, name)
				}
				at = all[i]
			}
			p.help(at)
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if at, _, err := cmd.Root().Find(args); err == nil {
				for _, c := range at.Commands() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
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
