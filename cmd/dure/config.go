package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/app/config"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// configCommand shows and changes settings.
func (p *program) configCommand() *cobra.Command {
	all := false
	list := func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		return tell(ctx, p, c.Client, query.ListSettings{All: all}, asJSON, lines(p.settingLines))
	}
	cmd := p.command("config", text.HelpConfig, 0, list)
	sub := p.command("list", text.HelpConfigList, 0, list)
	for _, c := range []*cobra.Command{cmd, sub} {
		c.Flags().BoolVar(&all, "all", false, p.text.Say(text.FlagConfigAll))
	}
	get := p.command("get KEY", text.HelpConfigGet, 1, p.getSetting)
	explain := p.command("explain KEY", text.HelpConfigExplain, 1, p.explainSetting)
	path := p.command("path", text.HelpConfigPath, 0, p.settingsFiles)
	for _, c := range []*cobra.Command{get, explain} {
		c.ValidArgsFunction = p.first(p.settingNames)
	}
	cmd.AddCommand(sub, get, p.setCommand(), p.unsetCommand(), p.editSettingsCommand(), explain, path, p.schemaCommand())
	return cmd
}

func (p *program) settingNames(ctx context.Context) (names []cobra.Completion) {
	p.quietly(func(c client.Client) {
		all, _ := client.Query[query.FoundSettings](ctx, c, query.FindSettings{})
		for _, k := range all.Keys {
			names = append(names, k.Path)
		}
	})
	return names
}

// scopeFlag adds --scope.
func (p *program) scopeFlag(cmd *cobra.Command, scope *string) {
	cmd.Flags().StringVar(scope, "scope", query.SettingScopes()[0], p.text.Say(text.FlagConfigScope))
	complete(cmd, "scope", values(query.SettingScopes()...))
}

func (p *program) settingsScope(scope string) error {
	if slices.Contains(query.SettingScopes(), scope) {
		return nil
	}
	return p.usage(p.text.Say(text.ConfigNoScope, "name", text.OneLine(scope)), p.text.Say(text.FixConfigScope, "list", strings.Join(query.SettingScopes(), ", ")))
}

func (p *program) setCommand() *cobra.Command {
	scope := ""
	cmd := p.command("set KEY VALUE", text.HelpConfigSet, 2, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if err := p.settingsScope(scope); err != nil {
			return err
		}
		k, err := p.oneSetting(ctx, c.Client, args)
		if err != nil {
			return err
		}
		if len(args) < 2 {
			return p.usage(p.text.Say(text.ConfigNeedsValue, "name", k.Path), p.text.Say(text.FixConfigValue, "name", k.Path, "value", example(k)))
		}
		q := query.ChangeSetting{Do: query.SettingSet, Scope: scope, Key: k.Path, Value: args[1]}
		return tell(ctx, p, c.Client, q, asJSON, lines(p.changeLines))
	})
	p.scopeFlag(cmd, &scope)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		from := p.settingNames
		if len(args) == 1 {
			from = func(ctx context.Context) (list []cobra.Completion) {
				p.quietly(func(c client.Client) {
					if found, _ := p.settingKeys(ctx, c, args); len(found) > 0 {
						list = among(found[0])
					}
				})
				return list
			}
		}
		return starting(cmd.Context(), from, typed), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// among are the values that a setting may have, where they can be listed.
func among(k query.SettingKey) []string {
	if k.Type == "switch" {
		return []string{"true", "false"}
	}
	return k.Values
}

// example is a value that a setting might have.
func example(k query.SettingKey) string {
	switch list := among(k); {
	case len(list) > 0:
		return list[0]
	case k.Default != "":
		return k.Default
	case k.Type == "rules":
		return "'Bash(npm test)'"
	}
	return "..."
}

func (p *program) unsetCommand() *cobra.Command {
	scope := ""
	cmd := p.command("unset KEY [ENTRY]", text.HelpConfigUnset, 2, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if err := p.settingsScope(scope); err != nil {
			return err
		}
		k, err := p.oneSetting(ctx, c.Client, args)
		if err != nil {
			return err
		}
		q := query.ChangeSetting{Do: query.SettingUnset, Scope: scope, Key: k.Path}
		if len(args) == 2 {
			q.Value = args[1]
		}
		return tell(ctx, p, c.Client, q, asJSON, lines(p.changeLines))
	})
	p.scopeFlag(cmd, &scope)
	cmd.ValidArgsFunction = p.first(p.settingNames)
	return cmd
}

