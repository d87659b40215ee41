package journal

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// holds reports whether a process has a lock: it has the file open, or the system
// lists it as who locked it.
func holds(name string, pid int, _ time.Time) bool {
	lock, err := os.Lstat(name)
	if err != nil {
		return false
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	for _, fd := range fds {
		if open, err := os.Stat(filepath.Join(dir, fd.Name())); err == nil && os.SameFile(lock, open) {
			return true
		}
	}
	return err != nil && locked(lock, pid)
}

// locked looks for a lock in /proc/locks, see proc_locks(5): who, and on what inode.
func locked(lock os.FileInfo, pid int) bool {
	st, ok := lock.Sys().(*syscall.Stat_t)
	f, err := os.Open("/proc/locks")
	if err != nil || !ok {
		return false
	}
	defer f.Close()
	who, what := fmt.Sprint(pid), fmt.Sprintf(":%d", st.Ino)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		w := strings.Fields(lines.Text())
		if len(w) >= 8 && w[1] == "FLOCK" && w[4] == who && strings.HasSuffix(w[5], what) {
			return true
		}
	}
	return false
}
