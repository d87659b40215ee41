package git

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The bounds of what is read of a repository without git.
const (
	maxUp      = 64       // folders above the working folder
	maxPointer = 4 << 10  // bytes of a .git file or a commondir
	maxBorrow  = 64 << 10 // bytes of the list of borrowed objects
	maxLenders = 32       // folders of objects that are borrowed from
	maxEntries = 1 << 16  // entries of a folder that are looked at for links
)

// repository is where the parts of a repository are. Paths are absolute.
type repository struct {
	top    string // the folder with .git in it
	dir    string // .git, or where the .git file points
	common string // what worktrees share; dir when there is only one
}

// find walks up from a folder to the first one with a .git folder, or a .git
// file as in worktrees and submodules.
func find(start string) (repository, bool) {
	top := filepath.Clean(start)
	for range maxUp {
		if r, ok := at(top); ok {
			return r, true
		}
		up := filepath.Dir(top)
		if up == top {
			break
		}
		top = up
	}
	return repository{}, false
}

func at(top string) (repository, bool) {
	dir := filepath.Join(top, ".git")
	info, err := os.Stat(dir)
	if err != nil {
		return repository{}, false
	}
	if info.Mode().IsRegular() {
		target, ok := strings.CutPrefix(line(dir), "gitdir: ")
		if !ok {
			return repository{}, false
		}
		if dir = target; !filepath.IsAbs(dir) {
			dir = filepath.Join(top, dir)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return repository{}, false // git takes no notice of such a folder either
	}
	r := repository{top: top, dir: filepath.Clean(dir)}
	r.common = r.dir
	if c := line(filepath.Join(r.dir, "commondir")); c != "" {
		if !filepath.IsAbs(c) {
			c = filepath.Join(r.dir, c)
		}
		r.common = filepath.Clean(c)
	}
	return r, true
}

// line returns the first line of a small regular file, or "".
func line(path string) string {
	first, _, _ := strings.Cut(small(path, maxPointer), "\n")
	return strings.TrimRight(first, "\r")
}

// small returns the beginning of a regular file, or "".
func small(path string, most int64) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	return string(data)
}

// reads lists the folders from which git takes what it shows: the working files,
// the repository, and what that borrows from elsewhere, by a list of its own or
// by links.
func (r repository) reads() []string {
	list := appendNew([]string{r.top}, r.dir, r.common)
	objects := filepath.Join(r.common, "objects")
	list = appendNew(list, borrowed(objects)...)
	for _, dir := range []string{r.dir, r.common, objects, filepath.Join(objects, "pack")} {
		list = appendNew(list, links(dir)...)
	}
	return list
}

// borrowed lists the folders that a folder of objects borrows from, and those that
// these borrow from. A list that cannot be told to its end is that of everything.
func borrowed(objects string) []string {
	found := []string{objects}
	for i := 0; i < len(found); i++ {
		text := small(filepath.Join(found[i], "info", "alternates"), maxBorrow+1)
		if len(text) > maxBorrow {
			return []string{wholeDisk(objects)}
		}
		for l := range strings.SplitSeq(text, "\n") {
			l = strings.TrimRight(l, "\r")
			if l == "" || strings.HasPrefix(l, "#") {
				continue
			}
			if strings.HasPrefix(l, `"`) || len(found) > maxLenders {
				return []string{wholeDisk(objects)} // git takes a quoted name for what it quotes
			}
			if !filepath.IsAbs(l) {
				l = filepath.Join(found[i], l)
			}
			found = appendNew(found, filepath.Clean(l))
		}
	}
	return found[1:]
}

// wholeDisk is the folder at the top of a path.
func wholeDisk(path string) string { return filepath.VolumeName(path) + string(filepath.Separator) }

// links returns the links in a folder; everything when it has too many entries to
// tell.
func links(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()    // only read
	entries, _ := d.ReadDir(maxEntries) // what came before an error counts
	if len(entries) == maxEntries {
		return []string{wholeDisk(dir)}
	}
	var list []string
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	return list
}
