//go:build unix

package swarms_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
	"dure/internal/tools/kit"
)

// rig is the extension for a workspace with a bundle in its folder desk.
type rig struct {
	t                     *testing.T
	work, dir, changesets string
	cat                   *catalog.Catalog
	notes                 []string
}

func newRig(t *testing.T, bundle string) *rig {
	t.Helper()
	r := &rig{t: t, work: t.TempDir(), changesets: t.TempDir(), cat: catalog.New(catalog.Config{})}
	r.dir = filepath.Join(r.work, "desk")
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.write("goondan.yaml", bundle)
	return r
}

func (r *rig) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// read returns a file of the bundle; "" = it is not there.
func (r *rig) read(name string) string {
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return string(data)
}

// extension returns the extension as a program has it that runs code; nil = it runs none.
func (r *rig) extension(code *swarms.Code) *swarms.Extension {
	known := catalog.Renamed()
	return swarms.New(swarms.Config{
		Workdir: r.work, Changesets: r.changesets, Code: code, Logger: slog.New(slog.DiscardHandler),
		Getenv: func(string) string { return "" }, Env: func() []string { return nil },
		Redact: strings.Clone, Masked: func(string) bool { return false },
		Trusts:  func(dir string) bool { return dir == r.dir },
		Builtin: func(name string) bool { _, ok := known(name); return ok }, IsName: func(string) bool { return true },
	})
}

// session begins a session of the entry agent.
func (r *rig) session() *swarms.Session {
	r.t.Helper()
	run, err := r.extension(nil).Prepare(r.dir, "")
	if err != nil || !run.Info.OK {
		r.t.Fatalf("%v: %+v", err, run.Info.Problems)
	}
	ws, err := workspace.New(workspace.Config{Root: r.work})
	if err != nil {
		r.t.Fatal(err)
	}
	box := sandbox.New(sandbox.Config{})
	s, err := r.extension(run.Code).Begin(swarms.Place{
		Session: plug.Session{ID: "s1", Root: r.work, Log: notebook{rig: r}}, Catalog: r.cat, Workspace: ws, Box: box,
	}, run.Entry)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		s.Close()
		if err := box.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return s
}

// notebook keeps the notes of a session.
type notebook struct {
	plug.Log
	*rig
}

// Record keeps notes.
func (n notebook) Record(list ...agent.Body) error {
	for _, b := range list {
		n.notes = append(n.notes, b.(agent.Note).Text)
	}
	return nil
}

const (
	model = `apiVersion: goondan.ai/v1
kind: Model
metadata: { name: fast }
spec: { provider: anthropic, model: script }
---
`
	swarm = `---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: desk }
spec: { entryAgent: Agent/clerk, agents: [Agent/clerk] }
`
	looking = model + `apiVersion: goondan.ai/v1
kind: Tool
metadata: { name: look }
spec: { runtime: builtin, entry: LS, exports: [{ name: echo, parameters: { type: object } }] }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: clerk }
spec: { modelConfig: { modelRef: Model/fast }, tools: [Tool/look], requiredTools: [look] }
` + swarm
	growing = model + `apiVersion: goondan.ai/v1
kind: Tool
metadata: { name: self }
spec: { runtime: builtin, entry: bundle, exports: [{ name: openChangeset }, { name: commitChangeset }] }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: clerk }
spec: { modelConfig: { modelRef: Model/fast }, tools: [Tool/self] }
` + swarm
	signing = model + `apiVersion: agents.example.io/v1alpha1
kind: OAuthApp
metadata: { name: box }
spec:
  provider: The box
  flow: authorizationCode
  subjectMode: user
  client: { clientId: desk }
  endpoints: { authorizationUrl: "http://127.0.0.1/authorize", tokenUrl: "http://127.0.0.1/token" }
  scopes: [read, write]
---
apiVersion: agents.example.io/v1alpha1
kind: Tool
metadata: { name: box }
spec:
  runtime: http
  entry: http://127.0.0.1/tool
  auth: { oauthAppRef: { kind: OAuthApp, name: box }, scopes: [write] }
  exports: [{ name: post, parameters: { type: object } }]
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: clerk }
spec: { modelConfig: { modelRef: Model/fast }, tools: [Tool/box] }
` + swarm
)

