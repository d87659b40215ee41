package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dure/agent/query"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

func (p *program) doctorCommand() *cobra.Command {
	return p.command("doctor", text.HelpDoctor, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		return c.Doctor(ctx, p.terminalFindings(), asJSON)
	})
}

// smallTerminal is the width from which on nothing has to be left out.
const smallTerminal = 50

// terminalFindings says what only the command can see: where its output goes.
func (p *program) terminalFindings() []query.Finding {
	columns, rows, err := term.GetSize(int(p.out.Fd()))
	size := query.Finding{Name: "terminal", State: "ok", Code: "terminal.none"}
	if err == nil {
		colour := "plain"
		if p.terminal().Color {
			colour = "colour"
		}
		size.Code, size.Args = "terminal.ok", map[string]string{
			"columns": strconv.Itoa(columns), "rows": strconv.Itoa(rows), "colour": colour,
		}
		if columns < smallTerminal {
			size.State, size.Code = "warn", "terminal.small"
		}
	}
	letters := query.Finding{Name: "locale", State: "ok", Code: "locale.ok", Args: map[string]string{"locale": locale()}}
	if !utf8Locale() {
		letters.State, letters.Code = "warn", "locale.none"
	}
	list := []query.Finding{size, letters}
	for i := range list {
		list[i].Group = "machine"
		_, list[i].Detail, list[i].Fix = text.For("en").Finding(list[i])
	}
	return list
}

// list writes what there is, one a line, or as a JSON list.
func (p *program) list(lines []string) error {
	return cli.Lines(p.out, lines, p.asJSON)
}
