//go:build unix && !linux && !darwin

package workspace

import "golang.org/x/sys/unix"

func renameFree(int, string, int, string) error { return unix.ENOSYS }
