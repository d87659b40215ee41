package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// slashRuns are the commands that line mode carries out, by name.
func slashRuns() map[string]func(ch *chat, ctx context.Context, arg string) {
	runs := map[string]func(*chat, context.Context, string){
		"agents": (*chat).slashAgents, "help": (*chat).slashHelp, "model": (*chat).slashModel, "mode": (*chat).slashMode, "cost": (*chat).slashCost,
		"context": (*chat).slashContext, "hooks": (*chat).slashHooks, "rewind": (*chat).slashRewind, "good": (*chat).slashGood, "bad": (*chat).slashBad,
		"edit": (*chat).slashEdit, "retry": (*chat).slashRetry, "prompt": (*chat).slashPrompt, "profile": (*chat).slashProfile,
		"task": (*chat).slashTask, "diff": (*chat).slashDiff, "changes": (*chat).slashChanges, "memory": (*chat).slashMemory,
		"resume": (*chat).slashResume, "config": (*chat).slashConfig, "commit": (*chat).slashCommit, "plan": (*chat).slashPlan, "clear": (*chat).slashNew, "status": (*chat).slashStatus,
		"compact":   func(ch *chat, ctx context.Context, arg string) { ch.send(ctx, agent.Compact{Focus: arg}) },
		"uncompact": func(ch *chat, ctx context.Context, _ string) { ch.send(ctx, agent.Restore{}) },
		"continue":  func(ch *chat, ctx context.Context, _ string) { ch.goOn(ctx) },
		"quit":      func(ch *chat, _ context.Context, _ string) { ch.quit(ExitOK) },
	}
	maps.Copy(runs, keepRuns())
	runs["cd"], runs["add-dir"] = (*chat).slashCd, (*chat).slashAddDir
	runs["plugin"], runs["mcp"] = (*chat).slashPlugin, (*chat).slashServers
	runs["skills"], runs["tools"] = (*chat).slashSkills, (*chat).slashTools
	runs["permissions"] = (*chat).slashPermissions
	runs["export"] = (*chat).slashExport
	maps.Copy(runs, launchRuns())
	return runs
}

// slash does what an input asks for that begins with a slash. A command that does not
// exist is not sent to the model.
func (ch *chat) slash(ctx context.Context, s string) {
	r, err := ch.reads(ctx, s)
	if ch.failed(err) {
		return
	}
	shown := "/" + text.OneLine(bounded(r.Name))
	switch r.Is {
	case query.ReadSend:
		ch.say(ctx, s)
	case query.ReadRefuse:
		ch.v.note(yellow, ch.refusal(ctx, r, shown))
	case query.ReadRun:
		if run, ok := slashRuns()[r.Name]; ok {
			run(ch, ctx, r.Arguments)
			return
		}
		fallthrough
	default:
		msg := ch.Text.Say(text.SlashUnknown, "name", shown)
		if len(r.Near) > 0 {
			msg += " " + ch.Text.Say(text.CommandNear, "list", "/"+text.OneLine(strings.Join(r.Near, ", /")))
		}
		ch.v.note(yellow, msg)
	}
}

// reads asks what an input is.
func (ch *chat) reads(ctx context.Context, s string) (query.CommandRead, error) {
	return client.Query[query.CommandRead](ctx, ch.Client, query.ReadCommand{Session: ch.sess.Info.ID, Text: s})
}

// refusal says why a command is not carried out.
func (ch *chat) refusal(ctx context.Context, r query.CommandRead, shown string) string {
	switch r.Why {
	case query.WhyUsage:
		return ch.usageOf(ctx, r.Name)
	case query.WhySession:
		return ch.Text.Say(text.CommandNeedsSession, "name", shown)
	}
	return ch.Text.Say(text.CommandOff, "name", shown, "why", text.OneLine(bounded(r.Why)))
}

func (ch *chat) slashModel(ctx context.Context, arg string) {
	if arg != "" {
		ch.send(ctx, agent.Change{Model: arg})
		return
	}
	models, ok := asked[[]agent.ModelInfo](ctx, ch, query.ListModels{})
	if !ok {
		return
	}
	ch.v.note(dim, ch.Text.Say(text.ModelNow, "model", text.OneLine(ch.v.Model)))
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
		ch.v.note(dim, ch.Text.Say(text.ModeNow, "mode", string(cmp.Or(ch.v.Mode, agent.ModeDefault))))
	}
	ch.v.note(dim, ch.Text.Say(text.ModesHere, "list", strings.Join(modes(), ", ")))
}

