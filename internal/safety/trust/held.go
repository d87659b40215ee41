package trust

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Held are the files of all folders that are trusted, as they were when that was
// decided. The zero value holds none.
type Held struct {
	folders []entry
	read    stamp
}

// stamp is what the store's file was like when it was read.
type stamp struct {
	size int64
	mod  time.Time
}

func (s Store) stamp() (t stamp) {
	if info, err := os.Stat(s.Path); err == nil {
		t = stamp{info.Size(), info.ModTime()}
	}
	return t
}

// Held returns the files of the folders that are trusted now: before, if nothing was
// decided since. While the store cannot be read no file is held.
func (s Store) Held(before Held) Held {
	now := s.stamp()
	if now == before.read && now != (stamp{}) {
		return before
	}
	b, err := s.read()
	if err != nil {
		return Held{}
	}
	return Held{b.Folders, now}
}

// With returns what is held beside the files of a content that is trusted for now.
func (h Held) With(c Content) Held {
	if c.Unfit != "" || len(c.Files) == 0 {
		return h
	}
	return Held{append([]entry{{Folder: c.Folder, Files: c.Files}}, h.folders...), h.read}
}

// Covers reports whether data is what a file held when a folder around it was trusted.
// The path is absolute; a file of a nested folder is covered by the trust in that one.
func (h Held) Covers(path string, data []byte) bool {
	if len(h.folders) == 0 {
		return false
	}
	hash := sum(data)
	if h.covers(hash, func(e entry) string { return below(e.Path, path) }) {
		return true
	}
	around := map[string][]string{} // the folders around the file as they are spelled, by what they really are
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			around[real] = append(around[real], dir)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for real, spelled := range around {
		for _, dir := range spelled {
			if h.covers(hash, func(e entry) string {
				if e.Path != real {
					return ""
				}
				return below(dir, path) // links below it stay: the content has files under such names
			}) {
				return true
			}
		}
	}
	return false
}

// covers looks for a file by its hash and its name in each folder; "" = it is not in there.
func (h Held) covers(hash string, name func(entry) string) bool {
	for _, e := range h.folders {
		rel := name(e)
		if rel == "" || e.Never || !slices.ContainsFunc(e.Files, func(f File) bool { return f.Path == rel && f.Hash == hash }) {
			continue
		}
		if info, err := os.Lstat(e.Path); err == nil && info.IsDir() { // its path has no links
			now := Folder{Path: e.Path}
			if now.Device, now.Inode = numbers(e.Path, info); !now.Replaced(e.Folder) {
				return true
			}
		}
	}
	return false
}

// Takes reports whether [Look] takes a file of a folder in, as far as its name tells.
func Takes(dir, path string) bool {
	name, rest, _ := strings.Cut(below(dir, path), "/")
	return slices.Contains(places, name) && !strings.EqualFold(strings.SplitN(rest, "/", 2)[0], worktrees)
}

// below returns the path of a file from a folder, with slashes; "" = it is not below it.
func below(dir, path string) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}
