package files

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/tools/kit"
)

// fileLine is a line of a file with its own end.
type fileLine struct{ text, end string }

func linesOf(content string) []fileLine {
	var lines []fileLine
	for l := range strings.Lines(content) {
		text, ok := strings.CutSuffix(l, "\n")
		switch {
		case !ok:
			lines = append(lines, fileLine{l, ""})
		case strings.HasSuffix(text, "\r"):
			lines = append(lines, fileLine{text[:len(text)-1], "\r\n"})
		default:
			lines = append(lines, fileLine{text, "\n"})
		}
	}
	return lines
}

// lineText finds runs of whole lines.
type lineText struct {
	text   string // each line behind a "\n", and one at the end
	starts []int  // of the lines: where that "\n" is
}

func newLineText(lines []fileLine, fold func(string) string) *lineText {
	var b strings.Builder
	t := &lineText{starts: make([]int, 0, len(lines))}
	for _, l := range lines {
		t.starts = append(t.starts, b.Len())
		b.WriteByte('\n')
		b.WriteString(fold(l.text))
	}
	b.WriteByte('\n')
	t.text = b.String()
	return t
}

// enoughPlaces is how many places of a text are looked at; more cannot be told
// apart anyway.
const enoughPlaces = 200

// find returns the lines, from one on, at which the wanted ones stand.
func (t *lineText) find(want []string, from int) []int {
	if from >= len(t.starts) {
		return nil
	}
	needle := "\n" + strings.Join(want, "\n") + "\n"
	var places []int
	for at := t.starts[from]; len(places) < enoughPlaces; {
		i := strings.Index(t.text[at:], needle)
		if i < 0 {
			break
		}
		line, _ := slices.BinarySearch(t.starts, at+i)
		places = append(places, line)
		at += i + 1
	}
	return places
}

// patching is the application of hunks to one text.
type patching struct {
	lines  []fileLine
	levels []*lineText // exact, and without space at the ends of lines
	folds  []func(string) string
}

func newPatching(content string) *patching {
	p := &patching{lines: linesOf(content), folds: []func(string) string{func(s string) string { return s }, trimEnd}}
	for _, fold := range p.folds {
		p.levels = append(p.levels, newLineText(p.lines, fold))
	}
	return p
}

// applyHunks returns content after the hunks. All of them are found in content
// as it is, one behind the other. Lines that stay keep their bytes; those that
// come get the line end of their neighbours.
func applyHunks(content string, hunks []patchHunk) (string, error) {
	p := newPatching(content)
	var out []fileLine
	cursor := 0
	closed := len(p.lines) == 0 || p.lines[len(p.lines)-1].end != ""
	for i, h := range hunks {
		at, err := p.locate(h, cursor)
		if bare := h.withoutBlankEnd(); errors.Is(err, errNoPlace) && len(bare.lines) < len(h.lines) {
			if again, err2 := p.locate(bare, cursor); err2 == nil {
				h, at, err = bare, again, nil
			}
		}
		if err != nil {
			return "", hunkError(err, i, len(hunks), content, h)
		}
		out = append(out, p.lines[cursor:at]...)
		cursor = at
		gone := "" // the end of the line that was removed last, in this run
		for _, l := range h.lines {
			switch l.op {
			case '+':
				out = append(out, fileLine{l.text, cmp.Or(gone, p.endAt(cursor))})
			case ' ':
				out = append(out, p.lines[cursor])
				cursor, gone = cursor+1, ""
			default:
				gone = p.lines[cursor].end
				cursor++
			}
		}
		if cursor == len(p.lines) && h.oldOpen != h.newOpen {
			closed = !h.newOpen
		}
	}
	out = append(out, p.lines[cursor:]...)
	return joinLines(out, closed, p.endAt(0)), nil
}

// withoutBlankEnd takes off the empty lines of context at the end of a hunk: they
// may only have stood before what comes next in the patch.
func (h patchHunk) withoutBlankEnd() patchHunk {
	for n := len(h.lines); n > 0 && h.lines[n-1] == (patchLine{' ', ""}); n-- {
		h.lines = h.lines[:n-1]
	}
	return h
}

// endAt returns the line end that a new line gets at a place: that of the line
// there, or the one before it.
func (p *patching) endAt(i int) string {
	for _, j := range []int{i, i - 1} {
		if j >= 0 && j < len(p.lines) && p.lines[j].end != "" {
			return p.lines[j].end
		}
	}
	return "\n"
}

// joinLines writes lines, all with an end but the last, which has one when
// closed is set.
func joinLines(lines []fileLine, closed bool, end string) string {
	var b strings.Builder
	for i, l := range lines {
		b.WriteString(l.text)
		switch last := i == len(lines)-1; {
		case last && !closed && l.text != "": // an empty line is nothing but its end
		case l.end == "":
			b.WriteString(end)
		default:
			b.WriteString(l.end)
		}
	}
	return b.String()
}

