//go:build unix

package app_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/models/script"
)

const builders = `apiVersion: goondan.ai/v1
kind: Model
metadata: { name: fast }
spec: { provider: anthropic, model: script }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: lead }
spec: { modelConfig: { modelRef: Model/fast } }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: mason }
spec: { modelConfig: { modelRef: Model/fast } }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: desk }
spec: { entryAgent: Agent/lead, agents: [Agent/lead, Agent/mason] }
`

// To end a program that serves a bundle stops nothing that is done there: an agent in the
// background, and the turn that waits for it, go on when it is started again.
func TestBundleGoesOnAfterItsEnd(t *testing.T) {
	t.Parallel()
	began, released := make(chan struct{}, 8), make(chan struct{})
	var built atomic.Int32
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		body := string(r.Body)
		switch {
		case !strings.Contains(body, "Have a wall built."):
			began <- struct{}{}
			<-released
			built.Add(1)
			return script.Reply{Text: "The wall stands.", Stop: agent.StopEnd}
		case strings.Contains(body, "The wall stands."):
			return script.Reply{Text: "All is built.", Stop: agent.StopEnd}
		case r.Step == 0:
			return script.Reply{Calls: []script.Call{hand("a1", fields{"prompt": "Build it.", "subagent_type": "mason", "run_in_background": true})}}
		}
		return script.Reply{Text: "Handed over.", Stop: agent.StopEnd}
	}})
	dir := filepath.Join(w.work, "desk")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "goondan.yaml"), []byte(builders), 0o600); err != nil {
		t.Fatal(err)
	}
	a, run := w.swarm(dir, app.Flags{Skip: true})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	serve := func(ctx context.Context, in string) (string, []query.BundleNote) {
		var out bytes.Buffer
		var notes []query.BundleNote
		err := a.Bundles.Serve(ctx, dir, "", run, swarms.IO{
			In: strings.NewReader(in), Out: &out, Note: func(n query.BundleNote) { notes = append(notes, n) },
		})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		return out.String(), notes
	}
	first, stop := context.WithCancel(ctx)
	go func() {
		<-began
		stop()
	}()
	if out, _ := serve(first, "Have a wall built.\n"); out != "" {
		t.Errorf("answered: %s", out)
	}
	close(released)
	out, notes := serve(ctx, "")
	if out != "All is built.\n" {
		t.Errorf("answered: %q %+v", out, notes)
	}
	for _, r := range w.model.Requests() {
		for _, bad := range []string{"was stopped", "is lost", "interrupted"} {
			if strings.Contains(string(r.Body), bad) {
				t.Errorf("%q: %s", bad, r.Body)
			}
		}
	}
}
