//go:build unix

package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// folder is an open folder. Names are those of its own entries, one component
// each, and no link is followed.
type folder struct {
	f  *os.File
	fd int
}

func openFolder(path string) (folder, error) {
	return folderAt(unix.AT_FDCWD, path)
}

func folderAt(dir int, name string) (folder, error) {
	fd, err := openAt(dir, name, unix.O_DIRECTORY)
	if err != nil {
		return folder{}, err
	}
	return folder{os.NewFile(uintptr(fd), name), fd}, nil
}

func openAt(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// sub opens a folder in this one.
func (d folder) sub(name string) (folder, error) { return folderAt(d.fd, name) }

// names returns the names of the entries, at most so many.
func (d folder) names(most int) ([]string, error) {
	all, err := d.f.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

func (d folder) stat(name string) (stat, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return stat{}, err
	}
	return statOf(&st), nil
}

// open opens a regular file for reading, without waiting for anything.
func (d folder) open(name string) (*os.File, error) {
	fd, err := openAt(d.fd, name, unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func fileStat(f *os.File) (stat, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return stat{}, err
	}
	return statOf(&st), nil
}

func (d folder) readlink(name string) (string, error) {
	buf := make([]byte, maxTarget+1)
	n, err := unix.Readlinkat(d.fd, name, buf)
	if err != nil {
		return "", err
	}
	if n > maxTarget {
		return "", unix.ENAMETOOLONG
	}
	return string(buf[:n]), nil
}

func (d folder) close() { d.f.Close() }

func statOf(st *unix.Stat_t) stat {
	return stat{
		mode: fileType(st.Mode) | fs.FileMode(st.Mode)&modeBits, size: st.Size,
		mtime: unix.TimespecToNsec(st.Mtim), ctime: unix.TimespecToNsec(st.Ctim), inode: st.Ino,
	}
}

// fileType takes the word of any system: they differ in its size.
func fileType[M ~uint16 | ~uint32](mode M) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		if mode&unix.S_ISVTX != 0 {
			return fs.ModeDir | fs.ModeSticky
		}
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	}
	return fs.ModeIrregular
}

// vanished reports whether an entry is not there, or no longer what it was seen
// to be.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK)
}

// notEmpty reports whether a folder, or a file in its place, is in the way.
func notEmpty(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTDIR)
}

// own gives a new file of a rewind the owner that it should have. Only root can;
// what others make is theirs.
func own(root *os.Root, name string, like fs.FileInfo) error {
	if os.Geteuid() != 0 || like == nil {
		return nil
	}
	uid, gid, ok := owner(like)
	if !ok {
		return nil
	}
	return root.Lchown(name, uid, gid)
}

// syncDir makes the names in a folder durable.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return syncOpen(d)
}

func syncOpen(d *os.File) error {
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: a file system without
		return err
	}
	return nil
}
