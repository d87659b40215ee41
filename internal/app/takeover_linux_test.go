package app_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// A lock file that names a process which does not have the lock ends nobody: the
// number may have been given to another one, or somebody has written it there.
func TestTakeoverOfSomebodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	c := w.program(options(w.work, w.home, w.model.URL(), app.Flags{})).Client()
	s, err := c.Open(t.Context(), agent.Open{New: "one", Workdir: w.work, Title: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	innocent := exec.Command("sleep", "600")
	if err := innocent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = innocent.Process.Kill(), innocent.Wait() }()

	locks, err := filepath.Glob(filepath.Join(w.home, "dure", "sessions", "*", "one", "lock"))
	if err != nil || len(locks) != 1 {
		t.Fatal(locks, err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	note := fmt.Sprintf(`{"pid":%d,"host":%q,"since":%q}`+"\n", innocent.Process.Pid, host, time.Now().UTC().Format(time.RFC3339Nano))
	lock := flock.New(locks[0])
	if _, err := lock.TryLock(); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := os.WriteFile(locks[0], []byte(note), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = c.Open(t.Context(), agent.Open{Session: "one", Takeover: true})
	if p, ok := errors.AsType[*agent.Problem](err); !ok || p.Code != agent.ProblemAlive {
		t.Errorf("%v", err)
	}
	if ended, err := syscall.Wait4(innocent.Process.Pid, nil, syscall.WNOHANG, nil); ended != 0 || err != nil {
		t.Errorf("the process has ended: %d, %v", ended, err)
	}
}
