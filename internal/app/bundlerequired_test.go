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

// An agent that has to call a tool is kept from ending its turn before it has.
func TestBundleToolsThatAreRequired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{Replies: []script.Reply{
		{Text: "Nothing to do."},
		{Calls: []script.Call{tool("LS", fields{"path": "."})}},
		{Text: "Looked."},
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
	if n := len(w.model.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
}
