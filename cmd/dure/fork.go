package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// forking is what a fork is made of, and what it does at once.
type forking struct {
	agent.Open
	cli.ForkFiles
	edit, prompt string // said at once: instead of the request at the event, or behind it
	run          bool   // goes on with the turn that it is in
}

// forkCommand makes a session that goes on from an event of another one.
func (p *program) forkCommand() *cobra.Command {
	var o forking
	cmd := p.command("fork [ID]", text.HelpFork, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		name, workdir := p.session(args)
		return p.fork(ctx, c, name, workdir, o, asJSON)
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("at") && o.At < 1 {
			return p.usage(p.text.Say(text.BadValue, "flag", "--at", "value", o.At, "wanted", p.text.Say(text.WantNumber)), "")
		}
		switch runs := o.run || o.prompt != "" || o.edit != ""; {
		case o.edit != "" && o.prompt != "":
			return p.usage(p.text.Say(text.Exclusive, "one", "--edit", "other", "--prompt"), "")
		case o.edit != "" && o.run:
			return p.usage(p.text.Say(text.Exclusive, "one", "--edit", "other", "--run"), "")
		case p.flags.appendText != "" && !runs:
			return p.usage(p.text.Say(text.ForkAppend), "")
		case o.Files != "" && o.Files != cli.FilesKeep && o.At == 0:
			return p.usage(p.text.Say(text.ForkNeedsAt), "")
		}
		return nil
	}
	f := cmd.Flags()
	f.Int64Var(&o.At, "at", 0, p.text.Say(text.FlagAt))
	f.StringVar(&o.Title, "title", "", p.text.Say(text.FlagTitle))
	f.StringVar(&o.Files, "files", "", p.text.Say(text.FlagForkFiles))
	f.BoolVar(&o.Force, "force", false, p.text.Say(text.FlagForkForce))
	p.takes(cmd)
	f.StringVar(&p.flags.model, "model", "", p.text.Say(text.FlagModel))
	f.StringVar(&p.flags.mode, "permission-mode", "", p.text.Say(text.FlagMode))
	f.StringVar(&p.flags.appendText, "append-system-prompt", "", p.text.Say(text.FlagAppend))
	f.BoolVar(&o.run, "run", false, p.text.Say(text.FlagRun))
	f.StringVar(&o.prompt, "prompt", "", p.text.Say(text.FlagForkPrompt))
	f.StringVar(&o.edit, "edit", "", p.text.Say(text.FlagEdit))
	f.SortFlags = false
	cmd.ValidArgsFunction = p.first(p.sessionNames)
	for _, name := range []string{"at", "title", "append-system-prompt", "prompt", "edit"} {
		complete(cmd, name, values())
	}
	return cmd
}

// fork makes a fork over the files that are wanted, and runs it if something is to be
// said in it.
func (p *program) fork(ctx context.Context, c *cli.CLI, name, workdir string, o forking, asJSON bool) error {
	info, err := c.Find(ctx, name, workdir)
	if err != nil {
		return err
	}
	if o.At < 0 || o.At > info.Head {
		return cli.NoEvent(info, o.At)
	}
	if o.edit != "" {
		if o.At, err = c.Request(ctx, info, o.At); err != nil {
			return err
		}
	}
	o.Fork, o.Model = info.ID, p.flags.model
	if p.flags.mode != "" {
		o.Mode = p.opened.Config().Mode
	}
	if o.Model != "" { // before any file is touched
		if _, err := client.Query[query.ModelCheck](ctx, c.Client, query.CheckModel{Model: o.Model, Unasked: true}); err != nil {
			return err
		}
	}
	o.ForkFiles.Takeover = p.flags.takeover
	if o.Workdir, err = c.ForkFiles(ctx, info, o.At, o.ForkFiles); err != nil {
		return err
	}
	if o.edit == "" && o.prompt == "" && !o.run {
		return c.Fork(ctx, info, o.Open, asJSON)
	}
	format := cli.FormatText
	if asJSON {
		format = cli.FormatJSON
	}
	err = c.Print(ctx, cli.PrintOptions{
		Open: o.Open, Prompt: cmp.Or(o.edit, o.prompt), Format: format, Terminal: cli.IsTerminal(p.out), Progress: p.progress(), Columns: p.columns,
	})
	made, lost := c.Find(ctx, "", cmp.Or(o.Workdir, info.Workdir))
	if lost == nil && !asJSON {
		fmt.Fprintln(p.err, p.text.Say(text.Forked, "session", made.ID, "from", info.ID))
	}
	return err
}
