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
	"dure/internal/app"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// configCommand shows and changes settings.
func (p *program) configCommand() *cobra.Command {
	all := false
	list := func(_ context.Context, _ *cli.CLI, _ []string, asJSON bool) error { return p.listSettings(all, asJSON) }
	cmd := p.command("config", text.HelpConfig, 0, list)
	sub := p.command("list", text.HelpConfigList, 0, list)
	for _, c := range []*cobra.Command{cmd, sub} {
		c.Flags().BoolVar(&all, "all", false, p.text.Say(text.FlagConfigAll))
	}
	get := p.command("get KEY", text.HelpConfigGet, 1, func(_ context.Context, _ *cli.CLI, args []string, asJSON bool) error {
		return p.getSetting(args, asJSON)
	})
	explain := p.command("explain KEY", text.HelpConfigExplain, 1, func(_ context.Context, _ *cli.CLI, args []string, asJSON bool) error {
		return p.explainSetting(args, asJSON)
	})
	path := p.command("path", text.HelpConfigPath, 0, func(_ context.Context, _ *cli.CLI, _ []string, asJSON bool) error {
		return p.settingsFiles(asJSON)
	})
	for _, c := range []*cobra.Command{get, explain} {
		c.ValidArgsFunction = p.first(settingNames)
	}
	cmd.AddCommand(sub, get, p.setCommand(), p.unsetCommand(), p.editSettingsCommand(), explain, path, p.schemaCommand())
	return cmd
}

func settingNames(context.Context) (names []cobra.Completion) {
	for _, k := range app.SettingKeys() {
		names = append(names, k.Path)
	}
	return names
}

// scopeFlag adds --scope.
func (p *program) scopeFlag(cmd *cobra.Command, scope *string) {
	cmd.Flags().StringVar(scope, "scope", app.SettingScopes()[0], p.text.Say(text.FlagConfigScope))
	complete(cmd, "scope", values(app.SettingScopes()...))
}

func (p *program) settingsScope(scope string) error {
	if slices.Contains(app.SettingScopes(), scope) {
		return nil
	}
	return p.usage(p.text.Say(text.ConfigNoScope, "name", text.OneLine(scope)), p.text.Say(text.FixConfigScope, "list", strings.Join(app.SettingScopes(), ", ")))
}

