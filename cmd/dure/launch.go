package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// maxWords is how many arguments the commands below put together at most.
const maxWords = 400

// launchCommands are what is launched from the prompt besides a model.
func (p *program) launchCommands() []*cobra.Command {
	return []*cobra.Command{
		p.paletteCommand(), p.calcCommand(), p.emojiCommand(), p.snippetCommand(), p.linkCommand(),
		p.findCommand(), p.filesCommand(), p.systemCommand(), p.notifyCommand(),
	}
}

// calcCommand takes its words as they are: a minus begins a number, and no flag.
func (p *program) calcCommand() *cobra.Command {
	cmd := p.command("calc WORD...", text.HelpCalc, maxWords, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		return c.Calculate(ctx, strings.Join(args, " "), asJSON)
	})
	run := cmd.RunE
	cmd.DisableFlagParsing = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var words, flags []string
		for i := 0; i < len(args); i++ {
			name, _, whole := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
			switch f := cmd.Flag(name); {
			case args[i] == "-h" || args[i] == "--help":
				p.help(cmd)
				return nil
			case args[i] == "--":
			case f == nil || !strings.HasPrefix(args[i], "--"):
				words = append(words, args[i])
			case whole || f.NoOptDefVal != "":
				flags = append(flags, args[i])
			default:
				flags = append(flags, args[i:min(i+2, len(args))]...)
				i++
			}
		}
		cmd.InheritedFlags() // which are there from then on
		if err := cmd.Flags().Parse(flags); err != nil {
			return p.flagError(cmd, err)
		}
		return run(cmd, words)
	}
	return cmd
}

func (p *program) emojiCommand() *cobra.Command {
	var q query.FindEmoji
	cmd := p.command("emoji [WORD...]", text.HelpEmoji, maxWords, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if err := p.few("--limit", q.Limit, 200); err != nil {
			return err
		}
		q.Text = strings.Join(args, " ")
		return c.Emoji(ctx, q, asJSON)
	})
	cmd.Flags().IntVar(&q.Limit, "limit", 20, p.text.Say(text.FlagEmojis))
	complete(cmd, "limit", values())
	return cmd
}

// few checks a number of results.
func (p *program) few(flag string, n, most int) error {
	if n < 1 || n > most {
		return p.usage(p.text.Say(text.BadValue, "flag", flag, "value", n, "wanted", p.text.Say(text.WantFew, "n", most)), "")
	}
	return nil
}

func (p *program) snippetCommand() *cobra.Command {
	list := func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error { return c.Snippets(ctx, asJSON) }
	cmd := p.command("snippet", text.HelpSnippet, 0, list)
	show := p.command("show NAME", text.HelpSnippetShow, 1, p.showSnippet)
	use := p.command("use NAME [VARIABLE=VALUE...]", text.HelpSnippetUse, maxWords, p.useSnippet)
	for _, c := range []*cobra.Command{show, use} {
		c.ValidArgsFunction = p.first(p.snippetNames)
	}
	body := ""
	create := p.command("new NAME", text.HelpSnippetNew, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.SnippetWhich), "")
		}
		path, err := client.Query[string](ctx, c.Client, query.MakeSnippet{Name: args[0], Text: body})
		if err != nil {
			return err
		}
		if asJSON {
			return p.encode(map[string]string{"name": args[0], "path": path})
		}
		if body == "" && p.edits() {
			return p.opened.Desktop().Edit(ctx, path, p.in, p.out, p.err)
		}
		_, err = fmt.Fprintln(p.out, text.ExactLine(path))
		return err
	})
	create.Flags().StringVar(&body, "text", "", p.text.Say(text.FlagSnippetText))
	complete(create, "text", values())
	cmd.AddCommand(p.command("list", text.HelpSnippetList, 0, list), show, use, create)
	return cmd
}

func (p *program) snippetNames(ctx context.Context) []cobra.Completion {
	return named(ctx, p, query.ListSnippets{}, func(s query.Snippet) cobra.Completion { return described(s.Name, text.OneLine(s.Description)) })
}

