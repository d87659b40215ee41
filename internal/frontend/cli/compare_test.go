package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/text"
)

// Two sessions stand beside each other where there is room, else one under the other.
func TestCompareScreens(t *testing.T) {
	five := agent.Money(5_000_000)
	read := &agent.CallDone{Tool: "file-system__read", Input: json.RawMessage(`{"file_path":"a.go"}`), Status: "ok"}
	bash := &agent.CallDone{Tool: "bash__exec", Input: json.RawMessage(`{"command":"make"}`), Status: "error"}
	f := newFake()
	f.answers = map[string]any{
		"session": agent.SessionInfo{ID: "s1"},
		"sessions.compare": agent.Comparison{
			A:      agent.ComparedSession{Session: "s1", Title: "first", Model: "opus", Asked: "go", Answer: "It is done.", Outcome: agent.EndDone, Turns: 1, Steps: 2, Calls: 2, Millis: 1500, Cost: &five},
			B:      agent.ComparedSession{Session: "s2", Model: "haiku", Asked: "go", Answer: "It is\x1b[2J not, for the reason that the test fails and nobody knows why.", Outcome: agent.EndFailed, Error: "busy", Turns: 1, Steps: 1, Calls: 1, Failed: 1},
			Shared: 4, PartA: 5, PartB: 5,
			Calls: []agent.ComparedCall{{A: read, B: read}, {A: bash}},
			Files: []agent.ComparedFile{{Path: "a.go", A: "changed", B: "untouched", Diff: "diff a b\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"}},
		},
	}
	rest := `
4 events together; what follows is what each did since

Calls (= both, A and B one of them)
  = Read a.go · ok
  A Bash make · error

Files that ended up different
  a.go: A changed, B untouched
      @@ -1 +1 @@
      -x
      +y
`
	for _, tt := range []struct {
		columns int
		want    string
	}{
		{95, `         A                                          B
session  s1 · first                                 s2
model    opus                                       haiku
asked    go                                         go
outcome  done                                       failed: busy
work     1 turn, 2 steps, 2 calls, 0 failed         1 turn, 1 step, 1 call, 1 failed
used     1.5 s · 0 / 0 · $0.0050                    0 ms · 0 / 0 · unknown
answer   It is done.                                It is␛[2J not, for the reason that the
                                                    test fails and nobody knows why.
` + rest},
		{40, `A
  session  s1 · first
  model    opus
  asked    go
  outcome  done
  work     1 turn, 2 steps, 2 calls, 0
           failed
  used     1.5 s · 0 / 0 · $0.0050
  answer   It is done.
B
  session  s2
  model    haiku
  asked    go
  outcome  failed: busy
  work     1 turn, 1 step, 1 call, 1
           failed
  used     0 ms · 0 / 0 · unknown
  answer   It is␛[2J not, for the
           reason that the test fails
           and nobody knows why.
` + rest},
	} {
		var out bytes.Buffer
		c := New(Config{Client: client.New(f), Text: text.For("en"), Out: &out, Err: &out, Columns: func() int { return tt.columns }})
		if err := c.Compare(t.Context(), "s1", "s2", false); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, strings.ReplaceAll(out.String(), "cost unknown", "unknown")); d != "" {
			t.Errorf("%d columns: %s", tt.columns, d)
		}
	}
}
