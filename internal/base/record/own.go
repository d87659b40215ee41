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
	mode, err := inFolder(path, own)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Put replaces a text file that people edit, too, or makes it: a link of theirs stays, and the
// mode of the file.
func Put(path string, text []byte, own bool) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode, err := inFolder(path, own)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return replace(path, text, mode)
}

// inFolder makes the folder of a file, and returns the mode of the file.
func inFolder(path string, own bool) (fs.FileMode, error) {
	if own {
		return private, os.MkdirAll(filepath.Dir(path), folder)
	}
	return 0o644, os.MkdirAll(filepath.Dir(path), 0o755)
}

// LockFlags are how a lock beside such files is opened.
const LockFlags = os.O_CREATE | os.O_RDWR | noFollow
