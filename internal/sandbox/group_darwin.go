package sandbox

import (
	"fmt"

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
