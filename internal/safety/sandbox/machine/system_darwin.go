package machine

import "golang.org/x/sys/unix"

func systemName() string {
	version, err := unix.Sysctl("kern.osproductversion")
	if err != nil {
		return ""
	}
	return "macOS " + version
}

// memory returns what there is, in bytes; how much is free is not told.
func memory() (total, free int64) {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0, 0
	}
	return int64(n), 0
}
