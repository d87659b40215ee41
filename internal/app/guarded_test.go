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

// What files say that nobody has asked for is masked like the result of a tool, before
// the log or a model has it, and holds nothing that a person would not see.
func TestInstructionsAndNotesAreGuarded(t *testing.T) {
	t.Parallel()
	const key, hidden = "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "\u202e\U000E0041\U000E0042\x1b[31m"
	w := newWorld(t, script.Script{Replies: []script.Reply{{Text: "Hello."}}}, script.Options{})
	w.lay(map[string]string{
		"work/AGENTS.md":         "Use tabs. " + hidden + key,
		"work/.dure/rules/go.md": "---\npaths: a.go\n---\nGo. " + hidden + key,
		"work/a.go":              "package a",
		"work/.dure/agent-memory/default/MEMORY.md": "- [2026-01-01 10:00] A note. " + hidden + key + "\n",
		"home/dure/agent-memory/default/MEMORY.md":  "- [2026-01-01 10:00] Mine. " + hidden + key + "\n",
	})
	k := w.talk(app.Flags{Trust: true}, agent.Open{})
	k.answer("See @a.go", nil)
	k.sound()
	var all strings.Builder
	for _, r := range w.model.Requests() {
		all.Write(r.Body)
	}
	for _, want := range []string{"Use tabs.", "A note.", "Mine."} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("the model was not told %q", want)
		}
	}
	logs, err := filepath.Glob(filepath.Join(w.home, "dure", "sessions", "*", "*", "log.*"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	for _, bad := range []string{key, "\u202e", "\U000E0041", "\x1b", `\u001b`} {
		if strings.Contains(all.String(), bad) {
			t.Errorf("%q got through", bad)
		}
	}
}
