package code

import (
	"regexp"
	"slices"
	"strings"
)

// A language says how to outline its files.
type language struct {
	name  string
	files []string // extensions with their dot, or whole names, in small letters
	exact bool
	data  bool // outlined only when the file is named

	// semicolons means that what has no body ends with one, and never with its
	// line.
	semicolons bool

	read func(l *language, text string) (list []symbol, note string)

	words lexis
	rules []rule

	// skip are names that no rule may find: words that look like calls.
	skip []string
}

// A rule finds the declarations of a kind in single lines, in which comments and
// the insides of strings are blank. Its first group that matches is the name.
type rule struct {
	kind string
	re   *regexp.Regexp

	// member rules apply inside of types only, and top rules outside of them
	// only; the others everywhere but in functions.
	member, top bool
}

// lexis is what a language's text is made of, as far as it has to be known to
// see past comments and strings.
type lexis struct {
	line    []string    // what begins a comment to the end of the line
	block   [][2]string // what begins and ends a comment
	strings []delimiter // the longer ones first
	chars   bool        // ' is around a single character, and else means nothing
	regexps bool        // / is around a regular expression where a value may begin
	hash    bool        // a comment begins only after a blank, as in a shell
}

// delimiter is around strings.
type delimiter struct {
	open, end string
	lines     bool // the string may go on in the next line
	raw       bool // a backslash is only a backslash
}

// maxLine is the length in bytes of the longest line that is looked at. Longer
// ones are made by programs.
const maxLine = 1_000

// containers are the kinds with members of their own. What is declared in
// others is local.
var containers = []string{
	"class", "struct", "interface", "trait", "impl", "enum", "object", "protocol", "extension", "record", "union", "actor",
	"namespace", "mod", "module", "extern", "section", "key",
}

// transparent are containers that are no level of their own.
var transparent = []string{"namespace", "mod", "module", "extern"}

// mask returns text with comments and the insides of strings blank, byte for
// byte in the same places, and the lines, from 0, that begin inside of one.
func mask(text string, x lexis) (masked string, inside map[int]bool) {
	out := []byte(text)
	inside = map[int]bool{}
	line := 0
	for at := 0; at < len(text); {
		end, keep := x.opaque(text, at)
		if end == at {
			if text[at] == '\n' {
				line++
			}
			at++
			continue
		}
		last := end
		if strings.Contains(text[at:end], "\n") {
			keep = min(keep, 1)
		} else {
			last -= keep
		}
		for i := at; i < end; i++ {
			switch {
			case out[i] == '\n':
				line++
				inside[line] = true
			case i >= at+keep && i < last:
				out[i] = ' '
			}
		}
		at = end
	}
	return string(out), inside
}

// opaque returns the end of the comment or string that begins at a place, which
// is the place itself if there is none, and how many bytes of its ends to keep.
func (x lexis) opaque(text string, at int) (end, keep int) {
	rest := text[at:]
	for _, open := range x.line {
		if strings.HasPrefix(rest, open) && (!x.hash || at == 0 || strings.ContainsRune(" \t\n;", rune(text[at-1]))) {
			return at + lineEnd(rest), 0
		}
	}
	for _, b := range x.block {
		if strings.HasPrefix(rest, b[0]) {
			if i := strings.Index(rest[len(b[0]):], b[1]); i >= 0 {
				return at + len(b[0]) + i + len(b[1]), 0
			}
			return len(text), 0
		}
	}
	for _, d := range x.strings {
		if strings.HasPrefix(rest, d.open) {
			return at + d.length(rest), len(d.end)
		}
	}
	switch {
	case x.chars && rest[0] == '\'':
		return at + character(rest), 0
	case x.regexps && rest[0] == '/' && valueBegins(text[:at]):
		return at + expression(rest), 1
	}
	return at, 0
}

