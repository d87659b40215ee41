package main

import (
	"context"

	"github.com/spf13/cobra"

	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// toolsCommand lists the tools, and shows one.
func (p *program) toolsCommand() *cobra.Command {
	list := func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		return c.Tools(ctx, "", asJSON)
	}
	cmd := p.command("tools", text.HelpTools, 0, list)
	show := p.command("show NAME", text.HelpToolsShow, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.ToolWhich), "dure tools list")
		}
		return c.Tools(ctx, args[0], asJSON)
	})
	show.ValidArgsFunction = p.first(p.toolNames)
	cmd.AddCommand(p.command("list", text.HelpToolsList, 0, list), show)
	return cmd
}
