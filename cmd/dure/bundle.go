package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/extend/bundle/inbound"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// bundleCommand checks bundles and shows what they are made of.
func (p *program) bundleCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bundle", Short: p.text.Say(text.HelpBundle), Args: p.atMost(0), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	check := p.command("validate [PATH]", text.HelpBundleValidate, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		info, err := client.Query[query.BundleInfo](ctx, c.Client, query.CheckBundle{Path: bundlePath(args)})
		if err != nil {
			return err
		}
		return bundleEnd(info, c.CheckedBundle(info, asJSON))
	})
	graph := p.command("graph [PATH]", text.HelpBundleGraph, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		info, err := client.Query[query.BundleInfo](ctx, c.Client, query.CheckBundle{Path: bundlePath(args)})
		if err != nil {
			return err
		}
		return bundleEnd(info, c.BundleGraph(info, asJSON))
	})
	lock := p.command("lock [PATH]", text.HelpBundleLock, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		did, err := client.Query[query.BundleLocked](ctx, c.Client, query.LockBundle{Path: bundlePath(args)})
		switch {
		case err != nil:
			return err
		case !did.Info.OK || asJSON:
			return bundleEnd(did.Info, c.CheckedBundle(did.Info, asJSON))
		}
		_, err = fmt.Fprintln(p.out, p.text.Say(text.BundleLocked, "path", text.OneLine(did.Lock)))
		return err
	})
	login := p.command("login [PATH] [NAME]", text.HelpBundleLogin, 2, func(ctx context.Context, _ *cli.CLI, args []string, asJSON bool) error {
		name := strings.Join(args[min(len(args), 1):], "")
		err := p.opened.Bundles.SignIn(ctx, bundlePath(args), name, func(q query.SignInState) error { return p.showSignIn(name, q, asJSON) })
		return p.pluginDone(err, asJSON, map[string]string{"status": "ready", "name": name}, text.SignInDone, "name", text.OneLine(cmp.Or(name, bundlePath(args))))
	})
	for _, sub := range []*cobra.Command{check, graph, lock, login} {
		sub.ValidArgsFunction = nil // folders and files
	}
	run := p.bundleRunCommand()
	localAs("servers.login", login)
	local(ownProgram, run)
	cmd.AddCommand(check, graph, lock, login, run)
	return cmd
}

func bundlePath(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// bundleEnd is the end of a command that has told what is wrong with a bundle.
func bundleEnd(info query.BundleInfo, err error) error {
	if err == nil && !info.OK {
		return &cli.Exited{Code: cli.ExitUsage}
	}
	return err
}

// bundleRunCommand runs a swarm: one prompt for its entry agent, or what its connections bring.
func (p *program) bundleRunCommand() *cobra.Command {
	swarm, without, reload := "", []string(nil), false
	cmd := &cobra.Command{
		Use: "run [PATH] [PROMPT]", Short: p.text.Say(text.HelpBundleRun), Args: p.atMost(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(func(c *cli.CLI) error {
				run, err := p.opened.Bundles.Prepare(bundlePath(args), swarm)
				if err != nil {
					return err
				}
				if !run.Info.OK {
					return bundleEnd(run.Info, c.CheckedBundle(run.Info, p.asJSON))
				}
				if err := run.Without(without); err != nil {
					return err
				}
				run.Code.Reload = reload
				p.flags.agents, p.flags.code = run.Agents, run.Code
				prompt := strings.Join(args[min(len(args), 1):], " ")
				if prompt != "" {
					p.flags.agent, p.flags.maxTurns = run.Entry, run.Steps
					if p.asJSON {
						p.flags.output = string(cli.FormatJSON)
					}
				}
				a, _, err := p.move(p.flags.workdir, nil)
				if err != nil {
					return err
				}
				if prompt != "" {
					return p.print(cmd.Context(), p.cli(), prompt)
				}
				ctx, done := p.signalled(cmd.Context())
				defer done()
				return p.serveBundle(ctx, a, bundlePath(args), swarm, run)
			})
		},
	}
	p.jsonFlag(cmd)
	cmd.Flags().StringVar(&swarm, "swarm", "", p.text.Say(text.FlagSwarm))
	cmd.Flags().StringSliceVar(&without, "without", nil, p.text.Say(text.FlagWithout))
	cmd.Flags().BoolVar(&reload, "reload", false, p.text.Say(text.FlagReload))
	return cmd
}

// serveBundle runs the connections of a bundle, and tells of each that begins or fails.
func (p *program) serveBundle(ctx context.Context, a *app.App, path, swarm string, run swarms.Run) error {
	var mu sync.Mutex
	defer p.runSchedules(ctx, a, func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(p.err, line)
	})()
	return a.Bundles.Serve(ctx, path, swarm, run, swarms.IO{
		In: p.in, Out: p.out, Clean: text.Clean,
		SignIn: func(s inbound.SignIn) string {
			if s.UserCode != "" {
				return p.text.Say(text.NeedsSignInCode, "what", s.Message, "url", s.URL, "code", s.UserCode)
			}
			return p.text.Say(text.NeedsSignIn, "what", s.Message, "url", s.URL)
		},
		Note: func(n query.BundleNote) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case n.Progress != nil:
				if n.Progress.Status != "running" {
					fmt.Fprintln(p.err, p.text.Say(text.BundleProgress, "session", n.Session, "line", cli.CrewLine(p.text, *n.Progress)))
				}
			case n.Undelivered != "":
				fmt.Fprintln(p.err, p.text.Say(text.BundleUndelivered, "name", text.OneLine(n.Connection), "error", text.OneLine(n.Undelivered)))
			case n.Disabled:
				fmt.Fprintln(p.err, p.text.Say(text.BundleDisabled, "name", text.OneLine(n.Connection), "error", text.OneLine(n.Error), "n", n.Failures))
			case n.Continues != "" && n.Error != "":
				fmt.Fprintln(p.err, p.text.Say(text.BundleStays, "session", n.Continues, "error", text.OneLine(n.Error)))
			case n.Continues != "":
				fmt.Fprintln(p.err, p.text.Say(text.BundleContinues, "session", n.Continues))
			case n.Error != "":
				fmt.Fprintln(p.err, p.text.Say(text.BundleFailed, "name", text.OneLine(n.Connection), "error", text.OneLine(n.Error), "wait", n.Wait))
			case n.Where != "":
				fmt.Fprintln(p.err, p.text.Say(text.BundleServes, "name", text.OneLine(n.Connection), "where", n.Where))
			}
		},
	})
}