func (p *program) showSnippet(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
	if len(args) == 0 {
		return p.usage(p.text.Say(text.SnippetWhich), "")
	}
	if _, err := client.Query[query.FilledSnippet](ctx, c.Client, query.FillSnippet{Name: args[0]}); err != nil {
		return err // it is not there, or not whole
	}
	list, err := client.Query[[]query.Snippet](ctx, c.Client, query.ListSnippets{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(s query.Snippet) bool { return s.Name == args[0] })
	switch {
	case i < 0:
		return p.usage(p.text.Say(text.SnippetWhich), "")
	case asJSON:
		return p.encode(list[i])
	}
	_, err = fmt.Fprintln(p.out, text.Clean(list[i].Text))
	return err
}

// useSnippet fills a snippet in. What is missing is asked for where somebody sits in
// front of it.
func (p *program) useSnippet(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
	if len(args) == 0 {
		return p.usage(p.text.Say(text.SnippetWhich), "")
	}
	q := query.FillSnippet{Name: args[0], Values: map[string]string{}}
	for _, word := range args[1:] {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return p.usage(p.text.Say(text.SnippetPair, "word", text.OneLine(text.Cut(word, 40))), "")
		}
		q.Values[name] = value
	}
	f, err := client.Query[query.FilledSnippet](ctx, c.Client, q)
	if err != nil {
		return err
	}
	if len(f.Missing) > 0 && p.interactive() && !asJSON {
		for _, name := range f.Missing {
			q.Values[name] = c.AskLine(text.OneLine(name) + ": ")
		}
		if f, err = client.Query[query.FilledSnippet](ctx, c.Client, q); err != nil {
			return err
		}
	}
	if len(f.Unused) > 0 {
		return p.usage(p.text.Say(text.SnippetUnused, "list", text.OneLine(strings.Join(f.Unused, ", "))), "")
	}
	if len(f.Missing) > 0 {
		return p.usage(p.text.Say(text.SnippetMissing, "list", text.OneLine(strings.Join(f.Missing, ", "))), p.text.Say(text.FixSnippetMissing, "example", text.OneLine("dure snippet use "+f.Name+" "+f.Missing[0]+"=…")))
	}
	if asJSON {
		return p.encode(f)
	}
	out := f.Text
	if cli.IsTerminal(p.out) {
		out = text.Clean(out)
	}
	_, err = fmt.Fprintln(p.out, out)
	return err
}

func (p *program) linkCommand() *cobra.Command {
	list := func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error { return c.Links(ctx, asJSON) }
	cmd := p.command("link", text.HelpLink, 0, list)
	only := false
	open := p.command("open NAME [VALUE...]", text.HelpLinkOpen, maxWords, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.LinkWhich), "")
		}
		address, err := client.Query[string](ctx, c.Client, query.FillLink{Name: args[0], Values: args[1:]})
		if err != nil {
			return err
		}
		if !only {
			if err := p.opened.Desktop().Open(ctx, address); err != nil {
				return err
			}
		}
		switch {
		case asJSON:
			return p.encode(map[string]any{"name": args[0], "url": address, "opened": !only})
		case only:
			_, err = fmt.Fprintln(p.out, text.ExactLine(address))
		default:
			_, err = fmt.Fprintln(p.out, p.text.Say(text.LinkOpened, "url", text.ExactLine(address)))
		}
		return err
	})
	open.Flags().BoolVar(&only, "print", false, p.text.Say(text.FlagPrintLink))
	add := p.command("add NAME URL [DESCRIPTION]", text.HelpLinkAdd, 3, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) < 2 {
			return p.usage(p.text.Say(text.LinkWhat), "")
		}
		l := query.Link{Name: args[0], URL: args[1], Description: strings.Join(args[2:], "")}
		if _, err := client.Query[query.Link](ctx, c.Client, query.SetLink{Link: l}); err != nil {
			return err
		}
		return p.done(asJSON, text.LinkKept, l.Name)
	})
	remove := p.command("remove NAME", text.HelpLinkRemove, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.LinkWhich), "")
		}
		if _, err := client.Query[query.Link](ctx, c.Client, query.RemoveLink{Name: args[0]}); err != nil {
			return err
		}
		return p.done(asJSON, text.LinkRemoved, args[0])
	})
	for _, c := range []*cobra.Command{open, remove} {
		c.ValidArgsFunction = p.first(p.linkNames)
	}
	cmd.AddCommand(p.command("list", text.HelpLinkList, 0, list), open, add, remove)
	return cmd
}

func (p *program) linkNames(ctx context.Context) []cobra.Completion {
	return named(ctx, p, query.ListLinks{}, func(l query.Link) cobra.Completion { return described(l.Name, text.OneLine(l.URL)) })
}

