package policy

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// pathPattern is a glob of gitignore below a folder. Paths are compared with
// slashes, in the form of [Config.Key].
type pathPattern struct {
	bases   []string // the folder as given and resolved; "" = the root
	parts   []part
	literal string // stands in every path that matches
	deep    bool   // it matches at any depth
	folder  bool   // only folders, that is what is below them
	below   bool   // it covers what is below what it matches
	self    bool   // x/** covers x too
	not     bool
}

// part is what stands between two slashes.
type part struct {
	text   string
	plain  bool // it has no wildcard
	double bool // it is **
}

// readPath reads the pattern of a path, see [Rule].
func (s *state) readPath(spec string, at int, allows bool, from Source) (*pathPattern, *fault) {
	g := &pathPattern{below: true}
	spec, g.not = strings.CutPrefix(spec, "!")
	base, rest, f := s.anchor(spec, at, from)
	if f != nil {
		return nil, f
	}
	anchored := base != s.Dir || len(spec) != len(rest)
	for strings.HasPrefix(rest, "../") || rest == ".." {
		base, rest, anchored = path.Dir(slashed(base)), strings.TrimPrefix(rest[2:], "/"), true
	}
	if f := g.read(s.keyed(rest), anchored, allows); f != nil {
		f.column += at + len(spec) - len(rest)
		return nil, f
	}
	g.bases = s.basesOf(base)
	return g, nil
}

// anchor returns the folder that a pattern starts from, and what is left of it.
func (s *state) anchor(spec string, at int, from Source) (base, rest string, f *fault) {
	switch {
	case strings.HasPrefix(spec, "//"):
		return "/", spec[2:], nil
	case spec == "~" || strings.HasPrefix(spec, "~/"):
		if s.Home == "" {
			return "", "", &fault{at, "the home folder is not known"}
		}
		return s.Home, strings.TrimPrefix(spec[1:], "/"), nil
	case strings.HasPrefix(spec, "/"):
		base = from.Dir
		if base == "" {
			base = s.Dir
		}
		rest = spec[1:]
	case len(spec) > 2 && spec[1] == ':' && (spec[2] == '\\' || spec[2] == '/'):
		return "/", strings.TrimPrefix(slashed(spec), "/"), nil
	default:
		base = s.Dir
		rest = strings.TrimPrefix(spec, "./")
	}
	if base == "" {
		return "", "", &fault{at, "the folder that it is relative to is not known"}
	}
	return base, rest, nil
}

// basesOf returns the forms of a folder that paths are compared with.
func (s *state) basesOf(base string) []string {
	forms := []string{s.keyed(slashed(base))}
	if s.Resolve != nil && base != "/" {
		if given, resolved, err := s.Resolve(base); err == nil {
			forms = append(forms, s.keyed(slashed(given)), s.keyed(slashed(resolved)))
			if resolved != base {
				s.links[base] = resolved
			}
		}
	}
	kept := forms[:0]
	for _, b := range forms {
		b = strings.TrimSuffix(b, "/")
		if len(kept) == 0 || kept[len(kept)-1] != b {
			kept = append(kept, b)
		}
	}
	return kept
}

func (s *state) keyed(path string) string {
	if s.Key == nil {
		return path
	}
	return s.Key(path)
}

