//go:build unix

package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/extend/mcp/servers"
	"dure/internal/safety/sandbox"
)

// boxed starts servers as the program does.
func boxed(t *testing.T, env ...string) func(context.Context, servers.Server, io.Writer) (io.ReadWriteCloser, error) {
	box := sandbox.New(sandbox.Config{Temp: t.TempDir()})
	t.Cleanup(func() { _ = box.Close() })
	return func(ctx context.Context, s servers.Server, errs io.Writer) (io.ReadWriteCloser, error) {
		all := append(os.Environ(), env...)
		for k, v := range s.Env {
			all = append(all, k+"="+v)
		}
		p, err := box.Start(ctx, sandbox.Cmd{Argv: append([]string{s.Command}, s.Args...), Dir: t.TempDir(), Env: all, PipeIn: true, PipeOut: true, Err: errs})
		if err != nil {
			return nil, err
		}
		return process{p}, nil
	}
}

type process struct{ p *sandbox.Process }

func (p process) Read(b []byte) (int, error)  { return p.p.Out().Read(b) }
func (p process) Write(b []byte) (int, error) { return p.p.In().Write(b) }

func (p process) Close() error {
	_, err := p.p.Stop()
	return errors.Join(err, p.p.Out().Close())
}

// gone waits until no process has a number any more.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(slow); time.Now().Before(end); {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) || isZombie(pid) {
			return
		}
		wait(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

// isZombie reports whether nothing is left of a process but its number, which some
// parent has yet to take.
func isZombie(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.HasPrefix(rest, "Z")
}

func wait(d time.Duration) { <-time.After(d) }

// heard gets a token when a program says that it hangs.
type heard chan struct{}

func (h heard) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(hanging)) {
		h <- struct{}{}
	}
	return len(p), nil
}

// A process that is killed, ends itself or hangs costs one call; the next one has a new
// process, and nothing is left of any of them.
func TestProcesses(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	start, hangs := boxed(t), make(heard, 1)
	s := r.open(Config{
		Start: func(ctx context.Context, s servers.Server, errs io.Writer) (io.ReadWriteCloser, error) {
			return start(ctx, s, io.MultiWriter(errs, hangs))
		},
		Servers: []servers.Server{{Name: "p", Type: servers.Stdio, Command: self, Env: map[string]string{"DURE_MCP_SERVER": "tools"}}},
	})
	var all []int
	pids := func() (server int) {
		t.Helper()
		for end := time.Now().Add(slow); time.Now().Before(end); {
			r := run(t, s, "mcp__p__t", `{}`)
			if r.Failed() && r.Error.Code == agent.ErrMCPUnavailable { // it is being started again
				wait(100 * time.Millisecond)
				continue
			}
			var child int
			if _, err := fmt.Sscan(r.Text, &server, &child); err != nil {
				t.Fatalf("got %q", r.Text)
			}
			all = append(all, server, child)
			return server
		}
		t.Fatalf("it did not come back: %+v", s.Status())
		return 0
	}
	first := pids()
	wants(t, run(t, s, "mcp__p__t", `{"how":"die"}`), agent.ErrMCPUnavailable, "something is wrong: I give up")
	gone(t, first)
	second := pids()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan agent.Result)
	go func() { done <- runIn(ctx, t, s, "mcp__p__t", `{"how":"hang"}`) }()
	<-hangs
	if err := syscall.Kill(second, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Error == nil || r.Error.Code != agent.ErrMCPUnavailable {
		t.Errorf("the call that was running got %+v", r)
	}
	cancel()
	third := pids()
	if err := syscall.Kill(third, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.Close()
	for _, pid := range all {
		gone(t, pid)
	}
}
