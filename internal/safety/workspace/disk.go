package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// FS is what the file tools need of a file system. Paths are absolute. Its disk
// form is [Workspace]; an editor that holds unsaved text offers another one.
type FS interface {
	// Open opens a regular file for reading. It never waits for a pipe and never
	// touches a device: what is not a regular file is a [*TypeError].
	Open(path string) (File, error)

	// Stat describes what path leads to.
	Stat(path string) (fs.FileInfo, error)

	// ReadDir returns the entries of a folder, sorted by name, at most
	// [MaxEntries] of them.
	ReadDir(path string) ([]fs.DirEntry, error)

	// Write replaces or creates a file, all or nothing, and returns what it has
	// become.
	Write(path string, data []byte, o WriteOptions) (fs.FileInfo, error)
}

// MaxEntries is how much of one folder ReadDir reads.
const MaxEntries = 100_000

// File is a regular file that is open for reading.
type File interface {
	io.ReadCloser
	Stat() (fs.FileInfo, error)
}

// TypeError is a path that leads to something other than a regular file.
type TypeError struct {
	Path string
	Mode fs.FileMode
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("%s is %s, not a regular file", e.Path, e.Kind())
}

// Kind names the type for people: "a folder", "a named pipe", ...
func (e *TypeError) Kind() string {
	switch m := e.Mode; {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a link"
	}
	return "a special file"
}

// Open implements [FS].
func (w *Workspace) Open(path string) (File, error) {
	var f *os.File
	err := w.at(path, func(root *os.Root, rel, resolved string) (err error) {
		f, err = OpenRegular(root, rel)
		return err
	})
	if err != nil {
		return nil, retype("opening", path, err)
	}
	return f, nil
}

// Head returns the beginning of a regular file, and whether there is more of it.
func (w *Workspace) Head(path string, limit int) (data []byte, more bool, err error) {
	f, err := w.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = f.Close() }() // only read
	data, err = io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, false, err
	}
	return data[:min(len(data), limit)], len(data) > limit, nil
}

// OpenRegular opens a regular file below root. It looks before it opens, opens
// without waiting, and looks again at what it got. The environment of a process
// counts as no file.
func OpenRegular(root *os.Root, rel string) (*os.File, error) {
	info, err := root.Stat(rel)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &TypeError{rel, info.Mode()}
	}
	return OpenSeen(root, rel)
}

// OpenSeen is [OpenRegular] for who has looked before: at a regular file.
func OpenSeen(root *os.Root, rel string) (*os.File, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &TypeError{rel, info.Mode()}
	}
	if err == nil && secret(f, rel) {
		err = &TypeError{rel, fs.ModeIrregular}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Stat implements [FS].
func (w *Workspace) Stat(path string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := w.at(path, func(root *os.Root, rel, _ string) (err error) {
		info, err = root.Stat(rel)
		return err
	})
	if err != nil {
		return nil, retype("looking at", path, err)
	}
	return info, nil
}

// ReadDir implements [FS].
func (w *Workspace) ReadDir(path string) ([]fs.DirEntry, error) {
	var entries []fs.DirEntry
	err := w.at(path, func(root *os.Root, rel, _ string) error {
		info, err := root.Stat(rel)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return &TypeError{rel, info.Mode()}
		}
		d, err := root.Open(rel)
		if err != nil {
			return err
		}
		defer d.Close()
		entries, err = d.ReadDir(MaxEntries)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	})
	if err != nil {
		return nil, retype("listing", path, err)
	}
	sortEntries(entries)
	return entries, nil
}

// OpenRoot opens the folder at path, for who reads many files below it.
func (w *Workspace) OpenRoot(path string) (*os.Root, error) {
	var sub *os.Root
	err := w.at(path, func(root *os.Root, rel, _ string) (err error) {
		sub, err = root.OpenRoot(rel)
		return err
	})
	if err != nil {
		return nil, retype("opening", path, err)
	}
	return sub, nil
}

// at resolves path and calls do with an opened folder and the path below it.
// For a path inside the workspace the folder is the workspace's own root, so
// that whatever links appear meanwhile, the file is inside too. For others it is
// the folder that holds the file.
func (w *Workspace) at(path string, do func(root *os.Root, rel, resolved string) error) error {
	_, resolved, err := w.Resolve(path)
	if err != nil {
		return err
	}
	base := filepath.Dir(resolved)
	if n, ok := w.rootOf(resolved); ok {
		base = resolved[:n]
	}
	for {
		info, err := os.Stat(base)
		if err == nil && info.IsDir() {
			break
		}
		if err != nil && !absent(err) {
			return err
		}
		up := filepath.Dir(base)
		if up == base {
			return fs.ErrNotExist
		}
		base = up
	}
	rel, err := filepath.Rel(base, resolved)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root, rel, resolved)
}

// retype gives an error the path that the caller knows.
func retype(doing, path string, err error) error {
	if te, ok := errors.AsType[*TypeError](err); ok {
		return &TypeError{path, te.Mode}
	}
	// Only the outermost: what wraps it has more to say.
	if pe, ok := errors.AsType[*fs.PathError](err); ok && pe.Error() == err.Error() {
		err = pe.Err
	}
	if doing != "writing" && absent(err) {
		err = fs.ErrNotExist // also when a file stands where a folder should
	}
	return fmt.Errorf("%s %s: %w", doing, path, err)
}