// slashed writes a path of Windows with slashes: C:\x is /c/x. Other paths stay
// as they are.
func slashed(p string) string {
	switch {
	case len(p) > 1 && p[1] == ':' && p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z' && (len(p) == 2 || p[2] == '\\' || p[2] == '/'):
		return "/" + string(p[0]|0x20) + strings.ReplaceAll(p[2:], `\`, "/")
	case strings.HasPrefix(p, `\\`):
		return strings.ReplaceAll(p, `\`, "/")
	}
	return p
}

// read takes a pattern apart, with what was before it removed.
func (g *pathPattern) read(text string, anchored, allows bool) *fault {
	text, g.folder = strings.CutSuffix(text, "/")
	if g.folder && !allows {
		g.folder = false // a folder and what is in it
	}
	g.deep = !anchored && !strings.Contains(text, "/")
	if text == "" {
		g.deep, g.folder = false, false
		return nil
	}
	first, last, two := strings.Cut(text, "/")
	if !anchored && !allows && two && last == "**" && first != "**" {
		g.deep = true // dir/** is meant wherever it is
	}
	for at := 0; ; {
		name, _, more := strings.Cut(text[at:], "/")
		p, f := readPart(name, at)
		if f != nil {
			return f
		}
		if !p.double || len(g.parts) == 0 || !g.parts[len(g.parts)-1].double {
			g.parts = append(g.parts, p)
		}
		if p.plain && len(p.text) > len(g.literal) {
			g.literal = p.text
		}
		if !more {
			break
		}
		at += len(name) + 1
	}
	if end := g.parts[len(g.parts)-1]; allows && !end.plain && !end.double {
		g.below = false // src/* is what is in src, and not what is below that
	}
	return nil
}

func readPart(name string, at int) (part, *fault) {
	switch {
	case name == "**":
		return part{name, false, true}, nil
	case name == "", name == ".", name == "..":
		return part{}, &fault{at, "no path has // or a dot alone in it"}
	case !strings.ContainsAny(name, `*?[\`):
		return part{name, true, false}, nil
	}
	// A pattern that is broken fits nothing, not even what begins like it.
	if !whole(name) {
		return part{}, &fault{at, "a [ is not closed, or a \\ stands at the end"}
	}
	return part{name, false, false}, nil
}

// matches reports whether the pattern covers a path.
func (g *pathPattern) matches(key string) bool {
	if g.literal != "" && !strings.Contains(key, g.literal) {
		return false
	}
	for _, base := range g.bases {
		if rest, ok := strings.CutPrefix(key, base); ok && (rest == "" || rest[0] == '/') {
			if g.fits(strings.Trim(rest, "/")) {
				return true
			}
		}
	}
	return false
}

// holds reports whether what the pattern covers can lie below a path.
func (g *pathPattern) holds(key string) bool {
	if g.deep {
		return false
	}
	key = strings.TrimSuffix(key, "/")
	for _, base := range g.bases {
		for _, p := range g.parts {
			if !p.plain {
				break
			}
			base += "/" + p.text
		}
		if strings.HasPrefix(base, key) && (len(base) == len(key) || base[len(key)] == '/') {
			return true
		}
	}
	return false
}

// named returns the paths that the pattern names in full, or but for a ** at the
// end; nil = it does not.
func (g *pathPattern) named() []string {
	parts := g.parts
	if n := len(parts); n > 0 && parts[n-1].double {
		parts = parts[:n-1]
	}
	if g.deep || len(parts) == 0 {
		return nil
	}
	paths := slices.Clone(g.bases)
	for _, p := range parts {
		if !p.plain {
			return nil
		}
		for i := range paths {
			paths[i] += "/" + p.text
		}
	}
	return paths
}

// fits matches the path below a base.
func (g *pathPattern) fits(rel string) bool {
	if len(g.parts) == 0 {
		return true
	}
	var room [24]string
	names := room[:0]
	for name := range strings.SplitSeq(rel, "/") {
		if name != "" {
			names = append(names, name)
		}
	}
	if !g.deep {
		return g.from(names)
	}
	for i := range names {
		if g.from(names[i:]) {
			return true
		}
	}
	return false
}

// from matches names from their first on. ** takes as few as it can, and one more
// each time that what follows does not fit.
func (g *pathPattern) from(names []string) bool {
	p, n, backP, backN := 0, 0, -1, 0
	for {
		switch {
		case p == len(g.parts):
			if n == len(names) && !g.folder || n < len(names) && (g.below || g.folder) {
				return true
			}
		case g.parts[p].double && p+1 == len(g.parts):
			if left := len(names) - n; g.folder && left > 1 || !g.folder && (left > 0 || g.self || p == 0) {
				return true
			}
		case g.parts[p].double:
			backP, backN = p, n
			p++
			continue
		case n < len(names) && g.parts[p].fits(names[n]):
			p, n = p+1, n+1
			continue
		}
		if backP < 0 || backN >= len(names) {
			return false
		}
		backN++
		p, n = backP+1, backN
	}
}

func (p part) fits(name string) bool {
	if p.plain {
		return p.text == name
	}
	return fitsPart(p.text, name)
}

// fitsPart matches one name with * ? [..] and \.
func fitsPart(pattern, name string) bool {
	p, n, backP, backN := 0, 0, -1, 0
	for p < len(pattern) || n < len(name) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				backP, backN = p, n
				p++
				continue
			}
			if n < len(name) {
				if width, size, ok := one(pattern[p:], name[n:]); ok {
					p, n = p+size, n+width
					continue
				}
			}
		}
		if backP < 0 || backN >= len(name) {
			return false
		}
		_, width := utf8.DecodeRuneInString(name[backN:])
		backN += width
		p, n = backP+1, backN
	}
	return true
}

// one matches the first character of a name with the first element of a pattern,
// and returns how long both are.
func one(pattern, name string) (width, size int, ok bool) {
	r, width := utf8.DecodeRuneInString(name)
	switch pattern[0] {
	case '?':
		return width, 1, true
	case '[':
		size, ok = class(pattern, r)
		return width, size, ok
	case '\\':
		want, size := utf8.DecodeRuneInString(pattern[1:])
		return width, size + 1, want == r
	}
	want, size := utf8.DecodeRuneInString(pattern)
	return width, size, want == r && (r != utf8.RuneError || pattern[0] == name[0])
}

// class matches a character with [..], and returns how long that is; 0 = it has
// no end.
func class(pattern string, r rune) (size int, ok bool) {
	at := 1
	negated := at < len(pattern) && (pattern[at] == '!' || pattern[at] == '^')
	if negated {
		at++
	}
	for first := true; ; first = false {
		if at >= len(pattern) {
			return 0, false
		}
		if pattern[at] == ']' && !first {
			return at + 1, ok != negated
		}
		if name, rest, named := strings.Cut(pattern[at:], ":]"); named && strings.HasPrefix(name, "[:") {
			ok = ok || ofClass(name[2:], r)
			at = len(pattern) - len(rest)
			continue
		}
		low, n := member(pattern[at:])
		at += n
		high := low
		if n > 0 && at+1 < len(pattern) && pattern[at] == '-' && pattern[at+1] != ']' {
			high, n = member(pattern[at+1:])
			at += n + 1
		}
		if n == 0 {
			return 0, false
		}
		ok = ok || low <= r && r <= high
	}
}

// member reads one character of a class.
func member(s string) (r rune, size int) {
	if s[0] != '\\' {
		return utf8.DecodeRuneInString(s)
	}
	if len(s) == 1 {
		return 0, 0
	}
	r, size = utf8.DecodeRuneInString(s[1:])
	return r, size + 1
}

// ofClass reports whether a character of ASCII is in a named class.
func ofClass(name string, r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	digit := r >= '0' && r <= '9'
	switch name {
	case "alpha":
		return letter
	case "digit":
		return digit
	case "alnum":
		return letter || digit
	case "lower":
		return r >= 'a' && r <= 'z'
	case "upper":
		return r >= 'A' && r <= 'Z'
	case "space":
		return r == ' ' || r >= '\t' && r <= '\r'
	case "blank":
		return r == ' ' || r == '\t'
	case "xdigit":
		return digit || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
	case "punct":
		return r > ' ' && r < 0x7f && !letter && !digit
	case "print":
		return r >= ' ' && r < 0x7f
	case "graph":
		return r > ' ' && r < 0x7f
	case "cntrl":
		return r < ' ' || r == 0x7f
	}
	return false
}

// whole reports whether every class of a pattern has an end, and its last
// character escapes nothing.
func whole(pattern string) bool {
	for at := 0; at < len(pattern); at++ {
		switch pattern[at] {
		case '\\':
			at++
			if at == len(pattern) {
				return false
			}
		case '[':
			size, _ := class(pattern[at:], 0)
			if size == 0 {
				return false
			}
			at += size - 1
		}
	}
	return true
}

// escaped writes a path so that a pattern matches nothing else.
func escaped(p string) string {
	return globMeta.Replace(p)
}

var globMeta = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
