//go:build unix && !linux

package sandbox

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a process group whose number is that of its first process.
type group struct {
	id       int
	terminal bool  // it has a terminal, and is a session
	err      error // of waiting
}

// command returns the number of the group that the command itself is in.
func (g *group) command() int { return g.id }

func dieWithParent(*syscall.SysProcAttr) {}

// await reaps the first process as well: these systems cannot tell of its death
// without. The group is killed right after it, before its number can have been
// used again in practice.
func (g *group) await(cmd *exec.Cmd) { g.err = cmd.Wait() }

func (g *group) wait(*exec.Cmd) error { return g.err }

// killMarked does nothing: these systems do not show the environment of others.
func killMarked(string) {}

// pollable returns a copy of a file. Reading it ends with the processes that
// have the other end: these systems take a terminal from all who hold it when
// the head of its session dies.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
