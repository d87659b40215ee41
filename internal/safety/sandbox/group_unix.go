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
	confined := cmd.SysProcAttr != nil
	if !confined {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// The head of a session is that of a group. A session of its own keeps a command
	// from the terminal of this program: there it could read what the user types, and
	// write what he takes for ours. A confined command has a terminal by what starts
	// it.
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Setctty = g.terminal && !confined
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return err
	}
	g.id = cmd.Process.Pid
	return nil
}

func (g *group) terminate() { g.signal(unix.SIGTERM) }

// kill kills what started a confined command last: that ends the confinement.
func (g *group) kill() {
	g.signal(unix.SIGKILL)
	if g.id > 1 && g.id != g.command() {
		_ = unix.Kill(-g.id, unix.SIGKILL)
	}
}

// signal sends sig to all processes of the group. One that is gone is no error.
func (g *group) signal(sig syscall.Signal) { _ = g.send(sig) }

// send is signal for callers who want to know of an error.
func (g *group) send(sig syscall.Signal) error {
	id := g.command()
	if id <= 1 {
		return os.ErrProcessDone
	}
	return unix.Kill(-id, sig)
}

// sweeps is how often is looked at most for processes that are to die: one may be
// starting another, or be becoming another program, while it is looked at.
const sweeps = 5

// killSession kills the other groups of a session, such as the jobs of a shell
// on a terminal. It is called before the session's number can be used again.
func (g *group) killSession() {
	id := g.command()
	if !g.terminal || id <= 1 {
		return
	}
	for found, again := true, 0; found && again < sweeps; again++ { // one may be starting another
		found = false
		for _, pid := range processes() {
			if sid, err := unix.Getsid(pid); err == nil && sid == id && pid != id {
				found = unix.Kill(pid, unix.SIGKILL) == nil || found
			}
		}
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
