package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Folder is an open folder. Names are those of its own entries, one component
// each: nothing that it opens is outside of it.
type Folder struct{ root *os.Root }

// openFolder opens the folder that root is.
func openFolder(root *os.Root, _ string) (*Folder, error) {
	sub, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	return &Folder{sub}, nil
}

// Close closes the folder.
func (f *Folder) Close() { f.root.Close() }

// folder opens a folder in this one.
func (f *Folder) folder(name string) (*Folder, error) {
	if info, err := f.root.Lstat(name); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, &TypeError{name, info.Mode()}
	}
	sub, err := f.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Folder{sub}, nil
}

// entries returns the entries of the folder, at most [MaxEntries] of them.
func (f *Folder) entries() []fs.DirEntry {
	d, err := f.root.Open(".")
	if err != nil {
		return nil
	}
	defer d.Close()
	entries, _ := d.ReadDir(MaxEntries) // what came before an error counts
	return entries
}

// lstat returns the type of an entry.
func (f *Folder) lstat(name string) (fs.FileMode, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return 0, err
	}
	return info.Mode().Type(), nil
}

// Read reads a regular file of the folder into buf and returns how much that
// was. A file that may be larger than buf is returned instead, open at its
// beginning.
func (f *Folder) Read(name string, buf []byte) (n int, large File, err error) {
	file, err := OpenSeen(f.root, name)
	if err != nil {
		return 0, nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() >= int64(len(buf)) {
		return 0, file, nil
	}
	if err == nil {
		n, err = io.ReadFull(file, buf[:info.Size()])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
	}
	file.Close()
	return n, nil, err
}
