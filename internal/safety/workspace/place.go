package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Place returns path absolute and clean, and where the entry of that name
// stands: links in the folders above it are followed, the entry itself is not.
// It is to removing and moving what [Workspace.Resolve] is to reading.
func (w *Workspace) Place(name string) (given, place string, err error) {
	if strings.ContainsRune(name, 0) {
		return "", "", fmt.Errorf("resolving %q: %w", name, fs.ErrInvalid)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(w.root, name)
	}
	given = filepath.Clean(name)
	dir := filepath.Dir(given)
	if dir == given {
		return given, given, nil
	}
	if _, dir, err = w.Resolve(dir); err != nil {
		return "", "", err
	}
	return given, filepath.Join(dir, filepath.Base(given)), nil
}

// Holds reports whether a root of the workspace is at a clean absolute path or
// below it.
func (w *Workspace) Holds(name string) bool {
	key := w.Key(name)
	prefix := strings.TrimSuffix(key, string(filepath.Separator)) + string(filepath.Separator)
	for _, r := range w.roots {
		if r == key || strings.HasPrefix(r, prefix) {
			return true
		}
	}
	return false
}

// folder opens the folder that holds an entry. Place is what [Workspace.Place]
// returned: a link that has come into it since is a change.
func (w *Workspace) folder(place string) (root *os.Root, base string, err error) {
	dir := filepath.Dir(place)
	if _, now, err := w.Resolve(dir); err != nil {
		return nil, "", err
	} else if now != dir {
		return nil, "", fmt.Errorf("%w: %s leads elsewhere", ErrChanged, dir)
	}
	base = filepath.Base(place)
	if info, err := os.Stat(dir); err != nil {
		return nil, "", err
	} else if !info.IsDir() {
		return nil, "", fs.ErrNotExist // a file stands where the folder should
	}
	n, ok := w.rootOf(dir)
	if !ok {
		root, err = os.OpenRoot(dir)
		return root, base, err
	}
	top, err := os.OpenRoot(dir[:n])
	if err != nil {
		return nil, "", err
	}
	defer top.Close()
	rel, err := filepath.Rel(dir[:n], dir)
	if err != nil {
		return nil, "", err
	}
	root, err = top.OpenRoot(rel)
	return root, base, err
}

// Lstat describes the entry at a place, without following it.
func (w *Workspace) Lstat(place string) (fs.FileInfo, error) {
	root, base, err := w.folder(place)
	if err != nil {
		return nil, retype("looking at", place, err)
	}
	defer root.Close()
	info, err := root.Lstat(base)
	if err != nil {
		return nil, retype("looking at", place, err)
	}
	return info, nil
}

// Entry is something at a place or below it.
type Entry struct {
	Path    string // below the place, with slashes; "." = the place itself
	Mode    fs.FileMode
	Size    int64
	ModTime time.Time
}

// ErrMany is a folder with more entries than the caller wants to know of.
var ErrMany = errors.New("too many entries")

// Tree returns what is at a place and below it, every entry after the folder
// that holds it, in the order of names. Links are not followed. It is [ErrMany]
// when there are more than most.
func (w *Workspace) Tree(ctx context.Context, place string, most int) ([]Entry, error) {
	root, base, err := w.folder(place)
	if err != nil {
		return nil, retype("listing", place, err)
	}
	defer root.Close()
	t := tree{ctx: ctx, root: root, base: base, most: most}
	if err := t.add("."); err != nil {
		return nil, retype("listing", place, err)
	}
	return t.entries, nil
}

type tree struct {
	ctx     context.Context
	root    *os.Root
	base    string
	most    int
	entries []Entry
}

func (t *tree) add(p string) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if len(t.entries) == t.most {
		return ErrMany
	}
	name := filepath.Join(t.base, filepath.FromSlash(p))
	info, err := t.root.Lstat(name)
	if err != nil {
		return err
	}
	t.entries = append(t.entries, Entry{p, info.Mode(), info.Size(), info.ModTime()})
	if !info.IsDir() {
		return nil
	}
	d, err := t.root.Open(name)
	if err != nil {
		return err
	}
	below, err := d.ReadDir(t.most + 1)
	d.Close()
	if err != nil && len(below) == 0 && !isEOF(err) {
		return err
	}
	sortEntries(below)
	for _, e := range below {
		if err := t.add(path.Join(p, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
