package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
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
		var q agent.Query = query.ListNotes{Agent: kind}
		if drop {
			q = query.DeleteNotes{Agent: kind, Scope: scope}
		}
		return tell(ctx, p, c.Client, q, asJSON, func(b *strings.Builder, list []query.AgentNotes) { p.writeNotes(b, list, drop) })
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return p.needs(cmd, []string{"scope"}, "delete") }
	cmd.Flags().BoolVar(&drop, "delete", false, p.text.Say(text.FlagNotesDelete))
	cmd.Flags().StringVar(&scope, "scope", "", p.text.Say(text.FlagNotesScope))
	cmd.Flags().SortFlags = false
	complete(cmd, "scope", values("user", "project", "local"))
	return cmd
}

func (p *program) writeNotes(b *strings.Builder, list []query.AgentNotes, gone bool) {
	if len(list) == 0 {
		fmt.Fprintln(b, p.text.Say(text.NotesNone))
	}
	for _, n := range list {
		said := text.NotesOf
		if gone {
			said = text.NotesGone
		}
		fmt.Fprintln(b, p.text.Say(said, "agent", text.OneLine(n.Agent), "scope", p.text.Word("memory."+n.Scope), "path", text.OneLine(n.Path)))
		b.WriteString(text.Clean(n.Text))
	}
}
