//go:build unix

package journal

import (
	"os"
	"syscall"
)

// noFollow keeps an open from following a link, and from waiting for the other end
// of a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
