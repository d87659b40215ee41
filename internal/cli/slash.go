package cli

import (
	"context"
	"slices"
	"strings"

	"dure/agent"
	"dure/client"
	"dure/internal/text"
)

// slashCommand is a command of line mode.
type slashCommand struct {
	name string
	help text.Key
	run  func(ch *chat, ctx context.Context, arg string)
}

func slashCommands() []slashCommand {
	return []slashCommand{
		{"/help", text.SlashHelp, (*chat).slashHelp},
		{"/model", text.SlashModel, (*chat).slashModel},
		{"/mode", text.SlashMode, (*chat).slashMode},
		{"/cost", text.SlashCost, (*chat).slashCost},
		{"/status", text.SlashStatus, (*chat).slashStatus},
		{"/continue", text.SlashContinue, func(ch *chat, ctx context.Context, _ string) { ch.goOn(ctx) }},
		{"/quit", text.SlashQuit, func(ch *chat, _ context.Context, _ string) { ch.quit(ExitOK) }},
	}
}

// slash runs a command. One that does not exist is not sent to the model.
func (ch *chat) slash(ctx context.Context, s string) {
	name, arg, _ := strings.Cut(s, " ")
	name = strings.ToLower(name)
	if name == "/exit" {
		name = "/quit"
	}
	var names []string
	for _, c := range slashCommands() {
		if c.name == name {
			c.run(ch, ctx, strings.TrimSpace(arg))
			return
		}
		names = append(names, c.name)
	}
	msg := ch.Text.Say(text.SlashUnknown, "name", text.OneLine(bounded(name)))
	if near := Nearest(name, names); near != "" {
		msg += " " + ch.Text.Say(text.DidYouMean, "name", near)
	}
	ch.v.note(yellow, msg)
}

func (ch *chat) slashHelp(context.Context, string) {
	for _, c := range slashCommands() {
		ch.s.line(4, part{plain, ch.Text.Say(c.help)})
	}
	for l := range strings.SplitSeq(ch.Text.Say(text.HelpInput), "\n") {
		ch.s.line(0, part{dim, l})
	}
}

func (ch *chat) slashModel(ctx context.Context, arg string) {
	if arg != "" {
		ch.send(ctx, agent.Change{Model: arg})
		return
	}
	models, err := client.Query[[]agent.ModelInfo](ctx, ch.Client, agent.ListModels{})
	if err != nil {
		ch.v.fault(explain(ch.Text, err))
		return
	}
	ch.v.note(dim, ch.Text.Say(text.ModelNow, "model", text.OneLine(ch.v.model)))
	for _, m := range models {
		ch.s.line(4, part{plain, "  " + text.OneLine(strings.Join(append([]string{m.ID}, m.Aliases...), ", "))})
	}
}

// modes are the permission modes in the order of what they let run.
func modes() []string {
	return []string{
		string(agent.ModePlan), string(agent.ModeDontAsk), string(agent.ModeDefault),
		string(agent.ModeAcceptEdits), string(agent.ModeBypass),
	}
}

func (ch *chat) slashMode(ctx context.Context, arg string) {
	i := slices.IndexFunc(modes(), func(m string) bool { return strings.EqualFold(m, arg) })
	if i >= 0 {
		ch.send(ctx, agent.Change{Mode: agent.Mode(modes()[i])})
		return
	}
	if arg != "" {
		ch.v.note(yellow, ch.Text.Say(text.ModeUnknown, "mode", text.OneLine(bounded(arg))))
	} else {
		ch.v.note(dim, ch.Text.Say(text.ModeNow, "mode", string(ch.v.mode)))
	}
	ch.v.note(dim, ch.Text.Say(text.ModesHere, "list", strings.Join(modes(), ", ")))
}

func (ch *chat) slashCost(context.Context, string) {
	t := ch.v.totals
	ch.v.note(plain, ch.Text.Say(text.CostTurns, "turns", t.turns,
		"in", tokens(t.usage.Input), "out", tokens(t.usage.Output),
		"read", tokens(t.usage.CacheRead), "write", tokens(t.usage.CacheWrite)))
	k := text.CostTotal
	amount := t.cost.String()
	switch {
	case t.unknown && t.cost == 0:
		amount = ch.Text.Say(text.Unknown)
	case t.unknown:
		k = text.CostAtLeast
	}
	ch.v.note(plain, ch.Text.Say(k, "cost", amount))
}

func (ch *chat) slashStatus(context.Context, string) {
	state := text.StatusIdle
	if ch.v.running {
		state = text.StatusTurn
	}
	for _, l := range []string{
		ch.Text.Say(text.StatusSession, "id", ch.sess.Info.ID),
		ch.Text.Say(text.ModelNow, "model", text.OneLine(either(ch.v.model, ch.sess.Info.Model))),
		ch.Text.Say(text.ModeNow, "mode", string(either(ch.v.mode, agent.ModeDefault))),
		ch.Text.Say(text.StatusDir, "dir", text.OneLine(ch.v.workdir)),
		ch.Text.Say(state),
	} {
		ch.v.note(plain, l)
	}
}
