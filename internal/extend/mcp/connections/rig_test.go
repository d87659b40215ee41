//go:build unix

package connections_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/keys"
	"dure/internal/extend/mcp/connections"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/extend/mcp/servers"
	"dure/internal/frontend/text"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/builtin"
	"dure/internal/tools/catalog"
)

// echoes is a server as a shell script: a tool, a prompt and a resource.
//
//go:embed testdata/server.sh
var echoes string

// given names the server in server.sh of the folder.
const given = `{"mcpServers": {"sh": {"command": "sh", "args": ["server.sh"]}}}`

// rig is the extension for a folder, with at most one open session.
type rig struct {
	*connections.Extension
	t    *testing.T
	work string
	cat  *catalog.Catalog

	answers map[string]string // to the questions with a line that begins with a key; nil = nobody is there

	mu     sync.Mutex
	notes  []string
	heard  chan struct{} // a value for each note
	asked  []string      // questions to the person
	models int           // questions to the model
}

func newRig(t *testing.T, c connections.Config) *rig {
	t.Helper()
	r := &rig{t: t, work: t.TempDir(), heard: make(chan struct{}, 100)}
	data := t.TempDir()
	desk, err := oauth.New(oauth.Config{Dir: filepath.Join(data, "grants"), Keys: keys.Store{Path: filepath.Join(data, "credentials.json")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(desk.Close)
	c.Workdir, c.Dir, c.Logger, c.Web, c.Environ = r.work, filepath.Join(data, "mcp"), slog.New(slog.DiscardHandler), http.DefaultTransport, os.Environ()
	c.Read, c.Top, c.Folder = os.ReadFile, func(string) string { return "" }, func(string) string { return r.work }
	c.Sources = func(string) ([]servers.Source, []servers.Fault) { return nil, nil }
	if c.Covered == nil {
		c.Covered = func(string, []byte) bool { return true }
	}
	c.Secret, c.Clean, c.Env = func(string) bool { return false }, strings.Clone, os.Environ
	c.Say = func(w connections.Word, args ...any) string { return text.For("en").Named(string(w), args...) }
	c.Hooks = func(string) connections.Hooks { return noHooks{} }
	c.Box = func(*workspace.Workspace) *sandbox.Box { return sandbox.New(sandbox.Config{}) }
	c.Desk = func() (*oauth.Desk, error) { return desk, nil }
	r.Extension = connections.New(c)
	return r
}

func (r *rig) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.work, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// open opens the session. A person is there if there are answers.
func (r *rig) open(p policy.Config, answers map[string]string) plug.Points {
	r.t.Helper()
	r.cat, r.answers = catalog.New(catalog.Config{}), answers
	p.Canonical = r.cat.Canonical
	pol, err := policy.New(p)
	if err != nil {
		r.t.Fatal(err)
	}
	ws, err := workspace.New(workspace.Config{Root: r.work})
	if err != nil {
		r.t.Fatal(err)
	}
	box := sandbox.New(sandbox.Config{})
	b := plug.Session{
		SessionOpened: agent.SessionOpened{Workdir: r.work}, ID: "s1", Root: r.work, Open: agent.Open{Approver: answers != nil},
		Log: notebook{rig: r}, Reach: agent.Reach{Invoke: r.invoke, Ask: r.model},
	}
	s := r.Open(b, "", connections.Place{Box: box, Workspace: ws, Catalog: r.cat, Policy: pol, Person: b})
	r.t.Cleanup(func() {
		s.Close()
		if err := box.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return s.Points()
}

// server waits until the only server of the session is connected, or cannot be.
func (r *rig) server() query.ServerInfo {
	r.t.Helper()
	for range 12 {
		r.Of("s1").Ready(r.t.Context(), "/mcp__")
		list := ask[query.ServerReport](r, query.ListServers{Session: "s1"})
		if len(list.Servers) != 1 {
			r.t.Fatalf("%+v", list)
		}
		if s := list.Servers[0]; s.State != "connecting" {
			return s
		}
	}
	r.t.Fatal("the server does not connect")
	return query.ServerInfo{}
}

// call calls the tool of the server, and returns what that answers.
func (r *rig) call() string {
	r.t.Helper()
	e, ok := r.cat.Get("mcp__sh__echo")
	if !ok {
		r.t.Fatal("the session has no tool of the server")
	}
	got, err := e.Tool.Run(r.t.Context(), agent.ToolContext{Workdir: r.work}, agent.Call{ID: "c1", Tool: e.Spec.Name, Input: json.RawMessage(`{"text":"hello"}`)})
	if err != nil {
		r.t.Fatal(err)
	}
	return got.Text
}

// invoke puts questions to the person, who answers those that they have an answer to.
func (r *rig) invoke(ctx context.Context, in agent.Invocation) (agent.Result, error) {
	var all map[string]json.RawMessage
	var list []struct{ Question string }
	if err := json.Unmarshal(in.Input, &all); err != nil || in.Tool != "user__ask" || r.answers == nil {
		r.t.Errorf("%+v, %v", in, err)
	}
	if err := json.Unmarshal(all["questions"], &list); err != nil {
		r.t.Error(err)
	}
	said := map[string]string{}
	r.mu.Lock()
	for _, q := range list {
		r.asked = append(r.asked, q.Question)
		for _, key := range slices.Sorted(maps.Keys(r.answers)) {
			if strings.HasPrefix(q.Question, key) || strings.Contains(q.Question, "\n"+key) {
				said[q.Question] = r.answers[key]
			}
		}
	}
	r.mu.Unlock()
	ask, cat := builtin.Ask(), catalog.New(catalog.Config{})
	cat.Set(catalog.BuiltIn, "", []agent.Tool{ask})
	if _, wrong := cat.Check(ask.Spec(), in.Input); wrong != nil {
		r.t.Errorf("%s: %+v", in.Input, wrong)
	}
	var err error
	if all["answers"], err = json.Marshal(said); err != nil {
		return agent.Result{}, err
	}
	input, err := json.Marshal(all)
	if err != nil {
		return agent.Result{}, err
	}
	return ask.Run(ctx, agent.ToolContext{}, agent.Call{ID: "q", Tool: in.Tool, Input: input})
}

// model answers questions to the model.
func (r *rig) model(_ context.Context, q agent.Question) (agent.Answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.models++; q.Purpose != "mcp" || len(q.Messages) != 1 || !strings.Contains(q.Messages[0].Text(), "2+2") {
		r.t.Errorf("%+v", q)
	}
	return agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: agent.UserText("FOUR").Blocks}, Model: "m"}, nil
}

// hears waits until people are told something of the server, and returns all that they were told.
func (r *rig) hears(part string) []string {
	r.t.Helper()
	for {
		r.mu.Lock()
		notes := slices.Clone(r.notes)
		r.mu.Unlock()
		if slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, part) }) {
			return notes
		}
		select {
		case <-r.heard:
		case <-r.t.Context().Done():
			r.t.Fatalf("people are not told %q, but %q", part, notes)
		}
	}
}

