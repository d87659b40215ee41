// Package mention finds the files, folders, line ranges, symbols, addresses and
// sessions that a person names in what they write, in English and Korean, and reads
// those that lie in the workspace, within bounds. What is named with @ is attached;
// a name alone only when it is certain what is meant.
//
// It reads through functions that it is given, contacts nothing, and starts no
// goroutines. What it attaches is data between labels that the data cannot forge.
package mention

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Limits of what is looked for. What is beyond them is text like any other.
const (
	maxText     = 1 << 20 // bytes of a text that are looked at
	maxMentions = 200     // in one text
	maxTried    = 2000    // signs of @ that are looked behind
	maxName     = 1024    // bytes of one name
	maxLine     = 10_000_000
)

// Kind is what a mention names.
type Kind string

// The kinds. A path may turn out to be a folder or a symbol when it is resolved.
const (
	Path    Kind = "path"
	Folder  Kind = "folder"
	Symbol  Kind = "symbol"  // Name, or pkg.Name
	URL     Kind = "url"     // to be fetched by the caller, through the gate
	Session Kind = "session" // an ID, to be looked up by the caller

	// Resource is what a server lets be read, SERVER:ADDRESS, to be read by the caller.
	Resource Kind = "resource"
)

// A Mention is one place of a text that names something.
type Mention struct {
	ID       string `json:"id"` // "12-20", its place in the text
	Kind     Kind   `json:"kind"`
	Text     string `json:"text"` // as it is written, with @
	Name     string `json:"name"`
	First    int    `json:"first,omitempty"` // line, from 1; 0 = all
	Last     int    `json:"last,omitempty"`
	Explicit bool   `json:"explicit,omitempty"` // written with @

	// Foreign: not the person who speaks has written it, but a file, or a command in one.
	// It is read where that needs no question, and names no session.
	Foreign bool `json:"foreign,omitempty"`

	start, end int
	others     []string  // other readings of the name, in the order to try them
	parts      []Mention // what it is when no reading of it exists
}

var (
	rangePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:#L([0-9]{1,8})(?:-L?([0-9]{1,8}))?|:([0-9]{1,8})(?:-([0-9]{1,8})|:[0-9]{1,8})?)`)
	})
	sessionPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^session:([A-Za-z0-9_-]{1,128})`) })
	resourcePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([^\s"'<>` + "`" + `]{1,128}?):([A-Za-z][A-Za-z0-9+.-]{0,31}://[^\s].*)$`)
	})
	symbolPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_]*(?:(?:\.|::)[\p{L}_][\p{L}\p{N}_]*)*$`)
	})
	versionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[vV]?[0-9]+(?:\.[0-9]+)+(?:[-+][0-9A-Za-z.-]*)?$`) })
	extPattern     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^./]\.[\p{L}\p{N}_]{1,6}$`) })
	joinedPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(.*?\.[A-Za-z0-9_]{1,6})(\p{Hangul}+)(.*)$`) })
)

// Own marks what is foreign in the mentions of a text of which a person has written only
// the beginning, so many bytes.
func Own(list []Mention, bytes int) {
	for i := range list {
		list[i].Foreign = list[i].start >= bytes
	}
}

// Parse returns what a text may mention, in its order. Nothing in a fence is a
// mention, and no address of e-mail.
func Parse(text string) []Mention {
	if len(text) > maxText {
		text = text[:maxText]
	}
	p := parser{text: text}
	fence := ""
	for at := 0; at < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		l := strings.TrimLeft(text[at:end], " \t")
		mark := l[:len(l)-len(strings.TrimLeft(l, "`"))]
		if mark == "" {
			mark = l[:len(l)-len(strings.TrimLeft(l, "~"))]
		}
		switch {
		case fence != "":
			if len(mark) >= len(fence) && mark[0] == fence[0] && strings.TrimSpace(l[len(mark):]) == "" {
				fence = ""
			}
		case len(mark) >= 3 && !strings.Contains(l[len(mark):], "`"):
			fence = mark
		default:
			p.line(at, end)
		}
		at = end + 1
	}
	return p.found
}

type parser struct {
	text  string
	found []Mention
	tried int
}

// line finds the mentions of one line.
func (p *parser) line(at, end int) {
	for at < end && len(p.found) < maxMentions {
		r, size := utf8.DecodeRuneInString(p.text[at:end])
		switch {
		case r == '`':
			at = p.span(at, end)
		case r == '@' && p.tried < maxTried && !p.word(at):
			p.tried++
			at = p.explicit(at, end)
		case r == '@': // of an address
			at += 1 + run(p.text[at+1:end], pathRune)
		case pathRune(r):
			at = p.bare(at, end)
		default:
			at += size
		}
	}
}

// word reports whether something stands in front of an @ that makes an address of it.
func (p *parser) word(at int) bool {
	r, _ := utf8.DecodeLastRuneInString(p.text[:at])
	return at > 0 && (r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("._%+-@/", r))
}

