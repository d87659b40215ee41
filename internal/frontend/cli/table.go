package cli

import (
	"bufio"
	"strings"

	"dure/internal/frontend/text"
)

// gap is the space between the columns of a table, in cells.
const gap = 2

// table writes rows in columns; the last column is not padded.
func table(w *bufio.Writer, rows [][]string) { aligned(w, rows, 0) }

// aligned writes rows in columns of which right, a set of bits, stand to the
// right, as numbers do.
func aligned(w *bufio.Writer, rows [][]string, right uint) {
	widths := widthsOf(rows)
	for _, r := range rows {
		line := ""
		for i, cell := range r {
			pad := strings.Repeat(" ", widths[i]-text.Width(cell))
			if right&(1<<i) != 0 {
				line += pad + cell
			} else {
				line += cell + pad
			}
			line += strings.Repeat(" ", gap)
		}
		w.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func widthsOf(rows [][]string) []int {
	var widths []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], text.Width(cell))
		}
	}
	return widths
}

// squeeze shortens the cells of one column until the rows fit into columns, which
// is 0 where nothing limits them, but not below least cells.
func squeeze(rows [][]string, column, columns, least int) {
	if columns <= 0 {
		return
	}
	total := -gap
	widths := widthsOf(rows)
	for _, w := range widths {
		total += w + gap
	}
	if total <= columns || column >= len(widths) {
		return
	}
	room := max(widths[column]-(total-columns), least)
	for _, r := range rows {
		if column < len(r) {
			r[column] = text.Cut(r[column], room)
		}
	}
}

// heads is the first row of a table.
func (c *CLI) heads(names ...text.Key) (row []string) {
	for _, k := range names {
		row = append(row, c.Text.Say(k))
	}
	return row
}

// fit takes columns out, as narrow does, and then shortens the cells of one; the last column
// stays that.
func fit(rows [][]string, column, columns, least int, dispensable ...int) [][]string {
	kept := narrow(rows, column, columns, least, dispensable...)
	if column == len(rows[0])-1 {
		column = len(kept[0]) - 1
	}
	squeeze(kept, column, columns, least)
	return kept
}

// narrow takes columns out, in the order in which they can be missed, until the
// rows fit with the one that can be squeezed cut to least cells.
func narrow(rows [][]string, squeezable, columns, least int, dispensable ...int) [][]string {
	if columns <= 0 || len(rows) == 0 {
		return rows
	}
	out := map[int]bool{}
	for _, gone := range dispensable {
		total := -gap
		for i, w := range widthsOf(rows) {
			if i == squeezable {
				w = min(w, least)
			}
			if !out[i] {
				total += w + gap
			}
		}
		if total <= columns {
			break
		}
		out[gone] = true
	}
	if len(out) == 0 {
		return rows
	}
	kept := make([][]string, len(rows))
	for n, r := range rows {
		for i, cell := range r {
			if !out[i] {
				kept[n] = append(kept[n], cell)
			}
		}
	}
	return kept
}
