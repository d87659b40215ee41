package swarm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/internal/base/frontmatter"
)

// Bounds of looking for files.
const (
	maxFiles = 1000 // of a place
	maxDepth = 8    // folders below a place
	maxLook  = 5000 // entries of a place, of whatever sort
)

// Types is what agents there are for the sessions of a folder. It looks again when it is
// asked, and reads what has changed. It is safe for concurrent use.
type Types struct {
	Places func() []frontmatter.Place
	Named  []Definition // of the command line
	Own    []Definition // the program's

	// Trust stands for what decides whether files are as they were trusted: when it is
	// another text, they are read again. nil = nothing does.
	Trust func() string

	mu   sync.Mutex
	read map[string]seen // by path
	last []Definition
	keys []string // what last was made of

	trust string // what Trust said then
}

// seen is a file as it was read.
type seen struct {
	size int64
	time time.Time
	def  Definition
}

// rank says which of two of one name counts: that of the lower one.
func rank(s frontmatter.Scope) int {
	return slices.Index([]frontmatter.Scope{frontmatter.Managed, frontmatter.Flag, frontmatter.Project, frontmatter.User, frontmatter.Plugin, frontmatter.BuiltIn}, s)
}

// All returns the definitions in the order in which they count: those of the machine,
// of the command line, of the project (the nearest folder first), of the user, of
// plugins, of the program. The caller does not change them.
func (t *Types) All() []Definition {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Trust != nil {
		if now := t.Trust(); now != t.trust {
			t.trust, t.read, t.keys, t.last = now, nil, nil, nil
		}
	}
	var files []file
	var faults []Definition
	if t.Places != nil {
		for _, p := range t.Places() {
			found, err := look(p)
			if err != nil {
				faults = append(faults, Definition{Name: filepath.Base(p.Dir), Place: p, Path: p.Dir, Faults: []frontmatter.Fault{{Message: err.Error(), Fix: "make the folder readable, with fewer files in it"}}})
			}
			files = append(files, found...)
		}
	}
	keys := make([]string, 0, len(files)+len(faults))
	for _, f := range files {
		keys = append(keys, fmt.Sprint(f.path, f.place.Trusted, f.size, f.time.UnixNano()))
	}
	for _, d := range faults {
		keys = append(keys, d.Path+d.Faults[0].Message)
	}
	if t.last != nil && slices.Equal(keys, t.keys) {
		return t.last
	}
	t.keys, t.last = keys, t.settle(files, faults)
	return t.last
}

// settle reads what is new and says which of one name counts.
func (t *Types) settle(files []file, faults []Definition) []Definition {
	read := make(map[string]seen, len(files))
	all := slices.Concat(t.Named, t.Own, faults)
	for _, f := range files {
		s, ok := t.read[f.path]
		if !ok || s.size != f.size || !s.time.Equal(f.time) {
			s = seen{f.size, f.time, load(f)}
		}
		s.def.Place = f.place
		read[f.path] = s
		all = append(all, s.def)
	}
	t.read = read
	slices.SortStableFunc(all, func(a, b Definition) int { return rank(a.Place.Scope) - rank(b.Place.Scope) })
	first := map[string]string{}
	for i := range all {
		d := &all[i]
		d.Hidden = ""
		key := strings.ToLower(d.Name)
		if at, taken := first[key]; taken {
			d.Hidden = at
		} else if len(d.Faults) == 0 && d.Place.Trusted {
			first[key] = d.where()
		}
	}
	return all
}

// where is what people know a definition by.
func (d Definition) where() string {
	if d.Path != "" {
		return d.Path
	}
	return string(d.Place.Scope)
}

// alsoKnown are names that some have for types of the program. A type of such a name counts
// first.
var alsoKnown = map[string]string{"implementer": General, "doc-writer": "technical-writer"}

// Find returns the type of a name that work can be handed to. A name is compared
// without regard to case; that of a plugin's agent may stand without its plugin if no
// other has it.
func (t *Types) Find(name string) (Definition, bool) {
	var found []Definition
	for _, d := range t.All() {
		if !d.Usable() {
			continue
		}
		if strings.EqualFold(d.Name, name) {
			return d, true
		}
		if i := strings.LastIndexByte(d.Name, ':'); i >= 0 && strings.EqualFold(d.Name[i+1:], name) {
			found = append(found, d)
		}
	}
	if len(found) == 1 {
		return found[0], true
	}
	if other := alsoKnown[strings.ToLower(name)]; other != "" && len(found) == 0 {
		return t.Find(other)
	}
	return Definition{}, false
}

