//go:build unix && !linux

package sandbox

import (
	"os/exec"
	"syscall"
)

// group is a process group whose number is that of its first process.
type group struct {
	id  int
	err error // of waiting
}

func dieWithParent(*syscall.SysProcAttr) {}

// await reaps the first process as well: these systems cannot tell of its death
// without. The group is killed right after it, before its number can have been
// used again in practice.
func (g *group) await(cmd *exec.Cmd) { g.err = cmd.Wait() }

func (g *group) wait(*exec.Cmd) error { return g.err }
