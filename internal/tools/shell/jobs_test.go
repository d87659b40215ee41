//go:build unix

package shell

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
)

// rig is a Shell with a session that takes what it settles.
type rig struct {
	*Shell
	t       *testing.T
	mark    string                // NAME=value in the environment of all commands
	settled chan agent.Settlement // with their streams read into Text
}

func newRig(t *testing.T, c Config) *rig {
	r := &rig{t: t, mark: "RIG=" + rand.Text(), settled: make(chan agent.Settlement, 200)}
	c.Box = sandbox.New(sandbox.Config{Temp: t.TempDir()})
	c.Env, c.Path = append(c.Env, append(testEnv, r.mark)...), "/bin/sh"
	if c.Settle == nil {
		c.Settle = func(_ context.Context, s agent.Settlement) error {
			r.settled <- read(s)
			return nil
		}
	}
	r.Shell = New(c)
	t.Cleanup(func() { r.Close(); c.Box.Close() })
	return r
}

// read is what the guard does with a stream.
func read(s agent.Settlement) agent.Settlement {
	if s.Result.Stream != nil {
		b, err := io.ReadAll(s.Result.Stream)
		if err = errors.Join(err, s.Result.Stream.Close()); err != nil {
			b = []byte(err.Error())
		}
		s.Result.Text, s.Result.Stream = string(b), nil
	}
	return s
}

func (r *rig) call(tool string, input any) agent.Result {
	r.t.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, t := range r.Tools() {
		if t.Spec().Name == tool {
			return runTool(r.t, r.t.Context(), t, r.t.TempDir(), string(data))
		}
	}
	r.t.Fatal("no tool " + tool)
	return agent.Result{}
}

type in map[string]any

// begin starts a command in the background and returns its handle.
func (r *rig) begin(command string) string {
	r.t.Helper()
	res := r.call("bash__exec", in{"command": command, "run_in_background": true})
	if res.Status != agent.StatusPending {
		r.t.Fatalf("result = %+v", res)
	}
	return res.Handle
}

// next returns what is settled next.
func (r *rig) next() agent.Settlement {
	r.t.Helper()
	select {
	case s := <-r.settled:
		return s
	case <-time.After(10 * time.Second):
		r.t.Fatal("nothing was settled")
		return agent.Settlement{}
	}
}

// answer is a look at a task.
type answer struct {
	taskAnswer
	page string // what the page had
	text string
}

func (r *rig) look(input in) answer {
	r.t.Helper()
	res := r.call("task__output", input)
	if res.Failed() {
		r.t.Fatalf("looking at %v: %s", input, res.Text)
	}
	a := answer{text: res.Text}
	if err := json.Unmarshal(res.Output, &a.taskAnswer); err != nil {
		r.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(res.Text, "\n")
	if strings.HasPrefix(rest, "[") && strings.HasSuffix(strings.SplitN(rest, "\n", 2)[0], "were not kept]") {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	a.page = rest[:a.NextOffset-a.Offset]
	return a
}

// left counts the processes that carry the mark of the rig. Dead ones have no
// environment.
func (r *rig) left() int { return carrying(r.mark) }

func carrying(mark string) int {
	n := 0
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if env, _ := os.ReadFile(f); bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00")) {
			n++
		}
	}
	return n
}

func (r *rig) nothingLeft() {
	r.t.Helper()
	eventually(r.t, "the processes are gone", func() bool { return r.left() == 0 })
}

// patience is what a test has for what takes a second at most: a busy machine
// needs time of its own.
const patience = 30 * time.Second

// eventually waits until a fact about other processes is there.
func eventually(t *testing.T, fact string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !is(); <-tick.C {
		if time.Since(began) > 10*time.Second {
			t.Fatal("it never came that " + fact)
		}
	}
}

