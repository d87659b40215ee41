package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/agent/query"
)

// settingsApp is the program in a folder, with a home of its own.
func settingsApp(t *testing.T, home, workdir string) *App {
	t.Helper()
	a, err := New(Options{Environ: []string{"DURE_HOME=" + filepath.Join(home, ".dure")}, UserHome: home, Workdir: workdir, Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func writeFile(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A change says what it has done, and whether it counts.
func TestSetSetting(t *testing.T) {
	t.Parallel()
	home, work := t.TempDir(), t.TempDir()
	user := filepath.Join(home, ".dure", "settings.json")
	writeFile(t, user, "{\n  // mine\n  \"permission_mode\": \"plan\", // careful\n  \"max_steps\": 5\n}\n")
	a := settingsApp(t, home, work)
	for _, step := range []struct {
		scope, key, value string
		want              query.SettingChange
	}{
		{"user", "maxSteps", "7", query.SettingChange{Value: json.RawMessage("7"), Counts: true}},
		{"user", "permissions.defaultMode", "acceptEdits", query.SettingChange{Value: json.RawMessage(`"acceptEdits"`), Counts: true}},
		{"project", "permissions.defaultMode", "bypassPermissions", query.SettingChange{Value: json.RawMessage(`"bypassPermissions"`), Why: "repository"}},
		{"project", "model", "haiku", query.SettingChange{Value: json.RawMessage(`"haiku"`), Counts: true}},
		{"user", "model", "opus", query.SettingChange{Value: json.RawMessage(`"opus"`), Why: "overridden", By: "project (" + filepath.Join(work, ".dure", "settings.json") + ":5:3)"}},
		{"user", "sandbox.managedOnly", "on", query.SettingChange{Value: json.RawMessage("true"), Why: "managed"}},
		{"user", "env.API_TOKEN", "s3cret", query.SettingChange{Value: json.RawMessage(`"(hidden)"`), Counts: true, Secret: true}},
		{"user", "skillOverrides.a.b", "off", query.SettingChange{Value: json.RawMessage(`"off"`), Counts: true}},
	} {
		got, err := a.SetSetting(t.Context(), step.scope, step.key, step.value)
		if err != nil {
			t.Errorf("%s: %v", step.key, err)
			continue
		}
		step.want.Key, step.want.Scope, step.want.Path = step.key, step.scope, user
		if step.scope == "project" {
			step.want.Path = filepath.Join(work, ".dure", "settings.json")
		}
		if d := cmp.Diff(step.want, got); d != "" {
			t.Errorf("%s: %s", step.key, d)
		}
	}
	want := "{\n  // mine\n  \"max_steps\": 7,\n  \"permissions\": {\n    \"defaultMode\": \"acceptEdits\"\n  },\n  \"model\": \"opus\",\n" +
		"  \"sandbox\": {\n    \"managedOnly\": true\n  },\n  \"env\": {\n    \"API_TOKEN\": \"s3cret\"\n  },\n  \"skillOverrides\": {\n    \"a.b\": \"off\"\n  }\n}\n"
	if d := cmp.Diff(want, readText(t, user)); d != "" {
		t.Error(d)
	}
	if c, err := a.UnsetSetting(t.Context(), "user", "maxSteps", ""); err != nil || string(c.Value) != "null" || strings.Contains(readText(t, user), "max_steps") {
		t.Error(c, err)
	}
	if c, err := a.UnsetSetting(t.Context(), "user", "maxSteps", ""); err != nil || !c.Same {
		t.Error(c, err)
	}
}

// What could not be read afterwards is not written, whoever is at fault.
func TestSetSettingRefuses(t *testing.T) {
	t.Parallel()
	home, work := t.TempDir(), t.TempDir()
	user := filepath.Join(home, ".dure", "settings.json")
	writeFile(t, user, "{\n}\n")
	a := settingsApp(t, home, work)
	for _, tt := range []struct{ key, value, want string }{
		{"maxSteps", "many", "maxSteps is a string and has to be a whole number"},
		{"permissions.defaultMode", "yolo", `permissions.defaultMode is "yolo" and has to be one of: default, acceptEdits, plan, dontAsk, bypassPermissions`},
		{"permissions.deny", "(", "it names no tool"},
		{"env.A B", "x", "no name of a variable"},
		{"hooks", "[]", "hooks"},
		{"compact.threshold", "3", "a number from 0.2 to 0.95"},
	} {
		if _, err := a.SetSetting(t.Context(), "user", tt.key, tt.value); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s = %s: %v", tt.key, tt.value, err)
		}
	}
	if got := readText(t, user); got != "{\n}\n" {
		t.Error(got)
	}
	writeFile(t, user, "{ // broken\n")
	if _, err := a.SetSetting(t.Context(), "user", "maxSteps", "1"); agent.ProblemOf(err) == nil || readText(t, user) != "{ // broken\n" {
		t.Error(err)
	}
	if _, err := a.SetSetting(t.Context(), "managed", "maxSteps", "1"); agent.ProblemOf(err) == nil {
		t.Error("the administrator's file is written")
	}
}

// A repository's links lead nowhere; the user's own are followed.
func TestSettingsThroughLinks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	home, work, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	victim, own := filepath.Join(elsewhere, "victim"), filepath.Join(elsewhere, "own.json")
	writeFile(t, victim, "{}")
	writeFile(t, own, "{}")
	user := filepath.Join(home, ".dure", "settings.json")
	if err := os.MkdirAll(filepath.Dir(user), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, user); err != nil {
		t.Fatal(err)
	}
	a := settingsApp(t, home, work)
	if _, err := a.SetSetting(t.Context(), "user", "maxSteps", "3"); err != nil || !strings.Contains(readText(t, own), "3") {
		t.Errorf("%v: %s", err, readText(t, own))
	}
	if info, err := os.Lstat(user); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the user's link is gone", err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(work, ".dure")); err != nil {
		t.Fatal(err)
	}
	for _, scope := range []string{"project", "local"} {
		if _, err := a.SetSetting(t.Context(), scope, "language", "ko"); err == nil {
			t.Errorf("%s: a repository's link is written through", scope)
		}
		if _, err := a.MakeSettings(scope); err == nil && scope == "local" {
			t.Errorf("%s: a file is made behind a repository's link", scope)
		}
	}
	if readText(t, victim) != "{}" {
		t.Error("written to")
	}
}

// A folder stays trusted when its user changes its settings through us, and only then.
func TestSettingsStayTrusted(t *testing.T) {
	t.Parallel()
	home, work := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(work, ".dure", "settings.json"), "{}\n")
	a := settingsApp(t, home, work)
	f, err := a.trust.Look(work)
	if err == nil {
		_, err = a.query(t.Context(), query.ChangeTrust{Dir: f.Path, Do: query.TrustFolder, Files: f.Files})
	}
	if err != nil {
		t.Fatal(err)
	}
	b := settingsApp(t, home, work)
	if c, err := b.SetSetting(t.Context(), "project", "permissions.allow", "Bash(go test)"); err != nil || !c.Counts {
		t.Error(c, err)
	}
	if f, err := b.trust.Look(work); err != nil || !f.State.Trusted {
		t.Errorf("%+v, %v", f.State, err)
	}
	writeFile(t, filepath.Join(work, ".claude", "settings.json"), `{"permissions":{"allow":["Bash"]}}`)
	if _, err := b.SetSetting(t.Context(), "project", "permissions.allow", "Bash(go vet)"); err != nil {
		t.Error(err)
	}
	if f, err := b.trust.Look(work); err != nil || f.State.Trusted {
		t.Errorf("what somebody else has changed is trusted: %+v, %v", f.State, err)
	}
}

