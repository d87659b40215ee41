package skills

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/internal/base/frontmatter"
)

// Config says where skills are looked for.
type Config struct {
	// Places are asked for whenever skills are looked for.
	Places func() []frontmatter.Place

	Workdir string // absolute
	Root    string // of the project, absolute: what it brings may not lead out of it; "" = Workdir

	BuiltIn fs.FS // NAME/SKILL.md; nil = none

	// State says of skills by name, those of plugins apart, how far they are to be seen:
	// on, name-only, user-invocable-only or off.
	State map[string]string

	// Only are the skills that models may use, by name or by what follows the colon in it;
	// nil = all. The others are for people.
	Only *[]string

	// Also are files besides those of the skills that decide what they may do: when one
	// changes, all are read again.
	Also []string
}

// maxNested bounds the folders below the working folder whose skills are added.
const maxNested = 50

// A Set is the skills of a session. It looks for them when it is first asked. It is safe
// for concurrent use.
type Set struct {
	c Config

	mu      sync.Mutex
	loaded  bool
	found   []Skill // all but those that are built in
	placed  int     // how many of them are not nested
	own     []Skill // found, with what counts of them
	list    []Skill // all; nil = not put together yet
	stamps  map[string]stamp
	nested  []frontmatter.Place
	prefix  map[string]string // of the names of nested skills that another one has, by their place
	visited map[string]bool   // folders that were looked into for nested ones
	version int
}

// stamp is what a file or folder was like when it was read; the zero value is one that is
// not there.
type stamp struct {
	size int64
	mod  time.Time
}

func stampOf(info fs.FileInfo) stamp { return stamp{info.Size(), info.ModTime()} }

// New returns the skills of a session. Nothing is read yet.
func New(c Config) *Set {
	if c.Root == "" {
		c.Root = c.Workdir
	}
	return &Set{c: c, prefix: map[string]string{}, visited: map[string]bool{}}
}

// List returns all skills: those that count first, by where they come from and then by
// name, each once, and with Off those that do not. It is the caller's.
func (s *Set) List() []Skill {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all())
}

// Own returns the skills besides those that are built in, which are not even read for it.
func (s *Set) Own() []Skill {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	return slices.Clone(s.own)
}

// Version counts how often the skills have changed since they were first read.
func (s *Set) Version() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	return s.version
}

// Refresh reads the skills again if their files have changed, and reports whether.
func (s *Set) Refresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loaded || !s.stale() {
		return false
	}
	s.read()
	s.version++
	return true
}

// Reload reads the skills again.
func (s *Set) Reload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read()
	s.version++
}

func (s *Set) stale() bool {
	for path, was := range s.stamps {
		var now stamp
		if info, err := os.Stat(path); err == nil {
			now = stampOf(info)
		}
		if now != was {
			return true
		}
	}
	return false
}

func (s *Set) load() {
	if !s.loaded {
		s.read()
	}
}

// read looks for all skills. mu is held.
func (s *Set) read() {
	s.loaded, s.stamps = true, map[string]stamp{}
	for _, path := range s.c.Also {
		s.stamps[path] = stamp{}
		if info, err := os.Stat(path); err == nil {
			s.stamps[path] = stampOf(info)
		}
	}
	var all []Skill
	var places []frontmatter.Place
	if s.c.Places != nil {
		places = s.c.Places()
	}
	seen := map[string]bool{}
	for _, p := range places {
		all = append(all, s.in(p, "", seen)...)
	}
	slices.SortStableFunc(all, func(a, b Skill) int { return rank(a) - rank(b) })
	s.placed = len(all)
	for _, p := range s.nested {
		all = append(all, s.in(p, s.prefix[p.Dir], seen)...)
	}
	for i := range all {
		s.state(&all[i])
	}
	s.found, s.own, s.list = all, settle(slices.Clone(all)), nil
}

// all returns all skills. Those that are built in are read when somebody wants them: most
// sessions want none. mu is held.
func (s *Set) all() []Skill {
	s.load()
	if s.list == nil {
		builtIn := s.builtIn()
		for i := range builtIn {
			s.state(&builtIn[i])
		}
		list := slices.Concat(s.found[:s.placed], builtIn)
		slices.SortStableFunc(list, func(a, b Skill) int { return rank(a) - rank(b) })
		s.list = settle(append(list, s.found[s.placed:]...))
	}
	return s.list
}

// state applies what settings say of a skill.
func (s *Set) state(k *Skill) {
	if s.c.Only != nil && !slices.ContainsFunc(*s.c.Only, func(name string) bool { return k.Name == name || strings.HasSuffix(k.Name, ":"+name) }) {
		k.NoModel = true
	}
	if k.Place.Scope == frontmatter.Plugin {
		return
	}
	switch s.c.State[k.Name] {
	case "name-only":
		k.Bare = true
	case "user-invocable-only":
		k.NoModel = true
	case "off":
		if k.Off == "" {
			k.Off = "the settings switch it off"
		}
	}
}

// in returns the skills of a place.
func (s *Set) in(p frontmatter.Place, prefix string, seen map[string]bool) []Skill {
	f := finder{place: p, prefix: prefix, seen: seen, stamp: func(path string, info fs.FileInfo) { s.stamps[path] = stampOf(info) }}
	s.stamps[p.Dir] = stamp{}
	if p.Scope == frontmatter.Plugin {
		f.prefix = p.Plugin + ":"
		if at := strings.LastIndexByte(p.Plugin, '@'); at > 0 {
			f.prefix = p.Plugin[:at] + ":"
		}
	}
	if p.Scope == frontmatter.Project {
		f.root = s.c.Root
		if real, err := filepath.EvalSymlinks(f.root); err == nil {
			f.root = real
		}
		if real, err := filepath.EvalSymlinks(p.Dir); err == nil && !within(f.root, real) {
			return nil // all of it would be refused
		}
	}
	return f.find()
}

