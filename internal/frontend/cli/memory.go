package cli

import (
	"bufio"
	"context"
	"strconv"
	"strings"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// MemoryScopes are the scopes of instructions, the one to take when none is named
// first.
func MemoryScopes() []string { return []string{"project", "local", "user", "managed"} }

// MemoryScope returns the scope that a word means.
func MemoryScope(word string) (scope string, ok bool) {
	word = strings.ToLower(word)
	switch word {
	case "":
		return "project", true
	case "global":
		return "user", true
	}
	for _, s := range MemoryScopes() {
		if s == word {
			return s, true
		}
	}
	return "", false
}

// Memory lists the instruction files of a folder.
func (c *CLI) Memory(ctx context.Context, workdir string, asJSON bool) error {
	return tell(ctx, c, query.ListMemory{Workdir: workdir}, asJSON, func(w *bufio.Writer, r query.MemoryReport) {
		writeLines(w, c.memoryLines(r, c.columns()))
	})
}

// MemoryText writes what a model is told by the files that are active from the start,
// of one scope or, with "", of all.
func (c *CLI) MemoryText(ctx context.Context, workdir, scope string, asJSON bool) error {
	return tell(ctx, c, query.ListMemory{Workdir: workdir, Text: true, Scope: scope}, asJSON, func(w *bufio.Writer, r query.MemoryReport) {
		said := text.Clean(r.Text)
		if r.Text == "" {
			said = c.Text.Say(text.MemoryNone)
		}
		w.WriteString(said + "\n")
	})
}

// memoryLines is a report as people read it.
func (c *CLI) memoryLines(r query.MemoryReport, columns int) (lines []string) {
	if r.Off {
		lines = append(lines, c.Text.Say(text.MemoryOff))
	}
	var rows [][]string
	for _, f := range r.Files {
		size := "-"
		if f.Chars > 0 {
			size = strconv.Itoa(f.Chars)
		}
		path := text.OneLine(f.Path)
		if len(f.Paths) > 0 {
			path += " (" + text.OneLine(bounded(strings.Join(f.Paths, ", "))) + ")"
		}
		if f.Note != "" {
			path += ": " + text.OneLine(c.Text.Phrase(f.Note))
		}
		rows = append(rows, []string{c.Text.Word("memory." + f.Scope), c.Text.Word("memory." + f.State), size, path})
	}
	if len(rows) > 0 {
		rows = append([][]string{{c.Text.Say(text.ColScope), c.Text.Say(text.ColStatus), c.Text.Say(text.ColChars), c.Text.Say(text.ColFile)}}, rows...)
		const least = 20
		squeeze(rows, 3, columns, least)
		var b strings.Builder
		w := bufio.NewWriter(&b)
		aligned(w, rows, 1<<2)
		w.Flush()
		lines = append(lines, strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")...)
	} else if !r.Off {
		lines = append(lines, c.Text.Say(text.MemoryNone))
	}
	lines = append(lines, c.memoryWarnings(r)...)
	for _, p := range r.Places {
		if !p.Exists && p.Scope != "managed" {
			lines = append(lines, c.Text.Say(text.MemoryPlace, "scope", c.Text.Word("memory."+p.Scope), "path", text.OneLine(p.Path)))
		}
	}
	return lines
}

// memoryWarnings are a line for each finding.
func (c *CLI) memoryWarnings(r query.MemoryReport) (lines []string) {
	for _, f := range r.Findings {
		_, detail, fix := c.Text.Finding(f)
		line := text.OneLine(bounded(detail))
		if fix != "" {
			line += " – " + text.OneLine(bounded(fix))
		}
		lines = append(lines, line)
	}
	return lines
}

// memoryWarning is one line on what the user should know of the instructions of a
// session; "" = nothing, or nobody can tell.
func (c *CLI) memoryWarning(ctx context.Context, session string) string {
	r, err := client.Query[query.MemoryReport](ctx, c.Client, query.ListMemory{Session: session})
	if err != nil {
		return ""
	}
	lines := c.memoryWarnings(r)
	if len(lines) == 0 {
		return ""
	}
	if more := len(lines) - 1; more > 0 {
		lines[0] += " " + c.Text.Say(text.MemoryMore, "n", more)
	}
	return lines[0]
}

// slashMemory shows the files, or makes one ready to be edited; "undo" takes the note
// back that was added last.
func (ch *chat) slashMemory(ctx context.Context, arg string) {
	if strings.EqualFold(arg, "undo") {
		ch.forgetNote()
		return
	}
	if arg == "" {
		r, ok := asked[query.MemoryReport](ctx, ch, query.ListMemory{Session: ch.sess.Info.ID})
		if !ok {
			return
		}
		ch.notes(ch.memoryLines(r, ch.s.usable()))
		return
	}
	scope, ok := MemoryScope(arg)
	if !ok || ch.o.MakeMemory == nil {
		ch.v.note(yellow, ch.usageOf(ctx, "memory"))
		return
	}
	p, err := ch.o.MakeMemory(ch.v.Workdir, scope)
	if ch.failed(err) {
		return
	}
	said := text.MemoryMade
	if p.Exists {
		said = text.MemoryAt
	}
	ch.v.note(plain, ch.Text.Say(said, "path", text.OneLine(p.Path)))
	if ch.o.Edit == nil {
		ch.v.note(dim, ch.Text.Say(text.MemoryEdit, "scope", scope))
		return
	}
	if ch.failed(ch.outside(func() error { return ch.o.Edit(ctx, p.Path) })) {
		return
	}
	ch.v.note(dim, ch.Text.Say(text.MemoryEdited))
}

// isNote reports whether an input is to be remembered: one line behind a #, which is
// neither a number nor a heading of more than one #.
func isNote(s string) bool {
	rest, ok := strings.CutPrefix(s, "#")
	return ok && !strings.ContainsAny(s, "\n") && strings.TrimSpace(rest) != "" && rest[0] != '#' && (rest[0] < '0' || rest[0] > '9')
}

// askNote asks where an input is to be remembered.
func (ch *chat) askNote(s string) {
	ch.noting = s
	ch.v.note(dim, ch.Text.Say(text.MemoryWhere))
}

// takeNote does what was answered.
func (ch *chat) takeNote(ctx context.Context, answer string) {
	s := ch.noting
	ch.noting = ""
	scope := map[string]string{"": "project", "1": "project", "2": "local", "3": "user"}[answer]
	switch {
	case answer == "4":
		ch.say(ctx, s)
	case scope == "":
		ch.v.note(dim, ch.Text.Say(text.MemoryNot))
	default:
		path, undo, err := ch.o.Remember(ch.v.Workdir, scope, strings.TrimPrefix(s, "#"))
		if ch.failed(err) {
			return
		}
		ch.unnote = undo
		ch.v.note(plain, ch.Text.Say(text.MemoryNoted, "path", text.OneLine(path)))
		ch.unreadNote(ctx, path)
	}
}

// unreadNote says that a note stands in a file that the model is not given.
func (ch *chat) unreadNote(ctx context.Context, path string) {
	r, err := client.Query[query.MemoryReport](ctx, ch.Client, query.ListMemory{Session: ch.sess.Info.ID})
	if err != nil {
		return
	}
	for _, f := range r.Files {
		if f.Path == path && f.State == "untrusted" {
			ch.v.note(yellow, ch.Text.Say(text.RememberUnread))
		}
	}
}

// forgetNote takes back what was remembered last.
func (ch *chat) forgetNote() {
	if ch.unnote == nil {
		ch.v.note(yellow, ch.Text.Say(text.MemoryNothing))
		return
	}
	if ch.failed(ch.unnote()) {
		return
	}
	ch.unnote = nil
	ch.v.note(plain, ch.Text.Say(text.MemoryUndone))
}
