//go:build unix

package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/internal/prooftest"
)

// start starts a command that is stopped at the end of the test.
func start(t *testing.T, b *Box, c Cmd) *Process {
	t.Helper()
	p, err := b.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.Stop() })
	return p
}

// Output that is read after the deadline is there all the same, and whether somebody can
// still write is known. It runs alone: until a process that another test starts has come to
// its program, it holds the pipe, too.
func TestOutputIsReadLate(t *testing.T) {
	for _, open := range []bool{false, true} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		if _, err := w.WriteString("what it wrote"); err != nil {
			t.Fatal(err)
		}
		if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		if !open {
			w.Close()
		}
		var out bytes.Buffer
		p := &pipe{read: r, to: &out}
		if p.copy(); out.String() != "what it wrote" || p.left != open {
			t.Errorf("open %v: %q, left %v", open, out.String(), p.left)
		}
	}
}

// A program that is missing, or that nothing can run, is to blame that it does not start;
// where and in what it was to run is not.
func TestWhoIsToBlame(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name, program, dir string
		blame              bool
	}{
		{"a name that nothing has", "no-program-of-that-name", dir, true},
		{"a path that is not there", dir + "/missing", dir, true},
		{"a path from the folder", "./missing", dir, true},
		{"a file that may not be run", file("plain", "#!/bin/sh\n", 0o600), dir, true},
		{"a file that is no program", file("text", "hello", 0o700), dir, true},
		{"an interpreter that is not there", file("script", "#! "+dir+"/missing -x\n", 0o700), dir, true},
		{"a line that names none", file("empty", "#!\n", 0o700), dir, true},
		{"a folder that is not there", "/bin/sh", dir + "/missing", false},
		{"a folder that is none", "/bin/sh", filepath.Join(dir, "plain"), false},
	} {
		_, err := newBox(t).Start(t.Context(), Cmd{Argv: []string{tt.program}, Dir: tt.dir})
		if err == nil || errors.Is(err, ErrProgram) != tt.blame {
			t.Errorf("%s: %v, to blame: %v", tt.name, err, errors.Is(err, ErrProgram))
		}
	}
	unfit := New(Config{
		Confine: &Confinement{Roots: []string{dir}},
		Prepare: func(*Confinement) ([]string, error) { return nil, fs.ErrNotExist },
	})
	defer unfit.Close()
	if _, err := unfit.Start(t.Context(), Cmd{Argv: []string{"/bin/sh"}, Dir: dir}); err == nil || errors.Is(err, ErrProgram) {
		t.Errorf("a confinement that cannot be made: %v", err)
	}
}

// ended waits for a process and compares how it ended, but for how long it took.
func ended(t *testing.T, p *Process, want Exit) {
	t.Helper()
	exit, err := p.Wait()
	exit.Duration = 0
	if err != nil || !reflect.DeepEqual(exit, want) {
		t.Errorf("exit = %+v, %v; want %+v", exit, err, want)
	}
	if !groupGone(p.group.id) {
		t.Error("processes of the group are left")
	}
}

// quick fails the test when what it does takes much longer than a call may take
// to be cancelled, which is a second: a busy machine needs time of its own.
func quick(t *testing.T, what string, do func()) {
	t.Helper()
	if sum := termGrace + stuckGrace + drainGrace; sum > 700*time.Millisecond {
		t.Errorf("stopping may wait for %s", sum)
	}
	began := time.Now()
	do()
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("%s took %s", what, d)
	}
}

func TestTalk(t *testing.T) {
	b := newBox(t)
	var apart strings.Builder
	cmd := sh("echo ready >&2; while read -r l; do echo \"<$l>\"; done; echo over")
	cmd.PipeIn, cmd.PipeOut, cmd.Err = true, true, &apart
	p := start(t, b, cmd)
	answers := bufio.NewReader(p.Out())
	for _, say := range []string{"a", "b c", strings.Repeat("x", 100_000)} {
		if _, err := io.WriteString(p.In(), say+"\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := answers.ReadString('\n'); got != "<"+say+">\n" {
			t.Fatalf("said %.20q, heard %.20q, %v", say, got, err)
		}
	}
	if err := p.In().Close(); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(answers); string(rest) != "over\n" || err != nil {
		t.Errorf("at the end: %q, %v", rest, err)
	}
	ended(t, p, Exit{})
	if apart.String() != "ready\n" {
		t.Errorf("error output: %q", apart.String())
	}
	if err := p.Out().Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.In().Write([]byte("x")); err == nil {
		t.Error("a process that has ended took input")
	}
}

