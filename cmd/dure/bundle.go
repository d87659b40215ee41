package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/internal/cli"
	"dure/internal/text"
)

// bundleCommand checks bundles and shows what they are made of.
func (p *program) bundleCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bundle", Short: p.text.Say(text.HelpBundle), Args: p.atMost(0), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	check := p.command("validate [PATH]", text.HelpBundleValidate, 1, func(_ context.Context, c *cli.CLI, args []string, asJSON bool) error {
		info, err := p.opened.Bundle(bundlePath(args))
		if err != nil {
			return err
		}
		return bundleEnd(info, c.CheckedBundle(info, asJSON))
	})
	graph := p.command("graph [PATH]", text.HelpBundleGraph, 1, func(_ context.Context, c *cli.CLI, args []string, asJSON bool) error {
		info, err := p.opened.Bundle(bundlePath(args))
		if err != nil {
			return err
		}
		return bundleEnd(info, c.BundleGraph(info, asJSON))
	})
	lock := p.command("lock [PATH]", text.HelpBundleLock, 1, func(_ context.Context, c *cli.CLI, args []string, asJSON bool) error {
		info, file, err := p.opened.LockBundle(bundlePath(args))
		switch {
		case err != nil:
			return err
		case !info.OK || asJSON:
			return bundleEnd(info, c.CheckedBundle(info, asJSON))
		}
		_, err = fmt.Fprintln(p.out, p.text.Say(text.BundleLocked, "path", text.OneLine(file)))
		return err
	})
	for _, sub := range []*cobra.Command{check, graph, lock} {
		sub.ValidArgsFunction = nil // folders and files
	}
	cmd.AddCommand(check, graph, lock)
	return cmd
}

func bundlePath(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// bundleEnd is the end of a command that has told what is wrong with a bundle.
func bundleEnd(info agent.BundleInfo, err error) error {
	if err == nil && !info.OK {
		return &cli.Exited{Code: cli.ExitUsage}
	}
	return err
}
