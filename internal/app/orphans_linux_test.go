package app_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// family knows the processes that this one has started, and becomes the parent
// of what they leave behind.
var family kin

type kin struct {
	once   sync.Once
	mu     sync.Mutex // held while a process is started, and while orphans are looked for
	own    map[int]bool
	dead   map[int]time.Time // adopted, or waited for by others: when they were first seen so; guarded by mu
	looked time.Time         // when the dead were last looked for; guarded by mu
}

// run runs a command to its end.
func (k *kin) run(cmd *exec.Cmd) error {
	k.once.Do(func() {
		k.own = map[int]bool{}
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // without it orphans go elsewhere, and none is found
	})
	k.mu.Lock()
	err := cmd.Start()
	if err == nil {
		k.own[cmd.Process.Pid] = true
	}
	k.mu.Unlock()
	if err != nil {
		return err
	}
	err = cmd.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.own, cmd.Process.Pid)
	k.clear()
	return err
}

// buried is how long an adopted process is dead before it is waited for while others still
// run: whoever has started one waits for it long before.
const buried = 10 * time.Second

// clear waits for adopted processes that have long been dead, once a second: with thousands
// of them each look through the processes of the system takes long. The caller holds mu.
func (k *kin) clear() {
	now := time.Now()
	if now.Sub(k.looked) < time.Second {
		return
	}
	before := k.dead
	k.looked, k.dead = now, map[int]time.Time{}
	k.children(func(pid int, p seen) {
		if p.state != "Z" {
			return
		}
		at, ok := before[pid]
		switch {
		case !ok:
			k.dead[pid] = now
		case now.Sub(at) < buried:
			k.dead[pid] = at
		default:
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	})
}

// orphanLimit is how long what a dead process had started may live on.
const orphanLimit = 20 * time.Second

// orphans returns the processes that dead ones have left behind and that do not
// end by themselves, and ends them.
func (k *kin) orphans() []string {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; {
		over := time.Since(begun) > orphanLimit
		left := k.bury(over)
		if len(left) == 0 || over {
			return left
		}
		<-tick.C
	}
}

// bury waits for adopted processes that are dead, and returns the others.
func (k *kin) bury(kill bool) (alive []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.children(func(pid int, p seen) {
		if p.state == "Z" {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			return
		}
		alive = append(alive, fmt.Sprintf("%d %s %s", pid, p.state, p.name))
		if kill {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	return alive
}

// children shows the children of this process but for its own. The caller holds mu.
func (k *kin) children(show func(pid int, p seen)) {
	entries, _ := os.ReadDir("/proc")
	self := os.Getpid()
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || k.own[pid] {
			continue
		}
		if p := look(pid); p.parent == self {
			show(pid, p)
		}
	}
}

// seen is what can be seen of a process.
type seen struct {
	parent, group int
	state, name   string
}

func look(pid int) seen {
	dir := "/proc/" + strconv.Itoa(pid)
	data, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return seen{}
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	parent, _ := strconv.Atoi(fields[1])
	group, _ := strconv.Atoi(fields[2])
	cmdline, _ := os.ReadFile(dir + "/cmdline")
	return seen{parent, group, fields[0], strings.ReplaceAll(string(cmdline), "\x00", " ")}
}

// groupLives reports whether a process of the group is alive. Dead ones that
// nobody has waited for do not count.
func groupLives(pgid int) bool {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p := look(pid); p.group == pgid && p.state != "Z" && p.state != "X" {
				return true
			}
		}
	}
	return false
}

// carrying returns the processes that carry a text in their environment and do not
// end by themselves.
func carrying(text string) (alive []string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; {
		alive = nil
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || pid == os.Getpid() {
				continue
			}
			if env, err := os.ReadFile("/proc/" + e.Name() + "/environ"); err == nil && bytes.Contains(env, []byte(text)) {
				alive = append(alive, fmt.Sprint(pid, " ", look(pid).name))
			}
		}
		if len(alive) == 0 || time.Since(begun) > orphanLimit {
			return alive
		}
		<-tick.C
	}
}
