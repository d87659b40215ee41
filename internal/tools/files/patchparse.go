package files

import (
	"fmt"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/tools/kit"
)

// The kinds of change that a patch makes to a file.
const (
	patchAdd    = "add"
	patchUpdate = "update"
	patchDelete = "delete"
)

// filePatch is what a patch says of one file.
type filePatch struct {
	kind  string
	path  string
	to    string // its new name; "" = it keeps its own
	hunks []patchHunk
}

// patchHunk is a place in a file and what becomes of it.
type patchHunk struct {
	line    int      // where it begins, from 1; 0 = not said
	anchors []string // lines that stand before it, one behind the other
	lines   []patchLine
	atEnd   bool // its old lines are the last of the file

	oldOpen, newOpen bool // the last line has no end, before and after
}

// patchLine is a line that stays (" "), goes ("-") or comes ("+").
type patchLine struct {
	op   byte
	text string
}

// sides returns the text that a hunk looks for and what it makes of it.
func (h patchHunk) sides() (old, new []string) {
	for _, l := range h.lines {
		if l.op != '+' {
			old = append(old, l.text)
		}
		if l.op != '-' {
			new = append(new, l.text)
		}
	}
	return old, new
}

func (h patchHunk) changes() bool {
	for _, l := range h.lines {
		if l.op != ' ' {
			return true
		}
	}
	return false
}

// The marks of the envelope.
const (
	patchBegin = "*** Begin Patch"
	patchEnd   = "*** End Patch"
	markAdd    = "*** Add File: "
	markUpdate = "*** Update File: "
	markDelete = "*** Delete File: "
	markMove   = "*** Move to: "
	markEOF    = "*** End of File"
)

// parsePatch reads a patch, in an envelope or as a unified diff, told by its form.
func parsePatch(text string) ([]filePatch, error) {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	p := &patchParser{lines: lines}
	for i, l := range lines {
		if strings.TrimSpace(l) == patchBegin {
			p.at = i + 1
			return p.envelope()
		}
	}
	for i, l := range lines {
		if strings.HasPrefix(l, "diff --git ") || p.header(i) {
			p.at = i
			return p.unified()
		}
	}
	return nil, kit.Refuse(agent.ErrInput, "the patch is neither in an envelope nor a unified diff",
		`Begin with "*** Begin Patch" and end with "*** End Patch", or give a diff with "--- a/file" and "+++ b/file".`)
}

// patchParser reads a patch line by line.
type patchParser struct {
	lines []string
	at    int // the next line
	files []filePatch
}

// fault is a line that cannot be read.
func (p *patchParser) fault(why string) error {
	line := ""
	if p.at < len(p.lines) {
		line = ": " + kit.Quote(p.lines[p.at], 80)
	}
	return kit.Refuse(agent.ErrInput, fmt.Sprintf("line %d of the patch: %s%s", p.at+1, why, line), "Mend the patch and send all of it again; nothing was changed.")
}

// file is the file that lines are for.
func (p *patchParser) file() *filePatch {
	if len(p.files) == 0 {
		return nil
	}
	return &p.files[len(p.files)-1]
}

// envelope reads from the line behind the first mark.
func (p *patchParser) envelope() ([]filePatch, error) {
	for ; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		switch f := p.file(); {
		case strings.TrimSpace(line) == patchEnd:
			if len(p.files) == 0 {
				return nil, p.fault("the patch is empty")
			}
			return p.files, nil
		case p.begins(line, markAdd, patchAdd), p.begins(line, markUpdate, patchUpdate), p.begins(line, markDelete, patchDelete):
		case f == nil:
			if strings.TrimSpace(line) != "" {
				return nil, p.fault("a file is expected")
			}
		case f.kind == patchUpdate && strings.HasPrefix(line, markMove):
			if f.to != "" || len(f.hunks) > 0 {
				return nil, p.fault("this stands right behind the name of the file")
			}
			f.to = strings.TrimSpace(strings.TrimPrefix(line, markMove))
		default:
			if err := p.envelopeLine(f, line); err != nil {
				return nil, err
			}
		}
	}
	return nil, kit.Refuse(agent.ErrInput, "the patch has no "+patchEnd+": it was cut off", "Send all of it, in parts if it is long; nothing was changed.")
}

