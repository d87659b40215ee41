//go:build unix

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"dure/agent"
)

func (g *group) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return err
	}
	g.id = cmd.Process.Pid
	return nil
}

func (g *group) terminate() { g.signal(unix.SIGTERM) }

func (g *group) kill() { g.signal(unix.SIGKILL) }

// signal sends sig to all processes of the group. One that is gone is no error.
func (g *group) signal(sig syscall.Signal) {
	if g.id > 1 {
		_ = unix.Kill(-g.id, sig)
	}
}

func (g *group) identity() agent.Process {
	boot, started := bootID(), startTime(g.id)
	return agent.Process{PID: g.id, PGID: g.id, Boot: boot, Started: started}
}

// Reap kills a group that a run of this program before a crash left behind, and
// reports whether it did. It does so only when boot and start time prove that
// the process at the group's head is the one that p names.
func Reap(p agent.Process) bool {
	if p.PGID <= 1 || p.PID != p.PGID || p.PGID == unix.Getpgrp() || p.Boot == "" || p.Started == "" {
		return false
	}
	if p.Boot != bootID() || p.Started != startTime(p.PID) {
		return false
	}
	if g, err := unix.Getpgid(p.PID); err != nil || g != p.PGID {
		return false
	}
	return unix.Kill(-p.PGID, unix.SIGKILL) == nil
}

func exitOf(s *os.ProcessState) Exit {
	ws, ok := s.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return Exit{Code: 128 + int(ws.Signal()), Signal: signalName(ws.Signal())}
	}
	return Exit{Code: s.ExitCode()}
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// tempFile makes a private file that has no name.
func tempFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "dure-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
