package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/extend/plugins"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// pluginFlags are the flags of the commands on plugins.
type pluginFlags struct {
	yes, force, keep bool
	hash, scope      string
	set              []string // KEY=VALUE, or KEY of a secret
}

func (p *program) pluginCommand() *cobra.Command {
	var f pluginFlags
	list := func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		return c.Plugins(ctx, "", asJSON)
	}
	cmd := p.command("plugin", text.HelpPlugin, 0, list)
	cmd.Aliases = []string{"plugins"}
	named := func(use string, short text.Key, run func(context.Context, *cli.CLI, string, bool) error) *cobra.Command {
		sub := p.command(use+" NAME", short, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
			if len(args) == 0 {
				return p.usage(p.text.Say(text.PluginName), "")
			}
			return run(ctx, c, args[0], asJSON)
		})
		sub.ValidArgsFunction = p.first(p.pluginNames)
		return sub
	}
	install := p.command("install SOURCE", text.HelpPluginInstall, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.PluginWhich), p.text.Say(text.FixPluginWhich))
		}
		return p.installPlugin(ctx, c, args[0], f, asJSON)
	})
	install.ValidArgsFunction = nil // folders and archives
	update := p.command("update [NAME]", text.HelpPluginUpdate, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		return p.updatePlugins(ctx, c, args, f, asJSON)
	})
	update.ValidArgsFunction = p.first(p.pluginNames)
	update.Flags().BoolVar(&f.force, "force", false, p.text.Say(text.FlagPluginForce))
	for _, sub := range []*cobra.Command{install, update} {
		sub.Flags().BoolVarP(&f.yes, "yes", "y", false, p.text.Say(text.FlagPluginYes))
		sub.Flags().StringVar(&f.hash, "sha256", "", p.text.Say(text.FlagPluginHash))
		complete(sub, "sha256", values())
	}
	enable := named("enable", text.HelpPluginEnable, func(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
		return p.switchPlugin(ctx, c, name, f, true, asJSON)
	})
	disable := named("disable", text.HelpPluginDisable, func(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
		return p.switchPlugin(ctx, c, name, f, false, asJSON)
	})
	for _, sub := range []*cobra.Command{enable, disable} {
		sub.Flags().StringVar(&f.scope, "scope", "user", p.text.Say(text.FlagPluginScope))
		complete(sub, "scope", values(query.SettingScopes()...))
	}
	for _, sub := range []*cobra.Command{install, update, enable} {
		sub.Flags().StringArrayVar(&f.set, "set", nil, p.text.Say(text.FlagPluginSet))
		complete(sub, "set", values())
	}
	remove := named("remove", text.HelpPluginRemove, func(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
		in, err := changePlugin(ctx, c, query.ChangePlugin{Do: query.PluginRemove, Name: name, KeepData: f.keep})
		return p.pluginDone(err, asJSON, map[string]any{"id": in.ID, "removed": true}, text.PluginRemoved, "id", in.ID)
	})
	remove.Aliases = []string{"uninstall"}
	remove.Flags().BoolVar(&f.keep, "keep-data", false, p.text.Say(text.FlagKeepData))
	rollback := named("rollback", text.HelpPluginRollback, func(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
		in, err := changePlugin(ctx, c, query.ChangePlugin{Do: query.PluginRollback, Name: name})
		return p.pluginDone(err, asJSON, map[string]any{"id": in.ID, "version": in.Version, "sha256": in.SHA256}, text.PluginBack, "id", in.ID, "version", in.Version)
	})
	show := named("show", text.HelpPluginShow, func(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
		return c.Plugins(ctx, name, asJSON)
	})
	validate := p.command("validate [DIR]", text.HelpPluginValidate, 1, p.validatePlugin)
	validate.ValidArgsFunction = nil // folders
	var unset []string
	set := p.command("set NAME [KEY=VALUE...]", text.HelpPluginSet, 100, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		return p.setPlugin(ctx, c, args, unset, asJSON)
	})
	set.Flags().StringArrayVar(&unset, "unset", nil, p.text.Say(text.FlagPluginUnset))
	set.ValidArgsFunction = p.first(p.pluginNames)
	cmd.AddCommand(p.command("list", text.HelpPluginList, 0, list), show, install, update, enable, disable, remove, rollback, set, validate, p.marketCommand())
	return cmd
}