// An agent that has to call a tool is kept from ending its turn before it has, in each turn anew,
// but not for ever.
func TestToolsThatAreRequired(t *testing.T) {
	t.Parallel()
	r := newRig(t, looking)
	r.cat.Set(catalog.BuiltIn, "", []agent.Tool{kit.Tool{About: agent.Spec{Name: "file-system__list", Description: "Lists.", Input: json.RawMessage(`{"type":"object"}`)}}})
	h := r.session().Inner().Hooks
	called := func(res agent.Result) {
		h.After(t.Context(), agent.Proposal{Call: agent.Call{Tool: "file-system__list"}}, res, 0)
	}
	turn := func() (kept int) {
		for {
			words, by := h.Stopping(t.Context(), "")
			if words == "" {
				h.Ended(t.Context(), agent.TurnEnded{Reason: agent.EndDone})
				return kept
			}
			if kept++; by != "bundle" || !strings.Contains(words, "You have to call one of these tools before you end your turn: look.") {
				t.Errorf("%s: %s", by, words)
			}
		}
	}
	if words, _ := h.Stopping(t.Context(), ""); words == "" {
		t.Error("the turn may end although it has called nothing")
	}
	called(agent.OK("a.txt"))
	if n := turn(); n != 0 || len(r.notes) != 0 {
		t.Errorf("kept %d times from ending although it has called the tool; %q", n, r.notes)
	}
	if n := turn(); n != 3 || len(r.notes) != 1 || !strings.Contains(r.notes[0], "has to call: look") {
		t.Errorf("kept %d times from ending; %q", n, r.notes)
	}
	called(agent.Failure(agent.ErrTool, "no", ""))
	if n := turn(); n != 3 || len(r.notes) != 2 {
		t.Errorf("kept %d times from ending after a call that failed; %q", n, r.notes)
	}
}

// A bundle that a dead program has committed to in part is what it was before when it is
// started again; while that cannot be told, it is not started.
func TestTornCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t, growing)
	r.write("old.md", "Old.")
	r.session()
	e, ok := r.cat.Get("self__openChangeset")
	if !ok {
		t.Fatal("the agent cannot change its bundle")
	}
	got, err := e.Tool.Run(context.Background(), agent.ToolContext{Workdir: r.work}, agent.Call{ID: "c1", Tool: e.Spec.Name, Input: json.RawMessage(`{}`)})
	if err != nil || got.Failed() {
		t.Fatalf("%+v, %v", got, err)
	}
	found, err := filepath.Glob(filepath.Join(r.changesets, "*", "cs-1"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the changeset is remembered in %q, %v", found, err)
	}
	sum := func(s string) string { return workspace.Sum([]byte(s)) }
	next := growing + "# more\n"
	journal, err := json.Marshal([]any{
		map[string]any{"name": "goondan.yaml", "old": []byte(growing), "mode": 0o600, "was": sum(growing), "next": sum(next)},
		map[string]any{"name": "new.md", "next": sum("New.")},
		map[string]any{"name": "old.md", "old": []byte("Old."), "mode": 0o600, "was": sum("Old.")},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(filepath.Dir(found[0]), "commit")
	if err := os.WriteFile(at, journal, 0o600); err != nil {
		t.Fatal(err)
	}
	r.write("goondan.yaml", next)
	r.write("new.md", "New.")
	if err := os.Remove(filepath.Join(r.dir, "old.md")); err != nil {
		t.Fatal(err)
	}
	again := r.extension(nil)
	if _, err := again.Prepare(r.dir, ""); err != nil {
		t.Fatal(err)
	}
	if now := []string{r.read("goondan.yaml"), r.read("new.md"), r.read("old.md")}; !slices.Equal(now, []string{growing, "", "Old."}) {
		t.Errorf("the bundle has a part of the commit: %q", now)
	}
	if err := os.WriteFile(at, journal[1:], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Prepare(r.dir, ""); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("it was started: %v", err)
	}
}

// Tools that cannot sign in are told before anything runs.
func TestSignInsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ old, new, want string }{
		"in the clear":       {"entry: http://127.0.0.1", "entry: http://far.example", "not encrypted"},
		"a secret of others": {"clientId: desk", "clientId: {valueFrom: {secretRef: {ref: Secret/x}}}", "secret x is not stored"},
		"another runtime":    {"runtime: http\n  entry: http://127.0.0.1/tool", "runtime: builtin\n  entry: web_fetch", `runtime "builtin"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, strings.Replace(signing, tt.old, tt.new, 1))
			run, err := r.extension(nil).Prepare(r.dir, "")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v: %+v", err, run.Info.Problems)
			}
		})
	}
}

// The bundle of a folder that nobody trusts is not started.
func TestUntrustedBundle(t *testing.T) {
	t.Parallel()
	r := newRig(t, looking)
	other := filepath.Join(r.work, "other")
	if err := os.Rename(r.dir, other); err != nil {
		t.Fatal(err)
	}
	if run, err := r.extension(nil).Prepare(other, ""); agent.ProblemOf(err) == nil || !strings.Contains(err.Error(), "not trusted") || run.Agents != "" || run.Code != nil {
		t.Errorf("%+v, %v", run, err)
	}
}
