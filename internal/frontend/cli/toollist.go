package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// Tools lists the tools that a session in the working folder begins with, or those that a
// name means; "" = all.
func (c *CLI) Tools(ctx context.Context, name string, asJSON bool) error {
	return tell(ctx, c, query.ListTools{Tool: name}, asJSON, func(w *bufio.Writer, r query.ToolReport) {
		lines := toolList(c.Text, r, c.columns())
		if name == "" {
			if s, err := client.Query[query.ServerReport](ctx, c.Client, query.ListServers{}); err == nil && len(s.Servers) > 0 {
				lines = append(lines, c.Text.Say(text.ToolsOfServers))
			}
		} else if len(r.Tools) == 1 {
			lines = toolLines(c.Text, r.Tools[0])
		}
		writeLines(w, lines)
	})
}

// toolList is a report as people read it: a line for each tool, those first that the model has.
func toolList(t text.Catalog, r query.ToolReport, columns int) (lines []string) {
	var rows [][]string
	for _, state := range []string{"on", "named", "off"} {
		for _, i := range r.Tools {
			if i.State == state {
				rows = append(rows, []string{text.ExactLine(i.Shown), text.OneLine(i.Group), toolSource(t, i.Source, i.From), toolState(t, i)})
			}
		}
	}
	if len(rows) == 0 {
		return append([]string{t.Say(text.ToolsNone)}, toolsLeft(t, r)...)
	}
	const least = 24
	squeeze(rows, 3, columns, least)
	squeeze(rows, 2, columns, least/2)
	lines = rowLines(rows)
	for _, i := range r.Tools {
		if l := toolRenamed(t, i); l != "" {
			lines = append(lines, l)
		}
	}
	return append(lines, toolsLeft(t, r)...)
}

func toolsLeft(t text.Catalog, r query.ToolReport) (lines []string) {
	for _, l := range r.Left {
		lines = append(lines, t.Say(text.ToolLeft, "name", text.ExactLine(bounded(l.Name)), "source", toolSource(t, l.Source, l.From), "why", t.Phrase(text.OneLine(bounded(l.Why)))))
	}
	return lines
}

func toolRenamed(t text.Catalog, i query.ToolInfo) string {
	if i.Own == "" {
		return ""
	}
	source, from, _ := strings.Cut(i.Before, " ")
	return t.Say(text.ToolRenamed, "name", text.ExactLine(i.Shown), "own", text.ExactLine(i.Own), "before", toolSource(t, source, from))
}

func toolSource(t text.Catalog, source, from string) string {
	return strings.TrimSpace(t.Word("tool.from."+source) + " " + text.ExactLine(bounded(from)))
}

// toolState is whether the model has a tool, with the reason.
func toolState(t text.Catalog, i query.ToolInfo) string {
	state := t.Word("tool." + i.State)
	switch i.Why {
	case "":
		return state
	case "session":
		return t.Say(text.ToolOff, "state", state, "why", t.Say(text.ToolBySession, "rule", text.OneLine(bounded(i.Rule))))
	case "rule":
		return t.Say(text.ToolOff, "state", state, "why", t.Say(text.ToolByRule, "rule", text.OneLine(bounded(i.Rule)), "at", text.OneLine(bounded(i.At))))
	}
	return t.Say(text.ToolOff, "state", state, "why", t.Word("tool.off."+i.Why))
}

// toolLines is all that is known of a tool. What others say of theirs is shown so that
// nothing of it is hidden.
func toolLines(t text.Catalog, i query.ToolInfo) []string {
	head := text.ExactLine(i.Shown)
	if i.Name != i.Shown {
		head += "  " + text.ExactLine(i.Name)
	}
	lines := []string{
		head,
		"  " + t.Say(text.ToolFrom, "source", toolSource(t, i.Source, i.From)),
		"  " + t.Say(text.ToolKind, "group", text.OneLine(i.Group), "class", string(i.Class), "risk", string(i.Risk)),
		"  " + t.Say(text.ToolState, "state", toolState(t, i)),
	}
	if l := toolRenamed(t, i); l != "" {
		lines = append(lines, "  "+l)
	}
	for l := range strings.Lines(i.Description) {
		lines = append(lines, strings.TrimRight("  "+text.ExactLine(strings.TrimRight(l, "\r\n")), " "))
	}
	var schema bytes.Buffer
	if err := json.Indent(&schema, i.Input, "  ", "  "); err != nil {
		return lines
	}
	lines = append(lines, "  "+t.Say(text.ToolInput))
	for l := range strings.Lines("  " + schema.String()) {
		lines = append(lines, text.ExactLine(strings.TrimRight(l, "\n")))
	}
	return lines
}

// slashTools lists the tools of the session, shows one, or switches one.
func (ch *chat) slashTools(ctx context.Context, arg string) {
	words := strings.Fields(arg)
	verb := ""
	if len(words) == 2 {
		verb = strings.ToLower(words[0])
	}
	var lines []string
	var r query.ToolReport
	var err error
	switch {
	case verb == "enable" || verb == "disable":
		r, err = client.Query[query.ToolReport](ctx, ch.Client, query.SwitchTool{Session: ch.sess.Info.ID, Tool: words[1], On: verb == "enable"})
		lines = toolList(ch.Text, r, ch.s.usable()-2)
	case len(words) > 1 || slices.Contains([]string{"enable", "disable"}, strings.ToLower(arg)):
		ch.v.note(yellow, ch.usageOf(ctx, "tools"))
		return
	default:
		r, err = client.Query[query.ToolReport](ctx, ch.Client, query.ListTools{Session: ch.sess.Info.ID, Tool: arg})
		lines = toolList(ch.Text, r, ch.s.usable()-2)
		if len(words) == 1 && len(r.Tools) == 1 {
			lines = toolLines(ch.Text, r.Tools[0])
		}
	}
	if ch.failed(err) {
		return
	}
	ch.notes(lines)
}
