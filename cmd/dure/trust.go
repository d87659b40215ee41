package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/app/config"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

func (p *program) trustCommand() *cobra.Command {
	cmd := p.command("trust [DIR]", text.HelpTrust, 1, func(_ context.Context, c *cli.CLI, args []string, asJSON bool) error {
		f, err := p.folder(args)
		if err != nil {
			return err
		}
		if f.State.Trusted || f.State.Unfit != "" {
			return p.showFolder(f, asJSON)
		}
		if p.interactive() && !asJSON {
			return p.askTrust(c, f)
		}
		if err := p.decideTrust(f, query.TrustFolder, "command"); err != nil {
			return err
		}
		f, err = p.folder(args)
		if err != nil {
			return err
		}
		return p.showFolder(f, asJSON)
	})
	show := p.command("show [DIR]", text.HelpTrustShow, 1, func(_ context.Context, _ *cli.CLI, args []string, asJSON bool) error {
		f, err := p.folder(args)
		if err != nil {
			return err
		}
		return p.showFolder(f, asJSON)
	})
	list := p.command("list", text.HelpTrustList, 0, func(_ context.Context, _ *cli.CLI, _ []string, asJSON bool) error {
		return p.listFolders(asJSON)
	})
	revoke := p.command("revoke [DIR]", text.HelpTrustRevoke, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		dir := p.flags.workdir
		if len(args) == 1 {
			dir = args[0]
		}
		found, err := client.Query[bool](ctx, c.Client, query.ChangeTrust{Dir: dir, Do: query.RevokeFolder})
		if err != nil {
			return err
		}
		said := text.TrustRevoked
		if !found {
			said = text.TrustUnknown
		}
		return p.told(asJSON, map[string]any{"path": dir, "revoked": found}, p.text.Say(said, "path", text.OneLine(dir)))
	})
	for _, c := range []*cobra.Command{cmd, show, revoke} {
		c.ValidArgsFunction = nil // folders
	}
	localAs("trust.change", cmd, revoke)
	cmd.AddCommand(show, list, revoke)
	return cmd
}

// folder looks at the folder that is named, or at the one that we are in.
func (p *program) folder(args []string) (query.FolderTrust, error) {
	dir := p.flags.workdir
	if len(args) == 1 {
		dir = args[0]
	}
	return client.Query[query.FolderTrust](context.Background(), p.client(), query.LookAtFolder{Dir: dir})
}

// decideTrust records what the user has decided on a folder as they have seen it.
func (p *program) decideTrust(f query.FolderTrust, do, by string) error {
	_, err := client.Query[bool](context.Background(), p.client(), query.ChangeTrust{Dir: f.Path, Do: do, By: by, Files: f.Files})
	return err
}

func (p *program) showFolder(f query.FolderTrust, asJSON bool) error {
	if asJSON {
		return p.encode(f)
	}
	var b strings.Builder
	path := text.OneLine(f.Path)
	switch {
	case f.State.Unfit != "":
		fmt.Fprintln(&b, p.text.Say(text.TrustUnfit, "path", path, "why", p.text.Phrase(text.OneLine(f.State.Unfit))))
	case f.State.Trusted:
		fmt.Fprintln(&b, p.text.Say(text.TrustYes, "path", path))
	case f.State.Nothing:
		fmt.Fprintln(&b, p.text.Say(text.TrustNothing, "path", path))
	case f.Stale() != nil:
		fmt.Fprintln(&b, p.text.Say(text.TrustStale, "path", path))
	default:
		fmt.Fprintln(&b, p.text.Say(text.TrustNo, "path", path))
	}
	p.describe(&b, f)
	_, err := p.out.WriteString(b.String())
	return err
}

// describe says what a folder brings, and what has changed since it was trusted.
func (p *program) describe(b *strings.Builder, f query.FolderTrust) {
	const most = 30 // files that are named
	if len(f.Brings) > 0 {
		var list []string
		for _, kind := range slices.Sorted(maps.Keys(f.Brings)) {
			list = append(list, fmt.Sprintf("%s (%d)", p.text.Word("brings."+kind), f.Brings[kind]))
		}
		fmt.Fprintln(b, p.text.Say(text.TrustBrings, "list", strings.Join(list, ", ")))
	}
	for i, file := range f.Files {
		if i == most {
			fmt.Fprintln(b, "  "+p.text.Say(text.MoreLines, "n", len(f.Files)-most))
			break
		}
		fmt.Fprintln(b, "  "+text.ExactLine(file.Path))
	}
	for _, name := range f.Texts {
		fmt.Fprintln(b, "  "+text.ExactLine(name))
	}
	if len(f.State.Changed) == 0 {
		return
	}
	var changed []string
	for _, c := range f.State.Changed {
		changed = append(changed, text.ExactLine(c.Path)+" ("+p.text.Word("change."+c.Kind)+")")
	}
	fmt.Fprintln(b, p.text.Say(text.TrustChanged, "list", strings.Join(changed[:min(len(changed), most)], ", ")))
	for _, c := range f.State.Changed {
		for line := range strings.Lines(c.Diff) {
			fmt.Fprintln(b, "  "+text.Exact(strings.TrimSuffix(line, "\n")))
		}
	}
}

// askTrust asks whether what a folder brings may run.
func (p *program) askTrust(c *cli.CLI, f query.FolderTrust) error {
	var b strings.Builder
	fmt.Fprintln(&b, p.text.Say(text.TrustAsk, "path", text.OneLine(f.Path)))
	p.describe(&b, f)
	fmt.Fprintln(&b, p.text.Say(text.TrustKeys))
	if _, err := p.out.WriteString(b.String()); err != nil {
		return err
	}
	for {
		var err error
		said := text.TrustNo
		switch strings.ToLower(c.AskLine("y/n/never> ")) {
		case "y", "yes":
			err, said = p.decideTrust(f, query.TrustFolder, "prompt"), text.TrustDone
		case "never":
			err, said = p.decideTrust(f, query.NeverTrust, "prompt"), text.TrustNever
		case "n", "no", "": // nothing more comes
		default:
			fmt.Fprintln(p.out, p.text.Say(text.TrustAgain))
			continue
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.out, p.text.Say(said, "path", text.OneLine(f.Path)))
		return err
	}
}

// trustFirst asks about a folder that brings something and that nobody has decided
// on, before anything of it counts. What is trusted is read again.
func (p *program) trustFirst() error {
	a, err := p.open()
	if err != nil || p.flags.trust || p.flags.skip || a.Config().Trust == config.TrustNever {
		return err
	}
	f, err := p.folder(nil)
	if err != nil || !f.State.Ask() {
		return nil // the notes say what is wrong
	}
	if err := p.askTrust(p.cli(), f); err != nil {
		return err
	}
	p.opened = nil
	return a.Close()
}

func (p *program) listFolders(asJSON bool) error {
	list, err := client.Query[[]query.DecidedFolder](context.Background(), p.client(), query.ListTrust{})
	if err != nil {
		return err
	}
	if asJSON {
		return p.encode(list)
	}
	var b strings.Builder
	for _, f := range list {
		said := text.TrustYes
		if f.Never {
			said = text.TrustNo
		}
		fmt.Fprintln(&b, p.text.Say(said, "path", text.OneLine(f.Path)))
	}
	if len(list) == 0 {
		fmt.Fprintln(&b, p.text.Say(text.TrustNone))
	}
	_, err = p.out.WriteString(b.String())
	return err
}