func (ch *chat) slashCost(context.Context, string) {
	t := ch.v.Totals
	ch.v.note(plain, ch.Text.Say(text.CostTurns, "turns", t.Turns,
		"in", tokens(t.Usage.Input), "out", tokens(t.Usage.Output),
		"read", tokens(t.Usage.CacheRead), "write", tokens(t.Usage.CacheWrite)))
	k := text.CostTotal
	amount := t.Cost.String()
	switch {
	case t.Unknown && t.Cost == 0:
		amount = ch.Text.Say(text.Unknown)
	case t.Unknown:
		k = text.CostAtLeast
	}
	ch.v.note(plain, ch.Text.Say(k, "cost", amount))
}

// slashContext shows what fills the window.
func (ch *chat) slashContext(ctx context.Context, arg string) {
	if arg == "on" || arg == "off" {
		ch.autoContext(arg == "on")
		return
	}
	if arg != "" {
		ch.v.note(yellow, ch.usageOf(ctx, "context"))
		return
	}
	r, ok := asked[agent.ContextReport](ctx, ch, agent.ContextUsage{Session: ch.sess.Info.ID})
	if !ok {
		return
	}
	ch.notes(contextLines(ch.Text, r, ch.s.usable()-2))
}

// slashRewind goes back to before the newest requests: "2 files", "conversation".
func (ch *chat) slashRewind(ctx context.Context, arg string) {
	r := agent.Rewind{Conversation: true, Files: true}
	turns, dry := 1, false
	for _, word := range strings.Fields(arg) {
		switch n, err := strconv.Atoi(word); {
		case err == nil && n > 0:
			turns = n
		case word == "--dry-run":
			dry = true
		case strings.EqualFold(word, "files"):
			r.Conversation = false
		case strings.EqualFold(word, "conversation"):
			r.Files = false
		default:
			ch.v.note(yellow, ch.usageOf(ctx, "rewind"))
			return
		}
	}
	info, err := ch.Find(ctx, ch.sess.Info.ID, "")
	if err == nil {
		r.To, err = ch.before(ctx, info, turns)
	}
	if ch.failed(err) {
		return
	}
	if dry {
		ch.dryRewind(ctx, r)
		return
	}
	ch.send(ctx, r)
}

// dryRewind shows what a rewind would do to files.
func (ch *chat) dryRewind(ctx context.Context, r agent.Rewind) {
	plan, ok := asked[query.RewindPlan](ctx, ch, query.PlanRewind{Session: ch.sess.Info.ID, To: r.To, Only: r.Only, Force: r.Force})
	if !ok {
		return
	}
	ch.notes(dryLines(ch.Text, plan))
}

// contextLines is a report as people read it: a line for each part, with a bar that
// takes what is left of the columns.
func contextLines(t text.Catalog, r agent.ContextReport, columns int) []string {
	const before = 36 // columns of a name, its tokens, and the gaps around them
	lines := []string{t.Say(text.ContextUsed, "used", tokens(r.Used), "window", tokens(r.Window), "percent", int(r.Ratio*100+0.5))}
	for _, p := range r.Parts {
		cells := min(20, columns-before)
		bar := ""
		if r.Window > 0 && cells > 0 {
			bar = strings.Repeat("█", min(cells, (p.Tokens*cells+r.Window-1)/r.Window))
		}
		name := t.Word(p.Name)
		pad := strings.Repeat(" ", max(1, 22-text.Width(name)))
		lines = append(lines, strings.TrimRight("  "+name+pad+fmt.Sprintf("%8s  ", tokens(p.Tokens))+bar, " "))
		for _, in := range p.Parts {
			name := text.OneLine(in.Name)
			lines = append(lines, "    "+name+strings.Repeat(" ", max(1, 20-text.Width(name)))+fmt.Sprintf("%8s", tokens(in.Tokens)))
		}
	}
	return lines
}

func (ch *chat) slashStatus(context.Context, string) {
	state := text.StatusIdle
	if ch.v.Turn.Running {
		state = text.StatusTurn
	}
	lines := []string{
		ch.Text.Say(text.StatusSession, "id", ch.sess.Info.ID),
		ch.Text.Say(text.ModelNow, "model", text.OneLine(cmp.Or(ch.v.Model, ch.sess.Info.Model))),
		ch.Text.Say(text.ModeNow, "mode", string(cmp.Or(ch.v.Mode, agent.ModeDefault))),
		ch.Text.Say(text.StatusDir, "dir", text.OneLine(ch.v.Workdir)),
		ch.Text.Say(state),
	}
	if ch.v.Work != nil {
		lines = append(lines, profileLine(ch.Text, *ch.v.Work))
	}
	ch.notes(lines)
}
