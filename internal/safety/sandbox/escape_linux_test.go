package sandbox

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// A process that has left its group still dies with the program: it carries the
// mark of its box.
func TestNothingSurvivesByLeavingItsGroup(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), `DURE_TEST_PARENT=setsid sh -c 'echo $$; sleep 600; true' & wait`)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pgid, err := strconv.Atoi(strings.TrimSpace(line)) // the head of a session of its own
	if err != nil {
		t.Fatal(err)
	}
	if !groupAlive(pgid) {
		t.Fatal("the process does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if !groupGone(pgid) {
		t.Error("the process has survived")
	}
}

// Processes that have left their group, twice forked and in a session of their
// own, die when the command is stopped, by whatever stops it; not when it ends
// by itself, nor those of another command.
func TestEscapesDieWithWhatIsStopped(t *testing.T) {
	t.Parallel()
	needs(t, "setsid")
	const daemon = `trap '' TERM HUP; (setsid sh -c '(sleep 600 >/dev/null 2>&1 &) ; sleep 600 >/dev/null 2>&1' &) ; `
	for name, tt := range map[string]struct {
		script string
		stop   func(*Box, *Process)
		left   bool
	}{
		"stop":    {daemon + "echo up; sleep 600", func(_ *Box, p *Process) { _, _ = p.Stop() }, false},
		"close":   {daemon + "echo up; sleep 600", func(b *Box, _ *Process) { b.Close() }, false},
		"its end": {daemon + "echo up", func(_ *Box, p *Process) { _, _ = p.Wait() }, true},
	} {
		for _, pty := range []*Size{nil, {80, 24}} {
			t.Run(fmt.Sprintf("%s/pty=%v", name, pty != nil), func(t *testing.T) {
				t.Parallel()
				b := newBox(t)
				cmd := sh(tt.script)
				cmd.PTY = pty
				other := start(t, b, sh("exec sleep 600"))
				p := start(t, b, cmd)
				t.Cleanup(func() { killMarked(p.mark) })
				eventually(t, "all sleep", func() bool { return marked(p.mark) >= 2 && marked(other.mark) == 1 })
				quick(t, name, func() { tt.stop(b, p) })
				if !tt.left {
					eventually(t, "all are gone", func() bool { return marked(p.mark) == 0 })
				} else if marked(p.mark) == 0 {
					t.Error("a daemon died without reason")
				}
				if name != "close" && marked(other.mark) != 1 {
					t.Error("a process of another command died")
				}
			})
		}
	}
}

// marked counts the processes that sleep and carry a mark. Dead ones have no
// environment.
func marked(mark string) int {
	n := 0
	for _, pid := range processes() {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if bytes.Contains(env, []byte(mark+"\x00")) && string(name) == "sleep\n" {
			n++
		}
	}
	return n
}
