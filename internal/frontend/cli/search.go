package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// SearchOptions say what is looked for.
type SearchOptions struct {
	Query   query.Search // Session may be any name of one
	Rebuild bool         // the index from nothing
	JSON    bool
	Color   bool   // what was looked for stands out
	Home    string // ~ stands for it
}

// Search shows where in the sessions a text stands. The index is brought up to date
// first; while somebody else does that, what it has is searched.
func (c *CLI) Search(ctx context.Context, o SearchOptions) error {
	if o.Query.Session != "" {
		info, err := c.Find(ctx, o.Query.Session, "")
		if err != nil {
			return err
		}
		o.Query.Session = info.ID
	}
	rep, err := c.index(ctx, o)
	if err != nil {
		return err
	}
	res, err := client.Query[query.SearchResult](ctx, c.Client, o.Query)
	if err != nil {
		return err
	}
	return c.put(struct {
		query.SearchResult
		Index query.IndexReport `json:"index"`
	}{res, rep}, o.JSON, func(w *bufio.Writer) {
		c.searchHits(w, res, o)
		if rep.Busy {
			c.remark(w, c.Text.Say(text.SearchBusy))
		}
	})
}

// indexStep is how long the index is worked at before it is said how far it is, in
// milliseconds.
const indexStep = 1000

// index brings the index up to date. When that takes a while, a query that cannot be
// understood is told first.
func (c *CLI) index(ctx context.Context, o SearchOptions) (query.IndexReport, error) {
	rebuild, asked, shown := o.Rebuild, false, false
	defer func() {
		if shown {
			fmt.Fprint(c.Err, "\r\x1b[K")
		}
	}()
	for {
		rep, err := client.Query[query.IndexReport](ctx, c.Client, query.IndexSessions{Rebuild: rebuild, Millis: indexStep})
		if err != nil || rep.Done || rep.Busy {
			return rep, err
		}
		rebuild = false
		if !asked {
			asked = true
			if _, err := client.Query[query.SearchResult](ctx, c.Client, o.Query); err != nil {
				return rep, err
			}
		}
		if c.Progress {
			shown = true
			const all = 100
			line := c.Text.Say(text.BusyIndex) + fmt.Sprintf(" · %d %%", rep.Events*all/max(1, rep.Events+rep.Left))
			fmt.Fprint(c.Err, "\r\x1b[K"+text.Cut(line, c.lineWidth()))
		}
	}
}

// searchHits lists hits by session, the one with the best hit first.
func (c *CLI) searchHits(w *bufio.Writer, res query.SearchResult, o SearchOptions) {
	if len(res.Hits) == 0 {
		c.remark(w, c.Text.Say(text.SearchNone))
		return
	}
	var order []string
	of := map[string][]query.SearchHit{}
	for _, h := range res.Hits {
		if of[h.Session] == nil {
			order = append(order, h.Session)
		}
		of[h.Session] = append(of[h.Session], h)
	}
	for i, id := range order {
		if i > 0 {
			fmt.Fprintln(w)
		}
		first := of[id][0]
		line := joined(text.OneLine(bounded(id)), usageName(query.UsageRow{Name: first.Workdir}, UsageOptions{Home: o.Home}), text.OneLine(bounded(first.Title)))
		if columns := c.columns(); columns > 0 {
			line = text.Cut(line, columns)
		}
		fmt.Fprintln(w, line)
		for _, h := range of[id] {
			c.searchHit(w, h, o.Color)
		}
	}
	first := res.Hits[0]
	fmt.Fprintln(w)
	c.remark(w, c.Text.Say(text.SearchOpen, "session", text.OneLine(first.Session), "seq", first.Seq))
	if res.More {
		c.remark(w, c.Text.Say(text.SearchMore))
	}
}

func (c *CLI) searchHit(w *bufio.Writer, h query.SearchHit, color bool) {
	const minutes = "2006-01-02 15:04"
	head := fmt.Sprintf("%6d  %s  %s", h.Seq, h.Time.Local().Format(minutes), c.Text.Word(text.OneLine(h.Kind)))
	const indent = 34
	before := ""
	if h.Tool != "" {
		before = toolName(h.Tool) + ": "
	}
	if h.Dead {
		before = c.Text.Say(text.SearchDead) + " · " + before
	}
	snippet, marks := before+h.Snippet, make([]query.Mark, 0, len(h.Marks))
	for _, m := range h.Marks {
		marks = append(marks, query.Mark{From: m.From + len(before), To: m.To + len(before)})
	}
	snippet, marks = cleanMarked(snippet, marks)
	if !color {
		marks = nil
	}
	hangMarked(w, c.columns(), head, snippet, marks, indent)
}

// cleanMarked makes a text harmless for a terminal, and keeps its marks where they are.
// A mark that is out of place is dropped.
func cleanMarked(s string, marks []query.Mark) (string, []query.Mark) {
	var b strings.Builder
	var out []query.Mark
	at := 0
	for _, m := range marks {
		if m.From < at || m.To < m.From || m.To > len(s) {
			continue
		}
		b.WriteString(text.Clean(s[at:m.From]))
		from := b.Len()
		b.WriteString(text.Clean(s[m.From:m.To]))
		out = append(out, query.Mark{From: from, To: b.Len()})
		at = m.To
	}
	b.WriteString(text.Clean(s[at:]))
	return strings.ReplaceAll(b.String(), "\n", " "), out
}

// hangMarked is [Hang] for a text with marks, which are written in bold.
func hangMarked(w *bufio.Writer, columns int, head, body string, marks []query.Mark, indent int) {
	var plain strings.Builder
	lines := bufio.NewWriter(&plain)
	Hang(lines, columns, head, body, indent)
	lines.Flush()
	if len(marks) == 0 {
		w.WriteString(plain.String())
		return
	}
	at, begun := 0, false // in body
	for line := range strings.SplitAfterSeq(plain.String(), "\n") {
		text := strings.TrimRight(line, "\n")
		rest := strings.TrimLeft(text, " ")
		if !begun && strings.HasPrefix(text, head) {
			rest = strings.TrimLeft(text[len(head):], " ")
			begun = true
		}
		n := strings.Index(body[at:], rest)
		if rest == "" || n < 0 { // the head alone
			w.WriteString(line)
			continue
		}
		w.WriteString(text[:len(text)-len(rest)])
		from := at + n
		at = from + len(rest)
		writeMarked(w, body, from, at, marks)
		w.WriteString(line[len(text):])
	}
}

func writeMarked(w *bufio.Writer, body string, from, to int, marks []query.Mark) {
	for _, m := range marks {
		a, b := max(m.From, from), min(m.To, to)
		if a >= b {
			continue
		}
		fmt.Fprintf(w, "%s\x1b[1m%s\x1b[0m", body[from:a], body[a:b])
		from = b
	}
	w.WriteString(body[from:to])
}
