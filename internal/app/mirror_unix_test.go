//go:build unix

package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// A mirror that cannot be removed with its session is tried again with what is swept next.
func TestMirrorIsSweptLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "Done."}), script.Options{})
	k := w.talkWith(w.hosted(app.Flags{}), agent.Open{New: mirroredID})
	k.turn("Go")
	k.leave()
	if len(w.mirrors()) != 1 {
		t.Fatal(w.mirrors())
	}
	projects := filepath.Join(w.home, ".claude", "projects")
	if err := os.Rename(projects, projects+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(projects, projects); err != nil { // which leads nowhere
		t.Fatal(err)
	}
	a := w.program(w.hosted(app.Flags{}))
	if _, err := client.Query[query.RemovedSession](t.Context(), a.Client(), query.RemoveSession{Session: mirroredID}); err == nil {
		t.Error("nobody is told")
	}
	if err := os.Remove(projects); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(projects+".away", projects); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Query[int](t.Context(), a.Client(), query.SweepSessions{}); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if files := w.mirrors(); len(files) > 0 {
		t.Errorf("left are %v", files)
	}
}