// What was written before the end can be read after it, and a process that still
// holds the output does not keep the reader waiting.
func TestOutAfterTheEnd(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for name, script := range map[string]string{
		"alone":           "echo last words",
		"child behind":    "sleep 600 & echo last words",
		"session outside": "setsid sleep 600 & echo last words",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(script, "setsid") {
				needs(t, "setsid")
			}
			cmd := sh(script)
			cmd.PipeOut = true
			p := start(t, b, cmd)
			defer func() { killMarked(p.mark) }()
			<-p.Exited()
			quick(t, "reading", func() {
				if got, err := io.ReadAll(p.Out()); string(got) != "last words\n" || err != nil {
					t.Errorf("read %q, %v", got, err)
				}
			})
			p.Out().Close()
		})
	}
}

func TestSignal(t *testing.T) {
	b := newBox(t)
	out := b.NewCapture()
	defer out.Close()
	cmd := sh("trap 'echo caught; exit 7' INT; echo up; while :; do sleep 0.01; done")
	cmd.PipeOut = true
	p := start(t, b, cmd)
	defer p.Out().Close()
	heard := bufio.NewReader(p.Out())
	if _, err := heard.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	if got, _ := heard.ReadString('\n'); got != "caught\n" {
		t.Errorf("heard %q", got)
	}
	ended(t, p, Exit{Code: 7})
	if err := p.Signal(syscall.SIGINT); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("after the end: %v", err)
	}
	for range 2 { // what has ended stays as it was
		if exit, err := p.Stop(); exit.Code != 7 || exit.Cancelled || err != nil {
			t.Errorf("stopped after the end: %+v, %v", exit, err)
		}
	}
}

func TestProcessStop(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for name, tt := range map[string]struct {
		script string
		want   Exit
	}{
		"polite":          {"echo up; sleep 600", Exit{Code: 143, Signal: "SIGTERM", Cancelled: true}},
		"stubborn":        {"trap '' TERM; echo up; sleep 600; sleep 600", Exit{Code: 137, Signal: "SIGKILL", Cancelled: true}},
		"blocked writing": {"trap '' TERM; echo up; yes", Exit{Code: 137, Signal: "SIGKILL", Cancelled: true}},
	} {
		for _, pty := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/pty=%v", name, pty), func(t *testing.T) {
				t.Parallel()
				cmd := sh(tt.script)
				up := make(chan struct{}, 1)
				cmd.Out = writer(func() {
					select {
					case up <- struct{}{}:
					default:
					}
				})
				if pty {
					cmd.PTY = &Size{80, 24}
				}
				p := start(t, b, cmd)
				<-up
				quick(t, "stopping", func() { _, _ = p.Stop() })
				// Whether a child that was killed lets go of the output within drainGrace
				// depends on how busy the machine is.
				exit, _ := p.Wait()
				want := tt.want
				want.Left = exit.Left
				ended(t, p, want)
			})
		}
	}
}

// Somebody who writes to a command that never reads is set free by its end.
func TestInputThatNobodyReads(t *testing.T) {
	b := newBox(t)
	for _, pty := range []bool{false, true} {
		cmd := sh("echo up; exec sleep 600")
		if pty {
			cmd.Argv[2] = "stty raw -echo; " + cmd.Argv[2]
			cmd.PTY = &Size{80, 24}
		}
		cmd.PipeIn = true
		up := make(chan struct{}, 1)
		cmd.Out = writer(func() {
			select {
			case up <- struct{}{}:
			default:
			}
		})
		p := start(t, b, cmd)
		<-up
		wrote := make(chan error)
		go func() {
			_, err := p.In().Write(bytes.Repeat([]byte("0123456789\n"), 1<<20))
			wrote <- err
		}()
		select {
		case err := <-wrote:
			t.Errorf("pty=%v: somebody read: %v", pty, err)
			continue
		case <-time.After(50 * time.Millisecond): // it is not the time that proves
		}
		quick(t, "stopping", func() {
			_, _ = p.Stop()
			if err := <-wrote; err == nil {
				t.Errorf("pty=%v: the write succeeded", pty)
			}
		})
	}
}

func TestTerminal(t *testing.T) {
	b := newBox(t)
	out := b.NewCapture()
	defer out.Close()
	cmd := sh(`[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size; read -r l; echo "got $l" >&2; stty size; cat >/dev/null; exit 5`)
	cmd.PTY, cmd.Out = &Size{Cols: 120, Rows: 40}, out
	p := start(t, b, cmd)
	if err := p.Resize(Size{Cols: 90, Rows: 30}); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(p.In(), "hello\n"); err != nil {
		t.Error(err)
	}
	waitFor(t, out, "30 90")
	if err := p.In().Close(); err != nil { // cat reads the end of its input
		t.Error(err)
	}
	ended(t, p, Exit{Code: 5})
	got := strings.ReplaceAll(text(out), "\r\n", "\n")
	got = strings.Replace(got, "hello\n", "", 1) // echoed whenever it arrived
	if got != "40 120\ngot hello\n30 90\n" && got != "30 90\ngot hello\n30 90\n" {
		t.Errorf("on the screen: %q", got)
	}
}

