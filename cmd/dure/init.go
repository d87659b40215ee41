package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// initCommand writes a first file of instructions for the working folder.
func (p *program) initCommand() *cobra.Command {
	dry := false
	cmd := p.command("init", text.HelpInit, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		b, err := client.Query[query.ProjectInit](ctx, c.Client, query.InitProject{Dry: dry})
		if err != nil {
			return err
		}
		if dry && !asJSON {
			_, err := fmt.Fprint(p.out, text.Clean(b.Text))
			return err
		}
		return p.told(asJSON, b, p.begunLines(b)...)
	})
	cmd.Flags().BoolVar(&dry, "print", false, p.text.Say(text.FlagInitPrint))
	return cmd
}

// begunLines say what was made, of what, and what may come next.
func (p *program) begunLines(b query.ProjectInit) []string {
	lines := []string{p.text.Say(text.InitMade, "path", text.ExactLine(b.Path))}
	var found []string
	for _, l := range b.Survey.Languages {
		found = append(found, l.Name)
	}
	found = append(append(found, b.Survey.Frameworks...), b.Survey.CI...)
	for _, c := range b.Survey.Commands {
		if c.Dir == "" {
			found = append(found, c.Run)
		}
	}
	const most = 12
	if len(found) > most {
		found = append(found[:most], "…")
	}
	if len(found) > 0 {
		lines = append(lines, p.text.Say(text.InitFound, "what", text.OneLine(strings.Join(found, ", "))))
	}
	for _, s := range b.Suggest {
		key := text.InitSkill
		if s.Kind == "hook" {
			key = text.InitHook
		}
		lines = append(lines, p.text.Say(key, "name", text.OneLine(s.Name), "run", text.OneLine(s.Run)))
	}
	return append(lines, p.text.Say(text.InitNext))
}
