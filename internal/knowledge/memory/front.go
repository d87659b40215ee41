package memory

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of what stands in front of a rule.
const (
	maxFront    = 64 << 10 // bytes
	maxPatterns = 1000     // of one rule, with its braces spelt out
	maxPattern  = 1024     // bytes of one
)

// front is what stands between two lines of --- at the beginning of a file.
type front struct {
	name  string
	paths []string
	line  int // of paths
}

// frontError is a line that cannot be understood.
type frontError struct {
	line int
	what string
}

func (e *frontError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.what) }

// parseFront reads name and paths, and returns the text behind. It knows as much of
// YAML as these need: keys with a value, and lists in either form. Patterns need no
// quotes. Other keys are passed over with the lines that belong to them.
func parseFront(text string) (front, string, error) {
	head, body, ok, err := cutFront(text)
	if err != nil || !ok {
		return front{}, text, err
	}
	var f front
	seen := map[string]bool{}
	key := ""
	for i, l := range strings.Split(head, "\n") {
		n := i + 2 // behind the first ---
		bad := func(what string) error { return &frontError{n, what} }
		trimmed := strings.TrimSpace(l)
		item, isItem := strings.CutPrefix(trimmed, "-")
		isItem = isItem && (item == "" || item[0] == ' ' || item[0] == '\t')
		switch {
		case trimmed == "" || trimmed[0] == '#':
		case isItem && key == "paths":
			v, err := scalar(item)
			if err != nil {
				return front{}, "", bad(err.Error())
			}
			f.paths = append(f.paths, split(v)...)
		case isItem && key == "" || isItem && key == "name":
			return front{}, "", bad("a list that has no key")
		case isItem || l[0] == ' ' || l[0] == '\t':
			if key == "paths" || key == "name" || key == "" {
				return front{}, "", bad("a line that belongs to nothing")
			}
		default:
			k, v, ok := strings.Cut(trimmed, ":")
			if key = strings.TrimSpace(k); !ok || key == "" || v != "" && v[0] != ' ' && v[0] != '\t' {
				return front{}, "", bad("no key and value")
			}
			if seen[key] {
				return front{}, "", bad("the key " + key + " stands there twice")
			}
			seen[key] = true
			if key == "paths" {
				f.line = n
			}
			if err := f.set(key, v); err != nil {
				return front{}, "", bad(err.Error())
			}
		}
		if len(f.paths) > maxPatterns {
			return front{}, "", bad("too many paths")
		}
	}
	return f, body, nil
}

// cutFront parts what stands between the lines of --- from what follows.
func cutFront(text string) (head, body string, ok bool, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return "", text, false, nil
	}
	for at := 0; at <= len(rest); {
		l, _, more := strings.Cut(rest[at:], "\n")
		if t := strings.TrimRight(l, " \t"); t == "---" || t == "..." {
			return strings.TrimSuffix(rest[:at], "\n"), rest[min(len(rest), at+len(l)+1):], true, nil
		}
		at += len(l) + 1
		if !more || at > maxFront {
			break
		}
	}
	return "", text, false, &frontError{1, "the --- at its beginning has no second one"}
}

func (f *front) set(key, v string) error {
	switch key {
	case "name":
		v, err := scalar(v)
		f.name = v
		return err
	case "paths":
		v = strings.TrimSpace(v)
		if inner, ok := strings.CutPrefix(v, "["); ok && strings.HasSuffix(inner, "]") {
			for _, p := range split(strings.TrimSuffix(inner, "]")) {
				p, err := scalar(p)
				if err != nil {
					return err
				}
				f.paths = append(f.paths, p)
			}
			return nil
		}
		v, err := scalar(v)
		f.paths = split(v)
		return err
	}
	return nil
}

