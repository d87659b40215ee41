//go:build unix

package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// The example of all kits loads, and its tools do what they say: they reckon, write and read,
// list skills, and change the prompt of the agent, which a person is asked about. What it may
// not change is refused.
func TestToolkitExample(t *testing.T) {
	t.Parallel()
	prompt := "prompts/helper.md"
	w := newWorld(t, distinct(
		calls(tool("calc__add", fields{"a": 2, "b": 0.5})),
		calls(tool("calc__multiply", fields{"a": 6, "b": 7})),
		calls(tool("file__write", fields{"path": "deep/a.bin", "content": "AAEC", "encoding": "base64"})),
		calls(tool("file__read", fields{"path": "deep/a.bin", "encoding": "hex", "maxBytes": 2})),
		calls(tool("file__read", fields{"path": "deep/a.bin"})),
		calls(tool("skills__list", fields{})),
		calls(tool("self__openChangeset", fields{"reason": "to be better"})),
		calls(tool("file__write", fields{"path": ".changesets/cs-1/" + prompt, "content": "Be better."})),
		calls(tool("file__write", fields{"path": ".changesets/cs-1/goondan.yaml", "content": "other"})),
		calls(tool("self__commitChangeset", fields{"changesetId": "cs-1"})),
		calls(tool("self__openChangeset", fields{})),
		calls(tool("file__write", fields{"path": ".changesets/cs-2/" + prompt, "content": "Be better."})),
		calls(tool("self__commitChangeset", fields{"changesetId": "cs-2", "message": "better"})),
		script.Reply{Text: "Done."},
	), script.Options{})
	dir := filepath.Join(w.work, "toolkit")
	if err := os.CopyFS(dir, os.DirFS("../../examples/toolkit")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "goondan.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "goondan.yaml"), []byte(strings.Replace(string(text), "claude-sonnet-4-5", "script", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	a, run := w.swarm(dir, app.Flags{})
	k := w.talkTo(a, agent.Open{Agent: run.Entry, Approver: true})
	var asked []agent.ApprovalAsked
	k.answer("Work", func(q agent.ApprovalAsked) agent.Resolve {
		asked = append(asked, q)
		return agent.Resolve{ID: q.ID, Decision: agent.Decision{Verdict: agent.Allow}}
	})
	results := all[agent.CallFinished](k.seen)
	want := []string{
		`"expression":"2 + 0.5 = 2.5"`, `"result":42`, `"size":3,"written":true`, `"truncated":true,"content":"0001"`, "\x00\x01\x02",
		`"name":"`, `"changesetId":"cs-1"`, "written", "written", "may not change: goondan.yaml", `"changesetId":"cs-2"`, "written", "Written: prompts/helper.md",
	}
	if len(results) != len(want) {
		t.Fatalf("%d results", len(results))
	}
	for i, r := range results {
		got := r.Result.Text + string(r.Result.Output)
		if r.Result.Error != nil {
			got += r.Result.Error.Message
		}
		if i != 4 && !strings.Contains(got, want[i]) {
			t.Errorf("%s: %s, want %s", r.Tool, got, want[i])
		}
	}
	if last := asked[len(asked)-1].Proposal; last.Call.Tool != "self__commitChangeset" || len(last.Effects.Writes) != 2 || !strings.HasSuffix(last.Effects.Writes[0], "toolkit/"+prompt) {
		t.Errorf("asked about %+v", last)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, prompt)); string(got) != "Be better." {
		t.Errorf("the prompt is %q", got)
	}
}