// needs skips a test on a machine without a program, unless DURE_REQUIRE names it.
func needs(t *testing.T, program string) {
	t.Helper()
	why := "it is not there"
	if path := Find(program); path != "" {
		if program != "cargo" {
			return
		}
		// It may only stand for toolchains of which this user has none.
		out, err := exec.Command(path, "--version").CombinedOutput()
		if err == nil {
			return
		}
		why = fmt.Sprintf("it does not run for this user: %v: %s", err, out)
	}
	prooftest.Lacking(t, program, why)
}

// eventually waits until a fact about other processes is there.
func eventually(t *testing.T, fact string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !is(); <-tick.C {
		if time.Since(began) > 60*time.Second {
			t.Fatal("it never came that " + fact)
		}
	}
}

// waitFor waits until the capture holds s.
func waitFor(t *testing.T, c *Capture, s string) {
	t.Helper()
	eventually(t, "the output holds "+s, func() bool { return strings.Contains(soFar(c), s) })
}

// All that comes out of a terminal is there, at whatever speed.
func TestTerminalFlood(t *testing.T) {
	b := newBox(t)
	const lines = 400_000
	sum, n := sha256.New(), 0
	cmd := sh("stty -opost; yes 0123456789abcdef | head -n " + strconv.Itoa(lines))
	cmd.PTY = &Size{80, 24}
	cmd.Out = writerFunc(func(p []byte) { sum.Write(p); n += len(p) })
	ended(t, start(t, b, cmd), Exit{})
	if want := sha256.Sum256(bytes.Repeat([]byte("0123456789abcdef\n"), lines)); [32]byte(sum.Sum(nil)) != want {
		t.Errorf("%d bytes came out, other than those that went in", n)
	}
}

// The jobs of a shell on a terminal have groups of their own, and die with it.
func TestTerminalSession(t *testing.T) {
	t.Parallel()
	needs(t, "bash") // for job control
	for name, end := range map[string]string{"of itself": "", "stopped": "sleep 600"} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			out := b.NewCapture()
			defer out.Close()
			cmd := sh(`set -m; (trap '' HUP TERM; sleep 600; true) & echo "job $!."; ` + end)
			cmd.Argv[0] = "bash"
			cmd.PTY, cmd.Out = &Size{80, 24}, out
			p := start(t, b, cmd)
			waitFor(t, out, ".")
			job := number(t, soFar(out), "job ", ".")
			if end != "" {
				if _, err := p.Stop(); err != nil {
					t.Error(err)
				}
			}
			if _, err := p.Wait(); err != nil {
				t.Error(err)
			}
			if job == p.group.id || !groupGone(job) {
				t.Errorf("group %d of the session is left", job)
			}
		})
	}
}

// soFar is text for a capture that is still written.
func soFar(c *Capture) string {
	page, _ := c.Page(0, memoryLimit)
	return string(page)
}

func number(t *testing.T, s, before, after string) int {
	t.Helper()
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestClosedBox(t *testing.T) {
	b := New(testConfig(t.TempDir()))
	var running []*Process
	for _, pty := range []*Size{nil, nil, {80, 24}} {
		cmd := sh("trap '' TERM HUP; sleep 600 & sleep 600")
		cmd.PTY = pty
		p, err := b.Start(t.Context(), cmd)
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, p)
	}
	quick(t, "closing", func() { b.Close() })
	for _, p := range running {
		select {
		case <-p.Exited():
		default:
			t.Error("the box did not wait")
		}
		ended(t, p, Exit{Code: 137, Signal: "SIGKILL"})
	}
	if _, err := b.Start(t.Context(), sh("true")); !errors.Is(err, ErrClosed) {
		t.Errorf("started in a closed box: %v", err)
	}
	b.Close()
}

// A program that is killed without notice takes a command on a terminal with it.
func TestTerminalDoesNotSurviveKillOfParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), `DURE_TEST_PARENT=trap '' TERM HUP; sleep 600 & echo $$; wait; wait; sleep 600`, "DURE_TEST_PTY=1")
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
	pgid := number(t, line+".", "", ".")
	if !groupAlive(pgid) {
		t.Fatal("the command does not run")
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if !groupGone(pgid) {
		t.Error("processes of the group have survived")
	}
}

func TestStartUnderContext(t *testing.T) {
	b := newBox(t)
	ctx, cancel := context.WithCancel(t.Context())
	p, err := b.Start(ctx, sh("sleep 600"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	quick(t, "ending", func() { ended(t, p, Exit{Code: 143, Signal: "SIGTERM", Cancelled: true}) })
	cmd := sh("sleep 600")
	cmd.Timeout = 20 * time.Millisecond
	ended(t, start(t, b, cmd), Exit{Code: 143, Signal: "SIGTERM", TimedOut: true})
}

type writerFunc func([]byte)

func (w writerFunc) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