func TestJob(t *testing.T) {
	r := newRig(t, Config{})
	var spawned agent.Process
	ctx := agent.WithCallEnv(t.Context(), agent.CallEnv{Spawned: func(p agent.Process) { spawned = p }})
	began := runTool(t, ctx, r.Tools()[0], "/", `{"command":"echo hi; echo oops >&2; exit 3","run_in_background":true}`)
	h := began.Handle
	want := agent.Result{
		Status: agent.StatusPending, Handle: h,
		Text:   "The command runs in the background as " + h + ". You will be told when it ends; meanwhile, TaskOutput shows what it has printed and TaskStop stops it.",
		Output: json.RawMessage(`{"stdout":"","stderr":"","interrupted":false,"exitCode":0,"backgroundTaskId":"` + h + `"}`),
	}
	if fmt.Sprintf("%+v", began) != fmt.Sprintf("%+v", want) || !strings.HasPrefix(h, "job:") {
		t.Errorf("began: %+v\nwant   %+v", began, want)
	}
	if spawned.PID == 0 {
		t.Error("the process was not recorded before the call returned")
	}
	s := r.next()
	if s.Handle != h || s.Result.Status != agent.StatusError || s.Result.Text != "hi\noops\nexit code 3" || s.Result.Error.Code != agent.ErrTool ||
		string(s.Result.Output) != `{"stdout":"hi\noops\n","stderr":"","interrupted":false,"exitCode":3}` {
		t.Errorf("settled: %+v", s)
	}
	a := r.look(in{"task_id": h})
	if a.Status != failed || *a.ExitCode != 3 || a.page != "hi\noops\n" || !strings.Contains(a.text, ": exit code 3\nhi\n") || !strings.HasSuffix(a.text, "[that is all so far: 8 bytes]") {
		t.Errorf("looked: %+v", a)
	}
	if a := r.look(in{"task_id": strings.TrimPrefix(h, "job:")}); a.page != "" || !strings.HasSuffix(a.text, "\n[nothing new]") {
		t.Errorf("looked again: %+v", a)
	}
	if a := r.look(in{"task_id": h, "offset": 4}); a.page != "oops\n" || a.Offset != 3 {
		t.Errorf("looked at the second line: %+v", a)
	}
	r.Close()
	if len(r.settled) != 0 {
		t.Errorf("settled twice: %+v", r.next())
	}
}

// A job is told of what it says while it runs, and its unfinished line only when
// there is nothing else.
func TestLooksAtARunningJob(t *testing.T) {
	r := newRig(t, Config{})
	dir := t.TempDir()
	step := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wait := func(name string) string { return "while [ ! -e " + dir + "/" + name + " ]; do sleep 0.01; done; " }
	h := r.begin("printf 'one\ntwo\nPass'; " + wait("a") + "printf 'word: '; " + wait("b") + "echo; echo end")
	until := func(size int64) {
		t.Helper()
		eventually(t, "it has printed that", func() bool {
			return r.look(in{"task_id": h, "block": false, "offset": 0}).Size >= size
		})
	}
	type seen struct {
		page       string
		next       int64
		unfinished bool
	}
	look := func(want seen) {
		t.Helper()
		a := r.look(in{"task_id": h, "block": false})
		got := seen{a.page, a.NextOffset, strings.Contains(a.text, "\nPassword: \n[a line that is not finished yet]") || strings.Contains(a.text, "\nPass\n[a line that is not finished yet]")}
		if got != want {
			t.Errorf("saw %+v, want %+v:\n%s", got, want, a.text)
		}
	}
	until(12)
	look(seen{"one\ntwo\n", 8, false})
	look(seen{"", 8, true})
	step("a")
	until(18)
	look(seen{"", 8, true})
	step("b")
	a := r.look(in{"task_id": h})
	if a.Status != completed || a.page != "Password: \nend\n" {
		t.Errorf("at the end: %+v", a)
	}
}

