package files

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// replace returns content with old replaced by new: once, or everywhere when
// all is set. Line ends do not matter for the comparison; new text gets those of
// the place where it goes, and all other text stays as it is, byte for byte.
//
// When old does not occur, two slips are mended if that leaves exactly one
// place: line numbers copied from the read tool, and space at the ends of lines.
// Note then says so. Anything else is an error that explains what is there.
func replace(content, old, new string, all bool) (after string, n int, note string, err error) {
	t := normalise(content)
	old, new = t.adapt(old), t.adapt(new)
	if old == new {
		return "", 0, "", kit.Refuse(ErrEditSame, "old_string and new_string differ in their line ends only", "Line ends follow the file; give other text.")
	}
	spans := t.find(old, all)
	if len(spans) == 0 {
		spans, new, note = t.mend(old, new, all)
	}
	switch {
	case len(spans) == 0:
		return "", 0, "", t.explainMissing(editWords, old, new)
	case len(spans) > 1 && !all:
		return "", 0, "", t.explainAmbiguous(spans)
	case len(content)+len(spans)*len(new) > 2*workspace.MaxText:
		return "", 0, "", kit.Refuse(ErrFileLarge, fmt.Sprintf("replacing %d occurrences would make the file larger than %d MiB", len(spans), workspace.MaxText>>20), "Use a command.")
	}
	return t.splice(spans, new), len(spans), note, nil
}

// span is a part of a normal text.
type span struct{ from, to int }

// normal is a text with all lines ending in "\n".
type normal struct {
	content string // as it was
	text    string
	ends    workspace.LineEnds
	crs     []int // where in text a line end had a CR before it
}

func normalise(content string) *normal {
	t := &normal{content: content, text: content, ends: workspace.LineEndsOf(content)}
	if t.ends == workspace.LF || t.ends == workspace.NoEnds {
		return t
	}
	var b strings.Builder
	for rest := content; ; {
		line, tail, found := strings.Cut(rest, "\r\n")
		b.WriteString(line)
		if !found {
			break
		}
		t.crs = append(t.crs, b.Len())
		b.WriteByte('\n')
		rest = tail
	}
	t.text = b.String()
	return t
}

// adapt gives s, text of the model's, the line ends of t.text.
func (t *normal) adapt(s string) string {
	if t.ends == workspace.NoEnds {
		return s
	}
	return strings.ReplaceAll(s, "\r\n", "\n")
}

// raw returns where in the content a place in the text is.
func (t *normal) raw(at int) int { return at + sort.SearchInts(t.crs, at) }

// find returns where s occurs: all places when all is set, which do not overlap;
// else the first two thousand, which may.
func (t *normal) find(s string, all bool) []span {
	const enough = 2000
	var spans []span
	for at := 0; ; {
		i := strings.Index(t.text[at:], s)
		if i < 0 || !all && len(spans) == enough {
			return spans
		}
		at += i
		spans = append(spans, span{at, at + len(s)})
		if all {
			at += len(s)
		} else {
			at++
		}
	}
}

// splice puts s in the place of each span.
func (t *normal) splice(spans []span, s string) string {
	var b strings.Builder
	b.Grow(len(t.content) + len(spans)*len(s))
	last := 0
	for _, sp := range spans {
		from, to := t.raw(sp.from), t.raw(sp.to)
		b.WriteString(t.content[last:from])
		if strings.Contains(s, "\n") && t.crAt(sp) {
			b.WriteString(strings.ReplaceAll(s, "\n", "\r\n"))
		} else {
			b.WriteString(s)
		}
		last = to
	}
	b.WriteString(t.content[last:])
	return b.String()
}

// crAt reports whether lines end in CR LF at a place: by the first line end in
// it, else the one behind it, else the one before it.
func (t *normal) crAt(sp span) bool {
	if t.ends != workspace.Mixed {
		return t.ends == workspace.CRLF
	}
	const near = 1 << 16 // bytes that are looked through for a line end
	end := strings.IndexByte(t.text[sp.from:min(sp.to+near, len(t.text))], '\n')
	if end >= 0 {
		end += sp.from
	} else if end = strings.LastIndexByte(t.text[:sp.from], '\n'); end < 0 {
		return false
	}
	_, found := slices.BinarySearch(t.crs, end)
	return found
}

