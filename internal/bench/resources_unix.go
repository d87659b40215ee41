//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// resources returns what a process and the children it waited for took.
func resources(p *os.ProcessState) (cpu time.Duration, peak int64, ok bool) {
	ru, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, 0, false
	}
	peak = ru.Maxrss
	if runtime.GOOS != "darwin" { // where it is in bytes already
		peak *= 1024
	}
	return p.UserTime() + p.SystemTime(), peak, true
}
