package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// How much [PrepareCaches] fills in, each time: what is over is left to the tools.
const (
	maxSeedFiles = 20_000
	maxSeedBytes = 64 << 20
	maxSeedFile  = 4 << 20
)

// A seed fills the caches of a workspace from those of the user. All that it
// writes goes through the root: commands can put links in there that lead out.
// What it cannot do it leaves out.
type seed struct {
	root  *os.Root
	files int // how many may still be made
	bytes int64
}

// mkdir makes a folder and reports whether it is there.
func (s *seed) mkdir(rel string) bool {
	return s.root.MkdirAll(rel, 0o700) == nil
}

// list returns the names in a folder of the user.
func (s *seed) list(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// link makes rel a link to something of the user, unless it is there.
func (s *seed) link(rel, to string) {
	if s.files <= 0 {
		return
	}
	if _, err := s.root.Lstat(rel); err == nil || !s.mkdir(filepath.Dir(rel)) {
		return
	}
	s.files--
	_ = s.root.Symlink(to, rel)
}

// links links everything that is in a folder of the user.
func (s *seed) links(rel, dir string) {
	for _, name := range s.list(dir) {
		s.link(filepath.Join(rel, name), filepath.Join(dir, name))
	}
}

// copy copies the files below a folder of the user that are not there, but no
// repositories of git.
func (s *seed) copy(rel, dir string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is left out
		}
		if s.files <= 0 || s.bytes <= 0 {
			return fs.SkipAll
		}
		if e.IsDir() {
			if e.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if sub, err := filepath.Rel(dir, path); err == nil && e.Type().IsRegular() {
			s.file(filepath.Join(rel, sub), path)
		}
		return nil
	})
}

func (s *seed) file(rel, from string) {
	if _, err := s.root.Lstat(rel); err == nil {
		return
	}
	text, err := readBounded(from, min(maxSeedFile, s.bytes))
	if err != nil || !s.mkdir(filepath.Dir(rel)) {
		return
	}
	s.files--
	s.bytes -= int64(len(text))
	if s.root.WriteFile(rel, text, 0o600) != nil {
		_ = s.root.Remove(rel) // half a file is worse than none
	}
}

// touch makes rel a file of this moment.
func (s *seed) touch(rel string) error {
	_ = s.root.RemoveAll(rel) // whatever a command made of it
	return s.root.WriteFile(rel, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o600)
}
