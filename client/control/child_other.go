//go:build !linux

package control

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// dieWithUs does nothing: the input of the child ends with this process, and it with that.
func dieWithUs(*exec.Cmd) {}

// terminate asks a child to end.
func terminate(p *os.Process) error {
	if runtime.GOOS == "windows" {
		return p.Kill()
	}
	return p.Signal(syscall.SIGTERM)
}
