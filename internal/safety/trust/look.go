package trust

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"dure/agent/query"
)

// Bounds of what a folder may bring. Beyond them it cannot be trusted: nobody
// would have looked at it.
const (
	MaxFiles = 2000
	MaxBytes = 16 << 20 // of all files together
	MaxText  = 64 << 10 // of a text that is kept to show differences

	maxDepth   = 32     // folders in each other
	maxEntries = 10_000 // files, links and folders
)

// places are where a repository says what runs, in the folder itself. Scripts
// elsewhere that these files name are not among them: they are the repository's code
// like all the rest of it. Bundles stand in .dure. The file system compares the
// names, by its own rule for letters of either case.
var places = []string{
	".agents", ".ax", ".axcopilot", ".claude", ".claude-plugin", ".dure", ".lsp.json", ".mcp.json",
}

// texts are files that a model is told to follow. They run nothing and change often,
// so trust is asked for where they are, and holds whatever they say.
var texts = []string{"AGENTS.md", "CLAUDE.md", "DURE.md", "AX.md"}

// notes are folders in which agents keep what they have learnt: texts too, which
// change while they work.
var notes = []string{".dure/agent-memory", ".dure/agent-memory-local"}

// worktrees holds checkouts beside the folder's own. Each is a folder with a
// trust of its own.
const worktrees = "worktrees"

// File is one piece of a folder's content.
type File = query.FolderFile

// Content is everything by which a folder changes what runs, as it was when
// [Look] read it. It is not changed afterwards.
type Content struct {
	Folder Folder `json:"folder"`
	Files  []File `json:"files"` // by path
	Hash   string `json:"hash"`  // of all of them

	// Texts are files in it that a model is told to follow, by name. What they say is
	// no part of Hash.
	Texts []string `json:"texts,omitempty"`

	// Unfit says why the folder cannot be trusted; "" = it can.
	Unfit string `json:"unfit,omitempty"`

	small map[string][]byte // small texts by hash
}

// Nothing reports whether there is nothing to trust.
func (c Content) Nothing() bool { return len(c.Files)+len(c.Texts) == 0 && c.Unfit == "" }

// Read returns what a file held when it was looked at. Name is a [File.Path].
// Whoever loads settings, hooks and the like of a trusted folder through it gets
// what was judged, and nothing that came since.
func (c Content) Read(name string) ([]byte, error) {
	at, ok := slices.BinarySearchFunc(c.Files, name, func(f File, name string) int { return cmp.Compare(f.Path, name) })
	if !ok || c.Files[at].Hash == "" || c.Unfit != "" {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	f := c.Files[at]
	if data, ok := c.small[f.Hash]; ok {
		return bytes.Clone(data), nil
	}
	file, err := openRegular(func() (*os.File, error) {
		return os.OpenFile(c.full(name), os.O_RDONLY|nonblock, 0)
	})
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, f.Size+1))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	if sum(data) != f.Hash {
		return nil, fmt.Errorf("reading %q: %w", name, ErrChanged)
	}
	return data, nil
}

// Under returns a reader of files that gives what was looked at for the content
// of the folder, which its reader knows as dir, and next for everything else.
// What came into the folder since is not there for it. It is for folders that are
// trusted.
func (c Content) Under(dir string, next func(path string) ([]byte, error)) func(path string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		rel, err := filepath.Rel(dir, name)
		if err != nil || !filepath.IsLocal(rel) {
			return next(name)
		}
		rel = filepath.ToSlash(rel)
		top, _, _ := strings.Cut(rel, "/")
		if c.Unfit != "" || !slices.Contains(places, top) {
			return next(name)
		}
		return c.Read(c.spelled(rel))
	}
}

// spelled returns the name under which a file was looked at: another one than
// name where the file system does not tell letters by their case.
func (c Content) spelled(name string) string {
	var here fs.FileInfo
	for _, f := range c.Files {
		if f.Path == name {
			return name
		}
	}
	for _, f := range c.Files {
		if !strings.EqualFold(f.Path, name) {
			continue
		}
		if here == nil {
			var err error
			if here, err = os.Stat(c.full(name)); err != nil {
				return name
			}
		}
		if there, err := os.Stat(c.full(f.Path)); err == nil && os.SameFile(here, there) {
			return f.Path
		}
	}
	return name
}

