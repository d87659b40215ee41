//go:build unix

package shell

import (
	"encoding/json"
	"errors"
	"fmt"
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
	"dure/internal/safety/sandbox"
)

func TestProcessList(t *testing.T) {
	r := newRig(t, Config{})
	name := "12345" + strconv.Itoa(os.Getpid())
	h := r.begin("sleep " + name + "; true")
	var row string
	eventually(t, "it is listed", func() bool {
		for line := range strings.Lines(r.call("process__list", in{"filter": "SLEEP " + name}).Text) {
			if f := strings.Fields(line); len(f) == 9 && f[7] == "sleep" && f[8] == name {
				row = line
			}
		}
		return row != ""
	})
	fields := strings.Fields(row) // pid ppid date time cpu memory unit command
	started, err := time.ParseInLocation(time.DateTime, fields[2]+" "+fields[3], time.Local)
	if d := time.Since(started); err != nil || d < -2*time.Second || d > time.Minute {
		t.Errorf("started %s ago, %v: %s", d, err, row)
	}
	pid, _ := strconv.Atoi(fields[0])
	if res := r.call("process__signal", in{"pid": pid, "signal": "KILL"}); res.Text != fmt.Sprintf("Sent KILL to process %d.", pid) {
		t.Errorf("signalled: %+v", res)
	}
	if a := r.look(in{"task_id": h}); a.Status != completed {
		t.Errorf("the shell behind it: %+v", a)
	}
	if res := r.call("process__list", in{"filter": "no such " + name}); !strings.HasPrefix(res.Text, "None of the ") {
		t.Errorf("nothing matches: %q", res.Text)
	}
}

// The list shows what others gave their commands: it is asked about.
func TestTheProcessListIsPrivate(t *testing.T) {
	s := New(Config{Box: sandbox.New(sandbox.Config{})})
	e, err := s.processList().Plan(t.Context(), agent.ToolContext{}, agent.Call{Input: json.RawMessage(`{}`)})
	if err != nil || !e.Sensitive || (len(e.Runs) > 0) != (listCommand != nil) {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestSignalsThatAreRefused(t *testing.T) {
	r := newRig(t, Config{})
	for _, tt := range []struct {
		name  string
		pid   int
		code  agent.ErrorCode
		gives string
	}{
		{"the first process", 1, agent.ErrInput, "1 is no process that can be sent a signal"},
		{"a group", -os.Getpid(), agent.ErrInput, " is no process that can be sent a signal"},
		{"everybody", -1, agent.ErrInput, "-1 is no process that can be sent a signal"},
		{"ourselves", os.Getpid(), agent.ErrDenied, "it is this program itself"},
		{"our parent", os.Getppid(), agent.ErrDenied, "this program runs inside it"},
		{"nobody", 1 << 29, agent.ErrInput, "there is no such process"},
	} {
		if tt.pid == 1 && tt.name == "our parent" {
			continue
		}
		res := r.call("process__signal", in{"pid": tt.pid, "signal": "CONT"})
		if res.Error == nil || res.Error.Code != tt.code || !strings.Contains(res.Text, tt.gives) {
			t.Errorf("%s: %+v", tt.name, res)
		}
	}
	tool := r.Tools()[5]
	got, err := tool.Plan(t.Context(), agent.ToolContext{}, call(tool, `{"pid":77}`))
	if want := (agent.Effects{Commands: []agent.SimpleCommand{{Argv: []string{"kill", "-s", "TERM", "77"}}}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("effects %+v, %v", got, err)
	}
}

// A process of another user is left alone even where the system would permit it.
func TestSignalToAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		if err := mayEnd(1); !errors.Is(err, errStranger) && !errors.Is(err, errAncestor) {
			t.Errorf("process 1: %v", err)
		}
		return
	}
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		prooftest.Lacking(t, "root", err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := mayEnd(cmd.Process.Pid); !errors.Is(err, errStranger) {
		t.Errorf("%v", err)
	}
}

func TestEnvironment(t *testing.T) {
	bin := t.TempDir()
	for name, script := range map[string]string{
		"git":  "#!/bin/sh\necho git version 9.8.7; echo more",
		"node": "#!/bin/sh\nsleep 600",
		"make": "#!/bin/sh\nexit 3",
		"go":   "#!/bin/sh\necho $1 $GOTOOLCHAIN $PWD",
		"rg":   "#!/no/such/program",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", bin)
	r := newRig(t, Config{Env: []string{"LANG=ko_KR.UTF-8", "SECRET_ONE=hunter2"}})
	r.Env = append(r.Env, "PATH="+path)
	tool := r.Tools()[6]
	effects := func() [][]string {
		e, err := tool.Plan(t.Context(), agent.ToolContext{}, call(tool, `{}`))
		if err != nil {
			t.Fatal(err)
		}
		return e.Runs
	}
	want := [][]string{{"git", "--version"}, {"go", "version"}, {"node", "--version"}, {"make", "--version"}, {"rg", "--version"}}
	if got := effects(); !reflect.DeepEqual(got, want) {
		t.Errorf("it would run %q", got)
	}
	began := time.Now()
	res := r.call("environment__info", in{})
	if d := time.Since(began); d > versionTimeout+patience {
		t.Errorf("took %s", d)
	}
	var m environment
	if err := json.Unmarshal(res.Output, &m); err != nil {
		t.Fatal(err)
	}
	programs := []string{
		"git: git version 9.8.7", "go: version local /", "node: there, and does not answer",
		"make: there, and cannot tell its version", "rg: there, and cannot be started",
	}
	if !slices.Equal(m.Programs, programs) {
		t.Errorf("programs %q", m.Programs)
	}
	if m.CPUs < 1 || m.Memory < 1<<20 || m.DiskFree == 0 || m.Git || m.Locale != "ko_KR.UTF-8" || m.Shell != "/bin/sh" || !slices.Contains(m.Variables, "SECRET_ONE") {
		t.Errorf("machine %+v", m)
	}
	if strings.Contains(res.Text+string(res.Output), "hunter2") || !strings.Contains(res.Text, "locale: ko_KR.UTF-8\n") {
		t.Errorf("text:\n%s", res.Text)
	}
	if got := effects(); got != nil {
		t.Errorf("the second time it would run %q", got)
	}
	if res := r.call("environment__info", in{}); res.Failed() || !strings.Contains(res.Text, "git version 9.8.7") {
		t.Errorf("the second time:\n%s", res.Text)
	}
}
