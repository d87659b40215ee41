package export

import (
	"regexp"
	"strings"
	"sync"
)

// harmless returns Markdown in which HTML is text, nothing is loaded, and links lead to
// the web or within the page. Code stays as it is where every reader of Markdown takes
// it for code. A fence that is open at the end is closed.
//
// A fence that is indented may belong to a list, which can end it, or to nothing: it is
// moved to the beginning of its line, where it means one thing only.
func harmless(s string) string {
	var out, part []string
	fence, indent := "", 0
	for l := range strings.SplitSeq(s, "\n") {
		mark := fenceOf(l)
		switch {
		case fence != "":
			if strings.HasPrefix(mark, fence) && strings.Trim(l, " \t") == mark {
				l, fence = mark, ""
			}
			if d := dedented(l, indent); fence == "" || fenceOf(d) == "" {
				l = d // and not what would end the fence without its indent
			}
			out = append(out, l)
		case mark != "":
			out, part = append(out, harmlessPart(part)...), nil
			indent = len(l) - len(strings.TrimLeft(l, " "))
			fence = mark
			out = append(out, escape(l[indent:]))
		case strings.Trim(l, " \t") == "":
			out, part = append(append(out, harmlessPart(part)...), l), nil
		default:
			part = append(part, l)
		}
	}
	out = append(out, harmlessPart(part)...)
	if fence != "" {
		out = append(out, fence)
	}
	return strings.Join(out, "\n")
}

// dedented is a line without the first n blanks, as far as it has them.
func dedented(l string, n int) string {
	for ; n > 0 && strings.HasPrefix(l, " "); n-- {
		l = l[1:]
	}
	return l
}

// fenceOf returns the mark with which a line opens or closes a fence, or "".
func fenceOf(l string) string {
	t := strings.TrimLeft(l, " ")
	if len(l)-len(t) > 3 {
		return ""
	}
	for _, c := range "`~" {
		rest := strings.TrimLeft(t, string(c))
		if n := len(t) - len(rest); n >= 3 && (c == '~' || !strings.Contains(rest, "`")) {
			return t[:n]
		}
	}
	return ""
}

// harmlessPart escapes lines without a blank one between them. Code within a line stays
// when every backtick of the lines belongs to such code; a single one that does not may
// turn all others around.
func harmlessPart(lines []string) []string {
	whole := make([]string, 0, len(lines))
	for _, l := range lines {
		escaped, ok := escapeSpans(l)
		if !ok {
			whole = whole[:0]
			break
		}
		whole = append(whole, escaped)
	}
	if len(whole) == len(lines) {
		return whole
	}
	for _, l := range lines {
		whole = append(whole, escape(l))
	}
	return whole
}

// escapeSpans escapes a line outside of its code. ok means that all its backticks are
// around code: none is escaped, alone, or in another cell of a table.
func escapeSpans(l string) (escaped string, ok bool) {
	var b strings.Builder
	for {
		i := strings.IndexByte(l, '`')
		if i < 0 {
			b.WriteString(escape(l))
			return b.String(), true
		}
		ticks := l[i:]
		ticks = ticks[:len(ticks)-len(strings.TrimLeft(ticks, "`"))]
		end := spanEnd(l[i+len(ticks):], ticks)
		if end < 0 || strings.HasSuffix(l[:i], `\`) {
			return "", false
		}
		before, code := l[:i], l[i:i+len(ticks)+end+len(ticks)]
		l = l[i+len(code):]
		if strings.Contains(code, "|") {
			code = escape(code)
		}
		b.WriteString(escape(before) + code)
	}
}

// spanEnd finds a run of exactly as many backticks.
func spanEnd(s, ticks string) int {
	for at := 0; at < len(s); {
		i := strings.IndexByte(s[at:], '`')
		if i < 0 {
			return -1
		}
		at += i
		run := len(s[at:]) - len(strings.TrimLeft(s[at:], "`"))
		if run == len(ticks) {
			return at
		}
		at += run
	}
	return -1
}

// links finds where a target begins, behind a text or in a definition, and what of it
// may be followed: the web, mail, and what is named without a scheme.
var links = sync.OnceValues(func() (target, good *regexp.Regexp) {
	return regexp.MustCompile(`\][(:]`), regexp.MustCompile(`^[ \t]*(?i:https?://|mailto:|#|[A-Za-z0-9_./~%+-]+(?:[ \t)#?]|$))`)
})

// escape makes text of what would begin a tag or load an image, and of links to what
// is no page: a script, data, a file of the reader's.
func escape(s string) string {
	s = strings.ReplaceAll(s, "<", "&lt;")
	s = strings.ReplaceAll(s, "![", `!\[`)
	target, good := links()
	var b strings.Builder
	at := 0
	for _, m := range target.FindAllStringIndex(s, -1) {
		if !good.MatchString(s[m[1]:]) {
			b.WriteString(s[at:m[0]+1] + `\`)
			at = m[0] + 1
		}
	}
	return b.String() + s[at:]
}
