//go:build unix && !linux

package shell

import (
	"errors"

	"golang.org/x/sys/unix"
)

// sendSignal sends a signal to the process that check has looked at, unless its
// number comes to name another one in that moment.
func sendSignal(pid int, name string, check func() error) error {
	sig, ok := signals[name]
	if !ok {
		return errNoSignal
	}
	if err := check(); err != nil {
		return err
	}
	err := unix.Kill(pid, sig)
	if errors.Is(err, unix.ESRCH) {
		return errGone
	}
	return err
}
