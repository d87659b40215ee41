package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"dure/internal/models/script"
)

// spent is what a result says of the use of models.
type spent struct {
	Session string   `json:"session_id"`
	Total   *float64 `json:"total_cost_usd"`
	Denials []any    `json:"permission_denials"`
	Usage   struct {
		Output int `json:"output_tokens"`
	} `json:"usage"`
	Models map[string]struct {
		Output int     `json:"outputTokens"`
		Cost   float64 `json:"costUSD"`
	} `json:"modelUsage"`
}

// resultOf runs the program for one task, and reads the result at the end of what it writes.
func resultOf(t *testing.T, h *host, args ...string) (s spent) {
	t.Helper()
	cmd := exec.Command(dureProgram(t), args...)
	cmd.Dir, cmd.Env = h.dir, h.env
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s%s", args, err, out.Bytes(), complaints.Bytes())
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &s); err != nil || s.Total == nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	return s
}

// However long a session is, a result has what all of it has cost, with its agents, for
// programs as for hosts; a fork begins to count anew.
func TestTotalsOfLongSessions(t *testing.T) {
	calls := []script.Call{{Tool: "Agent", Input: json.RawMessage(`{"description":"look","prompt":"look around","subagent_type":"general-purpose"}`)}}
	for i := range 120 {
		name := fmt.Sprintf("f%d.txt", i)
		calls = append(calls, script.Call{Tool: "Read", Input: json.RawMessage(`{"file_path":"` + name + `"}`)})
	}
	h := newHost(t,
		script.Reply{When: "look around", Text: "I looked."},
		script.Reply{Calls: calls}, script.Reply{Text: "Done."}, script.Reply{Text: "Two."}, script.Reply{Text: "Three."}, script.Reply{Text: "Four."}, script.Reply{Text: "Five."}, script.Reply{Text: "Six."},
	)
	for i := range 120 {
		if err := os.WriteFile(filepath.Join(h.dir, fmt.Sprintf("f%d.txt", i)), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	prints, streams := []string{"-p", "--output-format", "json"}, []string{"-p", "--output-format", "stream-json"}
	first := resultOf(t, h, append(prints, "--allow", "Agent", "go")...)
	if m := first.Models["script"]; *first.Total <= m.Cost || m.Output != first.Usage.Output {
		t.Errorf("the agent's work is not in the total: %+v of %v", first.Models, *first.Total)
	}
	if n := len(first.Denials); n > 0 {
		t.Fatalf("%d calls were denied", n)
	}
	before := first
	for _, args := range [][]string{prints, streams, prints} {
		now := resultOf(t, h, append(slices.Clone(args), "-r", first.Session, "go on")...)
		was, is := before.Models["script"], now.Models["script"]
		if is.Output != was.Output+now.Usage.Output || now.Usage.Output == 0 {
			t.Errorf("%q: %d tokens, were %d, and %d are new", args, is.Output, was.Output, now.Usage.Output)
		}
		if more, own := *now.Total-*before.Total, is.Cost-was.Cost; own <= 0 || math.Abs(more-own) > 1e-9 {
			t.Errorf("%q: the session has %v more, and its model %v", args, more, own)
		}
		before = now
	}
	for _, args := range [][]string{prints, streams} {
		fork := resultOf(t, h, append(slices.Clone(args), "-r", first.Session, "--fork-session", "another way")...)
		if m := fork.Models["script"]; m.Output != fork.Usage.Output || math.Abs(*fork.Total-m.Cost) > 1e-9 {
			t.Errorf("%q: %+v", args, fork)
		}
	}
}
