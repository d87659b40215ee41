package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/frontend/acp"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// acpCommand serves an editor.
func (p *program) acpCommand() *cobra.Command {
	login := false
	cmd := &cobra.Command{
		Use: "acp", Short: p.text.Say(text.HelpACP), Args: p.atMost(0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, done := p.signalled(cmd.Context())
			defer done()
			return p.with(func(c *cli.CLI) error {
				if login {
					return p.login(ctx, c, nil, false, false)
				}
				gone := make(chan os.Signal, 1) // an editor that is killed is an end of the output, and not of this program
				signal.Notify(gone, syscall.SIGPIPE)
				defer signal.Stop(gone)
				err := acp.New(p.acpConfig()).Run(ctx, p.in, p.out)
				if cause := context.Cause(ctx); cause != nil {
					return cause
				}
				return err
			})
		},
	}
	f, v, t := cmd.Flags(), &p.flags, p.text
	f.StringVar(&v.model, "model", "", t.Say(text.FlagModel))
	f.StringVar(&v.fallback, "fallback-model", "", t.Say(text.FlagFallback))
	f.StringVar(&v.effort, "effort", "", t.Say(text.FlagEffort))
	f.StringVar(&v.profile, "profile", "", t.Say(text.FlagProfile))
	f.StringVar(&v.mode, "permission-mode", "", t.Say(text.FlagMode))
	f.BoolVar(&v.skip, "dangerously-skip-permissions", false, t.Say(text.FlagSkip))
	f.StringVar(&v.sandbox, "sandbox", "", t.Say(text.FlagSandbox))
	f.BoolVar(&v.trust, "trust", false, t.Say(text.FlagTrust))
	f.Var(&v.allow, "allow", t.Say(text.FlagAllow))
	f.Var(&v.deny, "deny", t.Say(text.FlagDeny))
	f.StringArrayVar(&v.addDirs, "add-dir", nil, t.Say(text.FlagAddDir))
	f.StringVar(&v.baseURL, "base-url", "", t.Say(text.FlagBaseURL))
	f.BoolVar(&login, "login", false, t.Say(text.FlagACPLogin))
	f.SortFlags = false
	complete(cmd, "model", p.modelNames)
	complete(cmd, "profile", p.profileNames)
	complete(cmd, "sandbox", values("auto", "off"))
	local(ownOutput, cmd)
	return cmd
}

// acpConfig is what editors are served with.
func (p *program) acpConfig() acp.Config {
	return acp.Config{
		Text: p.text, Version: version, Logger: p.logger(), Login: []string{"--login"},
		Ready: func(ctx context.Context) error {
			_, err := client.Query[query.ModelCheck](ctx, p.client(), query.CheckModel{Unasked: true})
			return err
		},
		Open: func(f acp.Folder) (acp.Place, error) {
			if f.Dir == "" {
				return place(p.opened, p.client(), func() error { return nil }), nil // it is closed with the program
			}
			if f.Session != "" && p.opened.Runs(f.Session) { // others have it open, and it is as they have said
				return place(p.opened, p.opened.Shared(), func() error { return nil }), nil
			}
			a, err := p.buildFor(p.flagsIn(f), f.Dir, f)
			if err != nil {
				return acp.Place{}, err
			}
			at := place(a, a.Client(), a.Close)
			at.Notes = p.noted(a, f.Dir)
			return at, nil
		},
	}
}

// flagsIn are the flags of the program for another folder.
func (p *program) flagsIn(f acp.Folder) flags {
	v := p.flags
	v.workdir, v.awaits = f.Dir, true
	v.addDirs = append(slices.Clone(v.addDirs), f.More...)
	v.servers = slices.Clone(v.servers)
	if f.Servers != nil {
		v.servers = append(v.servers, string(f.Servers))
	}
	return v
}

// place is what editors have of the program.
func place(a *app.App, c client.Client, closed func() error) acp.Place {
	cfg := a.Config()
	w, _ := cfg.Work(cfg.Profile)
	modes := []agent.Mode{agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan, agent.ModeDontAsk}
	if w.Mode == agent.ModeBypass { // its user has said so, and no client can
		modes = append(modes, agent.ModeBypass)
	}
	return acp.Place{Client: c, Mode: w.Mode, Modes: modes, Effort: cmp.Or(w.Effort, "medium"), Close: closed}
}

// noted is what is to be said of a folder before anything is done in it.
func (p *program) noted(a *app.App, dir string) []agent.Note {
	var first []agent.Note
	if left := leftIn(a); len(left) > 0 {
		first = []agent.Note{{Level: "warn", Text: p.text.Say(text.TrustLeft, "path", text.OneLine(dir), "list", text.OneLine(strings.Join(left, ", ")))}}
	}
	return append(first, a.Notes()...)
}