func (s *Set) builtIn() (list []Skill) {
	if s.c.BuiltIn == nil {
		return nil
	}
	names, _ := fs.Glob(s.c.BuiltIn, "*/"+File) // the pattern is right
	for _, file := range names {
		name := strings.TrimSuffix(file, "/"+File)
		data, err := fs.ReadFile(s.c.BuiltIn, file)
		if err != nil {
			continue
		}
		skill, _ := parse(data, int64(len(data)), name)
		skill.Name, skill.File = name, "builtin:"+name
		skill.Place = frontmatter.Place{Scope: frontmatter.BuiltIn, Trusted: true}
		list = append(list, skill)
	}
	return list
}

// rank orders where skills come from: the first of a name counts. What a folder brings
// that is not trusted comes last.
func rank(s Skill) int {
	if s.Place.Scope == frontmatter.Project && !s.Place.Trusted {
		return len(order)
	}
	return slices.Index(order[:], s.Place.Scope)
}

var order = [...]frontmatter.Scope{frontmatter.Managed, frontmatter.Flag, frontmatter.User, frontmatter.Project, frontmatter.Plugin, frontmatter.BuiltIn}

// settle says of skills of one name, in the order of their rank, which counts: the first
// that can be used.
func settle(all []Skill) []Skill {
	first := map[string]string{}
	for _, s := range all {
		if key := strings.ToLower(s.Name); s.Off == "" && first[key] == "" {
			first[key] = s.File
		}
	}
	for i, s := range all {
		if at := first[strings.ToLower(s.Name)]; s.Off == "" && at != s.File {
			all[i].Off = "another one of this name comes first: " + at
		}
	}
	slices.SortStableFunc(all, func(a, b Skill) int {
		switch {
		case (a.Off == "") != (b.Off == ""):
			if a.Off == "" {
				return -1
			}
			return 1
		case rank(a) != rank(b):
			return rank(a) - rank(b)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all[:min(len(all), MaxSkills)]
}

// Touch tells of a file that the session has read or changed. Skills that lie in a folder
// between the working folder and the file are added then, and stay. It reports whether
// there are any new ones.
func (s *Set) Touch(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	rel, err := filepath.Rel(s.c.Workdir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	added := false
	for dir := filepath.Dir(path); dir != s.c.Workdir && within(s.c.Workdir, dir) && !s.visited[dir]; dir = filepath.Dir(dir) {
		if len(s.visited) > 20*maxNested*maxDepth {
			return added
		}
		s.visited[dir] = true
		for _, own := range ownFolders {
			at := filepath.Join(dir, own, "skills")
			if info, err := os.Stat(at); err == nil && info.IsDir() && len(s.nested) < maxNested {
				added = s.nest(at, dir) || added
			}
		}
	}
	return added
}

// nest adds a place below the working folder. mu is held.
func (s *Set) nest(at, dir string) bool {
	p := frontmatter.Place{Scope: frontmatter.Project, Dir: at}
	if s.c.Places != nil {
		for _, of := range s.c.Places() {
			if of.Scope == frontmatter.Project && of.Trusted {
				p.Trusted, p.Covers = true, of.Covers
				break
			}
		}
	}
	s.load()
	taken := map[string]bool{}
	for _, k := range s.all() {
		if k.Off == "" {
			taken[strings.ToLower(k.Name)] = true
		}
	}
	fresh := s.in(p, "", map[string]bool{})
	if len(fresh) == 0 {
		return false
	}
	if slices.ContainsFunc(fresh, func(k Skill) bool { return taken[strings.ToLower(k.Name)] }) {
		if rel, err := filepath.Rel(s.c.Workdir, dir); err == nil {
			s.prefix[at] = filepath.ToSlash(rel) + ":"
		}
	}
	s.nested = append(s.nested, p)
	s.read()
	s.version++
	return true
}

// Find returns the skill that a name means: the one of exactly that name, whatever its
// case; else the one whose file calls it so; else the one whose name ends in it behind a
// colon. Where several do, it is none of them, and like has their names.
func (s *Set) Find(name string) (found Skill, like []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	name = called(strings.TrimPrefix(strings.TrimSpace(name), "/"))
	for _, fits := range []func(Skill) bool{
		func(k Skill) bool { return strings.EqualFold(k.Name, name) },
		func(k Skill) bool { return k.Title != "" && strings.EqualFold(called(k.Title), name) },
		func(k Skill) bool {
			return name != "" && len(k.Name) > len(name) && strings.EqualFold(k.Name[len(k.Name)-len(name)-1:], ":"+name)
		},
	} {
		of := map[string]Skill{}
		for _, k := range s.all() {
			if k.Off == "" && fits(k) {
				of[k.Name] = k
			}
		}
		if len(of) == 1 {
			for _, k := range of {
				return k, nil
			}
		}
		if len(of) > 1 {
			return Skill{}, slices.Sorted(maps.Keys(of))
		}
	}
	for _, k := range s.all() { // one that cannot be used says why
		if strings.EqualFold(k.Name, name) {
			return k, nil
		}
	}
	return Skill{}, nil
}

// Text returns the text of a skill as it is now, without its fields.
func (s *Set) Text(k Skill) (string, error) {
	text, _, err := k.text(s.c.BuiltIn)
	return text, err
}
