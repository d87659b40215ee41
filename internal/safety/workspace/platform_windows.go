package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const nonblock = 0

// absent reports whether nothing has the name.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Full reports whether a write failed for lack of space.
func Full(err error) bool {
	const handleDiskFull, diskFull, quota = syscall.Errno(39), syscall.Errno(112), syscall.Errno(1295)
	return errors.Is(err, handleDiskFull) || errors.Is(err, diskFull) || errors.Is(err, quota)
}

// keepOwner does nothing: a new file inherits from its folder.
func keepOwner(*os.Root, string, fs.FileInfo) error { return nil }

// syncFolder does nothing: the file system journals names.
func syncFolder(*os.Root, string) error { return nil }
