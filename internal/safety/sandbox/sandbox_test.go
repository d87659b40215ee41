//go:build unix

package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/prooftest"
)

// TestMain turns the test binary into a parent that can be killed, see
// TestNothingSurvivesKillOfParent.
func TestMain(m *testing.M) {
	if script := os.Getenv("DURE_TEST_PARENT"); script != "" {
		b := New(testConfig(""))
		for range 2 { // the second one proves that finished groups are forgotten
			_, _ = b.Run(context.Background(), Cmd{Argv: []string{"/bin/sh", "-c", "true"}, Dir: "/"})
		}
		cmd := Cmd{Argv: []string{"/bin/sh", "-c", script}, Dir: "/", Env: os.Environ(), Out: os.Stdout}
		if os.Getenv("DURE_TEST_PTY") != "" {
			cmd.PTY = &Size{Cols: 80, Rows: 24}
		}
		_, _ = b.Run(context.Background(), cmd)
		os.Exit(0)
	}
	os.Exit(prooftest.Many{M: m}.Run())
}

// testConfig is that of most boxes here. A test that runs others once more has
// them confined by one mechanism, with all temporary folders for a workspace.
func testConfig(temp string) Config {
	c := Config{Temp: temp}
	if by := os.Getenv("DURE_TEST_CONFINED"); by != "" {
		c.Confine, c.Mechanisms = &Confinement{Roots: []string{os.TempDir()}}, []string{by}
		if root := os.Getenv("DURE_TEST_WORKSPACE"); root != "" {
			c.Confine.Roots, c.Confine.ProtectNames = []string{root}, ProtectNames()
		}
	}
	return c
}

func newBox(t testing.TB) *Box {
	b := New(testConfig(t.TempDir()))
	t.Cleanup(func() { b.Close() })
	return b
}