// begins reports whether a line begins a file, and does so.
func (p *patchParser) begins(line, mark, kind string) bool {
	rest, ok := strings.CutPrefix(line, mark)
	if ok {
		f := filePatch{kind: kind, path: strings.TrimSpace(rest)}
		if kind == patchAdd {
			f.hunks = []patchHunk{{}}
		}
		p.files = append(p.files, f)
	}
	return ok
}

// envelopeLine reads a line of a file's part.
func (p *patchParser) envelopeLine(f *filePatch, line string) error {
	blank := strings.TrimSpace(line) == ""
	switch {
	case f.kind == patchDelete && blank:
		return nil
	case f.kind == patchDelete:
		return p.fault("a file that is deleted has no lines")
	case f.kind == patchAdd && blank:
		return nil // between files
	case f.kind == patchAdd && line[0] != '+':
		return p.fault("a line of a new file begins with +")
	case strings.HasPrefix(line, "@@"):
		anchor := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line[2:]), "@@"))
		if n := len(f.hunks); n == 0 || len(f.hunks[n-1].lines) > 0 {
			f.hunks = append(f.hunks, patchHunk{})
		}
		h := &f.hunks[len(f.hunks)-1]
		if start, _, ok := ranges(line); ok {
			h.line = start
		} else if anchor != "" {
			h.anchors = append(h.anchors, anchor)
		}
		return nil
	}
	if len(f.hunks) == 0 {
		f.hunks = append(f.hunks, patchHunk{})
	}
	h := &f.hunks[len(f.hunks)-1]
	switch {
	case line == markEOF:
		h.atEnd = true
	case line == "":
		h.lines = append(h.lines, patchLine{' ', ""})
	case strings.IndexByte(" +-", line[0]) >= 0:
		h.lines = append(h.lines, patchLine{line[0], line[1:]})
	default:
		return p.fault(`a line of a hunk begins with a space, "+" or "-"`)
	}
	return nil
}

// header reports whether the two lines that name a file begin at an index.
func (p *patchParser) header(i int) bool {
	return i+1 < len(p.lines) && strings.HasPrefix(p.lines[i], "--- ") && strings.HasPrefix(p.lines[i+1], "+++ ")
}

// unified reads a unified diff, as diff or git make it, from its first header.
func (p *patchParser) unified() ([]filePatch, error) {
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		f := p.file()
		switch {
		case strings.HasPrefix(line, "diff --git "):
			p.files = append(p.files, filePatch{kind: patchUpdate})
			p.gitNames(p.file(), strings.TrimPrefix(line, "diff --git "))
		case p.header(p.at):
			if err := p.names(); err != nil {
				return nil, err
			}
			p.at++
		case f == nil:
		case strings.HasPrefix(line, "new file mode "):
			f.kind = patchAdd
		case strings.HasPrefix(line, "deleted file mode "):
			f.kind = patchDelete
		case strings.HasPrefix(line, "rename from "):
			f.path = fileName(strings.TrimPrefix(line, "rename from "), "")
		case strings.HasPrefix(line, "rename to "):
			f.to = fileName(strings.TrimPrefix(line, "rename to "), "")
		case strings.HasPrefix(line, "copy from "), strings.HasPrefix(line, "GIT binary patch"), strings.HasPrefix(line, "Binary files "):
			return nil, p.fault("copies and binary patches cannot be applied")
		case strings.HasPrefix(line, "@@"):
			p.hunk(f)
			continue
		}
		p.at++
	}
	for i := range p.files {
		if f := &p.files[i]; f.kind == patchUpdate && f.to == f.path {
			f.to = ""
		}
	}
	return p.files, nil
}

