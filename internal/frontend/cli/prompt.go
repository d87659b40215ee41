package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
)

// shownPrompt is how many letters of a section are shown of it.
const shownPrompt = 200

// Prompt shows what the system prompt of a session would be made of: of each section
// its beginning, or with full all of it.
func (c *CLI) Prompt(ctx context.Context, q query.PromptPreview, full, asJSON bool) error {
	return tell(ctx, c, q, asJSON, func(w *bufio.Writer, r query.PromptReport) {
		for _, l := range promptLines(c.Text, r, full) {
			Hang(w, c.Columns(), l.head, l.body, l.indent)
		}
	})
}

// promptLine is a line of a report: a body that hangs behind its head.
type promptLine struct {
	head, body string
	indent     int
}

// promptLines is a report as people read it.
func promptLines(t text.Catalog, r query.PromptReport, full bool) []promptLine {
	model := r.Model
	if model == "" {
		model = t.Say(text.Unknown)
	}
	budget := t.Word("no limit")
	if r.Budget > 0 {
		budget = tokens(r.Budget)
	}
	lines := []promptLine{
		{"", t.Say(text.PromptOf, "profile", text.OneLine(r.Profile), "model", text.OneLine(model), "tokens", tokens(r.Tokens), "budget", budget), 0},
		{"", t.Say(text.PromptOwn, "path", text.OneLine(r.Path)), 0},
	}
	for _, s := range r.Sections {
		state := t.Word("optional")
		switch {
		case s.Dropped:
			state = t.Word("left out")
		case s.Required:
			state = t.Word("required")
		}
		about := t.Say(text.PromptSection, "tokens", tokens(s.Tokens), "priority", s.Priority, "state", state)
		lines = append(lines, promptLine{}, promptLine{text.OneLine(s.ID), about, 18})
		content := text.Clean(s.Content)
		if !full {
			content = beginning(text.OneLine(s.Content), shownPrompt)
		}
		for l := range strings.SplitSeq(content, "\n") {
			lines = append(lines, promptLine{"  ", l, 2})
		}
	}
	if len(r.Tools) > 0 {
		lines = append(lines, promptLine{}, promptLine{"", t.Word("system_tools"), 0})
	}
	for _, tool := range r.Tools {
		about := fmt.Sprintf("%5s  ", tokens(tool.Tokens))
		if full {
			about += text.OneLine(tool.Description)
		} else {
			about += beginning(text.OneLine(tool.Description), 60)
		}
		lines = append(lines, promptLine{"  " + text.OneLine(tool.Name), about, 20})
	}
	return lines
}

// beginning returns the first letters of a line.
func beginning(line string, n int) string {
	letters := []rune(line)
	if len(letters) <= n {
		return line
	}
	return string(letters[:n]) + "…"
}

// slashPrompt shows what the system prompt of this session is made of.
func (ch *chat) slashPrompt(ctx context.Context, arg string) {
	if arg != "" && !strings.EqualFold(arg, "full") {
		ch.v.note(yellow, ch.usageOf(ctx, "prompt"))
		return
	}
	q := query.PromptPreview{Model: ch.v.Model, Workdir: ch.v.Workdir, Opened: ch.v.Opened}
	if ch.v.Work != nil {
		q.Profile, q.Model = ch.v.Work.Name, cmp.Or(ch.v.Work.Model, q.Model)
	}
	r, ok := asked[query.PromptReport](ctx, ch, q)
	if !ok {
		return
	}
	for _, l := range promptLines(ch.Text, r, strings.EqualFold(arg, "full")) {
		body := l.body
		if l.head != "" {
			body = l.head + strings.Repeat(" ", max(0, l.indent-text.Width(l.head))) + body
		}
		ch.s.line(l.indent, part{plain, body})
	}
}

// slashProfile shows what holds for the kind of work of this session.
func (ch *chat) slashProfile(context.Context, string) {
	if ch.v.Work == nil {
		ch.v.note(dim, ch.Text.Say(text.Unknown))
		return
	}
	ch.v.note(plain, profileLine(ch.Text, *ch.v.Work))
}

// profileLine is what holds for a kind of work, in a line.
func profileLine(t text.Catalog, p agent.Profile) string {
	name := p.Name
	if p.Kind != p.Name {
		name += " (" + p.Kind + ")"
	}
	parts := []string{t.Word("profile") + " " + name}
	add := func(word, value string) {
		if value != "" {
			parts = append(parts, t.Word(word)+" "+value)
		}
	}
	add("model", p.Model)
	add("fallback", strings.Join(p.Fallback, ", "))
	add("effort", p.Effort)
	add("mode", string(p.Mode))
	add("plan", string(p.Plan))
	if p.Steps > 0 {
		add("steps", fmt.Sprint(p.Steps))
	}
	if p.Dollars > 0 {
		add("budget", fmt.Sprintf("$%.2f", p.Dollars))
	}
	if p.Tokens > 0 {
		add("budget", tokens(int(p.Tokens)))
	}
	add("verification", t.Word(map[bool]string{true: "on", false: "off"}[p.Verify]))
	add("system_tools", strings.Join(p.Tools, ", "))
	return text.OneLine(strings.Join(parts, " · "))
}
