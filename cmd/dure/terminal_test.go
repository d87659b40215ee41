//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// seen waits until a terminal has shown a text, and returns all that it showed.
func seen(t *testing.T, f io.Reader, want string) string {
	t.Helper()
	found := make(chan string, 1)
	go func() { // ends with the terminal
		var all []byte
		for b := make([]byte, 1024); ; {
			n, err := f.Read(b)
			all = append(all, b[:n]...)
			if err != nil || bytes.Contains(all, []byte(want)) {
				found <- string(all)
				return
			}
		}
	}()
	select {
	case s := <-found:
		if !strings.Contains(s, want) {
			t.Fatalf("it ended without %q:\n%s", want, s)
		}
		return s
	case <-time.After(runLimit):
		t.Fatalf("%q did not come", want)
		return ""
	}
}

// A key that is typed is not shown, and is kept where only its owner reads it.
func TestLoginInTerminal(t *testing.T) {
	env := isolated(t)
	cmd := exec.Command("dure", "login", "--file")
	cmd.Env, cmd.Dir = append(env, "TERM=xterm"), t.TempDir()
	f, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	screen := seen(t, f, "Number or name of the provider: ")
	if !strings.Contains(screen, "2. OpenAI (openai)") {
		t.Errorf("the choice is\n%s", screen)
	}
	_, _ = io.WriteString(f, "2\n")
	screen = seen(t, f, "Key of OpenAI (it is not shown): ")
	_, _ = io.WriteString(f, "sk-secret-typed\n")
	screen += seen(t, f, "is kept in")
	if strings.Contains(screen, "sk-secret") {
		t.Error("the key was shown")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	path := ""
	for _, e := range env {
		if dir, ok := strings.CutPrefix(e, "DURE_HOME="); ok {
			path = filepath.Join(dir, "credentials.json")
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", path, info, err)
	}
}

// Ctrl-C at the question for a key leaves a terminal that shows what is typed.
func TestLoginInterrupted(t *testing.T) {
	cmd := exec.Command("dure", "login", "openai")
	cmd.Env, cmd.Dir = append(isolated(t), "TERM=xterm"), t.TempDir()
	f, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen(t, f, "(it is not shown): ")
	_, _ = io.WriteString(f, "\x03")
	_, _ = io.Copy(io.Discard, f) // until the other side is gone
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("exit code %d", cmd.ProcessState.ExitCode())
	}
}

// Ctrl-Z stops the program, and it goes on when it is told to.
func TestSuspendInTerminal(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("dure", "--model", "sonnet")
	cmd.Env, cmd.Dir = append(isolated(t), "TERM=xterm"), t.TempDir()
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 20, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen(t, f, "Ctrl-D quits")
	_, _ = io.WriteString(f, "\x1a")
	// Nobody of ours can wake the head of a session, so that the system does not
	// let it stop: it takes the terminal back by itself.
	seen(t, f, "\x1b[?2004h")
	_ = cmd.Process.Signal(syscall.SIGCONT)
	_, _ = io.WriteString(f, "\x04")
	_, _ = io.Copy(io.Discard, f)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Everything that is shown can be had as JSON, and errors of it too.
func TestEverythingAsJSON(t *testing.T) {
	t.Parallel()
	env := isolated(t)
	for _, line := range []string{
		"version --json", "providers --json", "models --json", "models --local --json", "sessions --json", "usage --json", "usage --by model --json",
		"completion --json", "logout openai --json", "doctor --json", "models test sonnet --json",
	} {
		cmd := exec.Command("dure", strings.Fields(line)...)
		cmd.Env, cmd.Dir = env, t.TempDir()
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		_ = cmd.Run() // a diagnosis may find faults
		if !json.Valid(out.Bytes()) || stderr.Len() > 0 {
			t.Errorf("%s gives %q and %q", line, &out, &stderr)
		}
	}
	for _, line := range []string{
		"show --json", "verify --json nothing", "replay --json", "replay --verify --json", "login --json nobody", "logout --json", "models --json a b",
		"usage --json --by week", "completion --json tcsh", "version --check --json", "help --json x", "-p --output-format json", "sessions --json --nonsense",
	} {
		cmd := exec.Command("dure", strings.Fields(line)...)
		cmd.Env, cmd.Dir = env, t.TempDir()
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		err := cmd.Run()
		var got struct {
			Error struct{ Code, Message string }
		}
		if jerr := json.Unmarshal(stderr.Bytes(), &got); err == nil || jerr != nil || got.Error.Code == "" || got.Error.Message == "" || out.Len() > 0 {
			t.Errorf("%s: %v, gives %q and %q", line, err, &out, &stderr)
		}
	}
}
