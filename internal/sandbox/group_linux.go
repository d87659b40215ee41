package sandbox

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a process group whose number is that of its first process.
type group struct{ id int }

// dieWithParent makes the kernel kill the first process of a group when the
// thread that started it dies. It closes the gap until the watchdog knows of
// the group; the watchdog is for the others in it.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// await returns when the first process is dead, and leaves it unreaped: as long
// as it is, no other process or group can get its number.
func (g *group) await(cmd *exec.Cmd) {
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
