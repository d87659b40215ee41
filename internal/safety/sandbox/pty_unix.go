//go:build unix

package sandbox

import (
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// HasPTY reports whether commands can run on a terminal here.
func HasPTY() bool { return true }

// openTerminal makes a terminal: our end of it, and the command's.
func openTerminal(s Size) (ours, tty *os.File, err error) {
	blocking, tty, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("making a terminal: %w", err)
	}
	defer blocking.Close()
	if ours, err = pollable(blocking); err == nil {
		if err = resize(ours, s); err == nil {
			return ours, tty, nil
		}
		ours.Close()
	}
	tty.Close()
	return nil, nil, fmt.Errorf("making a terminal: %w", err)
}

// resize leaves the file as it is; its Fd method would make it block for good.
func resize(term *os.File, s Size) error {
	conn, err := term.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Cols})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("setting the size of a terminal: %w", err)
	}
	return nil
}
