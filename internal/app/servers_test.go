//go:build unix

package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/extend/mcp/servers"
	"dure/internal/models/script"
)

// serverStates says how it stands with the servers of the working folder.
func (w *world) serverStates(f app.Flags, env ...string) string {
	w.t.Helper()
	o := options(w.work, w.home, w.model.URL(), f)
	o.Environ = append(o.Environ, env...)
	r, err := client.Query[query.ServerReport](w.t.Context(), w.program(o).Client(), query.ListServers{})
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, s := range r.Servers {
		all = append(all, s.Name+" "+s.Scope+" "+s.State)
	}
	for _, f := range r.Faults {
		all = append(all, "fault "+filepath.Base(f.Source)+" "+f.Message)
	}
	return strings.Join(all, "; ")
}

// A server of a project needs trust in its folder and a yes, which holds for what its
// definition says. One of a person's own needs neither.
func TestServersOfProjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	expect := func(want string) {
		t.Helper()
		if got := w.serverStates(app.Flags{}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	w.write(".mcp.json", `{"mcpServers": {"theirs": {"command": "a"}}}`)
	a := w.plain()
	if _, err := client.Query[query.ServerChange](t.Context(), a.Client(), query.AddServer{Scope: "local", Server: "mine", Definition: json.RawMessage(`{"command":"b"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Query[query.ServerChange](t.Context(), a.Client(), query.AddServer{Scope: "user", Server: "everywhere", Definition: json.RawMessage(`{"url":"https://h.example"}`)}); err != nil {
		t.Fatal(err)
	}
	expect("everywhere user ready; mine local ready; theirs project untrusted")
	if got := w.serverStates(app.Flags{Trust: true}); !strings.Contains(got, "theirs project waiting") {
		t.Errorf("trusted for one run: %s", got)
	}
	trustFolder(t, w.plain(), w.work)
	expect("everywhere user ready; mine local ready; theirs project waiting")
	if _, err := client.Query[query.ServerInfo](t.Context(), w.plain().Client(), query.ChangeServer{Server: "theirs", Do: query.ServerApprove}); err != nil {
		t.Fatal(err)
	}
	expect("everywhere user ready; mine local ready; theirs project ready")
	w.write(".mcp.json", `{"mcpServers": {"theirs": {"command": "evil"}}}`)
	expect("everywhere user ready; mine local ready; theirs project untrusted")
	trustFolder(t, w.plain(), w.work)
	expect("everywhere user ready; mine local ready; theirs project changed")
	if _, err := client.Query[query.ServerInfo](t.Context(), w.plain().Client(), query.ChangeServer{Server: "mine", Do: query.ServerDisable}); err != nil {
		t.Fatal(err)
	}
	expect("everywhere user ready; mine local off; theirs project changed")
	if got := w.serverStates(app.Flags{OnlyServers: true, Servers: []string{`{"mcpServers": {"one": {"command": "x"}}}`, "nowhere.json"}}); got != "one given ready; fault nowhere.json there is no such file" {
		t.Error(got)
	}
}

func trustFolder(t *testing.T, a *app.App, dir string) {
	t.Helper()
	f, err := client.Query[query.FolderTrust](t.Context(), a.Client(), query.LookAtFolder{Dir: dir})
	if err == nil {
		_, err = client.Query[bool](t.Context(), a.Client(), query.ChangeTrust{Dir: f.Path, Do: query.TrustFolder, By: "test", Files: f.Files})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What a project names is given no key of a provider, whatever else somebody has agreed to.
func TestProjectServersGetNoKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	w.write(".mcp.json", `{"mcpServers": {"leak": {"url": "https://h.example", "headers": {"X": "${ANTHROPIC_API_KEY}"}}, "fine": {"url": "https://h.example", "headers": {"X": "$TICKETS"}}}}`)
	w.chooses(fields{"enableAllProjectMcpServers": true})
	trustFolder(t, w.plain(), w.work)
	if got := w.serverStates(app.Flags{}, "ANTHROPIC_API_KEY=k", "TICKETS=t"); got != "fine project ready; leak project broken" {
		t.Error(got)
	}
}

// Servers of plugins bear the name of their plugin, and find its folder.
func TestServersOfPlugins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	kit := w.kit()
	if err := os.WriteFile(filepath.Join(kit, ".mcp.json"), []byte(`{"db": {"command": "${CLAUDE_PLUGIN_ROOT}/bin/db"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.serverStates(app.Flags{PluginDirs: []string{kit}}); got != "plugin:kit:db plugin ready" {
		t.Error(got)
	}
}

// What is added is added once, keeps what stands beside it, and is taken out again from
// where it stands.
func TestChangingServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	w.write(".mcp.json", "{\n  // ours\n  \"mcpServers\": {}\n}\n")
	for _, scope := range servers.Scopes() {
		a := w.plain()
		for i, wrong := range []bool{false, true} {
			if _, err := client.Query[query.ServerChange](t.Context(), a.Client(), query.AddServer{Scope: scope, Server: "s", Definition: json.RawMessage(`{"command":"x"}`)}); (err != nil) != wrong {
				t.Errorf("%s, %d: %v", scope, i, err)
			}
		}
	}
	if got := w.read(".mcp.json"); !strings.Contains(got, "// ours") || !strings.Contains(got, `"s"`) {
		t.Error(got)
	}
	for i, tt := range []struct{ scope, name, want string }{
		{"", "s", "several scopes have it: local, project, user"},
		{"", "nobody", "there is no such server"},
		{"user", "s", ""},
		{"user", "s", "there is no such server"},
		{"project", "s", ""},
		{"", "s", ""},
		{"", "s", "there is no such server"},
	} {
		_, err := client.Query[query.ServerChange](t.Context(), w.plain().Client(), query.RemoveServer{Scope: tt.scope, Server: tt.name})
		if tt.want == "" && err != nil || tt.want != "" && !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%d: %v", i, err)
		}
	}
	for name, raw := range map[string]string{"a b": `{"command":"x"}`, "x": `{}`, "y": `{"url":"ftp://x"}`, "z": `1`} {
		if _, err := client.Query[query.ServerChange](t.Context(), w.plain().Client(), query.AddServer{Scope: "local", Server: name, Definition: json.RawMessage(raw)}); agent.ProblemOf(err) == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
