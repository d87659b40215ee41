package cli

import (
	"bufio"
	"fmt"
	"path"
	"strconv"
	"strings"

	"dure/agent/query"
	"dure/internal/frontend/text"
)

// patchLines is how many lines of one file a terminal shows unless the file was named.
const patchLines = 200

// patcher writes changes in unified form, so that what is written to a file can be
// applied by the usual programs: what is said beside them stands where these read over
// it. Hunks are numbered from 1.
type patcher struct {
	w     *bufio.Writer
	t     text.Catalog
	color bool
	most  int                      // lines of one file; 0 = all
	how   func(path string) string // the command that shows all of it
	clean bool                     // for a terminal
}

func (p *patcher) line(st style, s string) {
	if p.clean {
		s = text.Clean(s)
	}
	if p.color && st != plain {
		s = "\x1b[" + string(st) + "m" + s + "\x1b[0m"
	}
	p.w.WriteString(s + "\n")
}

// named returns a path as a patch has it: in quotes when it has signs that would
// break a line.
func named(side, name string) string {
	if side != "" {
		name = side + "/" + name
	}
	if q := strconv.Quote(name); q != `"`+name+`"` && strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }) {
		return q
	}
	return name
}

// file writes one change.
func (p *patcher) file(f query.FileDiff) {
	for _, r := range remarks(p.t, f) {
		p.line(dim, "# "+named("", f.Path)+": "+r)
	}
	was := f.Path
	if f.From != "" {
		was = f.From
	}
	p.line(bold, "diff --git "+named("a", was)+" "+named("b", f.Path))
	switch {
	case f.Status == query.FileAdded:
		p.line(bold, "new file mode "+mode(f.Kind, f.Mode))
	case f.Status == query.FileDeleted:
		p.line(bold, "deleted file mode "+mode(f.KindWas, f.ModeWas))
	case mode(f.Kind, f.Mode) != mode(f.KindWas, f.ModeWas):
		p.line(bold, "old mode "+mode(f.KindWas, f.ModeWas))
		p.line(bold, "new mode "+mode(f.Kind, f.Mode))
	}
	if f.From != "" {
		p.line(bold, "rename from "+named("", f.From))
		p.line(bold, "rename to "+named("", f.Path))
	}
	switch {
	case f.Binary:
		p.line(plain, "Binary files "+old(f)+" and "+now(f)+" differ")
	case f.Link != "" || f.LinkWas != "":
		p.links(f)
	case len(f.Hunks) > 0:
		p.line(bold, "--- "+old(f))
		p.line(bold, "+++ "+now(f))
		p.hunks(f)
	}
}

func old(f query.FileDiff) string {
	switch {
	case f.Status == query.FileAdded:
		return "/dev/null"
	case f.From != "":
		return named("a", f.From)
	}
	return named("a", f.Path)
}

func now(f query.FileDiff) string {
	if f.Status == query.FileDeleted {
		return "/dev/null"
	}
	return named("b", f.Path)
}

// links writes where a link led and leads, as if that were its text.
func (p *patcher) links(f query.FileDiff) {
	if f.LinkWas != "" {
		p.line(red, "-"+f.LinkWas)
	}
	if f.Link != "" {
		p.line(green, "+"+f.Link)
	}
}

func (p *patcher) hunks(f query.FileDiff) {
	shown := 0
	for i, h := range f.Hunks {
		if p.most > 0 && shown >= p.most {
			break
		}
		p.line(yellow, hunkHead(h, i+1))
		for _, l := range h.Lines {
			if p.most > 0 && shown == p.most {
				break
			}
			p.line(signStyle(l), l)
			shown++
		}
	}
	if rest := count(f.Hunks) - shown; rest > 0 {
		p.line(dim, p.t.Say(text.DiffMore, "n", rest, "how", p.how(f.Path)))
	}
}

func count(hunks []query.HunkDiff) (n int) {
	for _, h := range hunks {
		n += len(h.Lines)
	}
	return n
}

func hunkHead(h query.HunkDiff, n int) string {
	return fmt.Sprintf("@@ -%d,%d +%d,%d @@ #%d", h.OldStart, h.OldLines, h.NewStart, h.NewLines, n)
}

func signStyle(l string) style {
	switch {
	case strings.HasPrefix(l, "+"):
		return green
	case strings.HasPrefix(l, "-"):
		return red
	}
	return plain
}

// mode returns the mode of an entry as git writes it.
func mode(kind string, bits uint32) string {
	switch kind {
	case "link":
		return "120000"
	case "folder":
		return "040000"
	}
	return fmt.Sprintf("100%03o", bits)
}

// remarks are what is said of a change beside its lines.
func remarks(t text.Catalog, f query.FileDiff) (all []string) {
	add := func(is bool, k text.Key, args ...any) {
		if is {
			all = append(all, t.Say(k, args...))
		}
	}
	add(f.Tangled, text.DiffTangled)
	add(f.Others && !f.Tangled, text.DiffOthers)
	add(f.Command, text.DiffByCommand)
	add(len(f.Children) > 0, text.DiffByChild, "n", len(f.Children))
	add(f.Binary, text.DiffBinary)
	add(f.Long, text.DiffLong)
	add(f.Unkept, text.DiffUnkept)
	return all
}

// signs are the letters of the ways in which files differ.
var signs = map[string]string{
	query.FileAdded: "A", query.FileModified: "M", query.FileDeleted: "D", query.FileRenamed: "R", query.FileMode: "M", query.FileType: "T",
}

// statLine is a change in one line.
func statLine(t text.Catalog, f query.FileDiff) (parts []part) {
	name := text.ExactLine(f.Path)
	if f.From != "" {
		name = text.ExactLine(f.From) + " → " + name
		if path.Dir(f.From) == path.Dir(f.Path) {
			name = text.ExactLine(f.From) + " → " + text.ExactLine(path.Base(f.Path))
		}
	}
	parts = []part{{bold, signs[f.Status] + " "}, {plain, name}}
	if f.Added > 0 {
		parts = append(parts, part{green, fmt.Sprintf(" +%d", f.Added)})
	}
	if f.Removed > 0 {
		parts = append(parts, part{red, fmt.Sprintf(" -%d", f.Removed)})
	}
	if m, was := mode(f.Kind, f.Mode), mode(f.KindWas, f.ModeWas); m != was && f.Kind != "" && f.KindWas != "" {
		parts = append(parts, part{dim, " " + was + " → " + m})
	}
	if r := remarks(t, f); len(r) > 0 {
		parts = append(parts, part{dim, " (" + strings.Join(r, "; ") + ")"})
	}
	return parts
}

func totalLine(t text.Catalog, r query.DiffReport) string {
	if len(r.Files) == 0 {
		return t.Say(text.DiffNone)
	}
	return t.Say(text.DiffTotal, "n", len(r.Files), "added", r.Added, "removed", r.Removed)
}
