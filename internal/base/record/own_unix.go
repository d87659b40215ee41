//go:build unix

package record

import "syscall"

// noFollow keeps an open from following a link, and from waiting for the other end
// of a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