// notebook keeps the notes of a session.
type notebook struct {
	plug.Log
	*rig
}

// Record keeps notes of servers.
func (n notebook) Record(list ...agent.Body) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range list {
		if note := b.(agent.Note); note.Code == "servers" {
			n.notes = append(n.notes, note.Level+" "+note.Text)
			n.heard <- struct{}{}
		}
	}
	return nil
}

type noHooks struct{}

func (noHooks) Eliciting(context.Context, string, map[string]any) (plug.ElicitReply, error) {
	return plug.ElicitReply{}, nil
}

func (noHooks) Answering(context.Context, string, map[string]any) (plug.ElicitReply, error) {
	return plug.ElicitReply{}, nil
}

func (noHooks) Notify(string, string) {}

// tries asks a query, and ask one that is answered.
func tries[R any](r *rig, q agent.Query) (R, error) {
	r.t.Helper()
	for _, a := range r.Answers() {
		if reflect.TypeOf(a.Query) == reflect.TypeOf(q) {
			got, err := a.Do(r.t.Context(), q)
			return got.(R), err
		}
	}
	r.t.Fatalf("nobody answers %T", q)
	panic("unreachable")
}

func ask[R any](r *rig, q agent.Query) R {
	r.t.Helper()
	got, err := tries[R](r, q)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}
