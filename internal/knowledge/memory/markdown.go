package memory

import (
	"iter"
	"regexp"
	"strings"
	"sync"
)

// A line of a text that is no comment.
type line struct {
	text string
	code bool // in a fence, the lines that begin and end it included, or indented as code
}

// lines yields the lines of a Markdown text without its block comments. A comment
// that does not end is text.
func lines(text string) iter.Seq[line] {
	return func(yield func(line) bool) {
		fence, endless := "", false // no comment ends any more
		for rest := text; rest != ""; {
			l, after, _ := strings.Cut(rest, "\n")
			mark, info := fenceMark(l)
			if !endless && fence == "" && mark == "" && indent(l) < 4 && strings.HasPrefix(strings.TrimLeft(l, " "), "<!--") {
				if tail, ok := skipComment(rest); ok {
					rest = tail
					continue
				}
				endless = true
			}
			code := fence != "" || mark != "" || indent(l) >= 4
			switch {
			case fence == "":
				fence = mark
			case mark != "" && mark[0] == fence[0] && len(mark) >= len(fence) && info == "":
				fence = ""
			}
			if !yield(line{l, code}) {
				return
			}
			rest = after
		}
	}
}

// skipComment returns what follows a comment and the rest of its last line. What
// stands behind it on that line is kept.
func skipComment(text string) (string, bool) {
	start := strings.Index(text, "<!--")
	end := strings.Index(text[start+4:], "-->")
	if end < 0 {
		return "", false
	}
	after := text[start+4+end+3:]
	if l, rest, _ := strings.Cut(after, "\n"); strings.TrimSpace(l) == "" {
		return rest, true
	}
	return after, true
}

// fenceMark returns the signs that begin or end a fence, and what follows them.
func fenceMark(l string) (mark, info string) {
	l = strings.TrimLeft(l, " \t") // a fence in a list is indented as that is
	for _, sign := range []string{"`", "~"} {
		n := len(l) - len(strings.TrimLeft(l, sign))
		if n < 3 {
			continue
		}
		info = strings.TrimSpace(l[n:])
		if sign == "`" && strings.Contains(info, "`") {
			return "", "" // a span
		}
		return l[:n], info
	}
	return "", ""
}

// indent counts the columns in front of a line, up to four.
func indent(l string) int {
	n := 0
	for _, r := range l {
		switch {
		case r == ' ' && n < 4:
			n++
		case r == '\t':
			return 4
		default:
			return n
		}
	}
	return n
}

// includeName returns the path that a whole line includes: @path, or @"path" with
// spaces. A path has no other spaces, no sign of a span, and at most 1,024 bytes.
func includeName(l string) (string, bool) {
	name, ok := strings.CutPrefix(strings.TrimSpace(l), "@")
	if !ok || name == "" || len(name) > 1024 {
		return "", false
	}
	if quoted, ok := strings.CutPrefix(name, `"`); ok {
		name, ok = strings.CutSuffix(quoted, `"`)
		return name, ok && name != "" && !strings.ContainsAny(name, "\"`<>\x00")
	}
	if strings.ContainsAny(name, " \t\"`<>()[]{}\x00,;:*?|@") && !drive(name) {
		return "", false
	}
	return name, true
}

// maxNames bounds the names of a line of prose.
const maxNames = 64

// namesIn returns the paths that a line names with an @ at the beginning of a word. What
// stands in a span of code is named by nobody; what ends a sentence is no part of a path.
func namesIn(l string) (names []string) {
	for i := 0; i < len(l) && len(names) < maxNames; i++ {
		switch {
		case l[i] == '`':
			n := len(l[i:]) - len(strings.TrimLeft(l[i:], "`"))
			mark := l[i : i+n]
			i += n - 1
			if end := strings.Index(l[i+1:], mark); end >= 0 {
				i += end + n
			}
		case l[i] == '@' && (i == 0 || strings.IndexByte(" \t(", l[i-1]) >= 0):
			word := l[i:]
			if end := strings.IndexAny(word, " \t"); end >= 0 {
				word = word[:end]
			}
			if name, ok := includeName(strings.TrimRight(word, ".,;:!?)'\"*_")); ok {
				names = append(names, name)
			}
			i += len(word) - 1
		}
	}
	return names
}

// drive reports whether the only colon of a name is that of a Windows drive.
func drive(name string) bool {
	return len(name) > 2 && name[1] == ':' && !strings.ContainsAny(name[2:], " \t\"`<>()[]{}\x00,;:*?|@")
}

// labels are the tags by which texts are told apart.
var labels = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)<(\s*/?\s*(?:instructions|included)\b)`) })

// escape makes a label in a text no label.
func escape(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	return labels().ReplaceAllString(text, "&lt;$1")
}

// attribute is a path as the value of an attribute.
func attribute(path string) string {
	path = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 {
			return '?'
		}
		return r
	}, path)
	return strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;").Replace(path)
}

// comment is a text inside of a comment.
func comment(text string) string {
	return attribute(strings.ReplaceAll(text, "--", "- -"))
}
