//go:build unix

package imports_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/safety/guard"
	"dure/internal/state/archive/imports"
	"dure/internal/state/journal"
	"dure/internal/tools/catalog"
)

const (
	key  = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	talk = `{"type":"user","uuid":"1","sessionId":"s","message":{"role":"user","content":"Use ` + key + `"}}
{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"With ` + key + `"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"curl -H 'Authorization: token ` + key + `'"}}]}}
{"type":"user","uuid":"3","parentUuid":"2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"It is ` + key + `"}]}}
{"type":"custom-title","customTitle":"About ` + key + `"}
`
)

// newRig returns what imports into a store, which has no sessions, and where the user's files are.
func newRig(t *testing.T) (x *imports.Extension, store *journal.Local, home string) {
	t.Helper()
	home = t.TempDir()
	store, err := journal.NewLocal(journal.LocalOptions{Dir: t.TempDir(), Durability: journal.DurabilityOS})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	patterns, err := guard.Compile(nil)
	if err != nil {
		t.Fatal(err)
	}
	return imports.New(imports.Config{
		Store: func() imports.Store { return store }, Home: home, Workdir: home, Getenv: func(string) string { return "" }, Logger: slog.New(slog.DiscardHandler),
		Opened:    func() agent.SessionOpened { return agent.SessionOpened{Version: "test", Host: "here", PID: 1} },
		Canonical: catalog.New(catalog.Config{}).Canonical, Known: func(string) bool { return false },
		Redact: patterns.Redact, Mask: guard.MaskJSON,
		Forget: func(context.Context, string) error { return nil },
	}), store, home
}

func ask(t *testing.T, x *imports.Extension, q query.ImportSessions) (query.ImportReport, error) {
	t.Helper()
	got, err := x.Answers()[0].Do(t.Context(), q)
	return got.(query.ImportReport), err
}

// A session of another product is listed, read, and stored once, without the secrets that it was
// kept with.
func TestImport(t *testing.T) {
	t.Parallel()
	x, store, home := newRig(t)
	dir := filepath.Join(home, ".claude", "projects", "-p")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "s.jsonl"), []byte(talk), 0o600); err != nil {
		t.Fatal(err)
	}
	var id string
	for _, step := range []struct {
		q      query.ImportSessions
		want   string
		stored bool
	}{
		{query.ImportSessions{}, "new", false},
		{query.ImportSessions{All: true, Dry: true}, "readable", false},
		{query.ImportSessions{From: "claude", Only: "s"}, "imported", true},
		{query.ImportSessions{}, "exists", true},
		{query.ImportSessions{All: true}, "exists", true},
	} {
		rep, err := ask(t, x, step.q)
		if err != nil || len(rep.Found) != 1 || rep.Found[0].State != step.want || (rep.Found[0].Session != "") != step.stored {
			t.Fatalf("%+v: %+v, %v", step.q, rep, err)
		}
		if step.want == "imported" {
			if id = rep.Found[0].Session; strings.Contains(rep.Found[0].Title, key) || rep.Found[0].Messages != 3 {
				t.Errorf("%+v", rep.Found[0])
			}
		}
	}
	var said []string
	for e, err := range store.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case agent.SessionOpened:
			if b.Origin == nil || b.Origin.ID != "s" || b.Workdir != home || b.Version != "test" {
				t.Errorf("%+v", b)
			}
		case agent.InputAdded:
			said = append(said, b.Text)
		case agent.ModelAnswered:
			said = append(said, b.Answer.Message.Text())
			for _, c := range b.Answer.Message.Calls() {
				said = append(said, c.Tool+" "+string(c.Input))
			}
		case agent.CallFinished:
			said = append(said, b.Result.Text)
		}
	}
	all := strings.Join(said, "\n")
	for _, want := range []string{"Use ", "With ", "bash__exec ", "Authorization: token ", "It is "} {
		if !strings.Contains(all, want) || strings.Contains(all, key) {
			t.Errorf("no %q, or the key, in\n%s", want, all)
		}
	}
}

// A pipe in the place of a file is not waited for.
func TestImportOfAPipe(t *testing.T) {
	t.Parallel()
	x, _, home := newRig(t)
	pipe := filepath.Join(home, "pipe.jsonl")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, x, query.ImportSessions{Path: pipe}); agent.ProblemOf(err) == nil {
		t.Errorf("a pipe: %v", err)
	}
	rep, err := ask(t, x, query.ImportSessions{Path: pipe, From: "claude"})
	if err != nil || len(rep.Found) != 1 || rep.Found[0].State != "failed" {
		t.Errorf("a pipe of a product: %+v, %v", rep, err)
	}
}
