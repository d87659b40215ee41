package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/extend/plugins"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// setPlugin shows what can be set for a plugin, or sets it. A secret is typed unseen, or
// piped in: what stands on a command line is kept by shells and seen by others. What is to
// be unset goes first.
func (p *program) setPlugin(ctx context.Context, c *cli.CLI, args, unset []string, asJSON bool) error {
	if len(args) == 0 {
		return p.usage(p.text.Say(text.PluginName), "")
	}
	of, err := client.Query[query.PluginOptions](ctx, c.Client, query.ReadPluginOptions{Name: args[0]})
	if err != nil {
		return err
	}
	id, options := of.ID, of.Options
	if len(args) == 1 && len(unset) == 0 {
		return p.showOptions(id, options, asJSON)
	}
	for _, key := range unset {
		if err := p.knownOption(id, options, key); err != nil {
			return err
		}
	}
	again := "dure plugin set " + shellWord(id) + " "
	told, err := p.readValues(id, again, options, args[1:], func(o query.PluginOption) (string, error) {
		return p.readSecret(ctx, p.text.Say(text.PluginPrompt, "key", o.Key))
	})
	if err != nil {
		return err
	}
	for _, key := range unset {
		if _, err := client.Query[string](ctx, c.Client, query.SetPlugin{Name: id, Key: key}); err != nil {
			return err
		}
		if !asJSON {
			fmt.Fprintln(p.out, p.text.Say(text.PluginOptionUnset, "id", id, "key", key))
		}
	}
	for _, v := range told {
		if err := tellPlugin(ctx, c, id, []pluginValue{v}); err != nil {
			return err
		}
		if !asJSON {
			fmt.Fprintln(p.out, p.text.Say(text.PluginOptionSet, "id", id, "key", v.key))
		}
	}
	if asJSON {
		return p.encode(map[string]any{"id": id, "set": len(args) - 1, "unset": len(unset)})
	}
	return nil
}

func (p *program) showOptions(id string, options []query.PluginOption, asJSON bool) error {
	if asJSON {
		return p.encode(options)
	}
	var b strings.Builder
	if len(options) == 0 {
		fmt.Fprintln(&b, p.text.Say(text.PluginNoOptions, "id", id))
	}
	for _, o := range options {
		line := o.Key + "  " + o.Type
		if o.Sensitive {
			line += "  " + p.text.Say(text.CanSecret)
		}
		fmt.Fprintln(&b, strings.TrimRight(line+"  "+text.OneLine(strings.TrimSpace(o.Title+" "+o.Description)), " "))
	}
	_, err := p.out.WriteString(b.String())
	return err
}

// A pluginValue is what an option of a plugin is to be set to.
type pluginValue struct{ key, value string }

// pluginValues collects what a plugin is to be told before it is on: what the flags say,
// and from whoever sits there what else it needs. Nothing is set by it.
func (p *program) pluginValues(ctx context.Context, c *cli.CLI, id, command string, options, needs []query.PluginOption, flags []string, asJSON bool) ([]pluginValue, error) {
	ask := func(o query.PluginOption) (string, error) { return p.askValue(ctx, c, o) }
	told, err := p.readValues(id, command+" --set ", options, flags, ask)
	if err != nil {
		return nil, err
	}
	var missing []query.PluginOption
	for _, o := range needs {
		if slices.ContainsFunc(told, func(v pluginValue) bool { return v.key == o.Key }) {
			continue
		}
		if !p.interactive() || asJSON {
			missing = append(missing, o)
			continue
		}
		v, err := p.pluginValue(id, command+" --set ", o, "", ask)
		if err != nil {
			return nil, err
		}
		told = append(told, v)
	}
	if len(missing) > 0 {
		var keys []string
		for _, o := range missing {
			keys = append(keys, o.Key)
		}
		return nil, p.usage(p.text.Say(text.PluginNeeds, "id", id, "list", strings.Join(keys, ", ")), p.text.Say(text.FixPluginNeeds, "command", command+setFlags(missing)))
	}
	return told, nil
}

// readValues reads KEY=VALUE, or KEY, of which ask has the value. Nothing is set by it.
// Behind again an option can be said once more.
func (p *program) readValues(id, again string, options []query.PluginOption, words []string, ask func(query.PluginOption) (string, error)) (told []pluginValue, err error) {
	for _, word := range words {
		key, value, given := strings.Cut(word, "=")
		if err := p.knownOption(id, options, key); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(options, func(o query.PluginOption) bool { return o.Key == key })
		asks := ask
		if given {
			asks = nil
		}
		v, err := p.pluginValue(id, again, options[i], value, asks)
		if err != nil {
			return nil, err
		}
		told = append(told, v)
	}
	return told, nil
}

// knownOption says that a plugin has no such option, if so.
func (p *program) knownOption(id string, options []query.PluginOption, key string) error {
	if slices.ContainsFunc(options, func(o query.PluginOption) bool { return o.Key == key }) {
		return nil
	}
	return p.usage(p.text.Say(text.PluginNoOption, "id", id, "key", text.Cut(text.OneLine(key), 64)), "dure plugin set "+id)
}

// askValue asks for the value of an option: unseen, if it is a secret or piped in.
func (p *program) askValue(ctx context.Context, c *cli.CLI, o query.PluginOption) (string, error) {
	if o.Sensitive || !p.interactive() {
		return p.readSecret(ctx, p.askOption(o))
	}
	return c.AskLine(p.askOption(o) + " "), nil
}

