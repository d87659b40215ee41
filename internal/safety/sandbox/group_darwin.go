package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// startTime returns when a process started, in microseconds since 1970, or "".
func startTime(pid int) string {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid {
		return ""
	}
	t := p.Proc.P_starttime
	return fmt.Sprint(int64(t.Sec)*1e6 + int64(t.Usec))
}

// processes returns the numbers of all processes of this user.
func processes() []int {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.uid", os.Getuid())
	if err != nil {
		return nil
	}
	pids := make([]int, 0, len(all))
	for _, p := range all {
		pids = append(pids, int(p.Proc.P_pid))
	}
	return pids
}
