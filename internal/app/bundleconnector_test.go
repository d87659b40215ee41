//go:build unix

package app_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent/query"
	"dure/internal/app"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// stumbling is a connector that fails when it has brought a message, the same each time.
const stumbling = `export default async ({ emit, secrets }) => {
	await emit({ id: "one", name: "said", message: "Sort the letters.", answer: true });
	throw new Error("lost the line to " + secrets.token);
};`

// A connector that fails is told of without what is secret, and started again; what it brings
// twice is read once. When the program ends, its process does.
func TestConnectorIsStartedAgain(t *testing.T) {
	t.Parallel()
	prooftest.Program(t, "node")
	w := newWorld(t, script.Script{Replies: []script.Reply{{When: "Sort the letters.", Text: "They are sorted."}}}, script.Options{})
	dir := filepath.Join(w.work, "desk")
	for name, text := range map[string]string{"stumble.js": stumbling, ".env.local": "TOKEN=open-sesame\n", "goondan.yaml": `apiVersion: goondan.ai/v1
kind: Model
metadata: { name: fast }
spec: { provider: anthropic, model: script }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: clerk }
spec: { modelConfig: { modelRef: Model/fast } }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: desk }
spec: { entryAgent: Agent/clerk, agents: [Agent/clerk] }
---
apiVersion: goondan.ai/v1
kind: Connector
metadata: { name: line }
spec: { entry: ./stumble.js, events: [{ name: said }] }
---
apiVersion: goondan.ai/v1
kind: Connection
metadata: { name: line }
spec: { connectorRef: Connector/line, swarmRef: Swarm/desk, secrets: { token: { valueFrom: { env: TOKEN } } } }
`} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, run := w.swarm(dir, app.Flags{Skip: true})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	notes, ended := make(chan query.BundleNote, 64), make(chan error, 1)
	go func() {
		ended <- a.Bundles.Serve(ctx, dir, "", run, swarms.IO{Note: func(n query.BundleNote) { notes <- n }})
	}()
	for failed := 0; failed < 2; {
		select {
		case n := <-notes:
			if n.Error == "" {
				continue
			}
			failed++
			if n.Connection != "line" || !strings.Contains(n.Error, "lost the line to […]") || n.Failures != 1 {
				t.Errorf("%+v", n)
			}
		case err := <-ended:
			t.Fatal(err)
		}
	}
	cancel()
	<-ended
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("the message was read %d times", n)
	}
}