// gitNames reads "a/x b/x", for diffs that have no other names: of an empty
// file, a change of mode. It is only sure when both are the same.
func (p *patchParser) gitNames(f *filePatch, s string) {
	if half := len(s) / 2; len(s)%2 == 1 && s[half] == ' ' && len(s) > 5 && s[2:half] == s[half+3:] {
		f.path = s[2:half]
	}
}

// names reads the two lines that name a file. They belong to the git header
// before them, if there is one that has no hunks yet.
func (p *patchParser) names() error {
	from, to := fileName(p.lines[p.at][4:], "a/"), fileName(p.lines[p.at+1][4:], "b/")
	if f := p.file(); f == nil || len(f.hunks) > 0 || p.at > 0 && !inGitHeader(p.lines[:p.at]) {
		p.files = append(p.files, filePatch{kind: patchUpdate})
	}
	f := p.file()
	switch {
	case from == "" && to == "":
		return p.fault("both names are /dev/null")
	case from == "":
		f.kind, f.path = patchAdd, to
	case to == "":
		f.kind, f.path = patchDelete, from
	default:
		f.path = from
		if to != from {
			f.to = to
		}
	}
	return nil
}

// inGitHeader reports whether the lines end in the header of a git diff.
func inGitHeader(lines []string) bool {
	for i := len(lines) - 1; i >= 0 && i > len(lines)-12; i-- {
		switch l := lines[i]; {
		case strings.HasPrefix(l, "diff --git "):
			return true
		case strings.HasPrefix(l, "@@"), l == "":
			return false
		}
	}
	return false
}

// fileName returns the name of a header line, without git's prefix, quotes and
// the time that diff puts behind a tab; "" for /dev/null.
func fileName(s, prefix string) string {
	if strings.HasPrefix(s, `"`) {
		if name, err := strconv.Unquote(strings.TrimSpace(s)); err == nil {
			s = name
		}
	} else {
		s, _, _ = strings.Cut(s, "\t")
		s = strings.TrimSpace(s)
	}
	if s == "/dev/null" {
		return ""
	}
	return strings.TrimPrefix(s, prefix)
}

// ranges reads "@@ -12,3 +12,4 @@": where the old lines begin, and how many
// lines both sides have.
func ranges(line string) (start int, count [2]int, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 3 || fields[0] != "@@" {
		return 0, count, false
	}
	for i, sign := range []string{"-", "+"} {
		s, found := strings.CutPrefix(fields[i+1], sign)
		at, n, several := strings.Cut(s, ",")
		number, err := strconv.Atoi(at)
		if !found || err != nil || number < 0 {
			return 0, count, false
		}
		if i == 0 {
			start = number
		}
		count[i] = 1
		if several {
			if count[i], err = strconv.Atoi(n); err != nil || count[i] < 0 {
				return 0, count, false
			}
		}
	}
	return start, count, true
}

// hunk reads a hunk. Its numbers say where the lines end that could be taken
// for something else; when they are wrong, as models often have them, the form
// of the lines does.
func (p *patchParser) hunk(f *filePatch) {
	var h patchHunk
	start, left, told := ranges(p.lines[p.at])
	h.line = start
	for p.at++; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		inside := told && (left[0] > 0 || left[1] > 0)
		if strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "diff --git ") || p.header(p.at) && p.at+2 < len(p.lines) && strings.HasPrefix(p.lines[p.at+2], "@@") {
			break
		}
		switch {
		case strings.HasPrefix(line, `\`):
			if n := len(h.lines); n > 0 {
				h.oldOpen = h.oldOpen || h.lines[n-1].op != '+'
				h.newOpen = h.newOpen || h.lines[n-1].op != '-'
			}
			continue
		case line == "" && !inside, line == "-- " && !inside:
			f.hunks = append(f.hunks, h)
			return
		case line == "":
			line = " "
		case strings.IndexByte(" +-", line[0]) < 0:
			f.hunks = append(f.hunks, h)
			return
		}
		h.lines = append(h.lines, patchLine{line[0], line[1:]})
		if line[0] != '+' {
			left[0]--
		}
		if line[0] != '-' {
			left[1]--
		}
	}
	f.hunks = append(f.hunks, h)
}