// span reads a name between signs of code, and returns where it ends.
func (p *parser) span(at, end int) int {
	n := len(p.text[at:end]) - len(strings.TrimLeft(p.text[at:end], "`"))
	mark := p.text[at : at+n]
	inner, _, ok := strings.Cut(p.text[at+n:end], mark)
	if !ok {
		return at + n
	}
	stop := at + n + len(inner) + n
	name := strings.TrimSpace(inner)
	first, last := 0, 0
	if i := strings.LastIndexAny(name, "#:"); i > 0 {
		for j := range i + 1 {
			if m, size := lineRange(name[j:]); m != [2]int{} && j+size == len(name) {
				name, first, last = name[:j], m[0], m[1]
				break
			}
		}
	}
	if looksLikePath(name) && len(name) <= maxName && !strings.ContainsAny(name, "\x00@") && !strings.Contains(name, "://") {
		p.add(Mention{Kind: Path, Name: name, First: first, Last: last, start: at, end: stop})
	}
	return stop
}

// explicit reads what follows an @, and returns where it ends.
func (p *parser) explicit(at, end int) int {
	rest := p.text[at+1 : end]
	m := Mention{Kind: Path, Explicit: true, start: at}
	size := 0
	switch {
	case strings.HasPrefix(rest, "https://") || strings.HasPrefix(rest, "http://"):
		m.Kind, m.Name = URL, address(rest)
		m.end = at + 1 + len(m.Name)
		p.add(m)
		return m.end
	case strings.HasPrefix(rest, `"`):
		name, _, ok := strings.Cut(rest[1:], `"`)
		if !ok {
			return at + 1
		}
		m.Name, size = name, len(name)+2
	case strings.HasPrefix(rest, "#"):
		size = 1 + run(rest[1:], func(r rune) bool {
			return r == '.' || r == ':' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
		})
		m.Kind, m.Name = Symbol, strings.TrimRight(rest[1:size], ".:")
		m.end = at + 2 + len(m.Name)
		if symbolPattern().MatchString(m.Name) {
			m.others = readings(m.Name)
			p.add(m)
		}
		return at + 1 + size
	default:
		if s := sessionPattern().FindStringSubmatch(rest); s != nil {
			m.Kind, m.Name, m.end = Session, s[1], at+1+len(s[0])
			p.add(m)
			return m.end
		}
		if s := resourcePattern().FindStringSubmatch(rest); s != nil {
			uri := address(s[2])
			m.Kind, m.Name, m.end = Resource, s[1]+":"+uri, at+1+len(s[1])+1+len(uri)
			m.others = readings(m.Name)
			p.add(m)
			return m.end
		}
		m.Name, size = escaped(rest)
	}
	if m.Name == "" || m.Name == "." && size == 0 {
		return at + 1
	}
	lines, n := lineRange(rest[size:])
	m.First, m.Last, m.end = lines[0], lines[1], at+1+size+n
	if rest[0] != '"' {
		m.others = readings(m.Name)
	}
	p.add(m)
	return m.end
}

// bare reads a name that stands alone, and returns where it ends.
func (p *parser) bare(at, end int) int {
	rest := p.text[at:end]
	size := run(rest, pathRune)
	after := rest[size:]
	switch {
	case strings.HasPrefix(after, "://"):
		return at + size + len(address(after))
	case strings.HasPrefix(after, "@"): // an address of e-mail
		return at + size + 1 + run(after[1:], pathRune)
	}
	name := strings.TrimRight(rest[:size], ".-+")
	if name == rest[:size] {
		lines, n := lineRange(after)
		p.certain(Mention{Kind: Path, Name: name, First: lines[0], Last: lines[1], start: at, end: at + size + n})
		return at + size + n
	}
	p.certain(Mention{Kind: Path, Name: name, start: at, end: at + len(name)})
	return at + size
}

// certain adds a bare name if it has the form of a file's.
func (p *parser) certain(m Mention) {
	if ok := form(&m, 0, p.text); ok {
		p.add(m)
	}
}

// form completes a bare name with its other readings, and with the names that are
// written together with it. It reports whether it has the form of a file's name.
func form(m *Mention, depth int, text string) bool {
	if len(m.Name) > maxName || depth > 8 || !strings.ContainsAny(m.Name, "./") { // most words of a request
		return false
	}
	m.others = readings(m.Name)
	if j := joinedPattern().FindStringSubmatch(m.Name); j != nil && looksLikePath(j[3]) {
		first := Mention{Kind: Path, Name: j[1], start: m.start, end: m.start + len(j[1])}
		second := Mention{Kind: Path, Name: j[3], First: m.First, Last: m.Last, start: m.start + len(j[1]) + len(j[2]), end: m.end}
		for _, part := range []Mention{first, second} {
			if form(&part, depth+1, text) {
				part.ID, part.Text = place(part), text[part.start:part.end]
				m.parts = append(m.parts, part)
			}
		}
		m.others = nil
	}
	return slices.ContainsFunc(append([]string{m.Name}, m.others...), looksLikePath) || len(m.parts) > 0
}

