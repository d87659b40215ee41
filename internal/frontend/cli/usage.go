package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"dure/agent/query"
	"dure/internal/frontend/text"
)

// UsageOptions say what of the use of models is shown.
type UsageOptions struct {
	By    string // day, model, project or session
	Since string // RFC 3339; "" = everything
	Chart bool   // bars
	JSON  bool

	// Home is cut off in front of folders: ~ stands for it.
	Home string
}

// Usage shows what models have used.
func (c *CLI) Usage(ctx context.Context, o UsageOptions) error {
	sum, err := wait[query.UsageSummary](ctx, c, text.BusyUsage, query.UsageReport{By: o.By, Since: o.Since})
	if err != nil {
		return err
	}
	return c.put(sum, o.JSON, func(w *bufio.Writer) {
		switch {
		case len(sum.Rows) == 0:
			fmt.Fprintln(w, c.Text.Say(text.UsageNone))
		case o.Chart:
			c.usageChart(w, sum, o)
		default:
			c.usageTable(w, sum, o)
		}
		if sum.Total.Unpriced > 0 {
			c.remark(w, c.Text.Say(text.UsageUnpriced, "n", sum.Total.Unpriced))
		}
		if n := len(sum.Skipped); n > 0 {
			const most = 5 // logs that are named
			list := strings.Join(sum.Skipped[:min(n, most)], ", ")
			if n > most {
				list += ", …"
			}
			c.remark(w, c.Text.Say(text.UsageSkipped, "n", n, "list", text.OneLine(list)))
		}
	})
}

// remark writes a sentence, wrapped where there is a terminal.
func (c *CLI) remark(w *bufio.Writer, s string) {
	lines := []string{s}
	if columns := c.columns(); columns > 0 {
		lines = text.Wrap(s, columns)
	}
	for _, l := range lines {
		fmt.Fprintln(w, l)
	}
}

func (c *CLI) usageTable(w *bufio.Writer, sum query.UsageSummary, o UsageOptions) {
	name := cmp.Or(map[string]text.Key{"model": text.ColModel, "project": text.ColProject, "session": text.ColSession}[sum.By], text.ColDay)
	rows := [][]string{c.heads(name, text.ColRequests, text.ColInput, text.ColOutput, text.ColCacheRead, text.ColCacheWrite, text.ColCost)}
	for _, r := range sum.Rows {
		rows = append(rows, c.usageRow(r, usageName(r, o)))
	}
	if len(sum.Rows) > 1 {
		rows = append(rows, c.usageRow(sum.Total, c.Text.Say(text.UsageTotal)))
	}
	const least = 12
	rows = fit(rows, 0, c.columns(), least, 5, 4, 1, 2, 3)
	const numbers = 0b1111110
	aligned(w, rows, numbers)
}

func (c *CLI) usageRow(r query.UsageRow, name string) []string {
	u := r.Usage
	return []string{
		name, strconv.Itoa(r.Requests), tokens(u.Input), tokens(u.Output), tokens(u.CacheRead), tokens(u.CacheWrite), c.spent(r),
	}
}

// spent says what a row cost, as far as that is known.
func (c *CLI) spent(r query.UsageRow) string {
	switch {
	case r.Unpriced == r.Requests && r.Requests > 0:
		return c.Text.Say(text.Unknown)
	case r.Unpriced > 0:
		return r.Cost.String() + "+"
	}
	return r.Cost.String()
}

func usageName(r query.UsageRow, o UsageOptions) string {
	name := r.Name
	if rest, ok := strings.CutPrefix(name, o.Home); ok && o.Home != "" && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
		name = "~" + rest
	}
	name = text.OneLine(bounded(name))
	if r.Title != "" {
		const title = 40
		name += " " + text.Cut(text.OneLine(bounded(r.Title)), title)
	}
	return name
}

// usageChart draws a bar for each row: its cost, or its tokens where no price is
// known.
func (c *CLI) usageChart(w *bufio.Writer, sum query.UsageSummary, o UsageOptions) {
	value := func(r query.UsageRow) (int64, string) { return int64(r.Cost), c.spent(r) }
	if sum.Total.Cost == 0 {
		value = func(r query.UsageRow) (int64, string) {
			return int64(r.Usage.Context()), tokens(r.Usage.Context())
		}
	}
	var rows [][]string
	most := int64(1)
	for _, r := range sum.Rows {
		v, shown := value(r)
		most = max(most, v)
		rows = append(rows, []string{usageName(r, o), shown})
	}
	columns := c.columns()
	if columns <= 0 {
		columns = 80
	}
	names := columns / 3
	for i := range rows {
		rows[i][0] = text.Cut(rows[i][0], names)
	}
	widths := widthsOf(rows)
	const least = 4 // cells of the longest bar
	room := max(columns-1-widths[0]-widths[1]-2*gap, least)
	for i, r := range sum.Rows {
		v, shown := value(r)
		line := rows[i][0] + strings.Repeat(" ", widths[0]-text.Width(rows[i][0])+gap) +
			strings.Repeat(" ", widths[1]-text.Width(shown)) + shown + strings.Repeat(" ", gap) + c.bar(v, most, room)
		w.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// bar returns v of most as a bar of at most cells; what is more than nothing has
// at least a sign.
func (c *CLI) bar(v, most int64, cells int) string {
	if v <= 0 {
		return ""
	}
	share := float64(v) / float64(most) * float64(cells)
	if c.Plain {
		return strings.Repeat("#", max(1, int(share+0.5)))
	}
	const parts = 8 // of a cell that a block can fill
	eighths := max(1, int(share*parts+0.5))
	bar := strings.Repeat("█", eighths/parts)
	if rest := eighths % parts; rest > 0 {
		bar += string(rune('█' + parts - rest)) // ▏ to ▉ follow the full block
	}
	return bar
}
