//go:build !linux

package bundler

import (
	"runtime/debug"
	"syscall"
)

// errNotFolder says that a path leads through a file.
var errNotFolder error = syscall.ENOTDIR

// confine asks this process to stay within bounds: the system does not see to it here.
func confine(memory int64) error {
	if memory > 0 {
		debug.SetMemoryLimit(memory)
	}
	return nil
}
