package cli

import (
	"bufio"
	"cmp"
	"context"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/base/near"
	"dure/internal/frontend/text"
)

// Plugins lists plugins, or shows the one of a name or an ID; "" = all.
func (c *CLI) Plugins(ctx context.Context, name string, asJSON bool) error {
	all, err := client.Query[[]query.PluginInfo](ctx, c.Client, query.ListPlugins{})
	if err != nil {
		return err
	}
	if name != "" {
		return c.plugin(all, name, asJSON)
	}
	return c.put(all, asJSON, func(w *bufio.Writer) { writeLines(w, pluginList(c.Text, all)) })
}

func (c *CLI) plugin(all []query.PluginInfo, name string, asJSON bool) error {
	info, err := findPlugin(all, name)
	if err != nil {
		return err
	}
	return c.put(info, asJSON, func(w *bufio.Writer) { writeLines(w, pluginLines(c.Text, info)) })
}

// findPlugin returns the plugin of a name or an ID.
func findPlugin(all []query.PluginInfo, name string) (query.PluginInfo, error) {
	i := slices.IndexFunc(all, func(p query.PluginInfo) bool { return p.ID == name })
	if i < 0 {
		i = slices.IndexFunc(all, func(p query.PluginInfo) bool { return p.Name == name })
	}
	if i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, p := range all {
		names = append(names, p.ID, p.Name)
	}
	fix := "dure plugin list"
	if like := near.Nearest(name, names); like != "" {
		fix = "dure plugin show " + like
	}
	shown := text.Cut(text.OneLine(name), 60)
	return query.PluginInfo{}, &agent.Problem{
		Code: agent.ProblemPlugin, Message: "plugin " + shown + ": there is no such plugin", Fix: fix,
		Args: map[string]string{"name": shown, "error": "there is no such plugin", "fix": fix},
	}
}

// pluginList is plugins as people read them: a line for each, and one for what is wrong.
func pluginList(t text.Catalog, all []query.PluginInfo) (lines []string) {
	for _, p := range all {
		state := text.PluginEnabled
		if !p.Enabled {
			state = text.PluginDisabled
		}
		line := t.Say(state, "id", text.OneLine(cmp.Or(p.ID, p.Name))) + " (" + t.PluginBy(p.By) + ")  " + text.OneLine(p.Version)
		lines = append(lines, strings.TrimRight(line+"  "+text.Cut(text.OneLine(p.Description), 80), " "))
		if p.Problem != "" {
			lines = append(lines, "  "+t.Say(text.PluginUnused, "why", t.Phrase(text.OneLine(p.Problem))))
		}
		if len(p.Missing) > 0 {
			lines = append(lines, "  "+t.Say(text.PluginMissing, "list", text.OneLine(strings.Join(p.Missing, ", "))))
		}
	}
	if len(all) == 0 {
		lines = []string{t.Say(text.PluginNone)}
	}
	return lines
}

// pluginLines is all that is known of a plugin.
func pluginLines(t text.Catalog, p query.PluginInfo) []string {
	lines := pluginList(t, []query.PluginInfo{p})
	lines = append(lines, t.Say(text.PluginFrom, "source", text.ExactLine(p.Source)))
	if p.SHA256 != "" {
		lines = append(lines, t.Say(text.PluginHash, "hash", p.SHA256))
	}
	if p.Before != "" {
		lines = append(lines, t.Say(text.PluginBefore, "version", text.OneLine(p.Before)))
	}
	kind := ""
	for _, c := range p.Capabilities {
		if c.Kind != kind {
			kind = c.Kind
			lines = append(lines, "  "+t.Capability(kind))
		}
		line := "    " + text.ExactLine(c.Name)
		for i, l := range strings.Split(c.Detail, "\n") {
			switch {
			case i == 0 && l != "":
				line += ": " + text.Exact(l)
			case i > 0:
				line += "\n      " + text.Exact(l)
			}
		}
		lines = append(lines, strings.Split(line, "\n")...)
	}
	if len(p.Left) > 0 {
		lines = append(lines, t.Say(text.PluginLeft))
	}
	for _, l := range p.Left {
		what, why, _ := strings.Cut(l, ": ")
		lines = append(lines, "  "+text.ExactLine(t.Phrase(what))+": "+text.ExactLine(t.Phrase(why)))
	}
	for _, l := range p.Warnings {
		lines = append(lines, "  "+text.ExactLine(t.Phrase(l)))
	}
	return lines
}

// slashPlugin lists plugins, or shows one. They are changed outside of a conversation,
// where somebody can be asked about the whole of one.
func (ch *chat) slashPlugin(ctx context.Context, arg string) {
	all, err := client.Query[[]query.PluginInfo](ctx, ch.Client, query.ListPlugins{})
	lines := pluginList(ch.Text, all)
	if err == nil && arg != "" {
		var one query.PluginInfo
		if one, err = findPlugin(all, arg); err == nil {
			lines = pluginLines(ch.Text, one)
		}
	}
	if ch.failed(err) {
		return
	}
	ch.notes(lines)
}
