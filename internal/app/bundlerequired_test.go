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

// An agent that has to call a tool is kept from ending its turn before it has, in each turn anew,
// but not for ever.
func TestBundleToolsThatAreRequired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{Replies: []script.Reply{
		{Text: "Nothing to do."},
		{Calls: []script.Call{tool("LS", fields{"path": "."})}},
		{Text: "Looked."},
		{Text: "No."},
		{Text: "No."},
		{Text: "No."},
		{Text: "No."},
	}}, script.Options{})
	dir := filepath.Join(w.work, "desk")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("runtime: mcp, entry: sh", "runtime: builtin, entry: LS", "name: voice", "name: look", "Tool/voice]", "Tool/look], requiredTools: [look]").Replace(servedBundle)
	if err := os.WriteFile(filepath.Join(dir, "goondan.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, run := w.swarm(dir, app.Flags{Skip: true})
	k := w.talkTo(a, agent.Open{Agent: run.Entry})
	k.turn("Look")
	if got := all[agent.CallFinished](k.seen); len(got) != 1 || got[0].Result.Failed() {
		t.Fatalf("%+v", got)
	}
	asked := len(w.model.Requests())
	k.turn("Refuse")
	if got := len(w.model.Requests()) - asked; got != 4 {
		t.Errorf("asked %d times", got)
	}
	k.until("the note", func(e agent.Event) bool {
		n, ok := e.Body.(agent.Note)
		return ok && strings.Contains(n.Text, "has to call: look")
	})
}
