package checkpoint

import (
	"bytes"
	"slices"
	"strings"
)

// edit replaces the lines from start up to end of a text, counted from 0.
type edit struct {
	start, end int
	lines      []string // with their ends
}

// editsOf returns what makes one text of another, without lines around it.
func editsOf(before, after []byte) []edit {
	var all []edit
	hunks := hunksOf(before, after)
	for i := range hunks {
		h := &hunks[i]
		at := max(h.OldStart-1, 0)
		open := false // the last edit goes on
		for j, l := range h.Lines {
			switch l[0] {
			case ' ':
				at++
				open = false
			case '-', '+':
				if !open {
					all = append(all, edit{start: at, end: at})
					open = true
				}
				e := &all[len(all)-1]
				if l[0] == '-' {
					at++
					e.end = at
					continue
				}
				text := l[1:] + "\n"
				if j+1 < len(h.Lines) && h.Lines[j+1][0] == '\\' {
					text = l[1:]
				}
				e.lines = append(e.lines, text)
			}
		}
	}
	return all
}

func splitLines(text []byte) []string {
	lines := strings.SplitAfter(string(text), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// sides name the three texts of a merge where it is marked that two of them
// contradict each other.
type sides struct{ ours, theirs string }

// merge3 makes in ours the changes that lead from origin to theirs. Changes that
// overlap or touch contradict each other, unless they are the same: where names
// are given both are written, between marks, else nothing is. Clean reports whether
// there were none.
func merge3(origin, ours, theirs []byte, names *sides) (merged []byte, clean bool) {
	base := splitLines(origin)
	a, b := editsOf(origin, ours), editsOf(origin, theirs)
	var out bytes.Buffer
	at := 0
	clean = true
	for len(a) > 0 || len(b) > 0 {
		x, y, start, end := nextRegion(&a, &b)
		writeLines(&out, base[at:start])
		at = end
		mine, other := replay(base, x, start, end), replay(base, y, start, end)
		switch {
		case len(y) == 0 || slices.Equal(mine, other):
			writeLines(&out, mine)
		case len(x) == 0:
			writeLines(&out, other)
		case names == nil:
			return nil, false
		default:
			clean = false
			marked(&out, "<<<<<<< "+names.ours, mine)
			marked(&out, "=======", other)
			marked(&out, ">>>>>>> "+names.theirs, nil)
		}
	}
	writeLines(&out, base[at:])
	return out.Bytes(), clean
}

// nextRegion takes the edits off both lists that belong to the next place.
func nextRegion(a, b *[]edit) (x, y []edit, start, end int) {
	first := a
	if len(*a) == 0 || len(*b) > 0 && (*b)[0].start < (*a)[0].start {
		first = b
	}
	start, end = (*first)[0].start, (*first)[0].end
	take := func(list, into *[]edit) bool {
		if len(*list) == 0 || (*list)[0].start > end {
			return false
		}
		*into = append(*into, (*list)[0])
		end = max(end, (*list)[0].end)
		*list = (*list)[1:]
		return true
	}
	for take(a, &x) || take(b, &y) {
	}
	return x, y, start, end
}

// replay returns what edits make of the lines from start up to end.
func replay(base []string, edits []edit, start, end int) (lines []string) {
	at := start
	for _, e := range edits {
		lines = append(append(lines, base[at:e.start]...), e.lines...)
		at = e.end
	}
	return append(lines, base[at:end]...)
}

func writeLines(out *bytes.Buffer, lines []string) {
	for _, l := range lines {
		out.WriteString(l)
	}
}

// marked writes a mark on a line of its own, and lines behind it.
func marked(out *bytes.Buffer, name string, lines []string) {
	if b := out.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
		out.WriteByte('\n')
	}
	out.WriteString(name + "\n")
	writeLines(out, lines)
}
