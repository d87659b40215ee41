package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// folder is an open folder. Names are those of its own entries, one component
// each. Junctions count as something special and are not entered.
type folder struct{ root *os.Root }

func openFolder(path string) (folder, error) {
	root, err := os.OpenRoot(path)
	return folder{root}, err
}

// sub opens a folder in this one.
func (d folder) sub(name string) (folder, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return folder{}, err
	}
	if !info.IsDir() {
		return folder{}, fs.ErrNotExist
	}
	root, err := d.root.OpenRoot(name)
	return folder{root}, err
}

// names returns the names of the entries, at most so many.
func (d folder) names(most int) ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

func (d folder) stat(name string) (stat, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return stat{}, err
	}
	return statOf(info), nil
}

// open opens a regular file for reading.
func (d folder) open(name string) (*os.File, error) { return d.root.Open(name) }

func fileStat(f *os.File) (stat, error) {
	info, err := f.Stat()
	if err != nil {
		return stat{}, err
	}
	return statOf(info), nil
}

func (d folder) readlink(name string) (string, error) {
	target, err := d.root.Readlink(name)
	if err == nil && len(target) > maxTarget {
		err = fs.ErrInvalid
	}
	return target, err
}

func (d folder) close() { d.root.Close() }

// statOf leaves out what only an open file could tell: when the entry itself was
// changed, and its number.
func statOf(info fs.FileInfo) stat {
	kind := info.Mode().Type()
	if kind != 0 && kind != fs.ModeDir && kind != fs.ModeSymlink {
		kind = fs.ModeIrregular
	}
	return stat{mode: kind | info.Mode()&modeBits, size: info.Size(), mtime: info.ModTime().UnixNano()}
}

// vanished reports whether an entry is not there.
func vanished(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// notEmpty reports whether a folder is in the way.
func notEmpty(err error) bool { return errors.Is(err, windows.ERROR_DIR_NOT_EMPTY) }

// own does nothing: a new file inherits from its folder.
func own(*os.Root, string, fs.FileInfo) error { return nil }

// syncDir does nothing: the file system journals names.
func syncDir(string) error { return nil }

func syncOpen(*os.File) error { return nil }

// links is how many names a file has, as far as it matters: modes are not kept.
func links(fs.FileInfo) uint64 { return 1 }
