package sandbox

import (
	"os/exec"
	"syscall"
)

// detach gives a command a group of its own: Ctrl-C does not reach it.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
