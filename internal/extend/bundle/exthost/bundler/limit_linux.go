package bundler

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// errNotFolder says that a path leads through a file.
var errNotFolder error = syscall.ENOTDIR

// processorSeconds are those that bundling may take.
const processorSeconds = 30

// confine bounds this process.
func confine(memory int64) error {
	cpu := unix.Rlimit{Cur: processorSeconds, Max: processorSeconds}
	err := unix.Setrlimit(unix.RLIMIT_CPU, &cpu)
	if memory > 0 {
		data := unix.Rlimit{Cur: uint64(memory), Max: uint64(memory)}
		err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_DATA, &data))
	}
	return err
}