// errNoPlace is a hunk whose lines are not in the file.
var errNoPlace = errors.New("no place")

// manyPlaces is a hunk that fits several places; the lines, from 1.
type manyPlaces []int

func (m manyPlaces) Error() string { return "several places" }

// locate returns the line at which a hunk applies, at or behind the cursor:
// where it says that it is, if it fits there; else the one place where it fits.
func (p *patching) locate(h patchHunk, cursor int) (int, error) {
	old, _ := h.sides()
	if len(old) == 0 {
		return p.insertion(h, cursor)
	}
	for level, text := range p.levels {
		want := make([]string, len(old))
		for i, l := range old {
			want[i] = p.folds[level](l)
		}
		places := text.find(want, cursor)
		if h.atEnd {
			places = slices.DeleteFunc(places, func(i int) bool { return i+len(old) != len(p.lines) })
		}
		if len(places) == 0 {
			continue
		}
		if h.line > 0 && slices.Contains(places, h.line-1) {
			return h.line - 1, nil
		}
		if len(h.anchors) > 0 && len(places) > 1 {
			places = p.behindAnchors(h.anchors, places, cursor)
		}
		if len(places) != 1 {
			for i := range places {
				places[i]++
			}
			return 0, manyPlaces(places)
		}
		return places[0], nil
	}
	return 0, errNoPlace
}

// behindAnchors returns, of places in order, those that are the first behind
// their anchors. When no line is like an anchor, all stay.
func (p *patching) behindAnchors(anchors []string, places []int, cursor int) []int {
	starts := p.anchored(anchors, cursor)
	if len(starts) == 0 {
		return places
	}
	var first []int
	for _, s := range starts {
		if i, _ := slices.BinarySearch(places, s); i < len(places) && !slices.Contains(first, places[i]) {
			first = append(first, places[i])
		}
	}
	return first
}

// anchored returns the lines at which the last of the anchors stands behind the
// others: lines equal to them but for the space around them, else lines that
// begin like them.
func (p *patching) anchored(anchors []string, from int) []int {
	starts := []int{from}
	for _, a := range anchors {
		var next []int
		for _, like := range []func(string) bool{
			func(l string) bool { return l == a },
			func(l string) bool { return strings.HasPrefix(l, a) },
		} {
			for i := starts[0]; i < len(p.lines) && len(next) < enoughPlaces; i++ {
				if like(strings.TrimSpace(p.lines[i].text)) {
					next = append(next, i)
				}
			}
			if len(next) > 0 {
				break
			}
		}
		if len(next) == 0 {
			return nil
		}
		starts = next
	}
	return starts
}

// insertion returns where a hunk without old lines goes: behind the line that it
// names, behind its anchor, or at the end.
func (p *patching) insertion(h patchHunk, cursor int) (int, error) {
	switch {
	case h.line > len(p.lines) || h.line > 0 && h.line < cursor:
		return 0, errNoPlace
	case h.line > 0:
		return h.line, nil
	case len(h.anchors) > 0:
		starts := p.anchored(h.anchors, cursor)
		if len(starts) > 1 {
			for i := range starts {
				starts[i]++
			}
			return 0, manyPlaces(starts)
		}
		if len(starts) == 0 {
			return 0, errNoPlace
		}
		return starts[0] + 1, nil
	}
	return len(p.lines), nil
}

// hunkError says which hunk does not fit, and what is there instead.
func hunkError(err error, i, n int, content string, h patchHunk) error {
	what := fmt.Sprintf("hunk %d of %d", i+1, n)
	old, new := h.sides()
	if many, ok := errors.AsType[manyPlaces](err); ok {
		lines := make([]string, 0, 10)
		for _, at := range many[:min(len(many), 10)] {
			lines = append(lines, fmt.Sprint(at))
		}
		return kit.Refuse(ErrEditAmbiguous, fmt.Sprintf("%s fits %d places, at lines %s", what, len(many), strings.Join(lines, ", ")), "Give more lines of context, or an @@ line that only one of them stands behind.")
	}
	t := normalise(content)
	if len(old) == 0 {
		return kit.Refuse(ErrEditNoMatch, what+" says where it goes by a line that the file does not have", "Give lines of context.")
	}
	text := strings.Join(old, "\n")
	if strings.TrimSpace(text) == "" {
		return kit.Refuse(ErrEditNoMatch, what+" has nothing but empty lines to be found by, and they are not there", "Give lines of context.")
	}
	if len(t.find(text, false)) == 1 || len(t.lines(text, trimEnd)) == 1 {
		return kit.Refuse(ErrEditNoMatch, what+" fits only before the one above it, or not where it has to be", "Give the hunks in the order of the file, and none twice.")
	}
	explained := t.explainMissing(patchWords, text, strings.Join(new, "\n"))
	if te, ok := errors.AsType[*agent.ToolError](explained); ok {
		return kit.Refuse(te.Code, what+": "+te.Message, te.Suggestion)
	}
	return explained
}
