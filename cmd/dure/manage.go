package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// manageCommands change how sessions are kept, and where they go on from.
func (p *program) manageCommands() []*cobra.Command {
	edit := func(use string, short text.Key, change agent.Change) *cobra.Command {
		cmd := p.command(use, short, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
			name, workdir := p.session(args)
			return c.Edit(ctx, name, workdir, change, p.flags.takeover, asJSON)
		})
		p.takes(cmd)
		cmd.ValidArgsFunction = p.first(p.sessionNames)
		return cmd
	}
	yes, no := true, false
	rename := p.command("rename ID TITLE", text.HelpRename, 2, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) < 2 || strings.TrimSpace(args[1]) == "" {
			return p.usage(p.text.Say(text.NoTitle), "")
		}
		return c.Edit(ctx, args[0], "", agent.Change{Title: args[1]}, p.flags.takeover, asJSON)
	})
	tag := p.command("tag ID [TAG...]", text.HelpTag, maxTags+1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.TagWhich), "")
		}
		tags := append([]string{}, args[1:]...)
		return c.Edit(ctx, args[0], "", agent.Change{Tags: &tags}, p.flags.takeover, asJSON)
	})
	for _, cmd := range []*cobra.Command{rename, tag} {
		p.takes(cmd)
		cmd.ValidArgsFunction = p.first(p.sessionNames)
	}
	task := p.command("task [ID]", text.HelpTask, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		name, workdir := p.session(args)
		return c.Task(ctx, name, workdir, asJSON)
	})
	task.ValidArgsFunction = p.first(p.sessionNames)
	return []*cobra.Command{
		task, rename, tag,
		edit("pin [ID]", text.HelpPin, agent.Change{Pinned: &yes}), edit("unpin [ID]", text.HelpUnpin, agent.Change{Pinned: &no}),
		edit("archive [ID]", text.HelpArchive, agent.Change{Archived: &yes}), edit("unarchive [ID]", text.HelpUnarchive, agent.Change{Archived: &no}),
	}
}

// takes gives a command that changes a session the flag to take it over for that.
func (p *program) takes(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.flags.takeover, "takeover", false, p.text.Say(text.FlagEditTakeover))
}

// maxTags is how many tags a session is given.
const maxTags = 20

// session is what the first argument names; without one, the newest of this folder.
func (p *program) session(args []string) (name, workdir string) {
	if len(args) == 0 {
		return "", p.flags.workdir
	}
	return args[0], ""
}

func (p *program) diffCommand() *cobra.Command {
	var o cli.DiffOptions
	cmd := p.command("diff [ID] [FILE...]", text.HelpDiff, maxDiffFiles+1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		o.Color, o.Takeover = p.terminal().Color, p.flags.takeover
		return c.Diff(ctx, args, p.flags.workdir, o, asJSON)
	})
	f := cmd.Flags()
	f.StringVar(&o.To, "to", "", p.text.Say(text.FlagDiffTo))
	f.BoolVar(&o.Stat, "stat", false, p.text.Say(text.FlagStat))
	f.BoolVar(&o.All, "accepted", false, p.text.Say(text.FlagAccepted))
	f.StringArrayVar(&o.Accept, "accept", nil, p.text.Say(text.FlagAccept))
	f.BoolVar(&o.AcceptAll, "accept-all", false, p.text.Say(text.FlagAcceptAll))
	f.StringArrayVar(&o.Reject, "reject", nil, p.text.Say(text.FlagReject))
	f.BoolVar(&o.RejectAll, "reject-all", false, p.text.Say(text.FlagRejectAll))
	f.BoolVar(&o.Merge, "merge", false, p.text.Say(text.FlagMerge))
	f.BoolVar(&o.Marks, "marks", false, p.text.Say(text.FlagMarks))
	f.BoolVar(&o.Force, "force", false, p.text.Say(text.FlagForceBack))
	p.takes(cmd)
	f.SortFlags = false
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := p.exclusive(cmd, "merge", "force"); err != nil {
			return err
		}
		if err := p.needs(cmd, []string{"marks"}, "merge"); err != nil {
			return err
		}
		return p.needs(cmd, []string{"merge", "force"}, "reject", "reject-all")
	}
	cmd.ValidArgsFunction = p.first(p.sessionNames)
	complete(cmd, "to", values())
	return cmd
}

// maxDiffFiles is how many files and folders a diff is asked for at once.
const maxDiffFiles = 1000

func (p *program) rewindCommand() *cobra.Command {
	var o cli.RewindOptions
	cmd := p.command("rewind [ID]", text.HelpRewind, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		name, workdir := p.session(args)
		if !o.Conversation && !o.Files {
			o.Conversation, o.Files = true, true
		}
		o.Takeover = p.flags.takeover
		return c.Rewind(ctx, name, workdir, o, asJSON)
	})
	f := cmd.Flags()
	f.StringVar(&o.Point, "to", "", p.text.Say(text.FlagTo))
	f.IntVar(&o.Turns, "turns", 1, p.text.Say(text.FlagTurns))
	f.BoolVar(&o.Conversation, "conversation", false, p.text.Say(text.FlagConversation))
	f.BoolVar(&o.Files, "files", false, p.text.Say(text.FlagFiles))
	f.StringArrayVar(&o.Only, "only", nil, p.text.Say(text.FlagOnly))
	f.StringArrayVar(&o.Force, "force", nil, p.text.Say(text.FlagForce))
	f.BoolVar(&o.Dry, "dry-run", false, p.text.Say(text.FlagDryRun))
	p.takes(cmd)
	f.SortFlags = false
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("turns") && o.Turns < 1 {
			return p.usage(p.text.Say(text.BadValue, "flag", "--turns", "value", o.Turns, "wanted", p.text.Say(text.WantNumber)), "")
		}
		if o.Conversation && !o.Files {
			if err := p.needs(cmd, []string{"only", "force"}, "files"); err != nil {
				return err
			}
		}
		return p.exclusive(cmd, "to", "turns")
	}
	cmd.ValidArgsFunction = p.first(p.sessionNames)
	complete(cmd, "to", values())
	complete(cmd, "turns", values())
	return cmd
}
