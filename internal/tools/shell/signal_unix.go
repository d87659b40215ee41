//go:build unix

package shell

import "golang.org/x/sys/unix"

// signals are those that can be sent.
var signals = map[string]unix.Signal{
	"TERM": unix.SIGTERM, "INT": unix.SIGINT, "KILL": unix.SIGKILL, "HUP": unix.SIGHUP,
	"USR1": unix.SIGUSR1, "USR2": unix.SIGUSR2, "STOP": unix.SIGSTOP, "CONT": unix.SIGCONT,
}