func (p *program) setCommand() *cobra.Command {
	scope := ""
	cmd := p.command("set KEY VALUE", text.HelpConfigSet, 2, func(ctx context.Context, _ *cli.CLI, args []string, asJSON bool) error {
		if err := p.settingsScope(scope); err != nil {
			return err
		}
		k, path, err := p.oneSetting(args)
		if err != nil {
			return err
		}
		if len(args) < 2 {
			return p.usage(p.text.Say(text.ConfigNeedsValue, "name", path), p.text.Say(text.FixConfigValue, "name", path, "value", example(k)))
		}
		c, err := p.opened.SetSetting(ctx, scope, path, args[1])
		if err != nil {
			return err
		}
		return p.changed(c, asJSON)
	})
	p.scopeFlag(cmd, &scope)
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		from := settingNames
		if len(args) == 1 {
			k, _, _ := app.FindSetting(args[0])
			from = values(among(k)...)
		}
		return starting(context.Background(), from, typed), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// among are the values that a setting may have, where they can be listed.
func among(k app.SettingKey) []string {
	if k.Type == "switch" {
		return []string{"true", "false"}
	}
	return k.Among
}

// example is a value that a setting might have.
func example(k app.SettingKey) string {
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
	cmd := p.command("unset KEY [ENTRY]", text.HelpConfigUnset, 2, func(ctx context.Context, _ *cli.CLI, args []string, asJSON bool) error {
		if err := p.settingsScope(scope); err != nil {
			return err
		}
		_, path, err := p.oneSetting(args)
		if err != nil {
			return err
		}
		entry := ""
		if len(args) == 2 {
			entry = args[1]
		}
		c, err := p.opened.UnsetSetting(ctx, scope, path, entry)
		if err != nil {
			return err
		}
		return p.changed(c, asJSON)
	})
	p.scopeFlag(cmd, &scope)
	cmd.ValidArgsFunction = p.first(settingNames)
	return cmd
}

// settingKey finds the setting that the first argument names.
func (p *program) settingKey(args []string) (app.SettingKey, string, error) {
	if len(args) == 0 {
		line := "dure config explain model"
		if p.at != nil && p.at.Parent() != nil {
			if line = p.at.CommandPath() + " model"; strings.Contains(p.at.Use, "VALUE") {
				line += " haiku"
			}
		}
		return app.SettingKey{}, "", p.usage(p.text.Say(text.ConfigNeedsKey), p.text.Say(text.FixConfigKey, "line", line))
	}
	k, path, near := app.FindSetting(args[0])
	if path != "" {
		return k, path, nil
	}
	fix := p.text.Say(text.FixConfigKeys)
	if near != "" {
		fix = p.text.Say(text.ConfigKeysOf, "name", near) + " " + fix
	}
	return k, "", p.usage(p.text.Say(text.ConfigUnknown, "name", text.Cut(text.OneLine(args[0]), 60)), fix)
}

// oneSetting is settingKey for what is changed: no group as a whole.
func (p *program) oneSetting(args []string) (app.SettingKey, string, error) {
	k, path, err := p.settingKey(args)
	if err != nil || !k.IsGroup() {
		return k, path, err
	}
	var names []string
	for _, in := range app.SettingKeys() {
		if strings.HasPrefix(in.Path, k.Path+".") && len(names) < 30 {
			names = append(names, in.Path)
		}
	}
	return k, "", p.usage(p.text.Say(text.ConfigGroup, "name", path), p.text.Say(text.FixConfigKey, "line", strings.Join(names, ", ")))
}

func (p *program) listSettings(all, asJSON bool) error {
	list, err := p.opened.Settings(all)
	if err != nil {
		return err
	}
	if asJSON {
		if list == nil {
			list = []app.Setting{}
		}
		return p.encode(list)
	}
	return p.writeLines(p.settingLines(list))
}

func (p *program) settingLines(list []app.Setting) (lines []string) {
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

func (p *program) writeLines(lines []string) error {
	_, err := fmt.Fprintln(p.out, strings.Join(lines, "\n"))
	return err
}

func (p *program) getSetting(args []string, asJSON bool) error {
	k, path, err := p.settingKey(args)
	if err != nil {
		return err
	}
	if k.IsGroup() {
		return p.getGroup(path, asJSON)
	}
	value, layers, err := p.opened.ExplainSetting(path)
	if err != nil {
		return err
	}
	if asJSON {
		return p.encode(map[string]any{"key": path, "value": value})
	}
	if len(layers) == 0 || string(value) == "null" {
		return &cli.Exited{Code: cli.ExitFailed, Err: errors.New(path + " has no value")}
	}
	return p.writeLines([]string{shownValue(value)})
}

// getGroup shows the settings of a group that have a value.
func (p *program) getGroup(path string, asJSON bool) error {
	list, err := p.opened.Settings(true)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(s app.Setting) bool { return !strings.HasPrefix(s.Key, path+".") })
	if asJSON {
		return p.encode(list)
	}
	return p.writeLines(p.settingLines(list))
}

func (p *program) explainSetting(args []string, asJSON bool) error {
	k, path, err := p.settingKey(args)
	if err != nil {
		return err
	}
	value, layers, err := p.opened.ExplainSetting(path)
	if err != nil {
		return err
	}
	if asJSON {
		if layers == nil {
			layers = []app.SettingSaid{}
		}
		return p.encode(map[string]any{
			"key": path, "meaning": k.Meaning(p.text.Language()), "type": k.Type, "values": k.Among, "who": k.Who, "live": k.Live, "value": value, "layers": layers,
		})
	}
	return p.writeLines(p.explained(k, path, value, layers))
}

func (p *program) explained(k app.SettingKey, path string, value json.RawMessage, layers []app.SettingSaid) []string {
	lines := []string{path}
	if about := k.Meaning(p.text.Language()); about != "" {
		lines[0] += ": " + about
		kind := p.text.Word("setting." + string(k.Type))
		if k.Among != nil {
			kind = strings.Join(k.Among, ", ")
		}
		if k.Most != 0 {
			kind += fmt.Sprintf(" (%v-%v)", k.Least, k.Most)
		}
		when := text.ConfigStart
		if k.Live {
			when = text.ConfigLive
		}
		lines = append(lines, "  "+p.text.Say(text.ConfigType, "type", kind), "  "+p.text.Say(text.ConfigWho, "who", p.text.Word("setting."+string(k.Who))), "  "+p.text.Say(when))
	}
	if len(layers) == 0 {
		return append(lines, "  "+p.text.Say(text.ConfigNobody))
	}
	if !k.IsGroup() {
		lines = append(lines, "  "+p.text.Say(text.ConfigValue, "value", shownValue(value)))
	}
	for i := len(layers) - 1; i >= 0; i-- { // the strongest first
		s := layers[i]
		name := ""
		if s.Key != path {
			name = s.Key + " = "
		}
		by := ""
		if s.By != nil {
			by = s.By.String()
		}
		lines = append(lines, fmt.Sprintf("  %s: %s%s", text.OneLine(s.Origin.String()), name, shownValue(s.Value)), "    "+p.whether(s.Counts, string(s.Why), by, s.Left))
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

// changed says what a change has done.
func (p *program) changed(c query.SettingChange, asJSON bool) error {
	if asJSON {
		return p.encode(c)
	}
	return p.writeLines(p.changeLines(c))
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

func (p *program) settingsFiles(asJSON bool) error {
	files := p.opened.SettingsFiles()
	if asJSON {
		return p.encode(files)
	}
	var lines []string
	for _, f := range files {
		state := text.ConfigMissing
		if f.Exists {
			state = text.ConfigThere
		}
		said := p.text.Say(state)
		if !f.Ours {
			said += ", " + p.text.Say(text.ConfigTheirs)
		}
		lines = append(lines, fmt.Sprintf("%s  %s  (%s)", f.Scope, text.ExactLine(f.Path), said))
	}
	return p.writeLines(lines)
}

// schemaCommand writes the schema; it is JSON anyway.
func (p *program) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "schema", Short: p.text.Say(text.HelpConfigSchema), Args: p.atMost(0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := p.out.Write(app.SettingsSchema())
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
	cmd := p.command("edit", text.HelpConfigEdit, 0, func(ctx context.Context, _ *cli.CLI, _ []string, asJSON bool) error {
		if err := p.settingsScope(scope); err != nil {
			return err
		}
		path, err := p.opened.MakeSettings(scope)
		if err != nil {
			return err
		}
		if asJSON {
			return p.encode(map[string]string{"scope": scope, "path": path})
		}
		if p.opened.Desktop().Editor() == nil || !p.interactive() {
			if err = p.writeLines([]string{text.ExactLine(path)}); err == nil && p.opened.Desktop().Editor() == nil {
				_, err = fmt.Fprintln(p.err, p.text.Say(text.LabelNote)+p.text.Say(text.ConfigNoEditor))
			}
			return err
		}
		if err := p.opened.Desktop().Edit(ctx, path, p.in, p.out, p.err); err != nil {
			return err
		}
		if err := p.opened.CheckSettings(); err != nil {
			return err
		}
		return p.writeLines([]string{p.text.Say(text.ConfigChecked)})
	})
	p.scopeFlag(cmd, &scope)
	return cmd
}

// configLines is /config: all settings, one explained, or one changed for the user.
func (p *program) configLines(ctx context.Context, arg string) ([]string, error) {
	name, value, _ := strings.Cut(strings.TrimSpace(arg), " ")
	if name == "" {
		list, err := p.opened.Settings(false)
		if err != nil {
			return nil, err
		}
		return p.settingLines(list), nil
	}
	k, path, err := p.settingKey([]string{name})
	if err != nil {
		return nil, err
	}
	if value = strings.TrimSpace(value); value != "" {
		if _, _, err := p.oneSetting([]string{name}); err != nil {
			return nil, err
		}
		c, err := p.opened.SetSetting(ctx, app.SettingScopes()[0], path, value)
		if err != nil {
			return nil, err
		}
		return p.changeLines(c), nil
	}
	said, layers, err := p.opened.ExplainSetting(path)
	if err != nil {
		return nil, err
	}
	return p.explained(k, path, said, layers), nil
}