// Changes at the same time do not lose each other.
func TestSettingsAtTheSameTime(t *testing.T) {
	t.Parallel()
	home, work := t.TempDir(), t.TempDir()
	a := settingsApp(t, home, work)
	const n = 8
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			_, errs[i] = a.SetSetting(context.Background(), "user", "permissions.deny", fmt.Sprintf("Bash(x%d)", i))
		})
	}
	wg.Wait()
	text := readText(t, filepath.Join(home, ".dure", "settings.json"))
	for i := range n {
		if errs[i] != nil || !strings.Contains(text, fmt.Sprintf("Bash(x%d)", i)) {
			t.Errorf("%d: %v in %s", i, errs[i], text)
		}
	}
}

// A file for another program that breaks while this one runs closes it until it is
// mended: what it forbade held until then.
func TestTheirSettingsReload(t *testing.T) {
	t.Parallel()
	home, work := t.TempDir(), t.TempDir()
	path := filepath.Join(home, ".claude", "settings.json")
	writeFile(t, path, `{"permissions": {"deny": ["WebFetch"]}}`)
	a := settingsApp(t, home, work)
	denied := func() (all []string) {
		cfg, _ := a.permissions.Now()
		for _, r := range cfg.Deny {
			all = append(all, r.Text)
		}
		return all
	}
	for _, step := range []struct{ file, want string }{
		{`{"permissions": {"deny": ["WebFetch"]}}`, "WebFetch"},
		{`{"permissions": {"deny": ["WebFetch", "WebSearch"]}}`, "WebFetch WebSearch"},
		{`{"permissions": {"deny": [`, "*"},
		{`{"permissions": {"deny": ["WebFetch"]}, "theme": "dark"}`, "WebFetch"},
	} {
		writeFile(t, path, step.file)
		if got := strings.Join(denied(), " "); got != step.want {
			t.Errorf("%s: denied %s, want %s", step.file, got, step.want)
		}
	}
}

// A model that was chosen for another program counts where there is a key for it.
func TestBorrowedModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key, theirs, want string
	}{
		{"ANTHROPIC_API_KEY", "opus[1m]", "opus"},
		{"OPENAI_API_KEY", "opus", ""},
		{"ANTHROPIC_API_KEY", "nobody-knows-this", ""},
		{"ANTHROPIC_API_KEY", "default", ""},
	} {
		home := t.TempDir()
		writeFile(t, filepath.Join(home, ".claude", "settings.json"), `{"model": "`+tt.theirs+`"}`)
		a, err := New(Options{Environ: []string{"DURE_HOME=" + filepath.Join(home, ".dure"), tt.key + "=x"}, UserHome: home, Workdir: t.TempDir(), Version: "1.0.0"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.models.Usual("code")
		if err != nil || (got == tt.theirs || strings.HasPrefix(got, "opus")) != (tt.want != "") {
			t.Errorf("%s with %s: %s, %v", tt.theirs, tt.key, got, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
