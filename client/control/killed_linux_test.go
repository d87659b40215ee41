package control_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"dure/internal/models/script"
)

// A host that is killed takes dure with it, in the middle of a turn. Elsewhere than on Linux,
// dure finishes the turn.
func TestKilledHost(t *testing.T) {
	s := setting(t, script.Reply{Text: strings.Repeat("On and on. ", 40_000), DelayMS: 20})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	held, theirs, err := os.Pipe() // which both hold open
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(s.env(), asVar+"=host")
	cmd.Stderr = theirs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "running\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if err := held.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(held); err != nil {
		t.Errorf("dure lives on: %v, %s", err, said)
	}
}
