package workspace

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// WriteOptions says what a write may replace.
type WriteOptions struct {
	// Old is the file as the caller has read it. The write fails with
	// [ErrChanged] when another one stands there, or when this one has been
	// written to since. The comparison is made right before the switch.
	Old fs.FileInfo

	// Create fails with [ErrChanged] when anything has the name already.
	Create bool

	// Mode is that of a file that does not exist yet; 0 = 0666 less the umask.
	Mode fs.FileMode

	// Key names the attempt, "" = at random. Content that was left beside the
	// file by a writer that died is removed by the next one with its key, so two
	// of them must not write at the same time.
	Key string
}

// Errors that callers branch on. They arrive wrapped.
var (
	ErrChanged  = errors.New("the file has changed")
	ErrReadOnly = errors.New("the file is read-only")
	ErrNoFolder = errors.New("a file stands where a folder is needed")
)

// tempPrefix begins the name of a file that is being written. Listings leave
// such files out: one stays behind when the machine dies in the middle.
const tempPrefix = ".dure-write-"

// Write implements [FS]. The new content is written beside the file, brought to
// the disk and renamed over it: readers see the old file or the new one, and a
// failure leaves the old one as it was. It keeps the mode, and the owner when it
// runs as root. A link stays a link, and its target is written. Missing folders
// are made.
//
// A file with several names (hard links) is replaced under this name only. The
// other names keep the old content: they may stand in places that nobody agreed
// to write to, and package stores that link their files into a project must not
// be changed through it. Extended attributes and access lists are not copied.
func (w *Workspace) Write(name string, data []byte, o WriteOptions) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := w.at(name, func(root *os.Root, rel, _ string) (err error) {
		info, err = w.replace(root, filepath.ToSlash(rel), data, o)
		return err
	})
	if err != nil {
		return nil, retype("writing", name, err)
	}
	return info, nil
}

func (w *Workspace) replace(root *os.Root, rel string, data []byte, o WriteOptions) (fs.FileInfo, error) {
	old, err := standing(root, rel, o)
	if err != nil {
		return nil, err
	}
	dir := path.Dir(rel)
	if old == nil {
		if err := root.MkdirAll(dir, 0o777); errors.Is(err, fs.ErrExist) {
			return nil, ErrNoFolder
		} else if err != nil {
			return nil, fmt.Errorf("making its folder: %w", err)
		}
	}
	temp, err := w.writeTemp(root, tempName(dir, rel, o.Key), data, old, o.Mode)
	if err != nil {
		return nil, err
	}
	if err := func() error {
		if _, err := standing(root, rel, o); err != nil {
			return err
		}
		return root.Rename(temp, rel)
	}(); err != nil {
		_ = root.Remove(temp)
		return nil, err
	}
	if err := syncFolder(root, dir); err != nil {
		return nil, fmt.Errorf("bringing its folder to the disk: %w", err)
	}
	return root.Lstat(rel)
}

// standing returns the file that a write would replace, nil if there is none,
// and refuses what must not be replaced. The last component is not followed:
// links were resolved before, and one that turns up now was put there since.
func standing(root *os.Root, rel string, o WriteOptions) (fs.FileInfo, error) {
	info, err := root.Lstat(rel)
	switch {
	case absent(err) && o.Old == nil:
		return nil, nil
	case absent(err):
		return nil, fmt.Errorf("%w: it is gone", ErrChanged)
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%w: it has become a link", ErrChanged)
	case !info.Mode().IsRegular():
		return nil, &TypeError{rel, info.Mode()}
	case o.Create:
		return nil, fmt.Errorf("%w: it exists by now", ErrChanged)
	case o.Old != nil && !unchanged(o.Old, info):
		return nil, fmt.Errorf("%w since it was read", ErrChanged)
	case info.Mode().Perm()&0o222 == 0:
		return nil, ErrReadOnly
	}
	return info, nil
}

// unchanged reports whether two looks at a file saw the same content, as far as
// the file system can tell.
func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// tempName returns the name under which the content of a file is written.
func tempName(dir, rel, key string) string {
	id := make([]byte, 8)
	if key == "" {
		_, _ = rand.Read(id) // it never fails
	} else {
		h := sha256.Sum256([]byte(key + "\x00" + rel))
		copy(id, h[:])
	}
	return path.Join(dir, tempPrefix+hex.EncodeToString(id))
}

// writeTemp writes data to a new file, and returns its name.
func (w *Workspace) writeTemp(root *os.Root, name string, data []byte, old fs.FileInfo, perm fs.FileMode) (_ string, err error) {
	mode := fs.FileMode(0o666) // less the umask
	if old != nil {
		mode = 0o600 // until it has its owner
	}
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := root.OpenFile(name, flags, mode)
	if errors.Is(err, fs.ErrExist) {
		if err := root.Remove(name); err != nil {
			return "", err
		}
		f, err = root.OpenFile(name, flags, mode)
	}
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = root.Remove(name)
		}
	}()
	if err := w.fill(f, data); err != nil {
		return "", err
	}
	if old != nil {
		if err := keepOwner(root, name, old); err != nil {
			return "", fmt.Errorf("keeping the owner: %w", err)
		}
		// Not the setuid bits: they were given to another content.
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return "", fmt.Errorf("keeping the mode: %w", err)
		}
	}
	if old == nil && perm != 0 {
		if err := f.Chmod(perm.Perm()); err != nil {
			return "", fmt.Errorf("setting the mode: %w", err)
		}
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return name, f.Close()
}

// fill writes data in pieces, so that a test can fail it in the middle.
func (w *Workspace) fill(f *os.File, data []byte) error {
	const piece = 1 << 20
	for n := 0; n < len(data); {
		if w.fault != nil {
			if err := w.fault(n); err != nil {
				return err
			}
		}
		m, err := f.Write(data[n:min(n+piece, len(data))])
		if err != nil {
			return err
		}
		n += m
	}
	return nil
}

// Leftover reports whether a base name is that of a file whose writing was cut
// short by the death of the program.
func Leftover(base string) bool { return strings.HasPrefix(base, tempPrefix) }

func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
}
