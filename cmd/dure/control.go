package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/frontend/control"
	"dure/internal/frontend/text"
)

// controlCommand serves one host over standard input and output.
func (p *program) controlCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "control", Short: p.text.Say(text.HelpControl), Args: p.atMost(0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, done := p.signalled(cmd.Context())
			defer done()
			err := control.Serve(ctx, p.controlled(), control.NewLines(p.in, p.out))
			if p.opened != nil {
				err = errors.Join(err, p.opened.Close())
			}
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		},
	}
	f, v, t := cmd.Flags(), &p.flags, p.text
	f.StringVar(&v.model, "model", "", t.Say(text.FlagModel))
	f.StringVar(&v.mode, "permission-mode", "", t.Say(text.FlagMode))
	f.BoolVar(&v.skip, "dangerously-skip-permissions", false, t.Say(text.FlagSkip))
	f.StringVar(&v.sandbox, "sandbox", "", t.Say(text.FlagSandbox))
	f.BoolVar(&v.trust, "trust", false, t.Say(text.FlagTrust))
	f.Var(&v.allow, "allow", t.Say(text.FlagAllow))
	f.Var(&v.deny, "deny", t.Say(text.FlagDeny))
	f.StringArrayVar(&v.addDirs, "add-dir", nil, t.Say(text.FlagAddDir))
	f.StringArrayVar(&v.pluginDirs, "plugin-dir", nil, t.Say(text.FlagPluginDir))
	f.StringArrayVar(&v.servers, "mcp-config", nil, t.Say(text.FlagMCPConfig))
	f.BoolVar(&v.onlyServers, "strict-mcp-config", false, t.Say(text.FlagMCPStrict))
	f.StringVar(&v.baseURL, "base-url", "", t.Say(text.FlagBaseURL))
	f.BoolVar(&v.scratch, "scratch", false, t.Say(text.FlagScratch))
	f.SortFlags = false
	complete(cmd, "model", p.modelNames)
	local(ownOutput, cmd)
	return cmd
}

// controlled is what a host is served with that has started the program for itself: what it
// brings stands in the place of flags, and the program is built when it has said so.
func (p *program) controlled() control.Config {
	given := p.flags
	return control.Config{
		Version: version, Logger: p.logger(), Text: p.text, Own: true, Lasting: true,
		Start: func(ctx context.Context, b control.Begin) (control.Program, error) {
			p.flags = given
			if b.Settings != nil {
				if given.settings != "" {
					return control.Program{}, p.usage(p.text.Say(text.Exclusive, "one", "--settings", "other", "settings"), "")
				}
				p.flags.settings = string(b.Settings)
			}
			if b.Agents != nil {
				p.flags.agents = string(b.Agents)
			}
			p.embeds = nil
			if b.Hooks != nil {
				p.embeds = &app.Host{Hooks: b.Hooks, Call: b.Call}
			}
			a, err := p.open()
			if err != nil {
				return control.Program{}, err
			}
			if err := p.hooksOfHost(ctx, a, b.Hooks); err != nil {
				p.opened = nil
				return control.Program{}, errors.Join(err, a.Close())
			}
			p.notes()
			return control.Program{Client: a.Client(), Workdir: p.flags.workdir, Mode: p.mode(), Text: p.text}, nil
		},
	}
}

// hooksOfHost is an error where hooks that a host has registered do not run.
func (p *program) hooksOfHost(ctx context.Context, a *app.App, defined []byte) error {
	if defined == nil {
		return nil
	}
	report, err := client.Query[query.HookReport](ctx, a.Client(), query.ListHooks{})
	if err != nil {
		return err
	}
	for _, f := range report.Faults {
		if f.Source == hostLayer {
			return p.usage(p.text.Say(text.ControlHook, "error", p.text.Phrase(f.Message)), f.Fix)
		}
	}
	for _, off := range report.Off {
		if off.Source == hostLayer {
			return p.usage(p.text.Say(text.ControlHooksOff), "")
		}
	}
	return nil
}

// hostLayer is how hooks of a host are named as a source.
const hostLayer = "host"
