package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// importSources are the values of --from.
var importSources = []string{"auto", "claude", "codex", "opencode", "jsonl"}

func (p *program) importCommand() *cobra.Command {
	var q query.ImportSessions
	cmd := p.command("import [FILE|FOLDER|ID]", text.HelpImport, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if q.From != "" && !slices.Contains(importSources, q.From) {
			return p.badValue("--from", q.From, text.WantFrom)
		}
		q.Path = strings.Join(args, "")
		return c.Import(ctx, q, asJSON)
	})
	f := cmd.Flags()
	f.StringVar(&q.From, "from", "", p.text.Say(text.FlagFrom))
	f.BoolVar(&q.All, "all", false, p.text.Say(text.FlagImportAll))
	f.BoolVar(&q.Dry, "dry-run", false, p.text.Say(text.FlagImportDry))
	f.SortFlags = false
	cmd.ValidArgsFunction = nil // files
	complete(cmd, "from", values(importSources...))
	return cmd
}