// done says that something was done to what a name stands for.
func (p *program) done(asJSON bool, said text.Key, name string) error {
	return p.told(asJSON, map[string]any{"name": name}, p.text.Say(said, "name", text.OneLine(name)))
}

// findCommand searches the web. That it may is what its user says by calling it: rules
// that deny it are stronger.
func (p *program) findCommand() *cobra.Command {
	var q query.SearchWeb
	cmd := p.command("find WORD...", text.HelpFind, maxWords, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		return c.FindWeb(ctx, q, asJSON)
	})
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if q.Text = strings.TrimSpace(strings.Join(args, " ")); q.Text == "" {
			return p.usage(p.text.Say(text.FindWhat), "")
		}
		p.flags.allow = append(p.flags.allow, "WebSearch")
		return p.few("--limit", q.Count, 20)
	}
	cmd.Flags().IntVar(&q.Count, "limit", 8, p.text.Say(text.FlagFound))
	cmd.Flags().BoolVar(&q.Plain, "plain", false, p.text.Say(text.FlagPlainFind))
	complete(cmd, "limit", values())
	return cmd
}

func (p *program) filesCommand() *cobra.Command {
	var q query.FindFiles
	cmd := p.command("files [PART]", text.HelpFiles, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if err := p.few("--limit", q.Limit, 50); err != nil {
			return err
		}
		q.Text, q.Workdir = filepath.ToSlash(strings.Join(args, "")), p.flags.workdir
		return c.Files(ctx, q, asJSON)
	})
	cmd.Flags().IntVar(&q.Limit, "limit", 50, p.text.Say(text.FlagFilesMost))
	complete(cmd, "limit", values())
	return cmd
}

func (p *program) systemCommand() *cobra.Command {
	return p.command("system", text.HelpSystem, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		return c.System(ctx, asJSON)
	})
}

// paletteKinds are the values of --kind.
var paletteKinds = []string{"command", "skill", "agent", "snippet", "link"}

func (p *program) paletteCommand() *cobra.Command {
	kind := ""
	var cmd *cobra.Command
	cmd = p.command("palette [WORD...]", text.HelpPalette, maxWords, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if kind != "" && !slices.Contains(paletteKinds, kind) {
			return p.badValue("--kind", kind, text.WantEntryKind)
		}
		return c.Palette(ctx, cli.PaletteOptions{
			Workdir: p.flags.workdir, Extra: entries(cmd.Root()), Kind: kind, Filter: strings.Join(args, " "), JSON: asJSON,
		})
	})
	cmd.Flags().StringVar(&kind, "kind", "", p.text.Say(text.FlagPaletteKind))
	complete(cmd, "kind", values(paletteKinds...))
	return cmd
}

// entries are the commands of the command line, those within others included.
func entries(at *cobra.Command) (all []query.PaletteEntry) {
	for _, c := range at.Commands() {
		if c.Hidden {
			continue
		}
		_, name, _ := strings.Cut(c.CommandPath(), " ")
		all = append(all, query.PaletteEntry{Kind: "command", Name: name, Description: c.Short, Use: useOf(c)})
		all = append(all, entries(c)...)
	}
	return all
}

func (p *program) notifyCommand() *cobra.Command {
	return p.command("notify [TEXT...]", text.HelpNotify, maxWords, func(ctx context.Context, _ *cli.CLI, args []string, asJSON bool) error {
		how := p.notices()
		if how.Kind == "" {
			return p.usage(p.text.Say(text.NotifyOff), "")
		}
		said := strings.Join(args, " ")
		if said == "" {
			said = p.text.Say(text.NotifyTest)
		}
		if err := how.Show(ctx, p.err, said); err != nil {
			return err
		}
		if asJSON {
			return p.encode(map[string]string{"notify": how.Kind, "text": said})
		}
		return nil
	})
}

// notices says how notices are shown, by the settings and the terminal.
func (p *program) notices() cli.Notices {
	kind := p.opened.Config().Notify
	if kind == "off" || kind == "" {
		return cli.Notices{}
	}
	env := map[string]string{}
	for _, name := range []string{"TERM", "TMUX", "VTE_VERSION"} {
		env[name] = os.Getenv(name)
	}
	return cli.Notices{
		Kind: kind, System: p.opened.Desktop().Notify, Tmux: env["TMUX"] != "",
		Urgent: env["VTE_VERSION"] != "" || slices.ContainsFunc([]string{"rxvt", "foot"}, func(name string) bool { return strings.HasPrefix(env["TERM"], name) }),
	}
}