// What a job prints is all in the pages, each once, and in what is settled.
func TestWholeOutput(t *testing.T) {
	size := 3 << 20
	if prooftest.Long() {
		size = 200 << 20
	}
	r := newRig(t, Config{})
	h := r.begin(fmt.Sprintf("yes 'a line of text' | head -c %d", size))
	want := bytes.Repeat([]byte("a line of text\n"), size/15+1)[:size]
	var got bytes.Buffer
	for {
		a := r.look(in{"task_id": h, "block": false})
		got.WriteString(a.page)
		if len(a.text) > pageBudget {
			t.Fatalf("a page of %d bytes", len(a.text))
		}
		if a.Status != running && a.NextOffset == a.Size {
			break
		}
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the pages have %d bytes of %d, or others", got.Len(), size)
	}
	if s := r.next(); s.Result.Failed() || sha256.Sum256([]byte(s.Result.Text)) != sha256.Sum256(want) {
		t.Errorf("%d bytes were settled of %d, or others", len(s.Result.Text), size)
	}
}

// A job that floods takes bounded memory.
func TestFlood(t *testing.T) {
	size := 64 << 20
	if prooftest.Long() {
		size = 1 << 30
	}
	settled := make(chan int64, 1)
	r := newRig(t, Config{Settle: func(_ context.Context, s agent.Settlement) error {
		n, err := io.Copy(io.Discard, s.Result.Stream)
		settled <- n
		return errors.Join(err, s.Result.Stream.Close())
	}})
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	peak := before.HeapAlloc
	began := time.Now()
	h := r.begin(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size))
	var n int64
	for tick := time.NewTicker(10 * time.Millisecond); n == 0; {
		select {
		case n = <-settled:
		case <-tick.C:
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
	}
	t.Logf("%d MiB in %s: %d KiB of heap more", size>>20, time.Since(began).Round(time.Millisecond), (peak-before.HeapAlloc)>>10)
	if peak-before.HeapAlloc > 8<<20 {
		t.Errorf("it took %d bytes of memory", peak-before.HeapAlloc)
	}
	if size <= 256<<20 && n != int64(size) {
		t.Errorf("%d bytes were settled", n)
	}
	if a := r.look(in{"task_id": h}); a.Size != int64(size) {
		t.Errorf("looked: %d bytes", a.Size)
	}
}