func (c Content) full(name string) string {
	return filepath.Join(c.Folder.Path, filepath.FromSlash(name))
}

// ErrChanged is content that is not any more what it was when it was looked at.
var ErrChanged = errors.New("it has changed since it was looked at")

// Look reads what a folder brings. It executes nothing, and leaves the folder
// only to read a file that a link in it leads to: what that file holds runs just
// the same. A link to a folder elsewhere, a file that is no file, one that cannot
// be read, and too much of anything make the content unfit, not an error.
func Look(dir string) (Content, error) {
	folder, err := Find(dir)
	if err != nil {
		return Content{}, err
	}
	root, err := os.OpenRoot(folder.Path)
	if err != nil {
		return Content{}, fmt.Errorf("looking at %q: %w", folder.Path, err)
	}
	defer root.Close()
	l := &look{folder: folder, root: root, small: map[string][]byte{}}
	for _, name := range places {
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = l.visit(entryAt{root, name, name}, name, info)
		}
		if err != nil {
			return Content{Folder: folder, Unfit: err.Error()}, nil
		}
	}
	slices.SortFunc(l.files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	c := Content{Folder: folder, Files: l.files, Hash: hashOf(l.files), small: l.small}
	for _, name := range texts {
		if info, err := root.Lstat(name); err == nil && !info.IsDir() {
			c.Texts = append(c.Texts, name)
		}
	}
	return c, nil
}

// look is one walk. Its errors say why the folder cannot be trusted.
type look struct {
	folder  Folder
	root    *os.Root
	files   []File
	small   map[string][]byte
	bytes   int64
	entries int
	open    []fs.FileInfo // the folders around the entry
}

// entryAt is where an entry stands: in an open folder that is the root or below it, so
// that the way from the root is not walked for each, and by its path from the root.
type entryAt struct {
	in   *os.Root
	base string // below in
	path string // below the root
}

// visit takes an entry in. Name is what it is recorded under, which is another path than
// at's behind a link.
func (l *look) visit(at entryAt, name string, info fs.FileInfo) error {
	if l.entries++; l.entries > maxEntries {
		return fmt.Errorf("there are more than %d files and folders", maxEntries)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("the name %q is no text", name)
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		return l.dir(at, name, info)
	case fs.ModeSymlink:
		return l.link(name, at.path)
	case 0:
		return l.file(File{Path: name}, func() (*os.File, error) { return at.in.OpenFile(at.base, os.O_RDONLY|nonblock, 0) }, true)
	}
	return fmt.Errorf("%q is neither file nor folder nor link", name)
}

// dir takes a folder's entries in. One that it stands in itself adds nothing.
func (l *look) dir(at entryAt, name string, info fs.FileInfo) error {
	if strings.EqualFold(path.Base(name), worktrees) && strings.Count(name, "/") == 1 {
		return nil
	}
	if slices.Contains(notes, name) {
		return nil
	}
	if slices.ContainsFunc(l.open, func(above fs.FileInfo) bool { return os.SameFile(above, info) }) {
		return nil
	}
	if len(l.open) == maxDepth {
		return fmt.Errorf("%q stands more than %d folders deep", name, maxDepth)
	}
	l.open = append(l.open, info)
	defer func() { l.open = l.open[:len(l.open)-1] }()
	in, err := at.in.OpenRoot(at.base)
	if err != nil {
		return fmt.Errorf("%q cannot be read: %w", name, bare(err))
	}
	defer in.Close()
	entries, err := list(in)
	if err != nil {
		return fmt.Errorf("%q cannot be read: %w", name, bare(err))
	}
	for _, e := range entries {
		info, err := in.Lstat(e.Name())
		if err != nil {
			return fmt.Errorf("%q cannot be read: %w", path.Join(name, e.Name()), bare(err))
		}
		if err := l.visit(entryAt{in, e.Name(), path.Join(at.path, e.Name())}, name+"/"+e.Name(), info); err != nil {
			return err
		}
	}
	return nil
}

