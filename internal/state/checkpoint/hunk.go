package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// A Hunk is a place at which two texts differ, with three lines around it. Lines
// begin with " " (in both), "-" (before), "+" (after), or are `\ No newline at end
// of file`, which is said of the line before. Line numbers begin at 1; those of a
// side without lines at 0.
type Hunk struct {
	OldStart, OldLines int
	NewStart, NewLines int
	Lines              []string
}

// contextLines stand around each difference.
const contextLines = 3

// hunksOf compares two texts. The lines of both, joined, are the texts byte for
// byte.
func hunksOf(before, after []byte) []Hunk {
	skip, a, b := trimEnds(before, after)
	raw := string(diff.Diff("a", a, "b", b))
	var hunks []Hunk
	for i, line := range strings.Split(raw, "\n") {
		switch {
		case i < 3 || line == "": // the names, and the end
		case strings.HasPrefix(line, "@@ "):
			var h Hunk
			// The format is that of the package above: all four numbers are there.
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &h.OldStart, &h.OldLines, &h.NewStart, &h.NewLines); err != nil {
				return nil
			}
			h.OldStart += skip
			h.NewStart += skip
			hunks = append(hunks, h)
		case len(hunks) > 0:
			h := &hunks[len(hunks)-1]
			h.Lines = append(h.Lines, line)
		}
	}
	return hunks
}

// trimEnds cuts off lines that are equal in both texts and too far from any
// difference to be shown: to compare them takes most of the time. Skip is how
// many there are at the beginning.
func trimEnds(a, b []byte) (skip int, x, y []byte) {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	i = lineBack(a, i, contextLines)
	skip = bytes.Count(a[:i], []byte{'\n'})
	a, b = a[i:], b[i:]
	n = min(len(a), len(b))
	j := 0
	for j < n && a[len(a)-1-j] == b[len(b)-1-j] {
		j++
	}
	j -= lineOn(a[len(a)-j:], contextLines+1)
	return skip, a[:len(a)-j], b[:len(b)-j]
}

// lineBack returns the beginning of the line that is so many before the one that
// holds text[at].
func lineBack(text []byte, at, lines int) int {
	for {
		at = bytes.LastIndexByte(text[:at], '\n')
		if at < 0 {
			return 0
		}
		if lines == 0 {
			return at + 1
		}
		lines--
	}
}

// lineOn returns how many bytes so many lines take, of which the first may be the
// end of one. It is all of them when what would be left does not begin a line.
func lineOn(text []byte, lines int) int {
	n := 0
	for range lines {
		i := bytes.IndexByte(text[n:], '\n')
		if i < 0 {
			return len(text)
		}
		n += i + 1
	}
	return n
}

// counts returns how many lines a set of hunks adds and removes.
func counts(hunks []Hunk) (added, removed int) {
	for _, h := range hunks {
		for _, l := range h.Lines {
			switch l[0] {
			case '+':
				added++
			case '-':
				removed++
			}
		}
	}
	return added, removed
}

// side returns the lines of one side of a hunk, with their ends.
func (h *Hunk) side(sign byte) []string {
	var lines []string
	counts := false
	for _, l := range h.Lines {
		switch l[0] {
		case ' ', sign:
			counts = true
			lines = append(lines, l[1:]+"\n")
		case '\\':
			if counts {
				lines[len(lines)-1] = strings.TrimSuffix(lines[len(lines)-1], "\n")
			}
		default:
			counts = false
		}
	}
	return lines
}

var errHunk = errors.New("the lines are not there any more, or stand there more than once")

// unapply takes hunks back from a text that they led to, or that has changed
// since elsewhere. Each has to be found line by line: where it is expected, or at
// exactly one other place behind the one before it.
func unapply(text []byte, hunks []Hunk) ([]byte, error) {
	lines := strings.SplitAfter(string(text), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var out []string
	done, drift := 0, 0 // lines that are in out; how far the last place was from the expected one
	for i := range hunks {
		h := &hunks[i]
		now, then := h.side('+'), h.side('-')
		at, ok := locate(lines, now, done, max(h.NewStart-1, 0)+drift)
		if h.NewLines == 0 {
			at, ok = len(lines), len(lines) == 0 // the text was emptied
		}
		if !ok {
			return nil, fmt.Errorf("lines %d to %d: %w", h.NewStart, h.NewStart+max(h.NewLines-1, 0), errHunk)
		}
		drift = at - max(h.NewStart-1, 0)
		out = append(append(out, lines[done:at]...), then...)
		done = at + len(now)
	}
	out = append(out, lines[done:]...)
	for _, l := range out[:max(len(out)-1, 0)] {
		if !strings.HasSuffix(l, "\n") {
			return nil, fmt.Errorf("the end of the text: %w", errHunk)
		}
	}
	return []byte(strings.Join(out, "")), nil
}

// locate finds part in lines, at or behind from.
func locate(lines, part []string, from, expected int) (int, bool) {
	here := func(at int) bool {
		if at < from || at+len(part) > len(lines) {
			return false
		}
		for i, l := range part {
			if lines[at+i] != l {
				return false
			}
		}
		return true
	}
	if here(expected) {
		return expected, true
	}
	found := -1
	for at := from; at+len(part) <= len(lines); at++ {
		if here(at) {
			if found >= 0 {
				return 0, false
			}
			found = at
		}
	}
	return found, found >= 0
}