// Usable returns the types that work can be handed to.
func (t *Types) Usable() []Definition {
	return slices.DeleteFunc(slices.Clone(t.All()), func(d Definition) bool { return !d.Usable() })
}

// file is one that may be a definition.
type file struct {
	place frontmatter.Place
	path  string
	rel   string
	size  int64
	time  time.Time
	out   bool // it is a link that leads out of the project
}

// look finds the files of a place, by name. Links are followed in trusted places only,
// and no folder is entered by one but the place itself.
func look(p frontmatter.Place) (files []file, err error) {
	root := p.Dir
	if info, err := os.Lstat(root); err != nil || info.Mode()&fs.ModeSymlink != 0 {
		if err != nil || !p.Trusted {
			return nil, nil
		}
		if root, err = filepath.EvalSymlinks(root); err != nil {
			return nil, nil
		}
	}
	if !inside(p, root) {
		return nil, fmt.Errorf("%s is reached by a link that leads out of the project", p.Dir)
	}
	left := maxLook
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path) // one is below the other
		if left--; left < 0 || len(files) == maxFiles {
			return fmt.Errorf("%s has too many files in it: the first %d count", p.Dir, len(files))
		}
		switch {
		case err != nil && path == root && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() && path != root && (strings.HasPrefix(e.Name(), ".") || strings.Count(rel, string(filepath.Separator)) >= maxDepth):
			return filepath.SkipDir
		case e.IsDir() || !strings.EqualFold(filepath.Ext(path), ".md") || strings.EqualFold(e.Name(), "README.md"):
			return nil
		}
		info, err := e.Info()
		out := err == nil && info.Mode()&fs.ModeSymlink != 0 && !inside(p, path)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 && p.Trusted {
			info, err = os.Stat(path)
		}
		if err == nil && info.Mode().IsRegular() {
			files = append(files, file{p, filepath.Join(p.Dir, rel), filepath.ToSlash(rel), info.Size(), info.ModTime(), out})
		}
		return nil
	})
	return files, err
}

// inside reports whether a path stays in the project whose place it is found in, links
// followed. Other places may have links to anywhere.
func inside(p frontmatter.Place, path string) bool {
	if p.Scope != frontmatter.Project {
		return true
	}
	top, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(p.Dir))) // of TOP/.dure/agents
	if err != nil {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	rel, err := filepath.Rel(top, real)
	return err == nil && filepath.IsLocal(rel)
}

// Load reads one file, wherever it lies.
func Load(p frontmatter.Place, path string) (Definition, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	if err != nil {
		return Definition{}, fmt.Errorf("reading the agent: %w", err)
	}
	return load(file{place: p, path: path, rel: filepath.Base(path)}), nil
}

// load reads a file. One that is too long is not read.
func load(f file) Definition {
	d := Definition{Name: strings.TrimSuffix(filepath.Base(f.path), filepath.Ext(f.path)), Place: f.place, Path: f.path}
	if f.out {
		d.fault(&frontmatter.Fault{Message: "the file is a link that leads out of the project", Fix: "put the file itself there"})
		return d
	}
	r, err := os.Open(f.path)
	if err != nil {
		d.fault(&frontmatter.Fault{Message: fmt.Sprintf("the file cannot be read: %v", errors.Unwrap(err)), Fix: "make it readable"})
		return d
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	switch {
	case err != nil:
		d.fault(&frontmatter.Fault{Message: fmt.Sprintf("the file cannot be read: %v", err), Fix: "make it readable"})
	case len(data) > maxFile:
		d.fault(&frontmatter.Fault{Message: fmt.Sprintf("the file has more than %d bytes", maxFile), Fix: "shorten it"})
	default:
		d = Parse(f.place, f.path, f.rel, data)
		if f.place.Trusted && !f.place.Has(f.path, data) {
			d.disarm()
		}
	}
	return d
}
