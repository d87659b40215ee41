package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"dure/agent"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

func TestMain(m *testing.M) {
	testscript.Main(prooftest.Many{M: m}, map[string]func(){"dure": func() { mortal(); main() }, "dure-lines": commandLines})
}

// atOnce is GORACE for programs that are started here: with the race detector in
// them they would wait a second at their end, each of them.
const atOnce = "atexit_sleep_ms=0"

// TestScripts runs the binary as a person does.
func TestScripts(t *testing.T) { scripts(t, "testdata/script") }

// TestProjects works in projects that were set up for another agent: their settings,
// hooks, skills, commands, agents and instructions mean here what they mean there.
func TestProjects(t *testing.T) { scripts(t, "testdata/projects") }

// scripts runs those of a folder. Each has a home and a workspace of its own, and
// nothing of the environment but PATH.
func scripts(t *testing.T, dir string) {
	t.Parallel()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatalf("asking go for its cache: %v", err)
	}
	cache := strings.TrimSpace(string(out))
	root := ""
	if os.Getenv("DURE_KEEP") != "" {
		root = prooftest.Kept(t)
	}
	testscript.Run(t, testscript.Params{
		Dir:         dir,
		WorkdirRoot: root,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("DURE_HOME", filepath.Join(env.WorkDir, "dure"))
			env.Setenv("LANG", "C.UTF-8")
			env.Setenv("GORACE", atOnce)
			env.Setenv("GOCACHE", cache) // the demo compiles its sample
			env.Cd = filepath.Join(env.WorkDir, "work")
			if err := os.MkdirAll(env.Cd, 0o700); err != nil {
				return err
			}
			env.Values[modelKey{}] = new(*script.Server)
			return os.MkdirAll(filepath.Join(env.WorkDir, "home"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"model":   model,
			"sparse":  sparse,
			"hex":     hex,
			"tmpfs":   tmpfs,
			"fifo":    fifo,
			"results": results,
			"asked":   asked,
			"ends":    ends,
			"talk":    talk,
			"told":    told,
		},
		// A run that hangs is killed then, with the stacks of its goroutines.
		Deadline:            time.Now().Add(15 * time.Minute),
		Condition:           condition,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// runLimit is more than any run of the binary in a script needs.
const runLimit = 3 * time.Minute

// trace is what no user is ever shown.
var trace = regexp.MustCompile(`goroutine \d+|panic:|runtime error|\.go:\d+`)

// exits CODE PROGRAM ARG... runs a program, wants the exit code, no stack trace
// and an end in good time.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program [arg...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	start := time.Now()
	err = ts.Exec(args[1], args[2:]...)
	took := time.Since(start)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("running %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	if m := trace.FindString(ts.ReadFile("stderr")); m != "" {
		ts.Fatalf("standard error holds %q", m)
	}
	if took > runLimit {
		ts.Fatalf("it took %s", took)
	}
}

// model FILE [KEY] starts the scripted model of a JSON file, and points the
// environment at it. With KEY it accepts no other key.
func model(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: model file [key]")
	}
	s, err := script.Parse([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	opts := script.Options{}
	if len(args) == 2 {
		opts.Key = args[1]
	}
	srv, err := script.NewServer(s, opts)
	ts.Check(err)
	ts.Defer(func() { _ = srv.Close() })
	*ts.Value(modelKey{}).(**script.Server) = srv
	ts.Setenv("ANTHROPIC_BASE_URL", srv.URL())
	ts.Setenv("ANTHROPIC_API_KEY", "scripted")
	ts.Setenv("DURE_MODEL", "script")
}

type modelKey struct{}

// ends SIGNAL CODE PROGRAM ARG... runs a program until the model has a request
// of it, sends it the signal, and wants the exit code within a minute. With -at FILE in
// front it waits for the file instead, and takes it away.
func ends(ts *testscript.TestScript, neg bool, args []string) {
	at := ""
	if len(args) > 1 && args[0] == "-at" {
		at, args = ts.MkAbs(args[1]), args[2:]
	}
	if neg || len(args) < 3 {
		ts.Fatalf("usage: ends [-at file] signal code program [arg...]")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	signal := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill}[args[0]]
	srv := *ts.Value(modelKey{}).(**script.Server)
	before := len(srv.Requests())
	ready := func() bool { return len(srv.Requests()) > before }
	if at != "" {
		ready = func() bool { return os.Remove(at) == nil }
	}

	var out, stderr bytes.Buffer
	cmd := exec.Command(lookPath(ts, args[2]), args[3:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), &out, &stderr
	for _, name := range []string{
		"PATH", "HOME", "DURE_HOME", "LANG", "DURE_MODEL", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "TMPDIR", "GORACE",
	} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	ts.Check(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	asked := time.NewTicker(5 * time.Millisecond)
	defer asked.Stop()
	limit := time.After(runLimit)
	for !ready() {
		select {
		case <-asked.C:
		case <-done:
			ts.Fatalf("it ended before its time\n%s%s", out.Bytes(), stderr.Bytes())
		case <-limit:
			_ = cmd.Process.Kill()
			ts.Fatalf("it did not get as far as that\n%s%s", out.Bytes(), stderr.Bytes())
		}
	}
	ts.Check(cmd.Process.Signal(signal))
	select {
	case <-done:
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		ts.Fatalf("it did not end in a minute after the signal")
	}
	ts.Logf("%s%s", out.Bytes(), stderr.Bytes())
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	if m := trace.Find(stderr.Bytes()); m != nil {
		ts.Fatalf("standard error holds %q", m)
	}
}

// asked waits until the model has a request of a program in the background.
func asked(ts *testscript.TestScript, neg bool, args []string) {
	srv := *ts.Value(modelKey{}).(**script.Server)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	limit := time.After(runLimit)
	for len(srv.Requests()) == 0 {
		select {
		case <-look.C:
		case <-limit:
			ts.Fatalf("nobody asked the model")
		}
	}
}

// lookPath finds a program in the script's PATH.
func lookPath(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
	}
	ts.Fatalf("no program %s", name)
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sparse FILE SIZE makes a file of that many bytes that takes no room.
func sparse(ts *testscript.TestScript, neg bool, args []string) {
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(f.Truncate(size))
	ts.Check(f.Close())
}

// hex FILE DIGITS... makes a file of bytes.
func hex(ts *testscript.TestScript, neg bool, args []string) {
	var data []byte
	for _, d := range args[1:] {
		b, err := strconv.ParseUint(d, 16, 8)
		ts.Check(err)
		data = append(data, byte(b))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}

// condition answers [root], [mount] and [tool:NAME]. A tool that DURE_REQUIRE
// names has to be there.
func condition(name string) (bool, error) {
	if tool, ok := strings.CutPrefix(name, "tool:"); ok {
		_, err := exec.LookPath(tool)
		if err != nil && prooftest.Required(tool) {
			return false, fmt.Errorf("%s is required: %w", tool, err)
		}
		return err == nil, nil
	}
	if name == "mount" {
		ok := mayMount()
		if !ok && prooftest.Required("mount") {
			return false, errors.New("mounting is required, and not permitted here")
		}
		return ok, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// told PATTERN wants a request to the model that has it in its JSON; ! told wants none.
func told(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: told pattern")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	n := 0
	for _, r := range (*ts.Value(modelKey{}).(**script.Server)).Requests() {
		if want.Match(r.Body) {
			n++
		}
	}
	if neg == (n > 0) {
		ts.Fatalf("%d requests have %q", n, args[0])
	}
}

// results FILE WANT... reads a log of events as JSON lines, and wants its calls
// to have come out like this, in order: ok, or the code of an error.
func results(ts *testscript.TestScript, neg bool, args []string) {
	var got []string
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var e agent.Event
		ts.Check(json.Unmarshal([]byte(line), &e))
		switch f, ok := e.Body.(agent.CallFinished); {
		case !ok:
		case f.Result.Error != nil:
			got = append(got, string(f.Result.Error.Code))
		default:
			got = append(got, string(f.Result.Status))
		}
	}
	if !slices.Equal(got, args[1:]) {
		ts.Fatalf("the calls came out as\n\t%s\nand not\n\t%s", strings.Join(got, " "), strings.Join(args[1:], " "))
	}
}