// pluginNames are the IDs of the plugins that are installed.
func (p *program) pluginNames(ctx context.Context) []cobra.Completion {
	return named(ctx, p, query.ListPlugins{}, func(info query.PluginInfo) cobra.Completion {
		return described(info.ID, text.OneLine(info.Description))
	})
}

func changePlugin(ctx context.Context, c *cli.CLI, q query.ChangePlugin) (query.PluginChanged, error) {
	return client.Query[query.PluginChanged](ctx, c.Client, q)
}

// pluginDone says what was done, or what was in the way.
func (p *program) pluginDone(err error, asJSON bool, object any, said text.Key, args ...any) error {
	if err != nil {
		return err
	}
	return p.told(asJSON, object, p.text.Say(said, args...))
}

// consent is what became of a candidate.
type consent struct {
	query.PluginCandidate
	Installed bool `json:"installed"`
	Enabled   bool `json:"enabled"`
}

// installPlugin fetches a plugin, shows what it can do, and installs it if somebody says
// yes to that: here, or before, with the hash that was shown.
func (p *program) installPlugin(ctx context.Context, c *cli.CLI, source string, f pluginFlags, asJSON bool) error {
	if f.yes && f.hash == "" {
		return p.usage(p.text.Say(text.PluginNeedsHash), "")
	}
	cand, err := client.Query[query.PreparedPlugin](ctx, c.Client, query.PreparePlugin{Source: source})
	if err != nil {
		return err
	}
	return p.consent(ctx, c, cand, "dure plugin install "+shellWord(source), f, asJSON)
}

func (p *program) consent(ctx context.Context, c *cli.CLI, cand query.PreparedPlugin, command string, f pluginFlags, asJSON bool) error {
	tree := cand.Release.Tree
	agreed := command + " --yes --sha256 " + tree
	discard := func() {
		_, _ = changePlugin(ctx, c, query.ChangePlugin{Do: query.PluginDiscard, Name: cand.ID, SHA256: tree}) // else it goes with old ones
	}
	switch {
	case f.hash != "" && f.hash != tree:
		discard()
		return p.usage(p.text.Say(text.PluginOtherHash, "have", tree, "want", text.Cut(text.OneLine(f.hash), 64)), "")
	case f.yes: // and the hash is the one
		command = agreed
	case !p.interactive() || asJSON:
		discard()
		ask := p.usage(p.text.Say(text.PluginAskFirst), p.text.Say(text.FixPluginAsk, "command", agreed+setFlags(cand.Needs)))
		if asJSON {
			if err := p.encode(consent{PluginCandidate: cand.PluginCandidate}); err != nil {
				return err
			}
			return &cli.Exited{Code: cli.ExitUsage, Err: ask}
		}
		p.showCandidate(cand.PluginCandidate)
		return ask
	default:
		p.showCandidate(cand.PluginCandidate)
		fmt.Fprintln(p.out, p.text.Say(text.PluginAsk, "id", cand.ID))
		if answer := strings.ToLower(c.AskLine("y/n> ")); answer != "y" && answer != "yes" {
			discard()
			_, err := fmt.Fprintln(p.out, p.text.Say(text.PluginNot))
			return err
		}
	}
	told, err := p.pluginValues(ctx, c, cand.ID, command, cand.Plugin.Options, cand.Needs, f.set, asJSON)
	if err != nil {
		discard()
		return err
	}
	did, err := changePlugin(ctx, c, query.ChangePlugin{Do: query.PluginInstall, Name: cand.ID, SHA256: tree})
	if err == nil {
		err = tellPlugin(ctx, c, cand.ID, told)
	}
	done, said := consent{cand.PluginCandidate, true, did.Enabled}, text.PluginInstalledNow
	if !done.Enabled {
		said = text.PluginInstalledOff
	}
	return p.pluginDone(err, asJSON, done, said, "id", cand.ID, "version", text.OneLine(cand.Release.Version))
}

