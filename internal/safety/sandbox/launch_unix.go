//go:build unix

package sandbox

import (
	"os/exec"
	"syscall"
)

// detach gives a command a session of its own: what the terminal does to ours does not
// reach it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
