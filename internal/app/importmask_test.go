//go:build unix

package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// A session of another product is stored without the secrets that it was kept with,
// and a pipe in the place of one is not waited for.
func TestImportIsMasked(t *testing.T) {
	t.Parallel()
	const key = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	w := newWorld(t, script.Script{}, script.Options{})
	path, pipe := filepath.Join(w.home, "other.jsonl"), filepath.Join(w.home, "pipe.jsonl")
	err := os.WriteFile(path, []byte(`{"type":"user","uuid":"1","sessionId":"s","message":{"role":"user","content":"Use `+key+`"}}
{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"With `+key+`"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"curl -H 'Authorization: token `+key+`'"}}]}}
{"type":"user","uuid":"3","parentUuid":"2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"It is `+key+`"}]}}
{"type":"custom-title","customTitle":"About `+key+`"}
`), 0o600)
	if err := errors.Join(err, syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	c := w.program(options(w.work, w.home, w.model.URL(), app.Flags{})).Client()
	rep, err := client.Query[query.ImportReport](t.Context(), c, query.ImportSessions{Path: path})
	if err != nil || len(rep.Found) != 1 || rep.Found[0].State != "imported" || strings.Contains(rep.Found[0].Title, key) {
		t.Fatalf("%+v, %v", rep, err)
	}
	logs, err := filepath.Glob(filepath.Join(w.home, "dure", "sessions", "*", "*", "log.*"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	data, err := os.ReadFile(logs[0])
	if log := string(data); err != nil || strings.Contains(log, key) || !strings.Contains(log, "It is ") {
		t.Errorf("%v: %s", err, log)
	}
	if _, err := client.Query[query.ImportReport](t.Context(), c, query.ImportSessions{Path: pipe}); agent.ProblemOf(err) == nil {
		t.Errorf("a pipe: %v", err)
	}
	rep, err = client.Query[query.ImportReport](t.Context(), c, query.ImportSessions{Path: pipe, From: "claude"})
	if err != nil || len(rep.Found) != 1 || rep.Found[0].State != "failed" {
		t.Errorf("a pipe of a product: %+v, %v", rep, err)
	}
}