// shellWord is a word as a shell reads it whole.
func shellWord(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("@%+=:,./-_#", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// showCandidate is the screen before somebody says yes or no. What a plugin says is
// shown so that nothing of it is hidden.
func (p *program) showCandidate(c query.PluginCandidate) {
	var b strings.Builder
	say := func(k text.Key, args ...any) { fmt.Fprintln(&b, p.text.Say(k, args...)) }
	fmt.Fprintf(&b, "%s  %s\n", c.ID, text.ExactLine(c.Release.Version))
	if d := c.Plugin.Description; d != "" {
		fmt.Fprintln(&b, "  "+text.ExactLine(d))
	}
	from := plugins.SourceText(c.Release.Source)
	if c.Release.Commit != "" {
		from += " " + c.Release.Commit
	}
	say(text.PluginFrom, "source", text.ExactLine(from))
	say(text.PluginHash, "hash", c.Release.Tree)
	if c.Before != nil && c.Before.Tree != c.Release.Tree { // what they do may be another thing, though it is called the same
		say(text.PluginOtherFiles)
	}
	switch {
	case c.Before == nil && len(c.Release.Can) == 0:
		say(text.PluginCanNothing)
	case c.Before == nil:
		say(text.PluginCan)
		p.capabilities(&b, c.Release.Can, "  ")
	case len(c.Change.Added)+len(c.Change.Removed) == 0:
		say(text.PluginAsBefore)
	}
	if c.Before != nil && len(c.Change.Added) > 0 {
		say(text.PluginMore)
		p.capabilities(&b, c.Change.Added, "  + ")
	}
	if c.Before != nil && len(c.Change.Removed) > 0 {
		say(text.PluginLess)
		p.capabilities(&b, c.Change.Removed, "  - ")
	}
	if len(c.Plugin.Left) > 0 {
		say(text.PluginLeft)
	}
	for _, l := range c.Plugin.Left {
		fmt.Fprintf(&b, "  %s: %s\n", text.ExactLine(p.text.Phrase(l.What)), text.ExactLine(p.text.Phrase(l.Why)))
	}
	if len(c.Plugin.Warnings) > 0 {
		say(text.PluginOdd)
	}
	for _, w := range c.Plugin.Warnings {
		fmt.Fprintln(&b, "  "+text.ExactLine(p.text.Phrase(w)))
	}
	_, _ = p.out.WriteString(b.String()) // the question follows, or an error
}

func (p *program) capabilities(b *strings.Builder, list []query.PluginCapability, mark string) {
	kind := ""
	for _, c := range list {
		if c.Kind != kind {
			kind = c.Kind
			fmt.Fprintf(b, "%s%s\n", mark, p.text.Capability(kind))
		}
		head := strings.Repeat(" ", len(mark)) + "  " + text.ExactLine(c.Name)
		if c.Detail == "" {
			fmt.Fprintln(b, head)
			continue
		}
		for i, line := range strings.Split(strings.TrimSpace(c.Detail), "\n") {
			if i > 0 {
				head = strings.Repeat(" ", len(mark)+4)
				fmt.Fprintf(b, "%s%s\n", head, text.Exact(line))
				continue
			}
			fmt.Fprintf(b, "%s: %s\n", head, text.Exact(line))
		}
	}
}

// updatePlugins asks for what has become of plugins: one, or all of them.
func (p *program) updatePlugins(ctx context.Context, c *cli.CLI, args []string, f pluginFlags, asJSON bool) error {
	names := args
	if len(args) == 0 {
		all, err := client.Query[[]query.PluginInfo](ctx, c.Client, query.ListPlugins{})
		if err != nil {
			return err
		}
		for _, info := range all {
			if info.SHA256 != "" {
				names = append(names, info.ID)
			}
		}
	}
	if f.yes && (f.hash == "" || len(names) != 1) {
		return p.usage(p.text.Say(text.PluginNeedsHash), "")
	}
	for _, name := range names {
		cand, err := client.Query[query.PreparedPlugin](ctx, c.Client, query.PreparePlugin{Update: name})
		if err != nil {
			return err
		}
		if cand.Same == "" || cand.Same == "same-set" && f.force {
			if err := p.consent(ctx, c, cand, "dure plugin update "+shellWord(name), f, asJSON); err != nil {
				return err
			}
			continue
		}
		said := text.PluginSame
		if cand.Same == "same-set" {
			said = text.PluginSameVersion
		}
		_, _ = changePlugin(ctx, c, query.ChangePlugin{Do: query.PluginDiscard, Name: cand.ID, SHA256: cand.Release.Tree})
		if err := p.pluginDone(nil, asJSON, consent{PluginCandidate: cand.PluginCandidate}, said, "id", cand.ID, "version", text.OneLine(cand.Release.Version)); err != nil {
			return err
		}
	}
	return nil
}

// switchPlugin switches a plugin on or off, and says so when somebody stronger decides.
func (p *program) switchPlugin(ctx context.Context, c *cli.CLI, name string, f pluginFlags, on, asJSON bool) error {
	if !slices.Contains(query.SettingScopes(), f.scope) {
		return p.usage(p.text.Say(text.PluginUnknownScope, "scope", text.Cut(text.OneLine(f.scope), 40)), p.text.Say(text.FixPluginScope))
	}
	if on {
		o, err := client.Query[query.PluginOptions](ctx, c.Client, query.ReadPluginOptions{Name: name})
		if err != nil {
			return err
		}
		told, err := p.pluginValues(ctx, c, o.ID, "dure plugin enable "+shellWord(o.ID), o.Options, o.Needs, f.set, asJSON)
		if err == nil {
			err = tellPlugin(ctx, c, o.ID, told)
		}
		if err != nil {
			return err
		}
	}
	do := map[bool]string{true: query.PluginEnable, false: query.PluginDisable}[on]
	did, err := changePlugin(ctx, c, query.ChangePlugin{Do: do, Name: name, Scope: f.scope})
	said := text.PluginDisabled
	switch {
	case did.Enabled != on:
		said = text.PluginStronger
	case on:
		said = text.PluginEnabled
	}
	err = p.pluginDone(err, asJSON, did, said, "id", did.ID, "by", p.text.PluginBy(did.By))
	if c := did.Setting; err == nil && !asJSON && c != nil && !c.Counts {
		_, err = fmt.Fprintln(p.out, text.ExactLine(c.Path)+": "+p.whether(false, c.Why, c.By, nil))
	}
	return err
}

// validatePlugin reads a folder, and installs nothing.
func (p *program) validatePlugin(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
	return tell(ctx, p, c.Client, query.ValidatePlugin{Path: strings.Join(args, "")}, asJSON, func(b *strings.Builder, check query.PluginCheck) {
		if m := check.Marketplace; m != nil {
			fmt.Fprintln(b, p.text.Say(text.PluginValidMarket, "path", text.OneLine(check.Path), "name", m.Name, "n", len(m.Plugins)))
			for _, w := range m.Warnings {
				fmt.Fprintln(b, "  "+text.ExactLine(p.text.Phrase(w)))
			}
		}
		if one := check.Plugin; one != nil {
			fmt.Fprintln(b, strings.TrimSpace(p.text.Say(text.PluginValid, "path", text.OneLine(check.Path), "name", one.Name, "version", text.OneLine(one.Version))))
			p.capabilities(b, one.Can, "  ")
			for _, l := range one.Left {
				fmt.Fprintf(b, "  %s: %s\n", text.ExactLine(p.text.Phrase(l.What)), text.ExactLine(p.text.Phrase(l.Why)))
			}
			for _, w := range one.Warnings {
				fmt.Fprintln(b, "  "+text.ExactLine(p.text.Phrase(w)))
			}
		}
	})
}
