//go:build unix

package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// Rules that are written while a session is open hold from its next turn on, and
// settings that cannot be read deny everything until somebody mends them.
func TestRulesAreReadAgain(t *testing.T) {
	t.Parallel()
	call := calls(tool("Bash", fields{"command": "echo ran"}))
	w := newWorld(t, script.Script{ByStep: true, Replies: slices.Repeat([]script.Reply{call, {Text: "Said."}}, 9)}, script.Options{})
	dir := filepath.Join(w.home, "dure")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		err := os.RemoveAll(path)
		switch text {
		case "":
		case "a folder":
			err = errors.Join(err, os.Mkdir(path, 0o700))
		default:
			err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	k := w.talk(app.Flags{}, agent.Open{})
	turns := 0
	for _, tt := range []struct {
		file, settings, by string
		verdict            agent.Verdict
	}{
		{"settings.json", "", "read-only", agent.Allow},
		{"settings.json", `{"permissions": {"deny": ["Bash(echo *)"]}}`, "rule", agent.Deny},
		{"settings.json", `{"permissions": {"deny": [`, "rule", agent.Deny},
		{"settings.json", `{}`, "read-only", agent.Allow},
		{"policy.jsonc", `{"permissions": {"deny": [`, "rule", agent.Deny},
		{"policy.jsonc", "a folder", "rule", agent.Deny},
		{"policy.jsonc", `{"permissions": {"deny": ["Bash(("]}}`, "rule", agent.Deny}, // taken for every command
		{"policy.jsonc", `{"permissions": {"deny": [5]}}`, "rule", agent.Deny},
		{"policy.jsonc", "", "read-only", agent.Allow},
	} {
		write(tt.file, tt.settings)
		if end := k.turn("Go."); end.Reason != agent.EndDone {
			t.Fatalf("after %s %q the turn ended: %+v", tt.file, tt.settings, end)
		}
		turns++
		decided := all[agent.CallDecided](k.seen)
		if len(decided) != turns {
			t.Fatalf("%d decisions in %d turns", len(decided), turns)
		}
		if d := decided[turns-1].Decision; d.Verdict != tt.verdict || d.By != tt.by {
			t.Errorf("with %s %q: %s by %s (%s), want %s by %s", tt.file, tt.settings, d.Verdict, d.By, d.Reason, tt.verdict, tt.by)
		}
	}
}
