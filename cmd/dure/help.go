package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dure/internal/text"
)

// help writes what a command is for and what it takes.
func (p *program) help(cmd *cobra.Command) {
	w := bufio.NewWriter(p.out)
	defer w.Flush()
	fmt.Fprintln(w, cmd.Short)
	fmt.Fprintf(w, "\n%s\n", p.text.Say(text.HelpUsage))
	fmt.Fprintln(w, "  dure "+strings.TrimPrefix(cmd.Use, "dure "))
	if !cmd.HasParent() {
		fmt.Fprintln(w, "  dure -p task")
		fmt.Fprintln(w, "  dure demo")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n%s\n", p.text.Say(text.HelpCommands))
		for _, c := range cmd.Commands() {
			if !c.Hidden {
				fmt.Fprintf(w, "  %-10s %s\n", c.Name(), c.Short)
			}
		}
	}
	fmt.Fprintf(w, "\n%s\n", p.text.Say(text.HelpFlags))
	shared := cmd.Root().PersistentFlags()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if shared.Lookup(f.Name) == nil {
			helpFlag(w, f)
		}
	})
	shared.VisitAll(func(f *pflag.Flag) { helpFlag(w, f) })
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n%s\n", p.text.Say(text.HelpMore))
	}
}

func helpFlag(w *bufio.Writer, f *pflag.Flag) {
	if f.Hidden {
		return
	}
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
	const column = 36
	if len(name) > column-2 {
		fmt.Fprintf(w, "  %s\n  %-*s", name, column, "")
	} else {
		fmt.Fprintf(w, "  %-*s", column, name)
	}
	fmt.Fprintf(w, "%s\n", f.Usage)
}
