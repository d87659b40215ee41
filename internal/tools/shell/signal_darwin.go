package shell

import (
	"os"

	"golang.org/x/sys/unix"
)

// kin returns the parent of a process, and whether it is ours: run by this user,
// with no other user's rights.
func kin(pid int) (parent int, ours bool, err error) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid {
		return 0, false, errGone
	}
	uid := uint32(os.Getuid())
	return int(p.Eproc.Ppid), p.Eproc.Pcred.P_ruid == uid && p.Eproc.Ucred.Uid == uid, nil
}
