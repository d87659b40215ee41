//go:build unix

package sandbox

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// held returns what a pipe holds, without waiting, and whether somebody can still write
// to it.
func held(f *os.File) (data []byte, open bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, true
	}
	open = true
	_ = raw.Control(func(fd uintptr) { // a file that is closed holds nothing
		buf := make([]byte, pipeSize)
		for n := 0; n < len(buf); {
			more, err := unix.Read(int(fd), buf[n:]) // a file with deadlines does not block
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if more <= 0 {
				open = errors.Is(err, unix.EAGAIN) // else it is at its end; a terminal says EIO
				return
			}
			n += more
			data = buf[:n]
		}
	})
	return data, open
}
