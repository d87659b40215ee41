package plugins

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dure/internal/base/frontmatter"
)

// Beside reports whether a folder among those of skills is a plugin: it has a manifest.
func Beside(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(frontmatter.PluginManifest)))
	return err == nil && info.Mode().IsRegular()
}

// LoadBeside reads a plugin that lies in a folder of skills, where it lies. covers says
// whether a file is as it was when somebody trusted it: it has to hold for every file, or
// nothing of the plugin is used. nil = whoever put it there is trusted.
func (s *Store) LoadBeside(dir string, covers func(path string, data []byte) bool) (Loaded, error) {
	src := Source{Kind: FromFolder, Path: dir}
	l := Loaded{ID: nameOf(src) + "@" + SkillsDir, Root: dir, Held: covers != nil}
	wrong := func(err error) (Loaded, error) { return l, fmt.Errorf("the plugin in %s: %w", dir, err) }
	if err := s.Allow.Check(src); err != nil {
		return wrong(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return wrong(bare(err))
	}
	defer root.Close()
	fsys := root.FS()
	if covers != nil {
		fsys = coveredFS{fsys, dir, covers, s.limits().File}
		if err := readAll(fsys, s.limits()); err != nil {
			return wrong(err)
		}
	}
	p, err := ReadFS(fsys, nameOf(src))
	if err == nil {
		err = s.fits(p)
	}
	if err != nil {
		return wrong(err)
	}
	l.Plugin, l.ID = p, p.Name+"@"+SkillsDir
	l.Data = s.DataDir(l.ID)
	return l, nil
}

// readAll opens every file of a tree, within limits.
func readAll(fsys fs.FS, limits Limits) error {
	files, size := 0, int64(0)
	return fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if files++; files > limits.Files {
			return fmt.Errorf("%w: it has more than %d files", ErrLarge, limits.Files)
		}
		data, err := readFile(fsys, name, limits.File)
		if size += int64(len(data)); err == nil && size > limits.Tree {
			err = fmt.Errorf("%w: it has more than %d MiB", ErrLarge, limits.Tree>>20)
		}
		return err
	})
}

// coveredFS gives files only as they were when somebody trusted them, and what was looked
// at is what is read.
type coveredFS struct {
	fs.FS
	dir    string
	covers func(path string, data []byte) bool
	most   int64
}

// Open opens a folder, or a file that is covered.
func (c coveredFS) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return f, err
	}
	f.Close()
	data, err := readFile(c.FS, name, c.most)
	if err == nil && !c.covers(filepath.Join(c.dir, filepath.FromSlash(name)), data) {
		err = fmt.Errorf("%w: %q came or changed after its folder was trusted", ErrChanged, clip(name))
	}
	if err != nil {
		return nil, err
	}
	return readFileOf{bytes.NewReader(data), info}, nil
}

// readFileOf is a file that was read already.
type readFileOf struct {
	*bytes.Reader
	info fs.FileInfo
}

// Stat returns what was known of it when it was read.
func (f readFileOf) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close does nothing.
func (readFileOf) Close() error { return nil }
