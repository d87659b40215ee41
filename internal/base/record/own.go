package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrIrregular is a name of the program's own at which there is something else than a
// file.
var ErrIrregular = errors.New("it is no regular file")

// Open opens a file that only this program writes: a regular one, and no link. In its
// place somebody may have put a pipe, which nobody ever writes into, or a link to a
// file that is not to be touched. A file that it makes is its owner's alone.
func Open(path string, flags int) (*os.File, error) {
	if err := regular(os.Lstat(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: bare(err)}
	}
	f, err := os.OpenFile(path, flags|noFollow, private)
	if err != nil {
		return nil, err
	}
	if err := regular(f.Stat()); err != nil {
		_ = f.Close() // nothing was done with it
		return nil, &fs.PathError{Op: "open", Path: path, Err: bare(err)}
	}
	return f, nil
}

func regular(info fs.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() {
		err = ErrIrregular
	}
	return err
}

// Make makes a text file that is not there, with its folder: for everybody, as a repository
// has its files, or for its owner alone.
func Make(path, text string, own bool) error {
	dir, file := fs.FileMode(0o755), fs.FileMode(0o644)
	if own {
		dir, file = folder, private
	}
	if err := os.MkdirAll(filepath.Dir(path), dir); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, file)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// LockFlags are how a lock beside such files is opened.
const LockFlags = os.O_CREATE | os.O_RDWR | noFollow
