package workspace

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// rename gives an entry of one folder a name in another. Without replace the
// name has to be free, which the system checks.
func rename(src *os.Root, from string, dst *os.Root, to string, replace bool) error {
	a, err := windows.UTF16PtrFromString(filepath.Join(src.Name(), from))
	if err != nil {
		return err
	}
	b, err := windows.UTF16PtrFromString(filepath.Join(dst.Name(), to))
	if err != nil {
		return err
	}
	flags := uint32(windows.MOVEFILE_WRITE_THROUGH)
	if replace {
		flags |= windows.MOVEFILE_REPLACE_EXISTING
	}
	return windows.MoveFileEx(a, b, flags)
}

// crossDevice reports whether a rename failed because the names are on
// different volumes.
func crossDevice(err error) bool { return errors.Is(err, windows.ERROR_NOT_SAME_DEVICE) }
