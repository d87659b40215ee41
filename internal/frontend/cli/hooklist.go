package cli

import (
	"bufio"
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

// Hooks lists the hooks that sessions of the working folder have, of one event or, with
// "", of all.
func (c *CLI) Hooks(ctx context.Context, event string, asJSON bool) error {
	r, err := client.Query[query.HookReport](ctx, c.Client, query.ListHooks{})
	if err != nil {
		return err
	}
	if event != "" {
		r.Hooks = slices.DeleteFunc(r.Hooks, func(h query.HookInfo) bool { return h.Event != event })
	}
	return c.put(r, asJSON, func(w *bufio.Writer) { writeLines(w, hookLines(c.Text, r, c.columns())) })
}

// slashHooks lists the hooks of the session.
func (ch *chat) slashHooks(ctx context.Context, arg string) {
	r, ok := asked[query.HookReport](ctx, ch, query.ListHooks{Session: ch.sess.Info.ID})
	if !ok {
		return
	}
	if arg != "" {
		r.Hooks = slices.DeleteFunc(r.Hooks, func(h query.HookInfo) bool { return !strings.EqualFold(h.Event, arg) })
	}
	ch.notes(hookLines(ch.Text, r, ch.s.usable()-2))
}

// hookLines is a report as people read it: by event what runs, at what, how, and where it
// is defined.
func hookLines(t text.Catalog, r query.HookReport, columns int) (lines []string) {
	byEvent := map[string][][]string{}
	for _, h := range r.Hooks {
		byEvent[h.Event] = append(byEvent[h.Event], []string{
			"  " + text.OneLine(cmp.Or(h.Matcher, t.Say(text.HooksAlways))), text.OneLine(h.Type), text.OneLine(bounded(runOf(h))),
			text.OneLine(bounded(strings.Join(howOf(t, h), ", "))), text.OneLine(h.Source),
		})
	}
	if len(r.Hooks) == 0 {
		lines = append(lines, t.Say(text.HooksNone)+" "+t.Say(text.HooksFix))
	}
	for _, event := range slices.Sorted(maps.Keys(byEvent)) {
		lines = append(lines, text.OneLine(event))
		rows := byEvent[event]
		const least = 16
		squeeze(rows, 4, columns, least)
		squeeze(rows, 2, columns, least)
		squeeze(rows, 3, columns, least/2)
		lines = append(lines, rowLines(rows)...)
	}
	lines = append(lines, offLines(t, r.Off)...)
	for _, f := range r.Faults {
		l := t.Say(text.HooksFault, "source", text.OneLine(f.Source), "at", text.OneLine(f.At), "message", t.Phrase(text.OneLine(bounded(f.Message))))
		if f.Fix != "" {
			l += " – " + t.Phrase(text.OneLine(bounded(f.Fix)))
		}
		lines = append(lines, l)
	}
	return lines
}

// offLines say whose hooks do not run, and why.
func offLines(t text.Catalog, off []query.HooksOff) (lines []string) {
	for _, o := range off {
		why := map[string]text.Key{"untrusted": text.HooksOffUntrusted, "changed": text.HooksOffChanged, "managed": text.HooksOffManaged}[o.Why]
		why = cmp.Or(why, text.HooksOffDisabled)
		lines = append(lines, t.Say(text.HooksOff, "source", text.OneLine(o.Source), "why", t.Say(why, "list", text.Some(o.Changed))))
	}
	return lines
}

// rowLines are the lines of a table.
func rowLines(rows [][]string) []string {
	var b strings.Builder
	w := bufio.NewWriter(&b)
	table(w, rows)
	w.Flush()
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// runOf is what a hook runs, on one line.
func runOf(h query.HookInfo) string { return strings.Join(append([]string{h.Run}, h.Args...), " ") }

// howOf says what is special about a hook.
func howOf(t text.Catalog, h query.HookInfo) (how []string) {
	if h.If != "" {
		how = append(how, t.Say(text.HookIf, "if", h.If))
	}
	switch {
	case h.Rewake:
		how = append(how, t.Say(text.HookRewake))
	case h.Async:
		how = append(how, t.Say(text.HookAsync))
	}
	for _, f := range []struct {
		is  bool
		key text.Key
	}{{h.Once, text.HookOnce}, {h.Block, text.HookForbids}} {
		if f.is {
			how = append(how, t.Say(f.key))
		}
	}
	return append(how, t.Say(text.HookSeconds, "n", strconv.FormatFloat(h.Seconds, 'g', 6, 64)))
}

// A HookEvent is an event at which hooks run.
type HookEvent struct {
	Event   string   `json:"event"`
	Matches string   `json:"matcher,omitempty"` // the field that matchers look at
	Blocks  string   `json:"blocks,omitempty"`  // what blocking means
	Types   []string `json:"types"`
}

// HookEvents lists the events at which hooks run.
func (c *CLI) HookEvents(list []HookEvent, asJSON bool) error {
	t := c.Text
	rows := [][]string{c.heads(text.HooksEvent, text.HooksMatches, text.HooksForbids, text.HooksTypes)}
	for _, e := range list {
		blocks := "-"
		if e.Blocks != "" {
			blocks = t.Word("hook." + e.Blocks)
		}
		rows = append(rows, []string{e.Event, cmp.Or(e.Matches, "-"), blocks, strings.Join(e.Types, " ")})
	}
	const least = 12
	rows = narrow(rows, 3, c.columns(), least, 3, 1)
	return c.put(list, asJSON, func(w *bufio.Writer) { table(w, rows) })
}

// HookTrial writes what hooks of an event have done, and what would come of it.
func (c *CLI) HookTrial(r query.HookTrial, asJSON bool) error {
	return c.put(r, asJSON, func(w *bufio.Writer) { writeLines(w, trialLines(c.Text, r)) })
}

func trialLines(t text.Catalog, r query.HookTrial) (lines []string) {
	if len(r.Hooks) == 0 {
		none := text.HookTestNone
		if len(r.Off) > 0 {
			none = text.HookTestLeft
		}
		return append([]string{t.Say(none, "event", r.Event)}, offLines(t, r.Off)...)
	}
	runs := 0
	for _, h := range r.Hooks {
		if h.Skip == "" || h.Skip == "dry" || h.Skip == "session" {
			runs++
		}
	}
	lines = append(lines, t.Say(text.HookTestHead, "event", r.Event, "n", len(r.Hooks), "run", runs))
	dry := false
	for _, h := range r.Hooks {
		dry = dry || h.Skip == "dry"
		sign := "+"
		if h.Skip != "" && h.Skip != "dry" && h.Skip != "session" {
			sign = "-"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s  (%s)", sign, text.OneLine(h.Type), text.OneLine(bounded(runOf(h.HookInfo))), text.OneLine(h.Source)))
		for _, l := range triedLines(t, r, h) {
			lines = append(lines, "    "+l)
		}
	}
	if !dry {
		lines = append(lines, effectLines(t, r.Effect)...)
	}
	return append(lines, offLines(t, r.Off)...)
}

// triedLines are what one hook has done.
func triedLines(t text.Catalog, r query.HookTrial, h query.TriedHook) (lines []string) {
	switch h.Skip {
	case "matcher":
		return []string{t.Say(text.HookSkipMatcher, "matcher", strconv.Quote(text.OneLine(h.Matcher)), "value", strconv.Quote(text.OneLine(bounded(r.Match))))}
	case "if":
		return []string{t.Say(text.HookSkipIf, "if", text.OneLine(bounded(h.If)))}
	case "once", "duplicate", "dry", "session":
		return []string{t.Say(map[string]text.Key{
			"once": text.HookSkipOnce, "duplicate": text.HookSkipSame, "dry": text.HookSkipDry, "session": text.HookSkipSession,
		}[h.Skip])}
	case "broken":
		return []string{t.Say(text.HookSkipBroken, "why", t.Phrase(text.OneLine(bounded(h.Why))))}
	}
	took := t.Say(text.HookTook, "outcome", t.Word("hook."+string(h.Outcome)), "ms", h.Millis)
	if h.Exit != nil {
		took += ", " + t.Say(text.ExitCode, "n", *h.Exit)
	}
	if h.Async {
		took += ", " + t.Say(text.HookAsync)
	}
	lines = append(lines, took)
	for _, s := range append([]string{h.Reason, h.Message, h.Context}, h.Warn...) {
		if s = text.OneLine(phrased(t, bounded(s))); s != "" && !slices.Contains(lines, s) {
			lines = append(lines, s)
		}
	}
	return lines
}

// effectLines are what would come of all answers.
func effectLines(t text.Catalog, x query.HookEffect) (lines []string) {
	reason := text.OneLine(bounded(cmp.Or(strings.Join(x.Reasons, "; "), "-")))
	say := func(is bool, key text.Key, args ...any) {
		if is {
			lines = append(lines, t.Say(key, args...))
		}
	}
	say(x.Stop, text.HookEffectStop, "reason", text.OneLine(bounded(cmp.Or(x.StopReason, reason))))
	say(x.Does == query.HookDenies, text.HookEffectDenied, "reason", reason)
	say(x.Does == query.HookTells, text.HookEffectTold, "reason", reason)
	say(x.Does == query.HookGoesOn, text.HookEffectGoesOn, "reason", reason)
	say(x.Does == "" && x.Verdict == agent.Allow, text.HookEffectAllow, "reason", reason)
	say(x.Does == "" && x.Verdict == agent.AskUser, text.HookEffectAsk, "reason", reason)
	say(x.Input != nil, text.HookEffectInput, "input", text.OneLine(bounded(string(x.Input))))
	say(x.Output != nil, text.HookEffectOutput, "output", text.OneLine(bounded(string(x.Output))))
	for _, s := range x.Context {
		say(true, text.HookEffectReads, "text", text.OneLine(bounded(s)))
	}
	if lines == nil {
		lines = []string{t.Say(text.HookEffectNone)}
	}
	return lines
}
