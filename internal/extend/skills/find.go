package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"dure/internal/base/frontmatter"
)

// ownFolders are the folders that may have skills below any folder of a project.
var ownFolders = []string{".dure", ".claude", ".agents"}

// passed are folders that hold no skills of anybody here.
var passed = map[string]bool{"synced": true, "node_modules": true, ".git": true}

// A finder looks for skills in one place.
type finder struct {
	place  frontmatter.Place
	root   string // that a link of a project may not lead out of; "" = it may
	prefix string // of their names
	seen   map[string]bool
	left   int // entries that are still looked at
	stamp  func(path string, info fs.FileInfo)
	found  []Skill

	// top is the place, opened beneath root: what lies in it is read without a look at
	// each folder on the way there. nil = files are opened one by one.
	top *os.Root
}

// find returns the skills of a place. What cannot be read is not there.
func (f *finder) find() []Skill {
	f.left = maxFolder
	if f.stamp == nil {
		f.stamp = func(string, fs.FileInfo) {}
	}
	if f.place.Scope == frontmatter.Plugin && f.single() {
		return f.found
	}
	real, err := filepath.EvalSymlinks(f.place.Dir)
	if err != nil {
		return f.found
	}
	f.seen[real] = true
	if f.top = beneath(f.root, real); f.top != nil {
		defer f.top.Close()
	}
	f.folder(f.place.Dir, real, nil)
	return f.found
}

// beneath opens a folder below a root. nil = it cannot, or there is no root.
func beneath(root, real string) *os.Root {
	if root == "" {
		return nil
	}
	rel, err := filepath.Rel(root, real)
	if err != nil {
		return nil
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil
	}
	defer r.Close()
	top, err := r.OpenRoot(rel)
	if err != nil {
		return nil
	}
	return top
}

// single takes a plugin's folder that is one skill itself.
func (f *finder) single() bool {
	if file, err := inFolder(f.place.Dir); err == nil {
		f.add(f.place.Dir, file, []string{filepath.Base(f.place.Dir)})
		return true
	}
	return false
}

// folder looks at the folders in one: each is a skill, or part of the way to some. real is
// the folder without links. An entry that is no link is taken for one that stays none: what
// is read of it is opened beneath the root all the same.
func (f *finder) folder(dir, real string, way []string) {
	if len(way) >= maxDepth || len(f.found) >= MaxSkills {
		return
	}
	if info, err := os.Stat(dir); err == nil {
		f.stamp(dir, info)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if f.left--; f.left < 0 {
			return
		}
		name := e.Name()
		if passed[name] || strings.HasPrefix(name, ".") || !e.IsDir() && e.Type()&fs.ModeSymlink == 0 || strings.ContainsRune(name, ':') {
			continue
		}
		path, real := filepath.Join(dir, name), filepath.Join(real, name)
		link := e.Type()&fs.ModeSymlink != 0
		if link {
			if info, err := os.Stat(path); err != nil || !info.IsDir() {
				continue
			}
			if real, err = filepath.EvalSymlinks(path); err != nil {
				continue
			}
		}
		if f.seen[real] {
			continue // a link in a circle comes back to where somebody was before
		}
		names := append(slices.Clone(way), name)
		if link && f.root != "" && !within(f.root, real) {
			f.refuse(path, names, errors.New("it is a link that leads out of the project"))
			continue
		}
		f.seen[real] = true
		if !visible(name) {
			f.refuse(path, names, errors.New("its folder has a name with characters that do not show"))
			continue
		}
		if f.place.Scope != frontmatter.Plugin {
			if info, err := os.Stat(filepath.Join(path, filepath.FromSlash(frontmatter.PluginManifest))); err == nil && info.Mode().IsRegular() {
				continue // it is a plugin
			}
		}
		if file, err := inFolder(path); err == nil {
			f.add(path, file, names)
			continue
		}
		f.folder(path, real, names)
	}
}

// add reads a skill.
func (f *finder) add(dir, file string, way []string) {
	most := int64(maxHead)
	if f.place.Covers != nil {
		most = MaxBody // all of it is compared with what was trusted
	}
	data, info, err := f.read(file, way, most)
	if err != nil {
		f.refuse(dir, way, err)
		return
	}
	f.stamp(file, info)
	s, body := parse(data, info.Size(), way[len(way)-1])
	s.Dir, s.File, s.root, s.Strict = dir, file, f.root, strict(dir) || strict(f.place.Root)
	if f.place.Trusted && f.place.Covers != nil {
		if powers := s.powers(body); len(powers) > 0 && !f.place.Covers(file, data) {
			s.disarm(powers)
		}
	}
	f.keep(s, way)
}

// read reads the beginning of a skill's file: beneath the place, as most lie there. A link
// that leads out of the place, which may stay in the project, is looked at with care.
func (f *finder) read(file string, way []string, most int64) ([]byte, fs.FileInfo, error) {
	if f.top != nil {
		name := filepath.Join(filepath.Join(way...), filepath.Base(file))
		if opened, err := f.top.OpenFile(name, os.O_RDONLY|nonblock, 0); err == nil {
			defer opened.Close()
			return begin(opened, most)
		}
	}
	return head(f.root, file, most)
}

func (f *finder) keep(s Skill, way []string) {
	s.Place = f.place
	s.Name = f.prefix + called(strings.Join(way, ":"))
	if f.place.Scope == frontmatter.Plugin && s.Title != "" && argumentName(s.Title) {
		s.Name = f.prefix + strings.Join(append(slices.Clone(way[:len(way)-1]), called(s.Title)), ":")
	}
	if f.place.Scope == frontmatter.Project && !f.place.Trusted && s.Off == "" {
		s.Off = "the folder is not trusted"
	}
	f.found = append(f.found, s)
}

// powers are those that a skill asks for, in the order of the alphabet.
func (s *Skill) powers(body string) (powers []string) {
	for _, p := range []struct {
		name string
		has  bool
	}{
		{"allowed-tools", len(s.Allowed) > 0},
		{"commands in its text", len(frontmatter.Inlines(body)) > 0},
		{"hooks", s.Hooks != nil},
		{"model", s.Model != ""},
	} {
		if p.has {
			powers = append(powers, p.name)
		}
	}
	return powers
}

// disarm takes the powers from a skill whose file is not what was trusted. What it takes
// away from others stays.
func (s *Skill) disarm(powers []string) {
	s.Powerless, s.Allowed, s.Hooks, s.Model = true, nil, nil, ""
	s.Faults = append([]frontmatter.Fault{frontmatter.Uncovered(powers...)}, s.Faults...)
}

func (f *finder) refuse(dir string, way []string, err error) {
	var s Skill
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	s.off(fmt.Sprintf("it is not read: %v", err), "")
	s.Dir, s.File = dir, filepath.Join(dir, File)
	f.keep(s, way)
}

// visible reports whether a name has only what shows, on one line: it stands in lists,
// for people and for models.
func visible(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// called is a name as it is called by, however the disk writes its letters: some write
// those of several parts apart. What does not show is a question mark.
func called(name string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, name))
}

// within reports whether a path is a folder or in it. Both are resolved.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
