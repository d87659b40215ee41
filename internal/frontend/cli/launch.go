package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"dure/agent/query"
	"dure/client"
	"dure/internal/base/near"
	"dure/internal/frontend/text"
)

// calculated is a result as people read it.
func calculated(r query.Calculation) string {
	line := r.Result
	if !r.Exact {
		line = "≈ " + line
	}
	if r.Fraction != "" {
		line += " (" + r.Fraction + ")"
	}
	return line
}

// Calculate works a calculation out.
func (c *CLI) Calculate(ctx context.Context, s string, asJSON bool) error {
	return tell(ctx, c, query.Calculate{Text: s}, asJSON, func(w *bufio.Writer, r query.Calculation) { writeLines(w, []string{calculated(r)}) })
}

// listed writes rows in columns, the last one cut at the width of the terminal, or says that
// there are none.
func (c *CLI) listed(w *bufio.Writer, rows [][]string, none text.Key) {
	if len(rows) == 0 {
		fmt.Fprintln(w, c.Text.Say(none))
		return
	}
	const least = 16
	squeeze(rows, len(widthsOf(rows))-1, c.columns(), least)
	table(w, rows)
}

// Emoji lists what a text finds.
func (c *CLI) Emoji(ctx context.Context, q query.FindEmoji, asJSON bool) error {
	return tell(ctx, c, q, asJSON, func(w *bufio.Writer, list []query.Emoji) { c.listed(w, emojiRows(list), text.EmojiNone) })
}

func emojiRows(list []query.Emoji) (rows [][]string) {
	for _, e := range list {
		rows = append(rows, []string{e.Sign, e.Name + ", " + e.Word})
	}
	return rows
}

// Snippets lists the user's snippets.
func (c *CLI) Snippets(ctx context.Context, asJSON bool) error {
	return tell(ctx, c, query.ListSnippets{}, asJSON, func(w *bufio.Writer, list []query.Snippet) {
		c.listed(w, snippetRows(c.Text, list), text.SnippetsNone)
	})
}

func snippetRows(t text.Catalog, list []query.Snippet) (rows [][]string) {
	for _, s := range list {
		about := s.Description
		if about == "" {
			about, _, _ = strings.Cut(s.Text, "\n")
		}
		if s.Error != "" {
			about = t.Say(text.SnippetBroken, "error", s.Error)
		}
		rows = append(rows, []string{text.OneLine(s.Name), variables(s.Variables), text.OneLine(about)})
	}
	return rows
}

// variables are the gaps of a snippet, as they are filled in.
func variables(list []query.Variable) string {
	var all []string
	for _, v := range list {
		word := v.Name
		if !v.Needed {
			word = "[" + v.Name + "]"
		}
		all = append(all, text.OneLine(word))
	}
	return strings.Join(all, " ")
}

// Links lists the user's links.
func (c *CLI) Links(ctx context.Context, asJSON bool) error {
	return tell(ctx, c, query.ListLinks{}, asJSON, func(w *bufio.Writer, list []query.Link) { c.listed(w, linkRows(list), text.LinksNone) })
}

func linkRows(list []query.Link) (rows [][]string) {
	for _, l := range list {
		rows = append(rows, []string{text.OneLine(l.Name), text.OneLine(l.Description), text.OneLine(l.URL)})
	}
	return rows
}

// Files lists the files that a text finds.
func (c *CLI) Files(ctx context.Context, q query.FindFiles, asJSON bool) error {
	return tell(ctx, c, q, asJSON, func(w *bufio.Writer, list []string) {
		if len(list) == 0 {
			fmt.Fprintln(w, c.Text.Say(text.FilesNone))
		}
		for _, l := range list {
			fmt.Fprintln(w, text.ExactLine(l))
		}
	})
}

// System says what the program runs on.
func (c *CLI) System(ctx context.Context, asJSON bool) error {
	return tell(ctx, c, query.DescribeSystem{}, asJSON, func(w *bufio.Writer, s query.System) {
		t := c.Text
		all := []string{
			t.Say(text.SystemRuns, "name", text.OneLine(cmp.Or(s.Name, s.OS)), "os", s.OS, "arch", s.Arch),
			t.Say(text.SystemSelf, "version", text.OneLine(cmp.Or(s.Version, "?")), "language", s.Language),
			t.Say(text.SystemCPUs, "n", s.CPUs),
		}
		if s.Memory > 0 {
			all = append(all, t.Say(text.SystemMemory, "free", size(s.MemoryFree), "all", size(s.Memory)))
		}
		if s.DiskFree > 0 {
			all = append(all, t.Say(text.SystemDisk, "free", size(s.DiskFree)))
		}
		writeLines(w, append(all,
			t.Say(text.SystemFolder, "path", text.ExactLine(s.Workdir)), t.Say(text.SystemHome, "path", text.ExactLine(s.Home)),
			t.Say(text.SystemData, "path", text.ExactLine(s.Data)), t.Say(text.SystemTime, "time", s.Time)))
	})
}

