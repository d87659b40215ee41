package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// A session of another product is stored without the secrets that it was kept with.
func TestImportIsMasked(t *testing.T) {
	t.Parallel()
	const key = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	w := newWorld(t, script.Script{}, script.Options{})
	path := filepath.Join(w.home, "other.jsonl")
	err := os.WriteFile(path, []byte(`{"type":"user","uuid":"1","sessionId":"s","message":{"role":"user","content":"Use `+key+`"}}
{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"With `+key+`"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"curl -H 'Authorization: token `+key+`'"}}]}}
{"type":"user","uuid":"3","parentUuid":"2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"It is `+key+`"}]}}
{"type":"custom-title","customTitle":"About `+key+`"}
`), 0o600)
	if err != nil {
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
}
