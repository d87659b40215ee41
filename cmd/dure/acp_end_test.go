//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// An editor that goes in the middle of a turn, in whatever way, leaves nothing behind: the
// program ends, and the command that runs with it.
func TestEditorGoes(t *testing.T) {
	t.Parallel()
	prooftest.Program(t, "bash")
	for name, leave := range map[string]func(in, out *os.File){
		"it closes its end":  func(in, _ *os.File) { _ = in.Close() },
		"it is killed":       func(in, out *os.File) { _, _ = in.Close(), out.Close() },
		"it reads no longer": func(in, out *os.File) { _ = out.Close(); _, _ = io.WriteString(in, "garbage\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEditorWorld(t, []script.Reply{
				{Calls: []script.Call{{ID: "c1", Tool: "Bash", Input: json.RawMessage(`{"command":"exec 3>alive; echo up >&3; sleep 600"}`)}}},
				{Text: "never"},
			})
			alive := filepath.Join(w.work, "alive") // it ends with the last process that holds it
			if err := syscall.Mkfifo(alive, 0o600); err != nil {
				t.Fatal(err)
			}
			theirs, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			out, ours, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(dureProgram(t), "acp")
			cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout = w.env, w.work, theirs, ours
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_, _ = theirs.Close(), ours.Close() // they are the program's
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_, _ = in.Close(), out.Close()
			})
			await := lifeOf(t, alive)
			drive(t, w, in, bufio.NewReaderSize(out, 1<<20))
			await("up")
			leave(in, out)
			select {
			case err := <-ended:
				if err != nil { // it has come to its own end, and no signal to it
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the program does not end")
			}
			await("over")
		})
	}
}

// lifeOf follows the command that has a FIFO open for its life, and writes a line to it. What
// is returned awaits that line, and then "over".
func lifeOf(t *testing.T, alive string) (await func(what string)) {
	life := make(chan string, 2)
	go func() { // ends with the command, or with the test that fails
		f, err := os.Open(alive)
		if err != nil {
			life <- err.Error()
			return
		}
		defer f.Close() // it is only read
		r := bufio.NewReader(f)
		up, _ := r.ReadString('\n')
		life <- strings.TrimSpace(up)
		_, _ = io.Copy(io.Discard, r)
		life <- "over"
	}()
	return func(what string) {
		t.Helper()
		select {
		case got := <-life:
			if got != what {
				t.Fatalf("the command: %q, want %q", got, what)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the command: no %q", what)
		}
	}
}

// drive has a session of the program run what its model calls, and answers its question.
func drive(t *testing.T, w editorWorld, in io.Writer, out *bufio.Reader) {
	t.Helper()
	say := func(line string) {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	say(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"` + w.work + `","mcpServers":[]}}`)
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result struct {
				Session string `json:"sessionId"`
			} `json:"result"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		switch {
		case string(m.ID) == "2" && m.Method == "":
			say(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"` + m.Result.Session + `","prompt":[{"type":"text","text":"run it"}]}}`)
		case m.Method == "session/request_permission":
			say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}}`)
		case strings.Contains(line, `"in_progress"`):
			return
		}
	}
}