func lineEnd(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

// length returns the length of the string at the beginning of s.
func (d delimiter) length(s string) int {
	for i := len(d.open); i < len(s); i++ {
		switch {
		case s[i] == '\\' && !d.raw:
			i++
		case s[i] == '\n' && !d.lines:
			return i
		case strings.HasPrefix(s[i:], d.end):
			return i + len(d.end)
		}
	}
	return len(s)
}

// character returns the length of the character literal at the beginning of s;
// 0 = it is none, as the lifetimes of Rust.
func character(s string) int {
	const longest = 12 // '\u{10ffff}'
	if len(s) < 3 {
		return 0
	}
	from := 2
	if s[1] == '\\' {
		from = 3
	} else if s[1] >= 0x80 {
		from = 1
	}
	for i := from; i < min(len(s), longest); i++ {
		switch {
		case s[i] == '\'':
			return i + 1
		case s[i] == '\n', s[1] != '\\' && s[1] < 0x80:
			return 0
		}
	}
	return 0
}

// valueBegins reports whether what follows a text may be a value, and no operator.
func valueBegins(before string) bool {
	const far = 200 // bytes
	before = strings.TrimRight(before[max(0, len(before)-far):], " \t")
	if before == "" || strings.ContainsRune("(,=:[!&|?{};+-*%<>~^\n", rune(before[len(before)-1])) {
		return true
	}
	for _, word := range []string{"return", "typeof", "case", "of", "in"} {
		if strings.HasSuffix(before, " "+word) || strings.HasSuffix(before, "\n"+word) {
			return true
		}
	}
	return false
}

// expression returns the length of the regular expression at the beginning of s;
// 0 = it is none.
func expression(s string) int {
	set := false
	for i := 1; i < min(len(s), maxLine); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			set = true
		case ']':
			set = false
		case '\n':
			return 0
		case '/':
			if !set {
				return i + 1
			}
		}
	}
	return 0
}

// finder goes through a text line by line.
type finder struct {
	*language
	lines  []string // as written
	masked []string
	inside map[int]bool // lines that begin in a string or comment
	depth  []int        // of braces, at the beginning of each line
	open   []opened
	list   []symbol
}

// maxOpen is how deep declarations are looked for in each other. Every one of
// them is searched to its end.
const maxOpen = 12

// opened is a declaration whose end has not been reached.
type opened struct {
	symbol
	inside int // depth of its body, in languages with braces
}

func (l *language) finder(text string) *finder {
	masked, inside := mask(text, l.words)
	f := &finder{language: l, lines: strings.Split(text, "\n"), masked: strings.Split(masked, "\n"), inside: inside}
	f.depth = make([]int, len(f.masked)+1)
	for i, line := range f.masked {
		f.depth[i+1] = max(0, f.depth[i]+strings.Count(line, "{")-strings.Count(line, "}"))
	}
	return f
}

// close drops the declarations that end before a line.
func (f *finder) close(line int) {
	for len(f.open) > 0 && f.open[len(f.open)-1].End < line {
		f.open = f.open[:len(f.open)-1]
	}
}

// match finds the declaration in a line, given what it is in.
func (f *finder) match(i int) (kind, name string) {
	line := f.masked[i]
	if len(line) > maxLine || strings.TrimSpace(line) == "" || f.inside[i] || len(f.open) == maxOpen || len(f.list) > maxSymbols {
		return "", ""
	}
	member := false
	if n := len(f.open); n > 0 {
		in := f.open[n-1].Kind
		if !slices.Contains(containers, in) {
			return "", ""
		}
		member = !slices.Contains(transparent, in)
	}
	for _, r := range f.rules {
		if r.member && !member || r.top && member {
			continue
		}
		if m := r.re.FindStringSubmatch(line); m != nil {
			for _, name := range m[1:] {
				if name != "" && !slices.Contains(f.skip, name) {
					return r.kind, name
				}
			}
		}
	}
	return "", ""
}

// add records a declaration of which the last line is known.
func (f *finder) add(kind, name string, line, end, inside int) {
	level := 1
	for _, o := range f.open {
		if !slices.Contains(transparent, o.Kind) {
			level++
		}
	}
	s := symbol{Kind: kind, Name: name, Line: line + 1, End: end + 1, Level: level, text: heading(f.lines[line])}
	f.list = append(f.list, s)
	if end > line {
		f.open = append(f.open, opened{s, inside})
	}
}

// readBraces outlines languages whose bodies are in braces.
func readBraces(l *language, text string) ([]symbol, string) {
	f := l.finder(text)
	for i := range f.masked {
		f.close(i + 1)
		want := 0
		if n := len(f.open); n > 0 {
			want = f.open[n-1].inside
		}
		if f.depth[i] != want {
			continue
		}
		if kind, name := f.match(i); kind != "" {
			end, inside := f.body(i)
			if strings.HasPrefix(strings.TrimSpace(f.masked[i]), "#") {
				end, inside = f.directive(i), 0
			}
			f.add(kind, name, i, end, inside)
		}
	}
	return f.list, ""
}

// bodyAhead is how many lines may lie between a declaration and its body.
const bodyAhead = 40

