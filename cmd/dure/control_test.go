//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"dure/client/protocol"
	"dure/internal/models/script"
)

// The program answers a host whatever it sends, 10,000 requests of it once each, says nothing
// on its output but the protocol, and ends with its input; it ends too when nobody reads.
func TestControl(t *testing.T) {
	t.Parallel()
	w := newEditorWorld(t, []script.Reply{{Text: "Hello."}})
	begin := func() (*exec.Cmd, io.WriteCloser, io.ReadCloser) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, dureProgram(t), "control")
		cmd.Dir, cmd.Env = w.work, w.env
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, in, out
	}
	cmd, in, out := begin()
	const n = 10_000
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(in, "garbage\n"+strings.Repeat("x", protocol.MaxMessage+1)+"\n"+`{"type":"Initialize","id":"hello","payload":{"no_tokens":true}}`+"\n")
		for i := range n {
			if err == nil {
				_, err = fmt.Fprintf(in, `{"type":"Dance","id":"r%d"}`+"\n", i)
			}
		}
		if err == nil {
			_, err = io.WriteString(in, `{"type":"UserMessage","id":"say","payload":{"text":"Hello"}}`+"\n")
		}
		if err == nil {
			err = in.Close()
		}
		sent <- err
	}()
	answers := map[string]protocol.Type{}
	for lines := protocol.NewReader(out, 0); ; {
		line, err := lines.Next()
		if err != nil {
			break
		}
		m, err := protocol.Decode(line)
		if err != nil {
			t.Fatalf("%.200s: %v", line, err)
		}
		if m.ID != "" {
			if answers[m.ID] != "" {
				t.Errorf("%s is answered twice", m.ID)
			}
			answers[m.ID] = m.Type
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if len(answers) != n+2 || answers["hello"] != protocol.TypeInitializeResult || answers["say"] != protocol.TypeSessionResult || answers["r0"] != protocol.TypeError {
		t.Errorf("%d answers: %s, %s, %s", len(answers), answers["hello"], answers["say"], answers["r0"])
	}

	cmd, in, out = begin() // and a host that reads no more, but goes on
	if err := out.Close(); err != nil {
		t.Error(err)
	}
	for i := 0; ; i++ {
		if _, err := fmt.Fprintf(in, `{"type":"Dance","id":"r%d"}`+"\n", i); err != nil {
			break
		}
	}
	_ = cmd.Wait() // that it has ended is what counts
	if code := cmd.ProcessState.ExitCode(); code == -1 && !strings.Contains(cmd.ProcessState.String(), "broken pipe") {
		t.Errorf("it had to be killed: %s", cmd.ProcessState)
	}
}
