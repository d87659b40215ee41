package memory

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"
)

// On returns the files that become active when the file at an absolute path is read
// or written for the first time: those of folders down to it that were not looked in
// yet, and rules whose paths match. Each is returned once, until Forget. Together
// they have at most Config.Chars characters; what is beyond is left out for good.
func (s *Set) On(path string) []File {
	if !filepath.IsAbs(path) {
		return nil
	}
	path = filepath.Clean(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	path = s.spelled(path)
	before := len(s.files)
	if _, ok := below(s.cfg.Root, path); ok && s.cfg.Trusted {
		for _, dir := range between(s.cfg.Root, filepath.Dir(path)) {
			s.folder(dir, Nested, path)
		}
	}
	var fresh []File
	for i := range s.files {
		f := &s.files[i]
		switch {
		case f.State == Waiting && s.holds(f, path):
			f.State, f.Why, f.Trigger = Active, ByPath, path
		case i < before || f.State != Active:
			continue
		}
		if s.fits(f) {
			fresh = append(fresh, *f)
		}
	}
	return fresh
}

// spelled is a path as the files of the project have theirs.
func (s *Set) spelled(path string) string {
	if rel, ok := below(s.root, path); ok {
		return filepath.Join(s.cfg.Root, rel)
	}
	return path
}

// Holds reports whether a file that was found is for a file at an absolute path: one
// that stands below its folder and that its paths match, if it has any.
func (s *Set) Holds(f File, path string) bool {
	if len(f.globs) > 0 {
		return s.holds(&f, s.spelled(path))
	}
	_, ok := below(f.base, s.spelled(path))
	return ok
}

func (s *Set) holds(f *File, path string) bool {
	rel, ok := below(f.base, path)
	return ok && match(f.globs, filepath.ToSlash(rel))
}

// fits counts a file that became active, and refuses it when there are too many.
func (s *Set) fits(f *File) bool {
	if s.touched+f.Chars <= s.cfg.Chars {
		s.touched += f.Chars
		return true
	}
	f.State, f.Why, f.Trigger, f.Note = Refused, "", "", "too much text became active"
	s.warn(FindingTotal, f.Path, fmt.Sprintf("%s is left out: more than %d characters became active with the files that were touched", f.Path, s.cfg.Chars),
		"", map[string]string{"limit": strconv.Itoa(s.cfg.Chars), "chars": strconv.Itoa(f.Chars), "dropped": f.Path})
	return false
}

// Forget makes the files wait again that On has returned. It is called when the
// conversation does not hold them any more.
func (s *Set) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found, s.touched = s.begun.clone(), 0
}

// Reload loads the files again, with those active that the paths which were touched
// had made active. It also returns the active files whose text was not active before.
func (s *Set) Reload() (*Set, []File, error) {
	fresh, err := Load(s.cfg)
	if err != nil {
		return nil, nil, err
	}
	known, touched := map[string]bool{}, map[string]bool{}
	for _, f := range s.Files() {
		if f.State == Active {
			known[f.Path+"\x00"+hash(f.Text)] = true
		}
		if f.Trigger != "" && !touched[f.Trigger] {
			touched[f.Trigger] = true
			fresh.On(f.Trigger)
		}
	}
	var news []File
	for _, f := range fresh.Files() {
		if f.State == Active && !known[f.Path+"\x00"+hash(f.Text)] {
			news = append(news, f)
		}
	}
	return fresh, news, nil
}

// stamp is what tells one state of a place from another.
type stamp struct {
	there bool
	size  int64
	at    time.Time
	mode  fs.FileMode
}

func (s *Set) stampOf(path string) stamp {
	info, err := s.cfg.Disk.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{true, info.Size(), info.ModTime(), info.Mode()}
}

func (s *Set) isThere(dir string, known map[string]bool) bool {
	there, ok := known[dir]
	if !ok {
		there = s.stampOf(dir).there
		known[dir] = there
	}
	return there
}

// watch remembers how a place is found.
func (s *Set) watch(path string) {
	if _, ok := s.stamps[path]; !ok && len(s.stamps) < maxWatched {
		s.stamps[path] = s.stampOf(path)
	}
}

// Changed reports whether a place where something was found, or looked for, differs
// from what it was: then what is loaded is old. It looks at each of them, some
// microseconds a place, and reads none. Most are names in folders that do not exist:
// of those it looks at the folder.
func (s *Set) Changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]bool{} // folders, as of now
	for path, was := range s.stamps {
		if !was.there && !s.isThere(filepath.Dir(path), there) {
			continue
		}
		if s.stampOf(path) != was {
			return true
		}
	}
	return false
}
