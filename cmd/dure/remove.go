package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// maxNamed is how many sessions one command line names.
const maxNamed = 100

// deleting is what the command line says of a deletion.
type deleting struct {
	all        bool
	older, tag string
	cli.RemoveOptions
}

func (p *program) deleteCommand() *cobra.Command {
	var o deleting
	cmd := p.command("delete [ID...]", text.HelpDelete, maxNamed, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		list, err := p.doomed(ctx, c, args, o)
		if err != nil {
			return err
		}
		o.Ask, o.JSON = cli.IsTerminal(p.in), asJSON
		return c.Remove(ctx, list, o.RemoveOptions)
	})
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, p.text.Say(text.FlagDeleteAll))
	f.StringVar(&o.older, "older-than", "", p.text.Say(text.FlagOlder))
	f.StringVar(&o.tag, "tag", "", p.text.Say(text.FlagTag))
	f.BoolVarP(&o.Yes, "yes", "y", false, p.text.Say(text.FlagYes))
	f.BoolVar(&o.Force, "force", false, p.text.Say(text.FlagForceDelete))
	f.SortFlags = false
	cmd.ValidArgsFunction = p.first(p.sessionNames)
	complete(cmd, "older-than", values("7d", "30d", "90d"))
	complete(cmd, "tag", values())
	return cmd
}

// doomed are the sessions that the command line names, or selects: without force,
// those that are pinned are not selected.
func (p *program) doomed(ctx context.Context, c *cli.CLI, args []string, o deleting) ([]agent.SessionInfo, error) {
	var list []agent.SessionInfo
	if len(args) > 0 {
		if o.all || o.older != "" || o.tag != "" {
			return nil, p.usage(p.text.Say(text.NothingNamed), "")
		}
		for _, name := range args {
			info, err := c.Find(ctx, name, "")
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(list, func(s agent.SessionInfo) bool { return s.ID == info.ID }) {
				list = append(list, info)
			}
		}
		return list, nil
	}
	if !o.all && o.older == "" && o.tag == "" {
		return nil, p.usage(p.text.Say(text.NothingNamed), "")
	}
	since, ok := sinceOf(o.older, time.Now())
	if !ok {
		return nil, p.badValue("--older-than", o.older, text.WantAge)
	}
	before, _ := time.Parse(time.RFC3339, since) // zero without a bound
	all, err := client.Query[agent.SessionList](ctx, c.Client, agent.ListSessions{Tag: o.tag, Archived: true})
	for _, s := range all.Sessions {
		changed, bad := time.Parse(time.RFC3339Nano, s.Updated)
		if (o.older == "" || bad == nil && changed.Before(before)) && (!s.Pinned || o.Force) {
			list = append(list, s)
		}
	}
	return list, err
}

func (p *program) cleanCommand() *cobra.Command {
	var o cli.RemoveOptions
	cmd := p.command("clean", text.HelpClean, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		if _, err := client.Query[int](ctx, c.Client, query.SweepSessions{}); err != nil {
			return err
		}
		old, err := client.Query[query.OldReport](ctx, c.Client, query.OldSessions{})
		if err != nil {
			return err
		}
		if len(old.Sessions) == 0 && !asJSON {
			k := text.NothingOld
			if old.Days == 0 {
				k = text.NeverOld
			}
			_, err := fmt.Fprintln(p.out, p.text.Say(k, "days", old.Days))
			return err
		}
		o.Ask, o.JSON = cli.IsTerminal(p.in), asJSON
		return c.Remove(ctx, old.Sessions, o)
	})
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, p.text.Say(text.FlagYes))
	return cmd
}

// overdue is what is said about old sessions; "" = nothing.
func (p *program) overdue(ctx context.Context, c *cli.CLI) string {
	o, err := client.Query[query.OldReport](ctx, c.Client, query.OldSessions{Daily: true})
	if err != nil {
		return "" // what needs the sessions says why
	}
	return c.OldOnes(len(o.Sessions), o.Deleted, o.Days)
}
