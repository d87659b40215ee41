package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Unproven returns the first file of a folder, or in the folders in it, that covers does
// not say to be as it was when it was looked at; "" = there is none. What cannot be read
// is unproven, and so is too much of anything.
func Unproven(dir string, covers func(path string, data []byte) bool) string {
	w := walk{covers: covers, entries: maxEntries, bytes: MaxBytes}
	if file, err := w.folder(dir); err != nil {
		return file
	}
	return ""
}

// Proven reports whether covers says of a file that it is as it was. One that is not there
// is nothing to prove, and so is a folder.
func Proven(path string, covers func(path string, data []byte) bool) bool {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return true
	}
	w := walk{covers: covers, bytes: MaxBytes}
	return err == nil && w.file(path, info) == nil
}

// errUnproven is a file that is not as it was.
var errUnproven = errors.New("it is not as it was")

// walk looks at files until one is unproven.
type walk struct {
	covers  func(path string, data []byte) bool
	open    []fs.FileInfo // the folders around the entry
	entries int           // that are still looked at
	bytes   int64
}

// folder returns the file that the error is about.
func (w *walk) folder(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return dir, err
	}
	for _, above := range w.open {
		if os.SameFile(above, info) {
			return "", nil // it stands in itself
		}
	}
	if len(w.open) == maxDepth {
		return dir, errUnproven
	}
	w.open = append(w.open, info)
	defer func() { w.open = w.open[:len(w.open)-1] }()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return dir, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if w.entries--; w.entries < 0 {
			return path, errUnproven
		}
		info, err := os.Stat(path) // where a link leads
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // a link to nowhere
		case err != nil:
			return path, err
		case info.IsDir():
			if at, err := w.folder(path); err != nil {
				return at, err
			}
		default:
			if err := w.file(path, info); err != nil {
				return path, err
			}
		}
	}
	return "", nil
}

func (w *walk) file(path string, info fs.FileInfo) error {
	if w.bytes -= info.Size(); w.bytes < 0 {
		return errUnproven
	}
	f, err := openRegular(func() (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|nonblock, 0) })
	if err != nil {
		return fmt.Errorf("reading %q: %w", path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return fmt.Errorf("reading %q: %w", path, err)
	}
	if !w.covers(path, data) {
		return errUnproven
	}
	return nil
}
