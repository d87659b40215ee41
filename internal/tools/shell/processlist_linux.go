package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dure/agent"
	"dure/internal/tools/kit"
)

// listCommand is what is run to list processes: nothing, the kernel shows them.
var listCommand []string

// rootDir is a folder that no project has settings for programs in.
const rootDir = "/"

// ticks is the unit of the times that the kernel shows, per second. It is 100 on
// every machine that Go runs on.
const ticks = 100

// processes reads the processes of this user from /proc. The threads of the
// kernel are left out.
func (s *Shell) processes(ctx context.Context) ([]process, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, kit.Refuse(agent.ErrTool, "listing the processes: "+err.Error(), "")
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, kit.Refuse(agent.ErrTool, "listing the processes: "+err.Error(), "")
	}
	boot, now := bootTime(), time.Now()
	var list []process
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, kit.Refuse(agent.ErrAborted, "listing the processes was cancelled", "")
		}
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProcess(pid, boot, now); ok {
				list = append(list, p)
			}
		}
	}
	return list, nil
}

const kernelThreads = 2 // the parent of all of them

// readProcess reads a process of this user. Those that end meanwhile are none.
func readProcess(pid int, boot, now time.Time) (p process, ok bool) {
	dir := fmt.Sprintf("/proc/%d", pid)
	info, err := os.Stat(dir)
	if err != nil {
		return p, false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Getuid() {
		return p, false
	}
	stat, err := readSome(dir + "/stat")
	if err != nil {
		return p, false
	}
	// The name, in parentheses, may hold spaces and parentheses. The number of a
	// column that the kernel documents is that in fields and 3 more.
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return p, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 22 {
		return p, false
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(fields[i], 10, 64); return n }
	p = process{pid: pid, ppid: int(number(1)), memory: number(21) * int64(os.Getpagesize())}
	if pid == kernelThreads || p.ppid == kernelThreads {
		return p, false
	}
	p.started = boot.Add(time.Duration(number(19)) * time.Second / ticks)
	if age := now.Sub(p.started).Seconds(); age > 0 {
		p.cpu = float64(number(11)+number(12)) / ticks / age * 100
	}
	line, _ := readSome(dir + "/cmdline")
	p.command = string(bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '}))
	if p.command == "" {
		p.command = "[" + string(stat[open+1:end]) + "]"
	}
	return p, true
}

// bootTime is when the machine started.
func bootTime() time.Time {
	text, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "btime "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return time.Unix(n, 0)
		}
	}
	return time.Time{}
}

// readSome reads the first 4 KiB of a file.
func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4<<10))
}
