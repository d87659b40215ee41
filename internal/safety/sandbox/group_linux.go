package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a process group whose number is that of its first process.
type group struct {
	id       int
	terminal bool   // it has a terminal, and is a session
	walls    *walls // around its command; nil = none
}

// command returns the number of the group that the command itself is in.
func (g *group) command() int {
	if g.walls != nil {
		return g.walls.command
	}
	return g.id
}

// dieWithParent makes the kernel kill the first process of a group when the
// thread that started it dies. It closes the gap until the watchdog knows of
// the group; the watchdog is for the others in it.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// await returns when the first process is dead, and leaves it unreaped: as long
// as it is, no other process or group can get its number.
func (g *group) await(cmd *exec.Cmd) {
	if g.walls != nil {
		g.walls.await()
		return
	}
	for {
		err := unix.Waitid(unix.P_PID, g.id, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (g *group) wait(cmd *exec.Cmd) error { return cmd.Wait() }

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// startTime returns when a process started, in clock ticks since boot, or "".
func startTime(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name, in parentheses, may hold spaces and parentheses. Start time is
	// field 22, the name field 2.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return string(fields[19])
}

// processes returns the numbers of all processes that can be seen.
func processes() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // those before an error will do
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killMarked kills all processes that carry the mark in their environment.
func killMarked(mark string) {
	entry := append([]byte(mark), 0)
	for range sweeps {
		found := false
		for _, pid := range processes() {
			found = killIfMarked(pid, entry) || found
		}
		if !found {
			return
		}
	}
}

// killIfMarked looks again while it holds on to a marked process, so that it cannot kill
// another one that got its number meanwhile.
func killIfMarked(pid int, entry []byte) bool {
	if pid == os.Getpid() || !carriesMark(pid, entry) {
		return false
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) { // a kernel without pidfds
		return unix.Kill(pid, unix.SIGKILL) == nil
	}
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	return carriesMark(pid, entry) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

// carriesMark reports whether a process carries an entry, which ends in a zero, in its environment.
func carriesMark(pid int, entry []byte) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && (bytes.HasPrefix(env, entry) || bytes.Contains(env, append([]byte{0}, entry...)))
}

// pollable returns a copy of a file that reading can be interrupted on.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
