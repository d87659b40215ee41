// Package workspace is the only way of the tools to the user's files.
//
// It resolves paths, says what is inside the workspace, reads and writes files
// beneath an opened folder so that a link swapped in the meantime cannot lead
// out of it, knows encodings and line ends, lists files the way git sees them,
// and remembers which files a session has seen. It never decides whether a path
// may be touched: that is the gate's word. Every limit is a constant here.
//
// It starts no goroutines but those of os/exec around one git command, which
// end before the call returns.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxLinks is how many links one path may go through.
const maxLinks = 40

// Config says where a workspace is.
type Config struct {
	Root  string   // absolute, an existing folder; required
	Extra []string // more absolute folders that count as inside; they need not exist
	Git   string   // path of the git program; "" = list files without it

	// Hidden reports whether a file, by its absolute path, is left out of listings,
	// so that who searches a folder does not read it. nil = none is.
	Hidden func(path string) bool

	// Absent permits a root that does not exist: then paths can be told apart, and
	// nothing else.
	Absent bool
}

// Workspace is rooted access to the disk. It is safe for concurrent use and
// holds nothing open between calls. It is the disk form of [FS].
type Workspace struct {
	root   string   // resolved
	roots  []string // Root, Extra and what they resolve to, in the form of key
	git    string
	hidden func(path string) bool
	folded bool // names that differ in case are the same file

	// fault stands in front of every byte that Write writes. Tests set it.
	fault func(written int) error
}

// New opens a workspace.
func New(c Config) (*Workspace, error) {
	if !filepath.IsAbs(c.Root) {
		return nil, fmt.Errorf("opening workspace %q: the path is not absolute", c.Root)
	}
	info, err := os.Stat(c.Root)
	switch {
	case err != nil && !c.Absent:
		return nil, fmt.Errorf("opening workspace: %w", err)
	case err == nil && !info.IsDir():
		return nil, fmt.Errorf("opening workspace %s: not a folder", c.Root)
	}
	w := &Workspace{git: c.Git, hidden: c.Hidden, folded: folds(c.Root)}
	for i, r := range append([]string{c.Root}, c.Extra...) {
		given, resolved, err := w.Resolve(r)
		if err != nil {
			return nil, fmt.Errorf("opening workspace: %w", err)
		}
		if i == 0 {
			w.root = resolved
		}
		w.roots = append(w.roots, w.Key(given), w.Key(resolved))
	}
	return w, nil
}

// Root returns the folder of the workspace, links resolved.
func (w *Workspace) Root() string { return w.root }

// Resolve returns path absolute and clean, and where it leads when every link
// in it is followed. What does not exist yet, also behind a dangling link, is
// kept as it is written. A relative path starts at the root.
func (w *Workspace) Resolve(path string) (given, resolved string, err error) {
	if strings.ContainsRune(path, 0) {
		return "", "", fmt.Errorf("resolving %q: %w", path, fs.ErrInvalid)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.root, path)
	}
	given = filepath.Clean(path)
	resolved, err = follow(given)
	if err != nil {
		return "", "", fmt.Errorf("resolving %s: %w", given, err)
	}
	return given, resolved, nil
}

// ErrLoop is a path that goes through too many links.
var ErrLoop = errors.New("too many links")

// follow resolves a clean absolute path one component at a time.
func follow(path string) (string, error) {
	top := filepath.VolumeName(path) + string(filepath.Separator)
	at, rest := top, components(path[len(top):])
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case absent(err):
			at = next // and the rest is taken as written: nothing below exists
			continue
		case err != nil:
			return "", err
		}
		target, ok := readLink(next, info)
		if !ok {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", ErrLoop
		}
		if filepath.IsAbs(target) {
			target = filepath.Clean(target)
			at = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(at):]
		}
		rest = append(components(target), rest...)
	}
	return at, nil
}

// readLink returns where a link leads. Junctions of Windows are links too.
func readLink(path string, info fs.FileInfo) (string, bool) {
	if info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) == 0 {
		return "", false
	}
	target, err := os.Readlink(path)
	return target, err == nil
}

func components(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
}

// Inside reports whether an absolute path is the root, an extra folder, or below
// one of them, by its components. It does not follow links: who needs to know
// about both forms of a path asks for both.
func (w *Workspace) Inside(path string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	_, ok := w.rootOf(filepath.Clean(path))
	return ok
}

// rootOf returns how many bytes of the clean path name the innermost root that
// holds it.
func (w *Workspace) rootOf(path string) (n int, ok bool) {
	parts := strings.Count(path, string(filepath.Separator))
	for ; ; parts-- {
		key := w.Key(path)
		for _, r := range w.roots {
			if key == r {
				return len(path), true
			}
		}
		up := filepath.Dir(path)
		if up == path || parts < 0 {
			return 0, false
		}
		path = up
	}
}

// Key returns the form of a clean absolute path in which two names of one file
// compare equal under the file system's rules of case and Unicode form.
func (w *Workspace) Key(path string) string {
	if runtime.GOOS == "darwin" {
		path = norm.NFC.String(path)
	}
	if w.folded {
		path = strings.Map(unicode.ToLower, path)
	}
	return path
}

// folds reports whether the file system at dir takes names that differ in case
// for the same.
func folds(dir string) bool {
	base := filepath.Base(dir)
	swapped := strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, base)
	if swapped == base {
		return runtime.GOOS == "windows" || runtime.GOOS == "darwin"
	}
	a, err1 := os.Stat(dir)
	b, err2 := os.Stat(filepath.Join(filepath.Dir(dir), swapped))
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}