// settingKeys finds the setting that the first argument names, or a group and the settings in it.
func (p *program) settingKeys(ctx context.Context, c client.Client, args []string) ([]query.SettingKey, error) {
	if len(args) == 0 {
		line := "dure config explain model"
		if p.at != nil && p.at.Parent() != nil {
			if line = p.at.CommandPath() + " model"; strings.Contains(p.at.Use, "VALUE") {
				line += " haiku"
			}
		}
		return nil, p.usage(p.text.Say(text.ConfigNeedsKey), p.text.Say(text.FixConfigKey, "line", line))
	}
	found, err := client.Query[query.FoundSettings](ctx, c, query.FindSettings{Name: args[0], Language: p.text.Language()})
	if err != nil {
		return nil, err
	}
	if len(found.Keys) > 0 && args[0] != "" { // which is the name of all
		return found.Keys, nil
	}
	fix := p.text.Say(text.FixConfigKeys)
	if found.Nearest != "" {
		fix = p.text.Say(text.ConfigKeysOf, "name", found.Nearest) + " " + fix
	}
	return nil, p.usage(p.text.Say(text.ConfigUnknown, "name", text.Cut(text.OneLine(args[0]), 60)), fix)
}

// oneSetting is settingKeys for what is changed: no group as a whole.
func (p *program) oneSetting(ctx context.Context, c client.Client, args []string) (query.SettingKey, error) {
	keys, err := p.settingKeys(ctx, c, args)
	if err != nil {
		return query.SettingKey{}, err
	}
	k := keys[0]
	if !k.IsGroup() {
		return k, nil
	}
	var names []string
	for _, in := range keys[1:min(len(keys), 31)] {
		names = append(names, in.Path)
	}
	return k, p.usage(p.text.Say(text.ConfigGroup, "name", k.Path), p.text.Say(text.FixConfigKey, "line", strings.Join(names, ", ")))
}

// lines returns what writes lines.
func lines[T any](of func(T) []string) func(*strings.Builder, T) {
	return func(b *strings.Builder, v T) { fmt.Fprintln(b, strings.Join(of(v), "\n")) }
}

func (p *program) settingLines(list []query.Setting) (lines []string) {
	for _, s := range list {
		lines = append(lines, fmt.Sprintf("%s = %s  (%s)", s.Key, shownValue(s.Value), s.Origin.Layer))
	}
	if len(lines) == 0 {
		lines = append(lines, p.text.Say(text.ConfigNone))
	}
	return lines
}

// shownValue is a value as people read it.
func shownValue(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return text.OneLine(s)
	}
	if string(raw) == "null" {
		return "-"
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) == nil {
		raw = b.Bytes()
	}
	return text.OneLine(string(raw))
}

func (p *program) getSetting(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
	keys, err := p.settingKeys(ctx, c.Client, args)
	if err != nil {
		return err
	}
	path := keys[0].Path
	if keys[0].IsGroup() { // the settings in it that have a value
		list, err := client.Query[[]query.Setting](ctx, c.Client, query.ListSettings{All: true})
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(s query.Setting) bool { return !strings.HasPrefix(s.Key, path+".") })
		return p.told(asJSON, list, p.settingLines(list)...)
	}
	e, err := client.Query[query.ExplainedSetting](ctx, c.Client, query.ExplainSetting{Key: path})
	if err != nil {
		return err
	}
	if asJSON {
		return p.encode(map[string]any{"key": path, "value": e.Value})
	}
	if len(e.Layers) == 0 || string(e.Value) == "null" {
		return &cli.Exited{Code: cli.ExitFailed, Err: errors.New(path + " has no value")}
	}
	return p.told(false, nil, shownValue(e.Value))
}

func (p *program) explainSetting(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
	k, e, err := p.explanation(ctx, c.Client, args)
	if err != nil {
		return err
	}
	return p.told(asJSON, map[string]any{
		"key": e.Key, "meaning": k.Meaning, "type": k.Type, "values": k.Values, "who": k.Who, "live": k.Live, "value": e.Value, "layers": e.Layers,
	}, p.explained(k, e)...)
}

func (p *program) explanation(ctx context.Context, c client.Client, args []string) (k query.SettingKey, e query.ExplainedSetting, err error) {
	keys, err := p.settingKeys(ctx, c, args)
	if err != nil {
		return k, e, err
	}
	e, err = client.Query[query.ExplainedSetting](ctx, c, query.ExplainSetting{Key: keys[0].Path})
	return keys[0], e, err
}

func (p *program) explained(k query.SettingKey, e query.ExplainedSetting) []string {
	lines := []string{e.Key}
	if k.Meaning != "" {
		lines[0] += ": " + k.Meaning
		kind := p.text.Word("setting." + k.Type)
		if k.Values != nil {
			kind = strings.Join(k.Values, ", ")
		}
		if k.Most != 0 {
			kind += fmt.Sprintf(" (%v-%v)", k.Least, k.Most)
		}
		when := text.ConfigStart
		if k.Live {
			when = text.ConfigLive
		}
		lines = append(lines, "  "+p.text.Say(text.ConfigType, "type", kind), "  "+p.text.Say(text.ConfigWho, "who", p.text.Word("setting."+k.Who)), "  "+p.text.Say(when))
	}
	if len(e.Layers) == 0 {
		return append(lines, "  "+p.text.Say(text.ConfigNobody))
	}
	if !k.IsGroup() {
		lines = append(lines, "  "+p.text.Say(text.ConfigValue, "value", shownValue(e.Value)))
	}
	for _, s := range slices.Backward(e.Layers) { // the strongest first
		name := ""
		if s.Key != e.Key {
			name = s.Key + " = "
		}
		by := ""
		if s.By != nil {
			by = s.By.String()
		}
		lines = append(lines, fmt.Sprintf("  %s: %s%s", text.OneLine(s.Origin.String()), name, shownValue(s.Value)), "    "+p.whether(s.Counts, s.Why, by, s.Left))
	}
	return lines
}