// mend looks for old again after taking off what does not belong to it.
func (t *normal) mend(old, new string, all bool) (spans []span, mended, note string) {
	if bare, ok := unnumber(old); ok && strings.TrimSpace(bare) != "" {
		if spans := t.find(bare, all); len(spans) > 0 {
			if n, ok := unnumber(new); ok {
				new = n
			} else if numberedLines(new) > 0 {
				return nil, new, "" // what of it is meant as text?
			}
			return spans, new, "(Line numbers were taken off old_string; leave them out.)"
		}
	}
	lines, whole := strings.CutSuffix(old, "\n")
	places := t.lines(lines, trimEnd)
	if len(places) != 1 {
		return nil, new, ""
	}
	sp := places[0]
	switch {
	case whole && sp.to < len(t.text):
		sp.to++ // with its line end
	case whole:
		new = strings.TrimSuffix(new, "\n") // the last line has none
	}
	if t.text[sp.from:sp.to] == new {
		return nil, new, "" // nothing would change
	}
	return []span{sp}, new, "(Space at the ends of lines differed from old_string.)"
}

func trimEnd(line string) string { return strings.TrimRight(line, " \t") }

// unnumber takes the line numbers of the read tool off every line of s. It
// reports false when a line has none, or they do not count up.
func unnumber(s string) (string, bool) {
	lines := strings.Split(s, "\n")
	last := len(lines) - 1
	before := -1
	for i, line := range lines {
		if i == last && i > 0 && line == "" {
			break
		}
		number, rest, ok := cutNumber(line)
		if !ok || before >= 0 && number != before+1 {
			return "", false
		}
		before, lines[i] = number, rest
	}
	return strings.Join(lines, "\n"), true
}

// cutNumber splits "  12<tab>text" and "12→text".
func cutNumber(line string) (number int, rest string, ok bool) {
	line = strings.TrimLeft(line, " ")
	digits := 0
	for digits < len(line) && digits < 9 && line[digits] >= '0' && line[digits] <= '9' {
		number = number*10 + int(line[digits]-'0')
		digits++
	}
	if digits == 0 {
		return 0, "", false
	}
	for _, mark := range []string{"\t", "→"} {
		if rest, ok = strings.CutPrefix(line[digits:], mark); ok {
			return number, rest, true
		}
	}
	return 0, "", false
}

func numberedLines(s string) int {
	n := 0
	for line := range strings.Lines(s) {
		if _, _, ok := cutNumber(line); ok {
			n++
		}
	}
	return n
}

// lines returns up to two places where whole lines of the text equal those of s
// after fold has been applied to both. The line end of the last one is not part
// of a place. Lines of nothing but space are not looked for.
func (t *normal) lines(s string, fold func(string) string) []span {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	want := "\n" + foldLines(s, fold) + "\n"
	have := "\n" + foldLines(t.text, fold) + "\n"
	var places []span
	line, offset := 0, 0 // of the text, at have[at]
	for at := 0; len(places) < 2; {
		i := strings.Index(have[at:], want)
		if i < 0 {
			break
		}
		skip := strings.Count(have[at:at+i], "\n")
		offset = nthLine(t.text, offset, skip)
		line += skip
		end := offset
		for range strings.Count(want, "\n") - 2 {
			end = nthLine(t.text, end, 1)
		}
		places = append(places, span{offset, lineEnd(t.text, end)})
		at += i + 1
		offset = nthLine(t.text, offset, 1)
		line++
	}
	return places
}

// nthLine returns where the nth line after the one that begins at offset begins.
func nthLine(s string, offset, n int) int {
	for range n {
		i := strings.IndexByte(s[offset:], '\n')
		if i < 0 {
			return len(s)
		}
		offset += i + 1
	}
	return offset
}

func lineEnd(s string, offset int) int {
	if i := strings.IndexByte(s[offset:], '\n'); i >= 0 {
		return offset + i
	}
	return len(s)
}

func foldLines(s string, fold func(string) string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.ReplaceAll(fold(l), "\n", " ")
	}
	return strings.Join(lines, "\n")
}