func list(in *os.Root) ([]fs.DirEntry, error) {
	d, err := in.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// link takes in where a link points, and what is there: programs follow it.
func (l *look) link(name, at string) error {
	to, err := l.root.Readlink(at)
	if err != nil {
		return fmt.Errorf("%q cannot be read: %w", name, bare(err))
	}
	if !utf8.ValidString(to) {
		return fmt.Errorf("where %q leads is no text", name)
	}
	f := File{Path: name, Link: to}
	real, err := filepath.EvalSymlinks(filepath.Join(l.folder.Path, filepath.FromSlash(at)))
	if errors.Is(err, fs.ErrNotExist) {
		return l.add(f)
	}
	if err != nil {
		return fmt.Errorf("%q cannot be followed: %w", name, bare(err))
	}
	info, err := os.Lstat(real)
	if err != nil {
		return fmt.Errorf("%q cannot be followed: %w", name, bare(err))
	}
	rel, err := filepath.Rel(l.folder.Path, real)
	inside := err == nil && filepath.IsLocal(rel)
	switch {
	case info.Mode().IsRegular() && inside:
		return l.file(f, func() (*os.File, error) { return l.root.OpenFile(rel, os.O_RDONLY|nonblock, 0) }, true)
	case info.Mode().IsRegular() && !unreal(real):
		return l.file(f, func() (*os.File, error) { return os.OpenFile(real, os.O_RDONLY|nonblock, 0) }, false)
	case info.IsDir() && inside:
		if err := l.add(f); err != nil {
			return err
		}
		return l.visit(entryAt{l.root, rel, filepath.ToSlash(rel)}, name, info)
	case info.IsDir():
		return fmt.Errorf("%q leads to a folder outside, %q", name, real)
	}
	return fmt.Errorf("%q leads to what is neither file nor folder, %q", name, real)
}

// unreal reports whether a path is the system's, where files are made up as they
// are read.
func unreal(real string) bool {
	for _, dir := range []string{"/proc/", "/sys/", "/dev/"} {
		if strings.HasPrefix(filepath.ToSlash(real), dir) {
			return true
		}
	}
	return false
}

// file takes in what a file holds. Small texts are kept for differences, unless
// they stand outside: what is there may be secret.
func (l *look) file(f File, open func() (*os.File, error), keep bool) error {
	r, err := openRegular(open)
	if err != nil {
		return fmt.Errorf("%q cannot be read: %w", f.Path, bare(err))
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return fmt.Errorf("%q cannot be read: %w", f.Path, bare(err))
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes-l.bytes+1))
	if err != nil {
		return fmt.Errorf("%q cannot be read: %w", f.Path, bare(err))
	}
	f.Size, f.Hash, f.Exec = int64(len(data)), sum(data), info.Mode().Perm()&0o111 != 0
	if l.bytes += f.Size; l.bytes > MaxBytes {
		return fmt.Errorf("the files are larger than %d MiB together", MaxBytes>>20)
	}
	if keep && len(data) <= MaxText && utf8.Valid(data) && !bytes.ContainsRune(data, 0) {
		l.small[f.Hash] = data
	}
	return l.add(f)
}

func (l *look) add(f File) error {
	if len(l.files) == MaxFiles {
		return fmt.Errorf("there are more than %d files", MaxFiles)
	}
	l.files = append(l.files, f)
	return nil
}

// openRegular opens a file, and makes sure of what it opened.
func openRegular(open func() (*os.File, error)) (*os.File, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// hashOf names a set of files. Every text goes in behind its length, so that no
// name can pass for two.
func hashOf(files []File) string {
	h := sha256.New()
	for _, f := range files {
		writeText(h, f.Path)
		writeText(h, f.Link)
		writeText(h, f.Hash)
		exec := "-"
		if f.Exec {
			exec = "x"
		}
		writeText(h, exec)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeText(h hash.Hash, s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	h.Write([]byte(s))
}
