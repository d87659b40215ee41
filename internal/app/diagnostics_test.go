//go:build unix

package app_test

import (
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// What a language server finds wrong after an edit stands in the edit's result. The
// server works confined, as commands do.
func TestDiagnosticsAfterAnEdit(t *testing.T) {
	t.Parallel()
	prooftest.Program(t, "gopls")
	w := newWorld(t, says(
		calls(tool("Diagnostics", fields{"file_path": "a.go"})), // starts it
		calls(tool("Read", fields{"file_path": "a.go"})),
		calls(tool("Edit", fields{"file_path": "a.go", "old_string": "= 1", "new_string": "= missing"})),
		script.Reply{Text: "Done."},
	), script.Options{})
	w.write("go.mod", "module x\n\ngo 1.24\n")
	w.write("a.go", "package a\n\nvar X = 1\n")
	k := w.talk(app.Flags{Mode: string(agent.ModeAcceptEdits), Allow: []string{"Diagnostics"}}, agent.Open{})
	if end := k.turn("Go."); end.Reason != agent.EndDone {
		t.Fatalf("the turn ended: %+v", end)
	}
	const want = "a.go:3:9: error: undefined: missing"
	for _, f := range all[agent.CallFinished](k.seen) {
		if f.Tool == "file-system__edit" {
			if !strings.Contains(f.Result.Unfenced(), want) {
				t.Errorf("the edit says %q, want %q in it", f.Result.Unfenced(), want)
			}
			return
		}
	}
	t.Error("nothing was edited")
}
