package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// help writes what a command is for and what it takes.
func (p *program) help(cmd *cobra.Command) {
	w := bufio.NewWriter(p.out)
	defer w.Flush()
	columns := columnsOf(p.out)
	cli.Hang(w, columns, "", cmd.Short, 0)
	fmt.Fprintf(w, "\n%s\n", p.text.Say(text.HelpUsage))
	fmt.Fprintln(w, "  "+useOf(cmd))
	if !cmd.HasParent() {
		fmt.Fprintln(w, "  dure -p task")
		fmt.Fprintln(w, "  dure demo")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n%s\n", p.text.Say(text.HelpCommands))
		for _, c := range cmd.Commands() {
			if !c.Hidden {
				const column = 14
				cli.Hang(w, columns, "  "+c.Name(), c.Short, column)
			}
		}
	}
	fmt.Fprintf(w, "\n%s\n", p.text.Say(text.HelpFlags))
	shared := cmd.Root().PersistentFlags()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if shared.Lookup(f.Name) == nil {
			helpFlag(w, f, columns)
		}
	})
	shared.VisitAll(func(f *pflag.Flag) { helpFlag(w, f, columns) })
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(w)
		cli.Hang(w, columns, "", p.text.Say(text.HelpMore), 0)
	}
}

// useOf is how a command is called.
func useOf(cmd *cobra.Command) string {
	_, args, _ := strings.Cut(cmd.Use, " ")
	return strings.TrimSpace(cmd.CommandPath() + " " + args)
}

// flagName is a flag as it is written, with its value.
func flagName(f *pflag.Flag) string {
	name := "    --" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", --" + f.Name
	}
	switch {
	case f.NoOptDefVal == pick:
		name += " [ID]"
	case f.Value.Type() != "bool":
		name += " VALUE"
	}
	return name
}

func helpFlag(w *bufio.Writer, f *pflag.Flag, columns int) {
	const column = 36
	if !f.Hidden {
		cli.Hang(w, columns, "  "+flagName(f), f.Usage, column+2)
	}
}
