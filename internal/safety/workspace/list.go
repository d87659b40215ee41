package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Limits of one listing.
const (
	MaxFiles   = 200_000          // files of one listing
	maxDepth   = 64               // folders below each other
	maxNested  = 4                // repositories inside each other
	gitTimeout = 10 * time.Second // then the folder is walked instead
)

// skipped are folders that a walk does not enter unless it starts there. Git's
// own rules decide where there is git.
var skipped = []string{
	".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", "__pycache__", ".venv", "venv", ".tox", ".nox",
	".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", ".next", ".nuxt", ".svelte-kit", ".terraform", ".cache",
}

// Listing is the files below a folder.
type Listing struct {
	// Paths are relative to the folder, with slashes, sorted. Links are listed
	// and not followed. A file may be gone by the time it is opened.
	Paths []string

	// Regular tells which of Paths were regular files when they were listed;
	// others are links and the like.
	Regular []bool

	Git  bool // the ignore rules of git were applied
	More bool // there are more than MaxFiles
}

// List returns the files below the folder at path that are not ignored: as git
// lists them, tracked or not, or by walking when the folder is in no repository,
// git is missing, or the folder itself is ignored.
func (w *Workspace) List(ctx context.Context, dir string) (Listing, error) {
	_, resolved, err := w.Resolve(dir)
	if err != nil {
		return Listing{}, err
	}
	top, err := w.OpenFolder(resolved)
	if err != nil {
		return Listing{}, err
	}
	defer top.Close()
	var l listing
	git := w.list(ctx, &l, top, resolved, "", 0)
	if err := ctx.Err(); err != nil {
		return Listing{}, err
	}
	if w.hidden != nil {
		l.files = slices.DeleteFunc(l.files, func(f listed) bool { return w.hidden(filepath.Join(resolved, filepath.FromSlash(f.path))) })
	}
	return l.done(git), nil
}

// listing is a list in the making.
type listing struct {
	files []listed
	more  bool
}

type listed struct {
	path    string
	regular bool
}

func (l *listing) add(path string, kind fs.FileMode) {
	l.files = append(l.files, listed{path, kind == 0})
}

func (l *listing) full() bool {
	l.more = l.more || len(l.files) >= MaxFiles
	return l.more
}

// done sorts the files, and drops repetitions: an unmerged file has several
// entries.
func (l *listing) done(git bool) Listing {
	slices.SortFunc(l.files, func(a, b listed) int { return strings.Compare(a.path, b.path) })
	l.files = slices.CompactFunc(l.files, func(a, b listed) bool { return a.path == b.path })
	out := Listing{Paths: make([]string, len(l.files)), Regular: make([]bool, len(l.files)), Git: git, More: l.more}
	for i, f := range l.files {
		out.Paths[i], out.Regular[i] = f.path, f.regular
	}
	return out
}

// list adds the files of one folder, of which top is open and prefix is the path
// below the folder that was asked for. It reports whether git listed them.
func (w *Workspace) list(ctx context.Context, l *listing, top *Folder, dir, prefix string, nested int) bool {
	found, ok := w.askGit(ctx, dir)
	if !ok || len(found) == 0 {
		l.walk(ctx, top, prefix, 0)
		return false
	}
	slices.SortFunc(found, byFolder)
	trail := NewTrail(top)
	defer trail.Close()
	var in kinds
	for _, p := range found {
		if l.full() {
			return true
		}
		// A repository inside this one is listed as a folder: "dir/" when it is
		// not tracked, "dir" when it is a submodule.
		sub := strings.TrimSuffix(p, "/")
		if sub == p {
			kind, ok := in.of(trail, p)
			if !ok {
				continue // deleted, and not staged yet
			}
			if kind != fs.ModeDir {
				l.add(prefix+p, kind)
				continue
			}
		}
		if nested == maxNested {
			continue
		}
		if inner, err := trail.To(sub); err == nil {
			w.list(ctx, l, inner, filepath.Join(dir, filepath.FromSlash(sub)), prefix+sub+"/", nested+1)
		}
	}
	return true
}

