package main

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// mayMount reports whether this process can mount a file system.
var mayMount = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp("", "mount-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	if syscall.Mount("none", dir, "tmpfs", 0, "size=4k") != nil {
		return false
	}
	return syscall.Unmount(dir, 0) == nil
})

// tmpfs DIR SIZE mounts a file system of that size, and tmpfs -ro DIR makes it
// read-only.
func tmpfs(ts *testscript.TestScript, neg bool, args []string) {
	if args[0] == "-ro" {
		ts.Check(syscall.Mount("none", ts.MkAbs(args[1]), "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
		return
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(syscall.Mount("none", dir, "tmpfs", 0, "size="+args[1]))
	ts.Defer(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil && !errors.Is(err, os.ErrNotExist) {
			ts.Logf("unmounting %s: %v", filepath.Base(dir), err)
		}
	})
}

// fifo FILE makes a named pipe that nobody writes to.
func fifo(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o600))
}
