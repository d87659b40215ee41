package cli

import (
	"context"
	"slices"
	"strings"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// commands returns what can be typed behind a slash; nil when nobody can tell.
func (ch *chat) commands(ctx context.Context) []query.CommandInfo {
	list, err := client.Query[[]query.CommandInfo](ctx, ch.Client, query.ListCommands{Session: ch.sess.Info.ID, Language: ch.Text.Language()})
	if ch.failed(err) {
		return nil
	}
	return list
}

// usageOf is how a command is written, and what it does.
func (ch *chat) usageOf(ctx context.Context, name string) string {
	for _, c := range ch.commands(ctx) {
		if c.Name == name {
			return ch.Text.Say(text.CommandUsage, "usage", usage(c)+" – "+text.OneLine(c.Description))
		}
	}
	return ch.Text.Say(text.SlashUnknown, "name", "/"+name)
}

// usage is a command with its arguments.
func usage(c query.CommandInfo) string {
	return strings.TrimSpace("/" + text.OneLine(c.Name) + " " + text.OneLine(c.Hint))
}

// slashHelp lists the commands, or says more of one.
func (ch *chat) slashHelp(ctx context.Context, arg string) {
	list := ch.commands(ctx)
	if arg != "" {
		ch.helpOn(ctx, list, arg)
		return
	}
	const column = 20
	heads := map[string]text.Key{query.CommandCustom: text.CommandsFiles, query.CommandSkill: text.CommandsSkills, query.CommandPrompt: text.CommandsPrompts}
	for _, kind := range []string{query.CommandBuiltIn, query.CommandCustom, query.CommandSkill, query.CommandPrompt} {
		first := true
		for _, c := range list {
			if c.Kind != kind {
				continue
			}
			if k, ok := heads[kind]; ok && first {
				ch.s.line(0, part{bold, ch.Text.Say(k)})
			}
			first = false
			for _, l := range helpLines(ch.Text, c, column) {
				ch.s.line(column+1, part{plain, l})
			}
		}
	}
	for l := range strings.SplitSeq(ch.Text.Say(text.HelpInput), "\n") {
		ch.s.line(0, part{dim, l})
	}
}

// helpLines is a command in a list: what is longer than the column has a line of its own.
func helpLines(t text.Catalog, c query.CommandInfo, column int) []string {
	const longest = 160
	left, right := usage(c), text.Cut(text.OneLine(c.Description), longest)
	if c.Off != "" {
		right = t.Say(text.CommandOff, "name", "/"+text.OneLine(c.Name), "why", text.Cut(text.OneLine(c.Off), longest))
	}
	if pad := column - text.Width(left); pad > 0 {
		return []string{left + strings.Repeat(" ", pad) + " " + right}
	}
	return []string{left, strings.Repeat(" ", column) + " " + right}
}

// helpOn says more of one command.
func (ch *chat) helpOn(ctx context.Context, list []query.CommandInfo, arg string) {
	r, err := ch.reads(ctx, "/"+strings.TrimPrefix(arg, "/"))
	i := slices.IndexFunc(list, func(c query.CommandInfo) bool { return c.Name == r.Name && c.Kind == r.Kind })
	if err != nil || i < 0 {
		msg := ch.Text.Say(text.SlashUnknown, "name", "/"+text.OneLine(bounded(strings.TrimPrefix(arg, "/"))))
		if len(r.Near) > 0 {
			msg += " " + ch.Text.Say(text.CommandNear, "list", "/"+text.OneLine(strings.Join(r.Near, ", /")))
		}
		ch.v.note(yellow, msg)
		return
	}
	c := list[i]
	ch.v.note(plain, usage(c)+" – "+text.OneLine(bounded(c.Description)))
	if len(c.Aliases) > 0 {
		ch.v.note(dim, ch.Text.Say(text.CommandAliases, "list", "/"+strings.Join(c.Aliases, ", /")))
	}
	if len(c.Values) > 0 {
		ch.v.note(dim, ch.Text.Say(text.CommandValues, "list", text.OneLine(bounded(strings.Join(c.Values, ", ")))))
	}
	if c.Path != "" {
		ch.v.note(dim, text.OneLine(c.Path))
	}
	if c.Off != "" {
		ch.v.note(yellow, text.OneLine(bounded(c.Off)))
	}
	for _, w := range c.Warnings {
		ch.v.note(yellow, advice(ch.Text, bounded(w)))
	}
}

// completeCommand completes the name of a command, or its first argument, and reports
// whether there is one to complete.
func (ch *chat) completeCommand(ctx context.Context) bool {
	typed := ch.ed.buf[:ch.ed.pos]
	name, arg, spaced := strings.Cut(typed, " ")
	if !strings.HasPrefix(typed, "/") || strings.ContainsAny(typed, "\n\t") || strings.Contains(arg, " ") || ch.asking != "" || ch.review != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	list := ch.commands(ctx)
	if spaced {
		i := slices.IndexFunc(list, func(c query.CommandInfo) bool {
			return "/"+c.Name == name || slices.Contains(c.Aliases, strings.TrimPrefix(name, "/"))
		})
		if i < 0 || len(list[i].Values) == 0 {
			return false
		}
		ch.completeWord(arg, list[i].Values)
		return true
	}
	var found []query.CommandInfo
	var names []string
	for _, c := range list {
		if c.Off == "" && strings.HasPrefix("/"+c.Name, name) {
			found, names = append(found, c), append(names, "/"+c.Name)
		}
	}
	if len(found) > 1 {
		const column = 20
		for _, c := range found[:min(len(found), maxCandidates)] {
			for _, l := range helpLines(ch.Text, c, column) {
				ch.s.line(column+1, part{dim, l})
			}
		}
		if more := len(found) - maxCandidates; more > 0 {
			ch.v.note(dim, "… +"+tokens(more))
		}
	} else if len(found) == 1 && found[0].Hint != "" {
		ch.v.note(dim, usage(found[0]))
	}
	ch.completed(name, names)
	return true
}

// completeWord completes a word out of a list, and shows what it may be.
func (ch *chat) completeWord(typed string, values []string) {
	var fits []string
	for _, v := range values {
		if strings.HasPrefix(v, typed) {
			fits = append(fits, text.OneLine(v))
		}
	}
	if len(fits) > 1 {
		ch.v.note(dim, strings.Join(fits[:min(len(fits), maxCandidates)], "  "))
	}
	ch.completed(typed, fits)
}

// completed puts what all of a list begin with in the place of what was typed.
func (ch *chat) completed(typed string, list []string) {
	if len(list) == 0 {
		return
	}
	next := shared(list)
	if !strings.HasPrefix(next, typed) {
		return
	}
	if len(list) == 1 {
		next += " "
	}
	ch.ed.cut(ch.ed.pos-len(typed), ch.ed.pos)
	ch.ed.insert(next)
}
