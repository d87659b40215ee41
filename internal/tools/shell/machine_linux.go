package shell

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func systemName() string {
	text, _ := readSome("/etc/os-release")
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return oneLine(strings.Trim(strings.TrimSpace(value), `"'`), maxVersion)
		}
	}
	return ""
}

// memory returns what there is and what could be used, in bytes.
func memory() (total, free int64) {
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 53)
		switch fields[0] {
		case "MemTotal:":
			total = kib << 10
		case "MemAvailable:":
			free = kib << 10
		}
	}
	return total, free
}

// diskFree returns how many bytes this user can write in a folder; 0 = unknown.
func diskFree(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0
	}
	return int64(st.Bavail) * st.Bsize
}
