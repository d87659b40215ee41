package checkpoint

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Limits of a file of ignore rules; what is beyond them is not read.
const (
	maxRuleFile = 1 << 20
	maxRules    = 10_000
	maxPattern  = 4 << 10
)

// rule is one line of a .gitignore. Source of the form: gitignore(5).
type rule struct {
	parts    []string // of the pattern, between slashes; "**" is any number of names
	negated  bool
	folders  bool // of folders only
	anchored bool // to the folder of the file; otherwise to any name below it

	// Most rules are a name or an ending, and most entries match none: to tell that
	// at a glance is what a walk has time for.
	literal bool   // the first part has no wildcards
	ending  string // the only part is "*" and this, without wildcards
}

// parseRules reads the lines of a .gitignore. Any bytes will do: a line that is
// no pattern matches nothing.
func parseRules(text string) []rule {
	var all []rule
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		if len(all) == maxRules {
			break
		}
		if r, ok := parseRule(strings.TrimRight(line, "\r\n")); ok {
			all = append(all, r)
		}
	}
	return all
}

func parseRule(line string) (r rule, ok bool) {
	if strings.HasPrefix(line, "#") || len(line) > maxPattern {
		return r, false
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	line, r.negated = strings.CutPrefix(line, "!")
	line, r.folders = strings.CutSuffix(line, "/")
	r.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	r.parts = strings.Split(line, "/")
	r.literal = !strings.ContainsAny(r.parts[0], `*?[\`)
	if ending, ok := strings.CutPrefix(line, "*"); ok && !strings.ContainsAny(ending, `*?[\`) {
		r.ending = ending
	}
	return r, true
}

// matches reports whether a rule matches a path below its folder, of which name
// is the last.
func (r *rule) matches(rel, name string, dir bool) bool {
	switch {
	case r.folders && !dir:
		return false
	case !r.anchored && r.literal:
		return name == r.parts[0]
	case !r.anchored && r.ending != "":
		return strings.HasSuffix(name, r.ending)
	case !r.anchored:
		return matchName(r.parts[0], name)
	case r.literal && !below(rel, r.parts[0]):
		return false
	}
	return matchParts(r.parts, strings.Split(rel, "/"))
}

// matchParts matches names against parts, in time of at most their product.
func matchParts(parts, names []string) bool {
	i, j := 0, 0
	star, mark := -1, 0 // the last "**", and what it holds so far
	for j < len(names) {
		switch {
		case i < len(parts) && parts[i] == "**":
			star, mark = i, j
			i++
			if i == len(parts) {
				return true // all that is inside
			}
		case i < len(parts) && matchName(parts[i], names[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return i == len(parts)
}

// matchName matches one name against a pattern of "*", "?", "[...]" and "\x", in
// time of at most the product of their lengths.
func matchName(pattern, name string) bool {
	i, j := 0, 0
	star, mark := -1, 0
	for j < len(name) {
		if i < len(pattern) && pattern[i] == '*' {
			star, mark = i, j
			i++
			continue
		}
		if n, ok := matchByte(pattern[i:], name[j]); ok {
			i += n
			j++
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		i, j = star+1, mark
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// matchByte matches one byte against the beginning of a pattern, of which it
// returns the length.
func matchByte(p string, c byte) (n int, ok bool) {
	switch {
	case p == "":
		return 0, false
	case p[0] == '?':
		return 1, true
	case p[0] == '[':
		return matchClass(p, c)
	case p[0] == '\\' && len(p) > 1:
		return 2, p[1] == c
	}
	return 1, p[0] == c
}

func matchClass(p string, c byte) (n int, ok bool) {
	i := 1
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	for first := true; i < len(p); first = false {
		if p[i] == ']' && !first {
			return i + 1, ok != negated
		}
		low, used := classByte(p[i:])
		i += used
		high := low
		if i+1 < len(p) && p[i] == '-' && p[i+1] != ']' {
			high, used = classByte(p[i+1:])
			i += 1 + used
		}
		ok = ok || low <= c && c <= high
	}
	return 0, false // it has no end
}

func classByte(p string) (c byte, n int) {
	if p[0] == '\\' && len(p) > 1 {
		return p[1], 2
	}
	return p[0], 1
}

// chain is the rules that hold in a folder: its own and those of the ones above
// it, up to the top of its repository.
type chain struct {
	up    *chain
	dir   string // path of a tree
	rules []rule
}

// ignored reports whether the rules leave an entry out. The innermost file with
// a word on it decides, in it the last line.
func (c *chain) ignored(path string, dir bool) bool {
	name := base(path)
	for ; c != nil; c = c.up {
		rel := strings.TrimPrefix(path[len(c.dir):], "/")
		for i := len(c.rules) - 1; i >= 0; i-- {
			if c.rules[i].matches(rel, name, dir) {
				return !c.rules[i].negated
			}
		}
	}
	return false
}

// plain are the rules where there is no repository.
var plain = parseRules("node_modules/\nbower_components/\n__pycache__/\n.venv/\nvenv/\n.tox/\n.nox/\n.mypy_cache/\n" +
	".pytest_cache/\n.ruff_cache/\n.gradle/\n.next/\n.nuxt/\n.svelte-kit/\n.terraform/\n.cache/\n")

// private are the folders, or files in their place, in which programs that keep
// versions have their own. Nothing ever looks into them.
func private(name string) bool {
	switch len(name) {
	case 3, 4:
		return strings.EqualFold(name, ".git") || name == ".hg" || name == ".svn" || name == ".jj"
	}
	return false
}

// ruleFiles are the rules that were read, by the path of their file. They are
// read again when the file has changed.
type ruleFiles struct {
	mu    sync.Mutex
	files map[string]ruleFile
}

type ruleFile struct {
	st    stat
	rules []rule
}

// in returns the rules of a file in an open folder.
func (r *ruleFiles) in(d folder, name, path string) []rule {
	st, err := d.stat(name)
	if err != nil || !st.mode.IsRegular() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, ok := r.files[path]; ok && f.st == st {
		return f.rules
	}
	f, err := d.open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRuleFile))
	if err != nil {
		return nil
	}
	if r.files == nil {
		r.files = map[string]ruleFile{}
	}
	r.files[path] = ruleFile{st, parseRules(string(text))}
	return r.files[path].rules
}

// enter returns the rules that hold in an open folder.
func (r *ruleFiles) enter(up *chain, d folder, dir string, top, file bool) *chain {
	if top {
		up = r.exclude(d, dir)
	}
	if !file {
		return up
	}
	if rules := r.in(d, ".gitignore", dir+"/.gitignore"); len(rules) > 0 {
		return &chain{up, dir, rules}
	}
	return up
}

// exclude returns the rules that a repository keeps for itself.
func (r *ruleFiles) exclude(d folder, dir string) *chain {
	git, err := d.sub(".git")
	if err != nil {
		return nil // a file: the repository lies elsewhere, and its rules with it
	}
	defer git.close()
	info, err := git.sub("info")
	if err != nil {
		return nil
	}
	defer info.close()
	if rules := r.in(info, "exclude", dir+"/.git/info/exclude"); len(rules) > 0 {
		return &chain{nil, dir, rules}
	}
	return nil
}

// above returns the rules that folders above a root set for it.
func (r *ruleFiles) above(root string) *chain {
	var dirs []string
	for at := root; ; at = parent(at) {
		if at != root {
			dirs = append(dirs, at)
		}
		if _, err := os.Lstat(filepath.FromSlash(at) + "/.git"); err == nil {
			break
		}
		if parent(at) == at {
			return &chain{nil, root, plain}
		}
	}
	var c *chain
	for i := len(dirs) - 1; i >= 0; i-- {
		if d, err := openFolder(filepath.FromSlash(dirs[i])); err == nil {
			c = r.enter(c, d, dirs[i], i == len(dirs)-1, true)
			d.close()
		}
	}
	return c
}
