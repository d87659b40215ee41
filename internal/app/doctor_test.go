package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/agent/query"
	"dure/client"
	"dure/internal/base/keys"
	"dure/internal/frontend/text"
	"dure/internal/safety/trust"
)

// lockedRing is a keychain that cannot be asked.
type lockedRing struct{}

func (lockedRing) Get(string) (string, error) { return "", errors.New("it is locked") }
func (lockedRing) Set(string, string) error   { return errors.New("it is locked") }
func (lockedRing) Delete(string) error        { return errors.New("it is locked") }

// diagnosed is what a diagnosis says, as name and code.
func diagnosed(t *testing.T, settings string, ring keys.Ring, environ ...string) []query.Finding {
	t.Helper()
	dir := t.TempDir()
	a, err := New(Options{
		Workdir: dir, UserHome: dir, Version: "1.2.3", Flags: Flags{Settings: settings}, Mechanisms: []string{},
		Environ: append([]string{"HOME=" + dir, "DURE_HOME=" + filepath.Join(dir, "dure")}, environ...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	a.models.Config.Keys.Ring = ring
	list, err := client.Query[[]query.Finding](t.Context(), a.Client(), query.Diagnose{})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func codes(list []query.Finding, state string) (found []string) {
	for _, f := range list {
		if state == "" || f.State == state {
			found = append(found, f.Code)
		}
	}
	return found
}

// endpoint is a server whose clock is off by so much.
func endpoint(t *testing.T, off time.Duration) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	model := []string{"ANTHROPIC_API_KEY=sk-secret", "DURE_MODEL=sonnet"}
	at := func(url string) []string { return append(slices.Clone(model), "ANTHROPIC_BASE_URL="+url) }
	for _, tt := range []struct {
		name     string
		settings string
		ring     keys.Ring
		environ  []string
		want     []string // codes that must be there
	}{
		{"all well", "", nil, at(endpoint(t, 0)), []string{"model.ok", "provider", "key.ok", "endpoint.ok", "clock.ok", "keychain.off", "sandbox.none", "disk.ok"}},
		{"no key", "", nil, nil, []string{"problem.no-key", "endpoint.none"}},
		{"no such model", `{"model": "opsu"}`, nil, nil, []string{"problem.unknown-model"}},
		{"clock", "", nil, at(endpoint(t, -7*time.Minute)), []string{"clock.fail"}},
		{"nobody there", "", nil, at("http://127.0.0.1:1"), []string{"endpoint.fail"}},
		{"no TLS", "", nil, at(strings.Replace(endpoint(t, 0), "http:", "https:", 1)), []string{"endpoint.tls"}},
		{"dead proxy", `{"network": {"proxy": "http://user:sk-secret@127.0.0.1:1"}}`, nil, at("http://model.example"), []string{"proxy.set", "proxy.fail", "endpoint.fail"}},
		{"models off", `{"ai": false}`, nil, model, []string{"ai.off", "problem.ai-off", "endpoint.closed"}},
		{"network off", `{"network": {"mode": "off"}}`, nil, model, []string{"network.off", "problem.network-mode", "endpoint.closed"}},
		{"network inside", `{"network": {"mode": "internal", "allowHosts": ["*.example"]}}`, nil, model, []string{"network.internal"}},
		{"keychain", "", lockedRing{}, at(endpoint(t, 0)), []string{"keychain.none"}},
		{"fallback", `{"fallbackModel": "haiku,openai/gpt-6-sol"}`, nil, model, []string{"fallback.ok", "fallback.bad"}},
		{"search", `{"search": {"kind": "brave", "keyEnv": "BRAVE_KEY"}}`, nil, model, []string{"search.key"}},
		{"notes", `{"permisionMode": "plan"}`, nil, model, []string{"settings.note", "settings.files"}},
		{"anything goes", `{"permissionMode": "bypassPermissions"}`, nil, model, []string{"mode.bypassPermissions"}},
		{"updates", `{"updates": {"check": true, "url": "https://u.example/v"}}`, nil, model, []string{"updates.on"}},
	} {
		if len(tt.environ) > 0 && !slices.ContainsFunc(tt.environ, func(s string) bool { return strings.HasPrefix(s, "ANTHROPIC_BASE_URL=") }) {
			tt.environ = at(endpoint(t, 0))
			if strings.Contains(tt.settings, `"ai"`) || strings.Contains(tt.settings, `"off"`) {
				tt.environ = at("https://model.example")
			}
		}
		list := diagnosed(t, tt.settings, tt.ring, tt.environ...)
		got := codes(list, "")
		for _, want := range tt.want {
			if !slices.Contains(got, want) {
				t.Errorf("%s: %s is missing in %v", tt.name, want, got)
			}
		}
		for _, f := range list {
			_, detail, fix := text.For("ko").Finding(f)
			if f.Code == "" || f.Detail == "" || detail == "" || f.Group == "" {
				t.Errorf("%s: %+v says nothing in one language", tt.name, f)
			}
			if s := fmt.Sprint(f.Detail, f.Fix, f.Args["proxy"], detail, fix); strings.Contains(s, "sk-secret") || strings.Contains(s, "{") {
				t.Errorf("%s: %s", tt.name, s)
			}
			if f.State == query.Bad && f.Fix == "" {
				t.Errorf("%s: %s fails, and nothing says what to do", tt.name, f.Name)
			}
		}
	}
}

// Of a folder that has changed since it was trusted, it is said what has.
func TestDiagnoseTrust(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state := func() string {
		a, err := New(Options{Workdir: dir, UserHome: dir, Environ: []string{"HOME=" + dir, "DURE_HOME=" + filepath.Join(dir, "home")}, Mechanisms: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		f := a.trust.Findings(t.Context())[0]
		return f.Code + " " + f.Args["list"]
	}
	put := func(text string) {
		if err := os.MkdirAll(filepath.Join(dir, ".dure"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".dure", "settings.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("{}")
	if got := state(); got != "trust.no " {
		t.Errorf("before: %s", got)
	}
	store := trust.In(filepath.Join(dir, "home"))
	c, _, err := store.Look(dir)
	if err == nil {
		err = store.Trust(c, "test")
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := state(); got != "trust.yes " {
		t.Errorf("trusted: %s", got)
	}
	put(`{"hooks": {}}`)
	if got := state(); got != "trust.stale .dure/settings.json" {
		t.Errorf("changed: %s", got)
	}
}

func TestToolNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := New(Options{Workdir: dir, UserHome: dir, Environ: []string{"HOME=" + dir, "DURE_HOME=" + filepath.Join(dir, "dure")}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.Query[query.ToolReport](t.Context(), a.Client(), query.ListTools{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Shown)
	}
	for _, want := range []string{"Bash", "Edit", "Read"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
}