// body returns the last line of the declaration in a line, and the depth of its
// body; that is the line itself when it has none.
func (f *finder) body(from int) (end, inside int) {
	parens, depth, opened := 0, f.depth[from], false
	for i := from; i < len(f.masked); i++ {
		for k, ch := range []byte(f.masked[i]) {
			switch ch {
			case '(', '[':
				parens++
			case ')', ']':
				parens--
			case '{':
				if depth++; parens <= 0 && !opened {
					opened, inside = true, depth
				}
			case '}':
				if depth--; opened && depth < inside {
					rest := strings.TrimSpace(f.masked[i][k+1:])
					if opened = rest != "" && strings.ContainsAny(rest[:1], "|&"); !opened { // not a union of types
						return i, inside
					}
					opened = false
				}
			case ';':
				if parens <= 0 && !opened {
					return i, 0
				}
			}
		}
		if !opened && i-from > bodyAhead {
			return from, 0
		}
		if !opened && !f.semicolons && parens <= 0 && !f.goesOn(i) {
			return i, 0
		}
	}
	if opened {
		return len(f.masked) - 1, inside // it is not closed
	}
	return from, 0
}

// directive returns the last line of a preprocessor directive.
func (f *finder) directive(i int) int {
	for i < len(f.lines)-1 && strings.HasSuffix(f.lines[i], "\\") {
		i++
	}
	return i
}

// goesOn reports whether the declaration in a line continues in the next one.
func (f *finder) goesOn(i int) bool {
	line := strings.TrimSpace(f.masked[i])
	for _, tail := range []string{",", "=", "=>", "->", ":", "|", "&", "+", "<", "(", "&&", "||", "where"} {
		if strings.HasSuffix(line, tail) {
			return true
		}
	}
	for i++; i < len(f.masked); i++ {
		next := strings.TrimSpace(f.masked[i])
		if next == "" {
			continue
		}
		heads := []string{"{", "where", ":", "->", "=>", "=", "throws", "extends", "implements"}
		if strings.HasSuffix(line, ")") {
			heads = append(heads, "const", "noexcept", "override")
		}
		return slices.ContainsFunc(heads, func(head string) bool { return strings.HasPrefix(next, head) })
	}
	return false
}

// indent returns the width of the blanks before a line; -1 = there is nothing
// else in it.
func indent(line string) int {
	n := 0
	for _, r := range line {
		switch r {
		case ' ':
			n++
		case '\t':
			n += 8 - n%8
		case '\r':
		default:
			return n
		}
	}
	return -1
}

// indents returns the indent of each line; -1 = it says nothing.
func (f *finder) indents(lines []string) []int {
	list := make([]int, len(lines))
	for i, l := range lines {
		list[i] = -1
		if !f.inside[i] {
			list[i] = indent(l)
		}
	}
	return list
}

// readIndented outlines languages whose bodies are indented.
func readIndented(l *language, text string) ([]symbol, string) {
	f := l.finder(text)
	code := f.indents(f.masked)
	for i := range f.masked {
		f.close(i + 1)
		in := code[i]
		if in > 0 && len(f.open) == 0 {
			continue
		}
		kind, name := f.match(i)
		if kind == "" {
			continue
		}
		end := i
		for j := i + 1; j < len(code); j++ {
			if code[j] > in || f.inside[j] {
				end = j
			} else if code[j] >= 0 && !strings.HasPrefix(strings.TrimSpace(f.masked[j]), ")") {
				break
			}
		}
		f.add(kind, name, i, end, 0)
	}
	return f.list, ""
}

// readEnds outlines languages whose bodies end with "end", which stands below
// the beginning in text that is properly indented.
func readEnds(l *language, text string) ([]symbol, string) {
	f := l.finder(text)
	code := f.indents(f.masked)
	for i, line := range f.masked {
		f.close(i + 1)
		kind, name := f.match(i)
		if kind == "" {
			continue
		}
		end, in := i, code[i]
		oneLine := oneLiner.MatchString(line)
		for j := i + 1; j < len(code) && !oneLine; j++ {
			if code[j] >= 0 && code[j] <= in {
				if code[j] == in && strings.HasPrefix(strings.TrimSpace(f.masked[j]), "end") {
					end = j
				}
				break
			}
		}
		f.add(kind, name, i, end, 0)
	}
	return f.list, ""
}

// readStatements outlines languages of statements that end with a semicolon.
func readStatements(l *language, text string) ([]symbol, string) {
	f := l.finder(text)
	ends := make([]int, len(f.masked))
	for i, end := len(ends)-1, len(ends)-1; i >= 0; i-- {
		if strings.Contains(f.masked[i], ";") {
			end = i
		}
		ends[i] = end
	}
	for i := range f.masked {
		f.open = nil
		if kind, name := f.match(i); kind != "" {
			f.add(kind, name, i, ends[i], 0)
		}
	}
	return f.list, ""
}
