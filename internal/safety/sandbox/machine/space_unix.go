//go:build unix

package machine

import "golang.org/x/sys/unix"

// freeSpace is the room in bytes that is left to us where a path is.
func freeSpace(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return uint64(max(s.Bavail, 0)) * uint64(s.Bsize), nil //nolint:unconvert // the types differ between systems
}
