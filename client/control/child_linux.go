package control

import (
	"os"
	"os/exec"
	"syscall"
)

// dieWithUs has a child be told when this process is gone, however it has ended.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }

// terminate asks a child to end.
func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
