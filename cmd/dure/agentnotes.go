package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// agentNotesCommand lists, shows and deletes what types of agents have noted.
func (p *program) agentNotesCommand() *cobra.Command {
	drop, scope := false, ""
	cmd := p.command("notes [TYPE]", text.HelpMemoryNotes, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		kind := ""
		if len(args) == 1 {
			kind = args[0]
		}
		if drop && kind == "" {
			return p.usage(p.text.Say(text.NotesWhich), "")
		}
		var list []query.AgentNotes
		var err error
		if drop {
			list, err = client.Query[[]query.AgentNotes](ctx, c.Client, query.DeleteNotes{Agent: kind, Scope: scope})
		} else {
			list, err = client.Query[[]query.AgentNotes](ctx, c.Client, query.ListNotes{Agent: kind})
		}
		if err != nil {
			return err
		}
		if asJSON {
			return p.encode(list)
		}
		return p.writeNotes(list, drop)
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return p.needs(cmd, []string{"scope"}, "delete") }
	cmd.Flags().BoolVar(&drop, "delete", false, p.text.Say(text.FlagNotesDelete))
	cmd.Flags().StringVar(&scope, "scope", "", p.text.Say(text.FlagNotesScope))
	cmd.Flags().SortFlags = false
	complete(cmd, "scope", values("user", "project", "local"))
	return cmd
}

func (p *program) writeNotes(list []query.AgentNotes, gone bool) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(p.out, p.text.Say(text.NotesNone))
		return err
	}
	for _, n := range list {
		said := text.NotesOf
		if gone {
			said = text.NotesGone
		}
		if _, err := fmt.Fprintln(p.out, p.text.Say(said, "agent", text.OneLine(n.Agent), "scope", p.text.Word("memory."+n.Scope), "path", text.OneLine(n.Path))); err != nil {
			return err
		}
		if n.Text != "" {
			if _, err := fmt.Fprint(p.out, text.Clean(n.Text)); err != nil {
				return err
			}
		}
	}
	return nil
}
