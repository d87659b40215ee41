package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

const (
	usualPause = 2 * time.Second // the longest one in a session that is played
	maxSpeed   = 1000
)

// replayCommand plays a session, shows how it stood at an event, or executes it again
// from its log.
func (p *program) replayCommand() *cobra.Command {
	var o cli.PlayOptions
	verify := false
	cmd := p.command("replay [ID]", text.HelpReplay, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		name, workdir := p.session(args)
		switch {
		case verify:
			return c.Replay(ctx, name, workdir, asJSON)
		case o.To > 0 && o.From == 0:
			return c.Stand(ctx, name, workdir, o.To, asJSON)
		}
		o.JSON = asJSON
		o.Terminal = p.terminal()
		return c.Play(ctx, name, workdir, o)
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range []string{"from", "to", "speed", "no-wait", "max-pause"} {
			if verify && cmd.Flags().Changed(name) {
				return p.usage(p.text.Say(text.Exclusive, "one", "--verify", "other", "--"+name), "")
			}
		}
		if o.From > 0 && o.To > 0 && o.From > o.To {
			return p.usage(p.text.Say(text.FromBehindTo, "from", o.From, "to", o.To), "")
		}
		for _, f := range []struct {
			name string
			bad  bool
			val  any
			want text.Key
		}{
			{"from", cmd.Flags().Changed("from") && o.From < 1, o.From, text.WantNumber},
			{"to", cmd.Flags().Changed("to") && o.To < 1, o.To, text.WantNumber},
			{"speed", !(o.Speed > 0 && o.Speed <= maxSpeed), o.Speed, text.WantSpeed},
			{"max-pause", o.MaxPause < 0, o.MaxPause, text.WantTime},
		} {
			if f.bad {
				return p.usage(p.text.Say(text.BadValue, "flag", "--"+f.name, "value", f.val, "wanted", p.text.Say(f.want)), "")
			}
		}
		return nil
	}
	f := cmd.Flags()
	f.BoolVar(&verify, "verify", false, p.text.Say(text.FlagVerify))
	f.Int64Var(&o.From, "from", 0, p.text.Say(text.FlagPlayFrom))
	f.Int64Var(&o.To, "to", 0, p.text.Say(text.FlagUntil))
	f.Float64Var(&o.Speed, "speed", 1, p.text.Say(text.FlagSpeed))
	f.BoolVar(&o.NoWait, "no-wait", false, p.text.Say(text.FlagNoWait))
	f.DurationVar(&o.MaxPause, "max-pause", usualPause, p.text.Say(text.FlagMaxPause))
	f.SortFlags = false
	for _, name := range []string{"from", "to", "speed", "max-pause"} {
		complete(cmd, name, values())
	}
	cmd.ValidArgsFunction = p.first(p.sessionNames)
	return cmd
}

// compareCommand puts two sessions side by side.
func (p *program) compareCommand() *cobra.Command {
	cmd := p.command("compare A B", text.HelpCompare, 2, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) != 2 {
			return p.usage(p.text.Say(text.NeedTwo), "")
		}
		return c.Compare(ctx, args[0], args[1], asJSON)
	})
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return starting(cmd.Context(), p.sessionNames, typed), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}