// whether says whether a value counts, and why not.
func (p *program) whether(counts bool, why, by string, left []string) string {
	said := p.text.Say(text.ConfigCounts)
	if !counts {
		switch why {
		case "untrusted":
			said = p.text.Say(text.ConfigNotFolder)
			if f, err := p.folder(nil); err == nil && f.Stale() != nil {
				said = p.text.Say(text.ConfigNotAnyMore, "list", text.Some(f.Stale()))
			}
		case "managed":
			said = p.text.Say(text.ConfigNotOthers)
		case "overridden":
			said = p.text.Say(text.ConfigOver, "by", text.OneLine(by))
		default:
			said = p.text.Say(text.ConfigNotRepo)
		}
	}
	if counts && len(left) > 0 {
		said += "; " + p.text.Say(text.ConfigLess, "list", text.OneLine(strings.Join(left, ", ")))
	}
	return said
}

func (p *program) changeLines(c query.SettingChange) []string {
	path := text.ExactLine(c.Path)
	if c.Same {
		return []string{p.text.Say(text.ConfigSame, "path", path)}
	}
	line := p.text.Say(text.ConfigSet, "name", c.Key, "value", shownValue(c.Value), "path", path)
	if string(c.Value) == "null" {
		line = p.text.Say(text.ConfigUnset, "name", c.Key, "path", path)
	}
	when := text.ConfigStart
	if c.Live {
		when = text.ConfigLive
	}
	lines := []string{line, p.text.Say(when)}
	if !c.Counts && string(c.Value) != "null" {
		lines[1] = p.whether(false, c.Why, c.By, nil)
	}
	return lines
}

func (p *program) settingsFiles(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
	return tell(ctx, p, c.Client, query.ListSettingsFiles{}, asJSON, func(b *strings.Builder, files []query.SettingsFile) {
		for _, f := range files {
			state := text.ConfigMissing
			if f.Exists {
				state = text.ConfigThere
			}
			said := p.text.Say(state)
			if !f.Ours {
				said += ", " + p.text.Say(text.ConfigTheirs)
			}
			fmt.Fprintf(b, "%s  %s  (%s)\n", f.Scope, text.ExactLine(f.Path), said)
		}
	})
}

// schemaCommand writes the schema; it is JSON anyway.
func (p *program) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "schema", Short: p.text.Say(text.HelpConfigSchema), Args: p.atMost(0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := p.out.Write(config.Schema())
			return err
		},
	}
	p.jsonFlag(cmd)
	return cmd
}

// editSettingsCommand opens a file of settings in the user's editor and checks it
// afterwards, or says where it is.
func (p *program) editSettingsCommand() *cobra.Command {
	scope := ""
	cmd := p.command("edit", text.HelpConfigEdit, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		if err := p.settingsScope(scope); err != nil {
			return err
		}
		made, err := client.Query[query.SettingsFile](ctx, c.Client, query.MakeSettings{Scope: scope})
		if err != nil {
			return err
		}
		path := made.Path
		if asJSON {
			return p.encode(map[string]string{"scope": scope, "path": path})
		}
		if !p.edits() {
			if err = p.told(false, nil, text.ExactLine(path)); err == nil && p.opened.Desktop().Editor() == nil {
				_, err = fmt.Fprintln(p.err, p.text.Say(text.LabelNote)+p.text.Say(text.ConfigNoEditor))
			}
			return err
		}
		if err := p.opened.Desktop().Edit(ctx, path, p.in, p.out, p.err); err != nil {
			return err
		}
		if _, err := client.Query[bool](ctx, c.Client, query.CheckSettings{}); err != nil {
			return err
		}
		return p.told(false, nil, p.text.Say(text.ConfigChecked))
	})
	p.scopeFlag(cmd, &scope)
	return cmd
}

// configLines is /config: all settings, one explained, or one changed for the user.
func (p *program) configLines(ctx context.Context, arg string) ([]string, error) {
	name, value, _ := strings.Cut(strings.TrimSpace(arg), " ")
	c := p.client()
	if name == "" {
		list, err := client.Query[[]query.Setting](ctx, c, query.ListSettings{})
		return p.settingLines(list), err
	}
	if value = strings.TrimSpace(value); value == "" {
		k, e, err := p.explanation(ctx, c, []string{name})
		if err != nil {
			return nil, err
		}
		return p.explained(k, e), nil
	}
	k, err := p.oneSetting(ctx, c, []string{name})
	if err != nil {
		return nil, err
	}
	done, err := client.Query[query.SettingChange](ctx, c, query.ChangeSetting{Do: query.SettingSet, Scope: query.SettingScopes()[0], Key: k.Path, Value: value})
	if err != nil {
		return nil, err
	}
	return p.changeLines(done), nil
}