// size writes bytes as people do.
func size(n int64) string {
	f, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if f < 1024 {
			break
		}
		f, unit = f/1024, u
	}
	return fmt.Sprintf("%.4g %s", f, unit)
}

// PaletteOptions say what of the palette is listed.
type PaletteOptions struct {
	Workdir string
	Extra   []query.PaletteEntry // what the program itself can do
	Kind    string               // "" = all kinds
	Filter  string
	JSON    bool
}

// Palette lists what can be launched.
func (c *CLI) Palette(ctx context.Context, o PaletteOptions) error {
	all, err := client.Query[[]query.PaletteEntry](ctx, c.Client, query.ListPalette{Workdir: o.Workdir})
	if err != nil {
		return err
	}
	all = append(slices.Clone(o.Extra), all...)
	if o.Kind != "" {
		all = slices.DeleteFunc(all, func(e query.PaletteEntry) bool { return e.Kind != o.Kind })
	}
	all = filtered(all, o.Filter)
	return c.put(append([]query.PaletteEntry{}, all...), o.JSON, func(w *bufio.Writer) { c.listed(w, paletteRows(c.Text, all), text.PaletteNone) })
}

func paletteRows(t text.Catalog, all []query.PaletteEntry) (rows [][]string) {
	for _, e := range all {
		rows = append(rows, []string{t.Word(e.Kind), text.OneLine(text.Cut(e.Use, 40)), text.OneLine(e.Description)})
	}
	return rows
}

// filtered returns the entries that all words of a filter fit, the best first: those
// whose name begins with a word before those that have it somewhere, and these before
// those whose name it is nearly.
func filtered(all []query.PaletteEntry, filter string) []query.PaletteEntry {
	words := strings.Fields(strings.ToLower(bounded(filter)))
	type ranked struct {
		query.PaletteEntry
		rank int
	}
	var fit []ranked
	for _, e := range all {
		rank, ok := 0, true
		for _, w := range words {
			r := fitness(e, w)
			rank, ok = rank+r, ok && r >= 0
		}
		if ok {
			fit = append(fit, ranked{e, rank})
		}
	}
	slices.SortStableFunc(fit, func(a, b ranked) int { return a.rank - b.rank })
	var out []query.PaletteEntry
	for _, f := range fit {
		out = append(out, f.PaletteEntry)
	}
	return out
}

// fitness says how well an entry fits a word; 0 is best, -1 is not at all.
func fitness(e query.PaletteEntry, word string) int {
	name := strings.ToLower(e.Name)
	switch {
	case name == word:
		return 0
	case strings.HasPrefix(name, word):
		return 1
	case strings.Contains(name, word):
		return 2
	case strings.Contains(strings.ToLower(e.Use), word):
		return 3
	case strings.Contains(strings.ToLower(e.Description), word):
		return 4
	case len(word) > 3 && near.Distance(name, word, 3) < 3:
		return 5
	}
	return -1
}

// FindWeb searches the web and writes what is found, with the summary before it.
func (c *CLI) FindWeb(ctx context.Context, q query.SearchWeb, asJSON bool) error {
	return tell(ctx, c, q, asJSON, func(w *bufio.Writer, a query.WebAnswer) {
		if a.Failed != "" {
			fmt.Fprintln(c.Err, c.Text.Say(text.LabelNote)+c.Text.Say(text.FindNoSummary, "error", text.OneLine(c.Text.Phrase(bounded(a.Failed)))))
		}
		if len(a.Results) == 0 {
			fmt.Fprintln(w, c.Text.Say(text.FindNone))
			return
		}
		if a.Summary != "" {
			fmt.Fprintf(w, "%s\n\n", text.Clean(a.Summary))
		}
		for i, h := range a.Results {
			fmt.Fprintf(w, "[%d] %s\n    %s\n", i+1, text.OneLine(h.Title), text.ExactLine(h.URL))
			if line := strings.TrimSpace(text.OneLine(h.Date) + "  " + text.OneLine(h.Snippet)); line != "" && a.Summary == "" {
				fmt.Fprintf(w, "    %s\n", line)
			}
		}
	})
}