// scalar is a value without its quotes and without a comment behind it.
func scalar(v string) (string, error) {
	v = strings.TrimSpace(v)
	if v == "" || v[0] != '"' && v[0] != '\'' {
		if at := strings.Index(v, " #"); at >= 0 {
			v = strings.TrimSpace(v[:at])
		}
		if strings.HasPrefix(v, "#") {
			return "", nil
		}
		if v == "|" || v == ">" || strings.HasPrefix(v, "&") {
			return "", errors.New("a form of YAML that is not read here")
		}
		return v, nil
	}
	inner, rest, ok := strings.Cut(v[1:], v[:1])
	if rest = strings.TrimSpace(rest); !ok || rest != "" && rest[0] != '#' {
		return "", errors.New("a quote that does not end")
	}
	return inner, nil
}

// split parts a list at the commas that stand in no braces and no quotes.
func split(list string) []string {
	var parts []string
	depth, start := 0, 0
	var quote rune
	for i, r := range list + "," {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ',' && depth <= 0:
			if p := strings.TrimSpace(list[start:i]); p != "" {
				parts = append(parts, p)
			}
			start = i + 1
		}
	}
	if start < len(list) { // braces or quotes that do not end: compile refuses them
		parts = append(parts, strings.TrimSpace(list[start:]))
	}
	return parts
}

// compile readies patterns for match. They have slashes, start at the folder of the
// rules, and match at any depth when they have no slash; ! takes back.
func compile(patterns []string) ([]string, error) {
	var globs []string
	for _, p := range patterns {
		if len(p) > maxPattern {
			return nil, fmt.Errorf("a pattern of more than %d bytes", maxPattern)
		}
		not, bare := "", strings.ReplaceAll(p, `\`, "/")
		if strings.HasPrefix(bare, "!") {
			not, bare = "!", bare[1:]
		}
		all, err := braces(bare, maxPatterns-len(globs))
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", p, err)
		}
		for _, g := range all {
			if g = anchor(g); g == "" || !doublestar.ValidatePattern(g) {
				return nil, fmt.Errorf("pattern %q cannot be read", p)
			}
			globs = append(globs, not+g)
		}
	}
	return globs, nil
}

func anchor(g string) string {
	g = strings.TrimPrefix(g, "./")
	if strings.HasSuffix(g, "/") {
		g += "**"
	}
	rooted := strings.HasPrefix(g, "/")
	if g = strings.TrimLeft(g, "/"); !rooted && g != "" && !strings.Contains(g, "/") {
		return "**/" + g
	}
	return g
}

// braces spells out the {a,b} of a pattern, most patterns at most.
func braces(p string, most int) ([]string, error) {
	done, work := []string(nil), []string{p}
	for len(work) > 0 {
		if len(done)+len(work) > most {
			return nil, fmt.Errorf("the rule has more than %d patterns", maxPatterns)
		}
		next := work[len(work)-1]
		work = work[:len(work)-1]
		open := strings.IndexByte(next, '{')
		if open < 0 {
			if strings.IndexByte(next, '}') >= 0 {
				return nil, errors.New("a brace that does not begin")
			}
			done = append(done, next)
			continue
		}
		end := closing(next[open:])
		if end < 0 {
			return nil, errors.New("a brace that does not end")
		}
		for _, alt := range alternatives(next[open+1 : open+end]) {
			work = append(work, next[:open]+alt+next[open+end+1:])
		}
	}
	return done, nil
}

func closing(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// alternatives parts what stands in a pair of braces.
func alternatives(s string) []string {
	var alts []string
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				alts, start = append(alts, s[start:i]), i+1
			}
		}
	}
	return append(alts, s[start:])
}

// match reports whether the last glob that matches a path with slashes gives it.
// Globs that only take back take back from everything.
func match(globs []string, rel string) bool {
	rel = path.Clean(rel)
	hit := len(globs) > 0 && strings.HasPrefix(globs[0], "!")
	for _, g := range globs {
		bare, not := strings.CutPrefix(g, "!")
		if ok, err := doublestar.Match(bare, rel); ok && err == nil {
			hit = !not
		}
	}
	return hit
}