// setFlags are the flags that say what is missing.
func setFlags(missing []query.PluginOption) (flags string) {
	for _, o := range missing {
		flags += valueFix(" --set ", o)
	}
	return flags
}

// pluginValue is the value of one option, checked: as it was given, or else as ask has it.
// A secret is not taken from a command line.
func (p *program) pluginValue(id, again string, o query.PluginOption, value string, ask func(query.PluginOption) (string, error)) (v pluginValue, err error) {
	if ask != nil {
		value, err = ask(o)
	} else if o.Sensitive {
		err = p.usage(p.text.Say(text.PluginSecretInArgs, "key", o.Key), p.text.Say(text.FixPluginSecret, "command", again+o.Key))
	}
	if err != nil {
		return v, err
	}
	if value == "" && ask != nil {
		return v, p.usage(p.text.Say(text.PluginNoValue, "key", o.Key), valueFix(again, o))
	}
	_, err = plugins.Value(o, value)
	return pluginValue{o.Key, value}, plugins.Problem(id, err)
}

// valueFix is how to say the value of an option.
func valueFix(again string, o query.PluginOption) string {
	if o.Sensitive {
		return again + o.Key
	}
	return again + o.Key + "=VALUE"
}

// askOption is the question for an option, in the plugin's words.
func (p *program) askOption(o query.PluginOption) string {
	asked := strings.TrimSpace(o.Title + " " + o.Description)
	if asked != "" {
		asked = " (" + text.Cut(text.OneLine(asked), 200) + ")"
	}
	return p.text.Say(text.PluginPrompt, "key", o.Key+asked)
}

// tellPlugin sets what was collected.
func tellPlugin(ctx context.Context, c *cli.CLI, id string, told []pluginValue) error {
	for _, v := range told {
		if _, err := client.Query[string](ctx, c.Client, query.SetPlugin{Name: id, Key: v.key, Value: &v.value}); err != nil {
			return err
		}
	}
	return nil
}

// marketCommand is the commands on marketplaces.
func (p *program) marketCommand() *cobra.Command {
	list := func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 1 {
			return p.showMarket(ctx, c, args[0], asJSON)
		}
		return p.sayMarkets(ctx, c, query.ListMarketplaces{}, asJSON)
	}
	cmd := p.command("marketplace [NAME]", text.HelpMarket, 1, list)
	cmd.Aliases = []string{"market"}
	add := p.command("add SOURCE", text.HelpMarketAdd, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.PluginWhich), p.text.Say(text.FixPluginWhich))
		}
		added, err := client.Query[[]query.PluginMarket](ctx, c.Client, query.ChangeMarketplace{Do: query.MarketplaceAdd, Source: args[0]})
		if err != nil {
			return err
		}
		return p.pluginDone(nil, asJSON, added[0], text.MarketAdded, "name", added[0].Name, "n", added[0].Plugins)
	})
	add.ValidArgsFunction = nil // folders
	remove := p.command("remove NAME", text.HelpMarketRemove, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.MarketName), "")
		}
		_, err := client.Query[[]query.PluginMarket](ctx, c.Client, query.ChangeMarketplace{Do: query.MarketplaceRemove, Name: args[0]})
		return p.pluginDone(err, asJSON, map[string]any{"name": args[0], "removed": true}, text.MarketRemoved, "name", text.OneLine(args[0]))
	})
	update := p.command("update [NAME]", text.HelpMarketUpdate, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		return p.sayMarkets(ctx, c, query.ChangeMarketplace{Do: query.MarketplaceUpdate, Name: strings.Join(args, "")}, asJSON)
	})
	names := p.first(p.marketNames)
	cmd.ValidArgsFunction, remove.ValidArgsFunction, update.ValidArgsFunction = names, names, names
	listed := p.command("list [NAME]", text.HelpMarketList, 1, list)
	listed.ValidArgsFunction = names
	cmd.AddCommand(add, listed, remove, update)
	return cmd
}

// marketNames are the marketplaces that were added.
func (p *program) marketNames(ctx context.Context) []cobra.Completion {
	return named(ctx, p, query.ListMarketplaces{}, func(k query.PluginMarket) cobra.Completion { return k.Name })
}

// sayMarkets asks for marketplaces, and lists them.
func (p *program) sayMarkets(ctx context.Context, c *cli.CLI, q agent.Query, asJSON bool) error {
	return tell(ctx, p, c.Client, q, asJSON, func(b *strings.Builder, all []query.PluginMarket) {
		for _, k := range all {
			fmt.Fprintln(b, p.text.Say(text.MarketAdded, "name", k.Name, "n", k.Plugins)+"  "+text.OneLine(plugins.SourceText(k.Source)))
		}
		if len(all) == 0 {
			fmt.Fprintln(b, p.text.Say(text.MarketNone))
		}
	})
}

func (p *program) showMarket(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
	return tell(ctx, p, c.Client, query.ReadMarketplace{Name: name}, asJSON, func(b *strings.Builder, m query.PluginMarketplace) {
		for _, e := range m.Plugins {
			fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf("%s@%s  %s  %s", e.Name, m.Name, text.OneLine(e.Version), text.OneLine(e.Description)), " "))
		}
		for _, w := range m.Warnings {
			fmt.Fprintln(b, p.text.Say(text.LabelNote)+text.OneLine(w))
		}
	})
}
