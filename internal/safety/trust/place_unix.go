//go:build unix

package trust

import (
	"io/fs"
	"syscall"
)

// nonblock keeps opening a pipe from waiting for a writer.
const nonblock = syscall.O_NONBLOCK

// numbers returns what the system knows a folder by.
func numbers(_ string, info fs.FileInfo) (device, inode uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return wide(st.Dev), wide(st.Ino)
}

// wide takes the word of any system: they differ in its size.
func wide[T ~int32 | ~uint32 | ~uint64](n T) uint64 { return uint64(n) }
