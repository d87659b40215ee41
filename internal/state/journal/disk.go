package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// A disk is what a [Local] store needs of a file system. Names are relative to
// the store's folder and use slashes. Errors are those of package os. It is an
// interface so that the store can keep its files in memory, and tests on a disk
// that loses what was not synced.
type disk interface {
	// mkdir makes a folder, and its parents. It is fs.ErrExist when there is one.
	mkdir(name string) error
	// list returns the names in a folder, sorted, without those that begin with
	// a dot. A folder that is missing is empty.
	list(name string) ([]string, error)
	// stat returns size and time of change of a file or folder.
	stat(name string) (int64, time.Time, error)
	open(name string, how openMode) (file, error)
	rename(from, to string) error
	remove(name string) error // a folder with all that is in it
	truncate(name string, size int64) error
	syncDir(name string) error
	// lock takes an exclusive lock that ends with the process. It is errLocked
	// when it is taken. note is for whoever is refused, see lockNote.
	lock(name string, note []byte) (unlock func() error, err error)
	lockNote(name string) []byte
	// shared reports whether other processes see these files.
	shared() bool
	// real returns the name that other programs can open, or "".
	real(name string) string
}

type openMode uint8

const (
	toRead   openMode = iota
	toAppend          // an existing file, every write goes to its end
	toCreate          // a new file, otherwise the same; fs.ErrExist when there is one
	toExtend          // whichever of the two it takes
)

type file interface {
	io.ReaderAt
	io.Writer
	io.Closer
	Size() (int64, error)
	Sync() error // the data and what it takes to read them back
}

var errLocked = errors.New("locked")

// errIrregular is a name in the store at which there is something else than a file.
var errIrregular = errors.New("it is no regular file")

// readAll reads a file that has at most limit bytes.
func readAll(d disk, name string, limit int64) ([]byte, error) {
	f, err := d.open(name, toRead)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d it may have", path.Base(name), size, limit)
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if n == len(b) || errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// replace gives a file new content, all or nothing. durable says that it
// survives the machine; the caller then syncs the folder.
func replace(d disk, name string, content []byte, durable bool) error {
	tmp := path.Dir(name) + "/.new-" + NewID(time.Now())
	f, err := d.open(tmp, toCreate)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && durable {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = d.rename(tmp, name)
	}
	if err != nil {
		_ = d.remove(tmp) // what matters is the first error
	}
	return err
}

// ensureDir makes a folder unless it is there.
func ensureDir(d disk, name string) error {
	if err := d.mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// osDisk is a folder of the operating system. Folders are 0700, files 0600.
type osDisk struct{ root string }

func (d osDisk) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

func (d osDisk) mkdir(name string) error {
	p := d.path(name)
	err := os.Mkdir(p, 0o700)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		return err
	}
	return os.Mkdir(p, 0o700)
}

func (d osDisk) list(name string) ([]string, error) {
	info, err := os.Stat(d.path(name)) // opening a pipe would wait for its other end
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "list", Path: d.path(name), Err: syscall.ENOTDIR}
	}
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1) // no more than names: of sessions there are thousands
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, ".") })
	slices.Sort(names)
	return names, nil
}

func (d osDisk) stat(name string) (int64, time.Time, error) {
	fi, err := os.Stat(d.path(name))
	if err != nil {
		return 0, time.Time{}, err
	}
	return fi.Size(), fi.ModTime(), nil
}

func (d osDisk) open(name string, how openMode) (file, error) {
	flags := [...]int{
		toRead:   os.O_RDONLY,
		toAppend: os.O_RDWR | os.O_APPEND,
		toCreate: os.O_RDWR | os.O_APPEND | os.O_CREATE | os.O_EXCL,
		toExtend: os.O_RDWR | os.O_APPEND | os.O_CREATE,
	}[how]
	f, err := openOwn(d.path(name), flags)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// openOwn opens a file that this program has written: a regular one, and no link. In
// the place of one somebody may have put a pipe, which nobody ever writes into, or a
// link to a file that is none of ours.
func openOwn(name string, flags int) (*os.File, error) {
	if err := isOwn(os.Lstat(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f, err := os.OpenFile(name, flags|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if err := isOwn(f.Stat()); err != nil {
		_ = f.Close() // nothing was done with it
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f, nil
}

// isOwn is how a file is looked at before anything is read from it or written to it.
func isOwn(info fs.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() {
		err = errIrregular
	}
	return err
}

func (d osDisk) rename(from, to string) error           { return os.Rename(d.path(from), d.path(to)) }
func (d osDisk) remove(name string) error               { return os.RemoveAll(d.path(name)) }
func (d osDisk) truncate(name string, size int64) error { return truncateOwn(d.path(name), size) }
func (d osDisk) syncDir(name string) error              { return syncDir(d.path(name)) }
func (d osDisk) shared() bool                           { return true }
func (d osDisk) real(name string) string                { return d.path(name) }

func (d osDisk) lock(name string, note []byte) (func() error, error) {
	if err := isOwn(os.Lstat(d.path(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &fs.PathError{Op: "lock", Path: d.path(name), Err: err}
	}
	l := flock.New(d.path(name), flock.SetFlag(os.O_CREATE|os.O_RDWR|noFollow), flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errLocked
	}
	if note != nil {
		writeNote(d.path(name), note)
	}
	return l.Close, nil
}

// writeNote fills a lock file. Nothing depends on what it says, so errors do
// not matter.
func writeNote(name string, note []byte) {
	f, err := openOwn(name, os.O_RDWR)
	if err != nil {
		return
	}
	defer f.Close()
	if err := f.Truncate(lockedBytes); err == nil {
		_, _ = f.WriteAt(note, lockedBytes)
	}
}

func (d osDisk) lockNote(name string) []byte {
	f, err := openOwn(d.path(name), os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, 1024)
	n, _ := f.ReadAt(b, lockedBytes)
	return b[:n]
}

func truncateOwn(name string, size int64) error {
	f, err := openOwn(name, os.O_RDWR)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

func (f osFile) Sync() error { return dataSync(f.File) }
