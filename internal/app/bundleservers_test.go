//go:build unix

package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

const servedBundle = `
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: fast }
spec: { provider: anthropic, model: script }
---
apiVersion: goondan.ai/v1
kind: Tool
metadata: { name: voice }
spec: { runtime: mcp, entry: sh, exports: [{ name: echo, parameters: { type: object } }] }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: clerk }
spec: { modelConfig: { modelRef: Model/fast }, tools: [Tool/voice] }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: desk }
spec: { entryAgent: Agent/clerk, agents: [Agent/clerk] }
`

// A tool of a bundle may be one of a server that the folder of the bundle names, once that is
// trusted and said yes to; it is none of the agent's otherwise, and none when it says something
// else of itself than when it was first seen.
func TestBundleToolOfAServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{Replies: []script.Reply{
		{When: "has heard it", Text: "Done."},
		{When: "something else than before", Text: "It waits."},
		{When: "not offered", Text: "No."},
		{When: "NOT_IN_CATALOG", Text: "No."},
		calls(tool("voice__echo", fields{"text": "hello"})),
		{Text: "Other."},
		calls(tool("voice__echo", fields{"text": "again"})),
	}}, script.Options{})
	dir := filepath.Join(w.work, "desk")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("goondan.yaml", servedBundle)
	first := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
	trustFolder(t, first, dir)
	_, err := first.Bundles.Prepare(dir, "")
	if err == nil || !strings.Contains(err.Error(), "there is no such server") {
		t.Fatal(err)
	}
	server := filepath.Join(w.work, "server.sh")
	if err := os.WriteFile(server, []byte(strings.Replace(echoes(), "ABOUT", "Says it again", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	write(".mcp.json", `{"mcpServers": {"sh": {"command": "sh", "args": ["`+server+`"]}}}`)
	there := w.program(options(dir, w.home, w.model.URL(), app.Flags{}))
	trustFolder(t, there, dir)
	first = w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
	_, err = first.Bundles.Prepare(dir, "")
	if p := agent.ProblemOf(err); p == nil || !strings.Contains(p.Message, "waiting") || !strings.Contains(p.Fix, "dure mcp approve sh (in "+dir) {
		t.Fatalf("%+v", err)
	}
	there = w.program(options(dir, w.home, w.model.URL(), app.Flags{}))
	if _, err := client.Query[query.ServerInfo](t.Context(), there.Client(), query.ChangeServer{Server: "sh", Do: query.ServerApprove}); err != nil {
		t.Fatal(err)
	}
	a, run := w.swarm(dir, app.Flags{Skip: true})
	k := w.talkTo(a, agent.Open{Agent: run.Entry})
	k.turn("Say it.")
	if got := all[agent.CallFinished](k.seen); len(got) != 1 || got[0].Result.Failed() || !strings.Contains(got[0].Result.Text, "the server has heard it") {
		t.Fatalf("%+v", got)
	}
	for _, r := range w.model.Requests() {
		if strings.Contains(string(r.Body), "mcp__sh__echo") {
			t.Error("the agent has the tool of the server itself")
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(server, []byte(strings.Replace(echoes(), "ABOUT", "Does as it likes", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	a, _ = w.swarm(dir, app.Flags{Skip: true})
	k = w.talkTo(a, agent.Open{Agent: run.Entry})
	k.turn("Other.")
	k.turn("Say it.")
	if got := all[agent.CallFinished](k.seen); len(got) != 1 || !got[0].Result.Failed() || !strings.Contains(got[0].Result.Text, "something else than before") {
		t.Fatalf("%+v", got)
	}
}
