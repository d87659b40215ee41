package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
	"dure/internal/state/archive/repair"
)

// checkCommand looks for damage in a transcript; with --out it writes what can be made
// of it, and never to the file itself.
func (p *program) checkCommand() *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use: "check FILE|ID", Short: p.text.Say(text.HelpCheck), Args: p.atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return p.usage(p.text.Say(text.NoTranscript), "")
			}
			if out == "" && !isFile(args[0]) {
				return p.with(func(c *cli.CLI) error { return p.mend(cmd.Context(), c, args[0], false) })
			}
			report, err := repair.CheckFile(args[0], out)
			if err != nil {
				return err
			}
			return checked(p.cliOf(client.Client{}), report, p.asJSON)
		},
	}
	p.jsonFlag(cmd)
	cmd.Flags().StringVar(&out, "out", "", p.text.Say(text.FlagOut))
	return cmd
}

// repairCommand mends the log of a session, or a transcript. As it was it is kept.
func (p *program) repairCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "repair ID|FILE", Short: p.text.Say(text.HelpRepair), Args: p.atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return p.usage(p.text.Say(text.NoRepair), "")
			}
			if !isFile(args[0]) {
				return p.with(func(c *cli.CLI) error { return p.mend(cmd.Context(), c, args[0], true) })
			}
			report, kept, err := repair.RepairFile(args[0])
			if err != nil {
				return err
			}
			c := p.cliOf(client.Client{})
			if err := checked(c, report, p.asJSON); err != nil || kept == "" || p.asJSON {
				return err
			}
			return c.KeptAs(kept)
		},
	}
	p.jsonFlag(cmd)
	return cmd
}

func checked(c *cli.CLI, report repair.Report, asJSON bool) error {
	data, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	return c.Checked(data, asJSON)
}

// isFile reports whether a name is meant for a file rather than a session.
func isFile(name string) bool {
	_, err := os.Stat(name)
	return err == nil || strings.ContainsRune(name, filepath.Separator) || filepath.Ext(name) != ""
}

// mend looks at the log of a session, and mends it with change set.
func (p *program) mend(ctx context.Context, c *cli.CLI, name string, change bool) error {
	info, err := c.Find(ctx, name, "")
	if err != nil {
		return err
	}
	report, err := client.Query[query.LogReport](ctx, c.Client, query.RepairSession{Session: info.ID, Dry: !change})
	if err != nil {
		return err
	}
	return c.Mended(report, change, p.asJSON)
}
