package files

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"dure/internal/tools/kit"
)

// hunk is a part of a diff: lines begin with " ", "-", "+" or "\".
type hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}

// patch is the difference between two texts.
type patch struct {
	hunks          []hunk
	added, removed int
}

// contextLines stand around each change.
const contextLines = 3

// diffOf compares two texts. Lines that differ only in their ends are equal.
func diffOf(before, after string) patch {
	a, b := withEnds(before), withEnds(after)
	skip, keep := sameEnds(a, b)
	raw := diff.Diff("a", []byte(strings.Join(a[skip:len(a)-keep], "")), "b", []byte(strings.Join(b[skip:len(b)-keep], "")))
	var p patch
	for i, line := range strings.SplitAfter(string(raw), "\n") {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case i < 3 || line == "": // the names
		case strings.HasPrefix(line, "@@ "):
			var h hunk
			// The format is that of the package above: all four numbers are there.
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &h.OldStart, &h.OldLines, &h.NewStart, &h.NewLines); err != nil {
				return patch{}
			}
			h.OldStart += skip
			h.NewStart += skip
			p.hunks = append(p.hunks, h)
		case len(p.hunks) > 0:
			h := &p.hunks[len(p.hunks)-1]
			h.Lines = append(h.Lines, line)
			switch line[0] {
			case '+':
				p.added++
			case '-':
				p.removed++
			}
		}
	}
	return p
}

// withEnds splits s into lines that all end in "\n", but for the last.
func withEnds(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.SplitAfter(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// sameEnds returns how many lines at the beginning and the end need not be
// compared, because they are equal and too far from any difference to be shown.
func sameEnds(a, b []string) (head, tail int) {
	n := min(len(a), len(b))
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return max(head-contextLines, 0), max(tail-contextLines, 0)
}

// Bounds of a patch in a structured answer.
const (
	patchLines = 1_000
	patchBytes = 16 << 10
)

// bounded returns the first hunks, as many as fit. It is never nil.
func (p patch) bounded() []hunk {
	lines, size := 0, 0
	for i, h := range p.hunks {
		lines += len(h.Lines)
		for _, l := range h.Lines {
			size += len(l)
		}
		if lines > patchLines || size > patchBytes {
			return p.hunks[:i:i]
		}
	}
	return append([]hunk{}, p.hunks...)
}

// text is the patch for reading, at most so many lines and bytes of it.
func (p patch) text(lines, size int) string {
	var b strings.Builder
	total, shown := 0, 0
	for _, h := range p.hunks {
		total += len(h.Lines)
	}
	for _, h := range p.hunks {
		if shown == lines || b.Len() >= size {
			break
		}
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		for _, l := range h.Lines {
			if shown == lines || b.Len() >= size {
				break
			}
			b.WriteString(kit.Cut(l, 300) + "\n")
			shown++
		}
	}
	if shown < total {
		fmt.Fprintf(&b, "[%d more lines of the diff]\n", total-shown)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