func sh(script string) Cmd {
	return Cmd{Argv: []string{"/bin/sh", "-c", script}, Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func TestRun(t *testing.T) {
	b := newBox(t)
	dir := t.TempDir()
	for _, tt := range []struct {
		name   string
		cmd    Cmd
		out    string
		errOut string
		apart  bool
		exit   Exit
	}{
		{name: "output in order of arrival", cmd: sh("echo a; echo b >&2; echo c"), out: "a\nb\nc\n"},
		{name: "errors apart", cmd: sh("echo a; echo b >&2"), apart: true, out: "a\n", errOut: "b\n"},
		{name: "exit code", cmd: sh("exit 3"), exit: Exit{Code: 3}},
		{name: "signal", cmd: sh("kill -s SEGV $$"), exit: Exit{Code: 139, Signal: "SIGSEGV"}},
		{name: "no input", cmd: sh("cat; echo end"), out: "end\n"},
		{name: "input", cmd: Cmd{Argv: []string{"cat"}, Dir: dir, In: strings.NewReader("hello")}, out: "hello"},
		{name: "input that nobody reads", cmd: Cmd{Argv: []string{"true"}, Dir: dir, In: strings.NewReader(strings.Repeat("x", 1<<20))}},
		{name: "folder", cmd: Cmd{Argv: []string{"/bin/sh", "-c", "pwd"}, Dir: dir}, out: dir + "\n"},
		{name: "environment is what was given, and the mark", cmd: Cmd{Argv: []string{"sh", "-c", "env | sed 's/^DURE_BOX=.*/mark/' | grep -v -e ^PWD= -e ^TMPDIR= | sort -r"}, Dir: dir, Env: []string{"A=1"}}, out: "mark\nA=1\n"},
		{name: "no environment but the mark", cmd: Cmd{Argv: []string{"sh", "-c", "/usr/bin/env | /bin/sed 's/^DURE_BOX=.*/mark/' | /bin/grep -v -e ^PWD= -e ^TMPDIR="}, Dir: dir}, out: "mark\n"},
		{name: "output closed early", cmd: sh("exec >&- 2>&-; sleep 0.05; exit 4"), exit: Exit{Code: 4}},
		{name: "child that holds the output", cmd: sh("sleep 600 & echo done"), out: "done\n", exit: Exit{Left: true}},
		{name: "child that does not hold it", cmd: sh("sleep 600 >/dev/null 2>&1 & echo done"), out: "done\n"},
		{name: "late output of a child", cmd: sh("(sleep 0.01; echo late) & echo done"), out: "done\nlate\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, apart := b.NewCapture(), b.NewCapture()
			defer out.Close()
			defer apart.Close()
			tt.cmd.Out = out
			if tt.apart {
				tt.cmd.Err = apart
			}
			var p agent.Process
			tt.cmd.Spawned = func(q agent.Process) { p = q }
			exit, err := b.Run(t.Context(), tt.cmd)
			if err != nil {
				t.Fatal(err)
			}
			if exit.Duration <= 0 || exit.Duration > 30*time.Second {
				t.Errorf("took %s", exit.Duration)
			}
			exit.Duration = 0
			if !reflect.DeepEqual(exit, tt.exit) {
				t.Errorf("exit = %+v, want %+v", exit, tt.exit)
			}
			if got := text(out); got != tt.out {
				t.Errorf("output = %q, want %q", got, tt.out)
			}
			if got := text(apart); got != tt.errOut {
				t.Errorf("error output = %q, want %q", got, tt.errOut)
			}
			if !groupGone(p.PGID) {
				t.Error("processes of the group are left")
			}
		})
	}
}

func TestRunCannotStart(t *testing.T) {
	b := newBox(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	never := filepath.Join(t.TempDir(), "never")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		cmd  Cmd
		want error
	}{
		{"no such program", t.Context(), Cmd{Argv: []string{"/no/such/program"}, Dir: "/"}, os.ErrNotExist},
		{"no such folder", t.Context(), Cmd{Argv: []string{"/bin/sh"}, Dir: "/no/such/folder"}, os.ErrNotExist},
		{"context over", over, sh("touch " + never), context.Canceled},
		{"nothing to run", t.Context(), Cmd{}, nil},
	} {
		if _, err := b.Run(tt.ctx, tt.cmd); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := os.Stat(never); err == nil {
		t.Error("a command ran under a context that was over")
	}
}

// A command is stopped with all its children, also those that ignore SIGTERM,
// soon enough for a turn to be idle within a second.
func TestStop(t *testing.T) {
	t.Parallel() // it mostly waits
	b := newBox(t)
	for name, script := range map[string]string{
		"polite":                          "echo up; sleep 600",
		"children":                        "sleep 600 & sleep 600 | sleep 600 & echo up; wait",
		"stubborn":                        "trap '' TERM; echo up; sleep 600; sleep 600; sleep 600",
		"stubborn children, quick parent": `sh -c "trap '' TERM; sleep 600; sleep 600" & trap 'exit 0' TERM; sleep 0.05; echo up; wait`,
	} {
		for _, how := range []string{"cancel", "deadline"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				cmd := sh(script)
				var p agent.Process
				cmd.Spawned = func(q agent.Process) { p = q }
				var stopped time.Time
				if how == "deadline" {
					cmd.Timeout = 150 * time.Millisecond
					stopped = time.Now().Add(cmd.Timeout)
				} else {
					cmd.Out = writer(func() { stopped = time.Now(); cancel() })
				}
				exit, err := b.Run(ctx, cmd)
				if err != nil {
					t.Fatal(err)
				}
				if exit.TimedOut != (how == "deadline") || exit.Cancelled == exit.TimedOut || !exit.Interrupted() {
					t.Errorf("exit = %+v", exit)
				}
				if d := time.Since(stopped); d > 20*time.Second {
					t.Errorf("took %s to stop", d)
				}
				if !groupGone(p.PGID) {
					t.Error("processes of the group are left")
				}
			})
		}
	}
}

// When the program is killed without notice, its commands and their children
// die with it.
func TestNothingSurvivesKillOfParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), `DURE_TEST_PARENT=trap '' TERM; sleep 600 & sh -c "trap '' TERM; sleep 600; true" & echo $$; wait`)
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
	pgid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if !groupAlive(pgid) {
		t.Fatal("the command does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if !groupGone(pgid) {
		t.Error("processes of the group have survived")
	}
}

// Somebody may kill the watchdog; the next command starts a new one.
func TestWatchdogComesBack(t *testing.T) {
	b := newBox(t)
	for range 3 {
		if _, err := b.Run(t.Context(), sh("true")); err != nil {
			t.Fatal(err)
		}
		dog := b.watcher.cmd
		if dog == nil || dog.Process.Signal(syscall.Signal(0)) != nil {
			t.Fatal("no watchdog")
		}
		_ = dog.Process.Kill()
		_ = dog.Wait()
	}
}

