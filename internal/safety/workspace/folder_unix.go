//go:build unix

package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Folder is an open folder. Names are those of its own entries, one component
// each, and no link is followed: nothing that it opens is outside of it. It is
// what [os.Root] is with a fraction of the system calls, which is what a search
// through many small files consists of.
type Folder struct {
	dir *os.File
	fd  int
}

func newFolder(fd int, path string) *Folder { return &Folder{os.NewFile(uintptr(fd), path), fd} }

// openFolder opens the folder that root is, which is at path.
func openFolder(root *os.Root, path string) (*Folder, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	fd, err := unix.FcntlInt(d.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return newFolder(fd, path), nil
}

// Close closes the folder.
func (f *Folder) Close() { f.dir.Close() }

// openat opens an entry for reading.
func (f *Folder) openat(name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(f.fd, name, flags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// folder opens a folder in this one.
func (f *Folder) folder(name string) (*Folder, error) {
	path := filepath.Join(f.dir.Name(), name)
	fd, err := f.openat(name, unix.O_DIRECTORY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return newFolder(fd, path), nil
}

// entries returns the entries of the folder, at most [MaxEntries] of them.
func (f *Folder) entries() []fs.DirEntry {
	if _, err := f.dir.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	entries, _ := f.dir.ReadDir(MaxEntries) // what came before an error counts
	return entries
}

// lstat returns the type of an entry.
func (f *Folder) lstat(name string) (fs.FileMode, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(f.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, err
	}
	return fileType(st.Mode), nil
}

// fileType takes the word of any system: they differ in its size.
func fileType[M ~uint16 | ~uint32](mode M) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	}
	return fs.ModeDevice
}

// Read reads a regular file of the folder into buf and returns how much that
// was. A file that may be larger than buf is returned instead, open at its
// beginning.
func (f *Folder) Read(name string, buf []byte) (n int, large File, err error) {
	fd, err := f.openat(name, unix.O_NONBLOCK) // a pipe without a writer
	if err != nil {
		return 0, nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		if kind := fileType(st.Mode); kind != 0 {
			err = &TypeError{name, kind}
		} else if name == "environ" || st.Size >= int64(len(buf)) {
			return f.open(fd, name)
		}
	}
	if err == nil {
		n, err = readAll(fd, buf[:max(st.Size, 1)])
	}
	if err == nil && n > 0 && st.Size == 0 { // files of the system's have no size
		if _, err = unix.Seek(fd, 0, io.SeekStart); err == nil {
			return f.open(fd, name)
		}
	}
	unix.Close(fd)
	return n, nil, err
}

// open makes a file of an open descriptor.
func (f *Folder) open(fd int, name string) (int, File, error) {
	file := os.NewFile(uintptr(fd), filepath.Join(f.dir.Name(), name))
	if secret(file, name) {
		file.Close()
		return 0, nil, &TypeError{name, fs.ModeIrregular}
	}
	return 0, file, nil
}

// readAll fills buf, or reads to the end of the file.
func readAll(fd int, buf []byte) (n int, err error) {
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return n, err
		case m <= 0:
			return n, nil
		default:
			n += m
		}
	}
	return n, nil
}
