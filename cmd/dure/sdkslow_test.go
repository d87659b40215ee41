package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/internal/models/script"
)

// A host that reads nothing while a whole turn runs holds nothing up but its own messages: the
// log has the turn to its end, and the host reads all of it once it reads.
func TestHostThatReadsLate(t *testing.T) {
	t.Parallel()
	const steps, each = 8, 40
	var replies []script.Reply
	for step := range steps {
		var r script.Reply
		for i := range each {
			name := fmt.Sprintf("f%d-%d.txt", step, i)
			r.Calls = append(r.Calls, script.Call{ID: "toolu_" + name, Tool: "Read", Input: json.RawMessage(`{"file_path":"` + name + `"}`)})
		}
		replies = append(replies, r)
	}
	h := newHost(t, append(replies, script.Reply{Text: "All read."})...)
	for step := range steps {
		for i := range each {
			text := strings.Repeat(fmt.Sprintf("line of %d %d\n", step, i), 200)
			if err := os.WriteFile(filepath.Join(h.dir, fmt.Sprintf("f%d-%d.txt", step, i)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command(dureProgram(t), usualArgs...)
	cmd.Dir, cmd.Env, cmd.Stderr = h.dir, h.env, &h.stderr
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
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	h.in = in
	h.say(`{"request_id":"i1","type":"control_request","request":{"subtype":"initialize"}}`, user("read them"))
	h.logHas("turn.ended")

	results, last := 0, ""
	lines := bufio.NewReaderSize(out, 1<<20)
	for last != "result" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the output ends behind %d results and %q: %v\n%s", results, last, err, h.stderr.String())
		}
		var l wireLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%.200q: %v", line, err)
		}
		if last = l.Type; last == "user" && strings.Contains(line, "line of ") {
			results++
		}
	}
	if results != steps*each {
		t.Errorf("%d results of %d", results, steps*each)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, h.stderr.String())
	}
}

// logHas waits until the log of the only session has an event of a kind.
func (h *host) logHas(kind string) {
	h.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(hostTime)
	for {
		logs, _ := filepath.Glob(filepath.Join(filepath.Dir(h.dir), "dure", "sessions", "*", "*", "log.*"))
		for _, path := range logs {
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), `"`+kind+`"`) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			h.t.Fatalf("no %s in %v\n%s", kind, logs, h.stderr.String())
		}
	}
}