// The number of a group that is gone may come to name another one.
func TestWatchdogForgets(t *testing.T) {
	var gone, there group
	var w watchdog
	for _, g := range []*group{&gone, &there} {
		cmd := exec.Command("sleep", "600")
		if err := g.start(cmd); err != nil {
			t.Fatal(err)
		}
		defer func() { g.kill(); _ = cmd.Wait() }()
		w.add(g)
	}
	w.remove(&gone)
	if len(w.groups) != 1 {
		t.Errorf("groups %v", w.groups)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if !groupAlive(gone.id) {
		t.Error("a group that was taken off the list was killed")
	}
	if !groupGone(there.id) {
		t.Error("a group on the list was not killed")
	}
}

func TestCloseKillsWhatRuns(t *testing.T) {
	b := newBox(t)
	cmd := sh("sleep 600")
	cmd.Spawned = func(agent.Process) { b.Close() }
	exit, err := b.Run(t.Context(), cmd)
	exit.Duration = 0
	if want := (Exit{Code: 137, Signal: "SIGKILL"}); err != nil || !reflect.DeepEqual(exit, want) {
		t.Errorf("exit = %+v, %v; want %+v", exit, err, want)
	}
}

func TestReap(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "sleep 600 & wait")
	g := &group{}
	if err := g.start(cmd); err != nil {
		t.Fatal(err)
	}
	p := g.identity()
	if p.PID != cmd.Process.Pid || p.PGID != p.PID || p.Boot == "" || p.Started == "" {
		t.Fatalf("identity = %+v", p)
	}
	for name, change := range map[string]func(*agent.Process){
		"other boot":       func(p *agent.Process) { p.Boot = "x" },
		"other start":      func(p *agent.Process) { p.Started += "1" },
		"no boot":          func(p *agent.Process) { p.Boot = "" },
		"no start":         func(p *agent.Process) { p.Started = "" },
		"not a group head": func(p *agent.Process) { p.PID++ },
		"init":             func(p *agent.Process) { p.PID, p.PGID = 1, 1 },
		"our own group":    func(p *agent.Process) { p.PID, p.PGID = syscall.Getpgrp(), syscall.Getpgrp() },
		"nothing":          func(p *agent.Process) { *p = agent.Process{} },
	} {
		q := p
		change(&q)
		if Reap(q) {
			t.Errorf("%s: killed", name)
		}
	}
	if !groupAlive(p.PGID) {
		t.Fatal("died without reason")
	}
	if !Reap(p) {
		t.Error("not killed")
	}
	_ = cmd.Wait()
	if !groupGone(p.PGID) {
		t.Error("processes of the group are left")
	}
	if Reap(p) {
		t.Error("killed twice")
	}
}

func TestScrub(t *testing.T) {
	env := []string{
		"PATH=/bin", "ANTHROPIC_API_KEY=a", "OPENAI_API_KEY=b", "DURE_HOME=/x", "DURE_RELAY_TOKEN=c",
		"DURE_IDEMPOTENCY_KEY=d", "GITHUB_TOKEN=e", "MY_PASS=f", "CORP_A=g", "CORP_B=h", "odd",
	}
	got := Scrub(env, []string{"MY_PASS", "CORP_*"})
	if want := []string{"PATH=/bin", "DURE_HOME=/x", "GITHUB_TOKEN=e", "odd"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// BenchmarkTrue is the whole cost of a command; BenchmarkForkExec what the
// operating system takes of it.
func BenchmarkTrue(b *testing.B) {
	box := newBox(b)
	cmd := Cmd{Argv: []string{"bash", "-c", "true"}, Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH")}}
	for b.Loop() {
		cmd.Out = box.NewCapture()
		if _, err := box.Run(b.Context(), cmd); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkForkExec(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("bash", "-c", "true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func text(c *Capture) string {
	b, err := io.ReadAll(c.Reader())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// writer calls itself at the first output.
type writer func()

func (w writer) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

// groupGone waits for a killed group to disappear: whoever adopted its
// processes has to reap them first. Dead ones that nobody reaps count as gone.
func groupGone(pgid int) bool {
	for range 500 {
		if !groupAlive(pgid) {
			return true
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}

func groupAlive(pgid int) bool {
	if syscall.Kill(-pgid, 0) != nil {
		return false
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	if len(stats) == 0 {
		return true
	}
	for _, f := range stats {
		b, _ := os.ReadFile(f)
		_, rest, _ := strings.Cut(string(b), ") ")
		var state string
		var ppid, group int
		if _, err := fmt.Sscan(rest, &state, &ppid, &group); err == nil && group == pgid && state != "Z" {
			return true
		}
	}
	return false
}
