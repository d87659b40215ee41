//go:build unix

package main

import (
	"fmt"
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

// needFiles is an error when n files cannot be open at once. Programs in Go
// begin with as many as the system lets them have.
func needFiles(n uint64) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("asking for the limit of open files: %w", err)
	}
	if l.Cur < n {
		return fmt.Errorf("%d files may be open at once, %d are needed: raise the limit (ulimit -n)", l.Cur, n)
	}
	return nil
}