func TestWaiting(t *testing.T) {
	r := newRig(t, Config{})
	h := r.begin("echo up; sleep 600")
	if a := r.look(in{"task_id": h, "timeout": 30}); a.Status != running {
		t.Errorf("looked: %+v", a)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	res := runTool(t, ctx, r.Tools()[2], "/", `{"task_id":"`+h+`"}`)
	if res.Error == nil || res.Error.Code != agent.ErrAborted || time.Since(began) > patience {
		t.Errorf("cancelled: %+v after %s", res, time.Since(began))
	}
	timed := r.call("bash__exec", in{"command": "sleep 600", "run_in_background": true, "timeout": 50})
	if !strings.Contains(timed.Text, ", for at most 50ms.") {
		t.Errorf("began: %s", timed.Text)
	}
	if a := r.look(in{"task_id": timed.Handle}); a.Status != failed || !strings.Contains(a.text, "took longer than 50ms") {
		t.Errorf("looked: %+v", a)
	}
	if s := r.next(); s.Handle != timed.Handle || s.Result.Error.Code != agent.ErrTimeout {
		t.Errorf("settled: %+v", s)
	}
}

func TestTaskStop(t *testing.T) {
	r := newRig(t, Config{})
	for name, input := range map[string]in{
		"stubborn": {"command": "trap '' TERM HUP; echo up; sleep 600; sleep 600", "run_in_background": true},
		"terminal": {"command": "trap '' TERM HUP; sleep 600 & echo up; cat", "run_in_background": true, "pty": true},
		"flood":    {"command": "echo up; yes", "run_in_background": true},
	} {
		t.Run(name, func(t *testing.T) {
			h := r.call("bash__exec", input).Handle
			eventually(t, "it is up", func() bool {
				return strings.Contains(r.look(in{"task_id": h, "block": false, "offset": 0}).text, "up")
			})
			began := time.Now()
			res := r.call("task__stop", in{"task_id": h})
			if d := time.Since(began); d > patience {
				t.Errorf("stopping took %s", d)
			}
			if res.Failed() || !strings.HasPrefix(res.Text, h+" was stopped after ") || !strings.Contains(res.Text, "echo up") {
				t.Errorf("stopped: %+v", res)
			}
			if res = r.call("task__stop", in{"task_id": h}); res.Failed() || !strings.HasPrefix(res.Text, h+" had been stopped before: ") {
				t.Errorf("stopped again: %+v", res)
			}
			if s := r.next(); s.Handle != h || s.Result.Error.Code != agent.ErrAborted {
				t.Errorf("settled: %s, %v", s.Handle, s.Result.Error)
			}
			if a := r.look(in{"task_id": h}); a.Status != stopped {
				t.Errorf("looked: %s", a.Status)
			}
			r.nothingLeft()
		})
	}
	h := r.begin("true")
	r.next()
	if res := r.call("task__stop", in{"task_id": h}); !strings.Contains(res.Text, " had ended by itself after ") {
		t.Errorf("stopped after its end: %+v", res)
	}
}

func TestTooManyJobs(t *testing.T) {
	past := agent.Result{Status: agent.StatusOK, Text: "as it was settled"}
	r := newRig(t, Config{Past: func(string) (agent.Result, bool) { return past, true }})
	first := r.begin("echo first")
	r.next()
	for range maxRemembered {
		r.begin("true")
		r.next()
	}
	r.mu.Lock()
	known := len(r.jobs)
	r.mu.Unlock()
	if known > maxRemembered {
		t.Errorf("%d jobs are remembered", known)
	}
	if a := r.look(in{"task_id": first}); a.text != first+": completed\nas it was settled" {
		t.Errorf("a job that was forgotten: %q", a.text)
	}
	for range maxRunning {
		r.begin("sleep 600")
	}
	res := r.call("bash__exec", in{"command": "true", "run_in_background": true})
	if !res.Failed() || !strings.HasPrefix(res.Text, "16 commands already run in the background: job:") {
		t.Errorf("one too many: %+v", res)
	}
}

func TestTasksOfOthers(t *testing.T) {
	gone := agent.Failure(agent.ErrLost, "The program ended while it was running.", "")
	r := newRig(t, Config{
		Past: func(h string) (agent.Result, bool) {
			switch h {
			case "job:settled":
				return agent.Failure(agent.ErrTool, "exit code 3", ""), true
			case "job:lost":
				return gone, true
			}
			return agent.Result{}, false
		},
		Other: func(_ context.Context, h string, d time.Duration) (agent.Result, bool) {
			return agent.OK(fmt.Sprintf("%s, %s", h, d)), h == "child:x"
		},
		StopOther: func(_ context.Context, h string) (agent.Result, bool) {
			return agent.OK("stopped " + h), h == "child:x"
		},
	})
	for _, tt := range []struct {
		tool  string
		input in
		text  string
	}{
		{"task__output", in{"task_id": "job:settled"}, "job:settled: failed\nexit code 3"},
		{"task__output", in{"task_id": "lost"}, "job:lost: lost\nThe program ended while it was running."},
		{"task__output", in{"task_id": "child:x", "timeout": 5000}, "child:x, 5s"},
		{"task__output", in{"task_id": "child:x", "block": false}, "child:x, 0s"},
		{"task__output", in{"task_id": "child:y"}, "there is no task \"child:y\"\nNothing has been started in the background yet."},
		{"task__stop", in{"task_id": "job:lost"}, "job:lost had ended before (lost)."},
		{"task__stop", in{"task_id": "child:x"}, "stopped child:x"},
		{"task__stop", in{"task_id": "nothing"}, "there is no task \"nothing\"\nNothing has been started in the background yet."},
	} {
		if res := r.call(tt.tool, tt.input); res.Text != tt.text {
			t.Errorf("%s %v: %q, want %q", tt.tool, tt.input, res.Text, tt.text)
		}
	}
	h := r.begin("sleep 600")
	if res := r.call("task__stop", in{"task_id": "nothing"}); !strings.HasSuffix(res.Text, "The latest tasks: "+h+" (running).") {
		t.Errorf("known tasks: %q", res.Text)
	}
}

// Closing stops and settles everything, once, and leaves nothing behind.
func TestClose(t *testing.T) {
	r := newRig(t, Config{})
	for _, pty := range []bool{false, true, false, true} {
		res := r.call("bash__exec", in{"command": "trap '' TERM HUP; sleep 600 & sleep 600; sleep 600", "run_in_background": true, "pty": pty})
		if res.Failed() {
			t.Fatal(res.Text)
		}
	}
	began := time.Now()
	r.Close()
	if d := time.Since(began); d > patience {
		t.Errorf("closing took %s", d)
	}
	if len(r.settled) != 4 {
		t.Errorf("%d jobs were settled", len(r.settled))
	}
	r.nothingLeft()
	if res := r.call("bash__exec", in{"command": "true", "run_in_background": true}); !res.Failed() || res.Error.Code != agent.ErrAborted {
		t.Errorf("after closing: %+v", res)
	}
	r.Close()
}

// An outcome that the session does not take is offered once, and can be looked at.
func TestSettleMayFail(t *testing.T) {
	var calls atomic.Int32
	r := newRig(t, Config{Settle: func(_ context.Context, s agent.Settlement) error {
		calls.Add(1)
		return errors.New("the log is full")
	}})
	h := r.begin("echo hi")
	if a := r.look(in{"task_id": h}); a.Status != completed || a.page != "hi\n" {
		t.Errorf("looked: %+v", a)
	}
	r.Close()
	if calls.Load() != 1 {
		t.Errorf("settled %d times", calls.Load())
	}
}

// Closing waits for a session that is slow to take an outcome, not for ever.
func TestSettleMayHang(t *testing.T) {
	if !prooftest.Long() {
		t.Skip("takes the whole of settleGrace; DURE_LONG=1 runs it")
	}
	r := newRig(t, Config{Settle: func(ctx context.Context, _ agent.Settlement) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	r.begin("echo hi")
	began := time.Now()
	r.Close()
	if d := time.Since(began); d < settleGrace || d > settleGrace+patience {
		t.Errorf("closing took %s", d)
	}
}

// TestMain turns the test binary into a program with jobs that can be killed.
func TestMain(m *testing.M) {
	if mark := os.Getenv("DURE_TEST_JOBS"); mark != "" {
		s := New(Config{
			Box: sandbox.New(sandbox.Config{}), Env: append(testEnv, mark), Path: "/bin/sh",
			Settle: func(context.Context, agent.Settlement) error { return nil },
		})
		for _, input := range []string{
			`{"command":"trap '' TERM HUP; sleep 600 & sleep 600; true","run_in_background":true}`,
			`{"command":"trap '' TERM HUP; sleep 600 & sleep 600; true","run_in_background":true,"pty":true}`,
		} {
			if _, err := s.Tools()[0].Run(context.Background(), agent.ToolContext{Workdir: "/"}, agent.Call{Input: json.RawMessage(input)}); err != nil {
				fmt.Println(err)
			}
		}
		fmt.Println("up")
		select {}
	}
	os.Exit(m.Run())
}

// When the program is killed without notice, its jobs die with it.
func TestNoJobSurvivesKillOfProgram(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("no /proc to look for processes in")
	}
	mark := "RIG=" + rand.Text()
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), "DURE_TEST_JOBS="+mark)
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	up := make([]byte, 3)
	if _, err := io.ReadFull(out, up); err != nil || string(up) != "up\n" {
		t.Errorf("it says %q, %v", up, err)
	}
	defer func() { _ = program.Process.Kill(); _ = program.Wait() }()
	eventually(t, "two shells and four sleeps run", func() bool { return carrying(mark) == 6 })
	_ = program.Process.Kill()
	_ = program.Wait()
	eventually(t, "all are gone", func() bool { return carrying(mark) == 0 })
}
