package journal

import (
	"time"

	"golang.org/x/sys/windows"
)

// holds reports whether a process may have a lock: it is one that was started before
// the lock was taken. Who has a lock, this system does not tell.
func holds(_ string, pid int, since time.Time) bool {
	p, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(p)
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(p, &created, &exited, &kernel, &user); err != nil {
		return false
	}
	return !time.Unix(0, created.Nanoseconds()).After(since)
}