// byFolder orders the files of a folder behind each other.
func byFolder(a, b string) int {
	i, j := strings.LastIndexByte(a, '/'), strings.LastIndexByte(b, '/')
	if c := strings.Compare(a[:i+1], b[:j+1]); c != 0 {
		return c
	}
	return strings.Compare(a[i+1:], b[j+1:])
}

// kinds are the types of the entries of one folder, read at once: to ask for each
// takes longer than all else.
type kinds struct {
	dir   string
	known map[string]fs.FileMode // nil = no folder was read yet
}

// of returns the type of a file, false when there is none.
func (k *kinds) of(t *Trail, p string) (fs.FileMode, bool) {
	dir, base := path.Split(p)
	dir = strings.TrimSuffix(dir, "/")
	if k.known == nil || k.dir != dir {
		k.dir, k.known = dir, map[string]fs.FileMode{}
		if f, err := t.To(dir); err == nil {
			for _, e := range f.entries() {
				k.known[e.Name()] = e.Type()
			}
		}
	}
	if kind, ok := k.known[base]; ok {
		return kind, true
	}
	// The file system may know the name in another form.
	f, err := t.To(dir)
	if err != nil {
		return 0, false
	}
	kind, err := f.lstat(base)
	return kind, err == nil
}

// walk adds the files below a folder, without those in folders to skip. Prefix is
// its path, with a slash behind.
func (l *listing) walk(ctx context.Context, f *Folder, prefix string, depth int) {
	if depth > maxDepth || ctx.Err() != nil {
		return
	}
	entries := f.entries()
	sortEntries(entries)
	for _, e := range entries {
		if l.full() {
			return
		}
		switch {
		case Leftover(e.Name()):
		case !e.IsDir():
			l.add(prefix+e.Name(), e.Type())
		case !slices.Contains(skipped, e.Name()):
			if sub, err := f.folder(e.Name()); err == nil { // else no permission, or gone
				l.walk(ctx, sub, prefix+e.Name()+"/", depth+1)
				sub.Close()
			}
		}
	}
}

// askGit lists the files of a folder with git. It reports false when git is
// missing, the folder is in no repository, or git has nothing good to say.
//
// The repository may be hostile, and its configuration can name programs to run:
// every setting that does so for this command is overridden, nothing of the
// user's or the machine's configuration is read, and the index is not written.
func (w *Workspace) askGit(ctx context.Context, dir string) ([]string, bool) {
	if w.git == "" || !InRepository(dir) {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.git,
		"--no-pager", "--no-optional-locks", "--literal-pathspecs",
		"-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "core.hooksPath="+os.DevNull,
		"-c", "core.quotePath=false", "-c", "safe.bareRepository=explicit", "-c", "protocol.allow=never",
		"ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = dir
	cmd.Env = []string{
		"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, false
	}
	if err := cmd.Start(); err != nil {
		return nil, false
	}
	names, err := readNames(out)
	if err != nil {
		cancel()
	}
	if werr := cmd.Wait(); werr != nil && !errors.Is(err, errEnough) {
		return nil, false
	}
	return names, true
}

var errEnough = errors.New("enough names")

// readNames reads NUL-terminated relative paths, at most one more than MaxFiles.
func readNames(r io.Reader) ([]string, error) {
	var names []string
	s := bufio.NewScanner(r)
	s.Buffer(nil, 64<<10) // no system takes longer paths
	s.Split(func(data []byte, eof bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, 0); i >= 0 {
			return i + 1, data[:i], nil
		}
		if eof && len(data) > 0 {
			return 0, nil, io.ErrUnexpectedEOF
		}
		return 0, nil, nil
	})
	for s.Scan() {
		name := s.Text()
		if !fs.ValidPath(strings.TrimSuffix(name, "/")) || Leftover(path.Base(name)) {
			continue // a hostile index can hold anything
		}
		if names = append(names, name); len(names) > MaxFiles {
			return names, errEnough
		}
	}
	return names, s.Err()
}

// InRepository reports whether a folder or one above it has a .git.
func InRepository(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}
