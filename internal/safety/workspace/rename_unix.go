//go:build unix

package workspace

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// rename gives an entry of one folder a name in another. Without replace the
// name has to be free, which the system checks where it can.
func rename(src *os.Root, from string, dst *os.Root, to string, replace bool) error {
	a, err := src.Open(".")
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := dst.Open(".")
	if err != nil {
		return err
	}
	defer b.Close()
	oldDir, newDir := int(a.Fd()), int(b.Fd())
	if !replace {
		err := renameFree(oldDir, from, newDir, to)
		if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
			return err
		}
		if err := free(dst, to, nil); err != nil {
			return err
		}
	}
	return unix.Renameat(oldDir, from, newDir, to)
}

// crossDevice reports whether a rename failed because the names are in
// different file systems.
func crossDevice(err error) bool { return errors.Is(err, unix.EXDEV) }