func (p *parser) add(m Mention) {
	if m.Name == "" || len(m.Name) > maxName {
		return
	}
	m.ID, m.Text = place(m), p.text[m.start:m.end]
	p.found = append(p.found, m)
}

func place(m Mention) string { return fmt.Sprintf("%d-%d", m.start, m.end) }

// looksLikePath reports whether a name has an end like .go, or folders in it, and is
// no version.
func looksLikePath(name string) bool {
	if name == "" || versionPattern().MatchString(name) || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "//") {
		return false
	}
	if extPattern().MatchString(name) {
		ext := name[strings.LastIndexByte(name, '.')+1:]
		return strings.IndexFunc(name, unicode.IsLetter) >= 0 && (strings.IndexFunc(ext, unicode.IsLetter) >= 0 || strings.ContainsAny(name, "/"))
	}
	dir, base, ok := strings.Cut(strings.TrimPrefix(name, "./"), "/")
	return ok && dir != "" && base != "" && strings.IndexFunc(name, unicode.IsLetter) >= 0
}

// pathRune reports whether a sign can be part of a name that has no quotes.
func pathRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("_-./~+\\", r)
}

func run(s string, ok func(rune) bool) int {
	if n := strings.IndexFunc(s, func(r rune) bool { return !ok(r) }); n >= 0 {
		return n
	}
	return len(s)
}

// escaped reads a path behind an @: spaces in it have a backslash before them, and
// brackets belong to it when they are closed. It returns how long it is in the text.
func escaped(s string) (name string, size int) {
	var b strings.Builder
	depth, good, goodName := 0, 0, 0 // up to where brackets are closed
	for size < len(s) && b.Len() <= maxName {
		r, n := utf8.DecodeRuneInString(s[size:])
		switch {
		case r == '\\' && strings.HasPrefix(s[size+1:], " "):
			b.WriteByte(' ')
			size += 2
		case r == '\\':
			b.WriteByte('/')
			size++
		case pathRune(r) || r == '[' || r == '(' || (r == ']' || r == ')') && depth > 0 || r == '@' || r == '$' || r == '=':
			if r == '[' || r == '(' {
				depth++
			} else if r == ']' || r == ')' {
				depth--
			}
			b.WriteRune(r)
			size += n
		default:
			n = 0
		}
		if depth == 0 {
			good, goodName = size, b.Len()
		}
		if n == 0 {
			break
		}
	}
	name, size = b.String()[:goodName], good
	trimmed := strings.TrimRight(name, ".")
	if trimmed == "" || strings.HasSuffix(trimmed, "/") { // . and .. and a/..
		return name, size
	}
	return trimmed, size - (len(name) - len(trimmed))
}

// address returns the web address that a text begins with, without the signs of the
// sentence around it.
func address(s string) string {
	s = s[:min(len(s), maxName)]
	s = s[:run(s, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.IsControl(r) && !strings.ContainsRune("<>\"`", r)
	})]
	for s != "" {
		last := s[len(s)-1]
		if !strings.ContainsRune(".,;:!?'*_", rune(last)) && (last != ')' || strings.Count(s, "(") >= strings.Count(s, ")")) {
			break
		}
		s = s[:len(s)-1]
	}
	return strings.ToValidUTF8(s, "")
}

// lineRange reads #L10-20, #L10, :10-20, :10 and :10:5, and returns its length.
func lineRange(s string) (lines [2]int, size int) {
	if !strings.HasPrefix(s, "#") && !strings.HasPrefix(s, ":") {
		return lines, 0
	}
	m := rangePattern().FindStringSubmatch(s)
	if m == nil {
		return lines, 0
	}
	first, _ := strconv.Atoi(m[1] + m[3])
	last, _ := strconv.Atoi(m[2] + m[4])
	if last == 0 {
		last = first
	}
	if first < 1 || last < first || last > maxLine {
		return [2]int{}, 0
	}
	return [2]int{first, last}, len(m[0])
}

// particles are the endings that Korean puts behind a name, the longest first.
var particles = []string{
	"에서부터", "으로부터", "에게서", "으로는", "으로도", "이라는", "이라고", "에서는", "에서도", "까지는", "까지도",
	"에서", "에게", "으로", "부터", "까지", "처럼", "보다", "마다", "하고", "이나", "이랑", "라는", "라고", "에는", "에도", "로는", "로도", "만을", "들은", "들을",
	"을", "를", "은", "는", "이", "가", "의", "에", "로", "와", "과", "도", "만", "나", "랑", "들",
}

// readings returns what a name may be besides what is written: without its particle,
// without all that follows an end like .go.
func readings(name string) []string {
	var all []string
	add := func(s string) {
		s = strings.TrimRight(s, ".")
		if s != "" && s != name && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	for _, p := range particles {
		if s, ok := strings.CutSuffix(name, p); ok {
			add(s)
		}
	}
	if j := joinedPattern().FindStringSubmatch(name); j != nil && !strings.ContainsAny(j[3], "./") {
		add(j[1])
	}
	return all
}
