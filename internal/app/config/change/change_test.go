package change

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/app/config/live"
	"dure/internal/safety/trust"
	"dure/internal/safety/trust/folders"
)

// open returns the extension in a folder, with a home of its own, and what trusts folders.
func open(t *testing.T, home, workdir string) (*Extension, *folders.Extension) {
	t.Helper()
	settings, err := live.Open(config.Sources{ReadFile: config.ReadFile, UserHome: home, Workdir: workdir, OS: runtime.GOOS, Getenv: func(name string) string {
		return map[string]string{"DURE_HOME": filepath.Join(home, ".dure")}[name]
	}}, false)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _ := settings.Now()
	trusted := folders.New(folders.Config{Store: trust.In(cfg.Data), Workdir: workdir, Trusted: cfg.Trusted, Logger: slog.New(slog.DiscardHandler)})
	return New(Config{Live: settings, Started: cfg, Keep: trusted.Keep, Mask: func(text string) string { return strings.ReplaceAll(text, "(hidden)", "MASKED") }}), trusted
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
	a, _ := open(t, home, work)
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
		got, err := a.Set(t.Context(), step.scope, step.key, step.value)
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
	if c, err := a.Unset(t.Context(), "user", "maxSteps", ""); err != nil || string(c.Value) != "null" || strings.Contains(readText(t, user), "max_steps") {
		t.Error(c, err)
	}
	if c, err := a.Unset(t.Context(), "user", "maxSteps", ""); err != nil || !c.Same {
		t.Error(c, err)
	}
}

// What could not be read afterwards is not written, whoever is at fault.
func TestSetSettingRefuses(t *testing.T) {
	t.Parallel()
	home, work := t.TempDir(), t.TempDir()
	user := filepath.Join(home, ".dure", "settings.json")
	writeFile(t, user, "{\n}\n")
	a, _ := open(t, home, work)
	for _, tt := range []struct{ key, value, want string }{
		{"maxSteps", "many", "maxSteps is a string and has to be a whole number"},
		{"permissions.defaultMode", "yolo", `permissions.defaultMode is "yolo" and has to be one of: default, acceptEdits, plan, dontAsk, bypassPermissions`},
		{"permissions.deny", "(", "it names no tool"},
		{"sandbox", "{}", "there is no setting"},
		{"maxStep", "1", "there is no setting"},
		{"env.A B", "x", "no name of a variable"},
		{"hooks", "[]", "hooks"},
		{"compact.threshold", "3", "a number from 0.2 to 0.95"},
	} {
		if _, err := a.Set(t.Context(), "user", tt.key, tt.value); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s = %s: %v", tt.key, tt.value, err)
		}
	}
	if got := readText(t, user); got != "{\n}\n" {
		t.Error(got)
	}
	writeFile(t, user, "{ // broken\n")
	if _, err := a.Set(t.Context(), "user", "maxSteps", "1"); agent.ProblemOf(err) == nil || readText(t, user) != "{ // broken\n" {
		t.Error(err)
	}
	if _, err := a.Set(t.Context(), "managed", "maxSteps", "1"); agent.ProblemOf(err) == nil {
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
	a, _ := open(t, home, work)
	if _, err := a.Set(t.Context(), "user", "maxSteps", "3"); err != nil || !strings.Contains(readText(t, own), "3") {
		t.Errorf("%v: %s", err, readText(t, own))
	}
	if info, err := os.Lstat(user); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the user's link is gone", err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(work, ".dure")); err != nil {
		t.Fatal(err)
	}
	for _, scope := range []string{"project", "local"} {
		if _, err := a.Set(t.Context(), scope, "language", "ko"); err == nil {
			t.Errorf("%s: a repository's link is written through", scope)
		}
		if _, err := a.make(t.Context(), query.MakeSettings{Scope: scope}); err == nil && scope == "local" {
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
	_, folders := open(t, home, work)
	f, err := folders.Look(work)
	if err == nil {
		_, err = folders.Answers()[3].Do(t.Context(), query.ChangeTrust{Dir: f.Path, Do: query.TrustFolder, Files: f.Files})
	}
	if err != nil {
		t.Fatal(err)
	}
	b, folders := open(t, home, work)
	if c, err := b.Set(t.Context(), "project", "permissions.allow", "Bash(go test)"); err != nil || !c.Counts {
		t.Error(c, err)
	}
	if f, err := folders.Look(work); err != nil || !f.State.Trusted {
		t.Errorf("%+v, %v", f.State, err)
	}
	writeFile(t, filepath.Join(work, ".claude", "settings.json"), `{"permissions":{"allow":["Bash"]}}`)
	if _, err := b.Set(t.Context(), "project", "permissions.allow", "Bash(go vet)"); err != nil {
		t.Error(err)
	}
	if f, err := folders.Look(work); err != nil || f.State.Trusted {
		t.Errorf("what somebody else has changed is trusted: %+v, %v", f.State, err)
	}
}

// Changes at the same time do not lose each other.
func TestSettingsAtTheSameTime(t *testing.T) {
	t.Parallel()
	home, work := t.TempDir(), t.TempDir()
	a, _ := open(t, home, work)
	const n = 8
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			_, errs[i] = a.Set(context.Background(), "user", "permissions.deny", fmt.Sprintf("Bash(x%d)", i))
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

// Whoever waits in vain for another program to be done with the settings gets an error.
func TestSettingsAreChangedElsewhere(t *testing.T) {
	t.Parallel()
	x := New(Config{Started: config.Config{Data: t.TempDir()}})
	unlock, err := x.lock(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.lock(t.Context(), 50*time.Millisecond); err == nil || err.Error() != "another program is changing settings" {
		t.Errorf("the second one: %v", err)
	}
	unlock()
	if unlock, err = x.lock(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// The queries answer of settings as people name them.
func TestAnswers(t *testing.T) {
	t.Parallel()
	home, work := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(home, ".dure", "settings.json"), `{"maxSteps": 5, "env": {"TOKEN": "s3cret"}}`)
	x, _ := open(t, home, work)
	ask := func(q agent.Query) string {
		for _, a := range x.Answers() {
			if reflect.TypeOf(a.Query) != reflect.TypeOf(q) {
				continue
			}
			answer, err := a.Do(t.Context(), q)
			if err != nil {
				return err.Error()
			}
			data, _ := json.Marshal(answer)
			return strings.ReplaceAll(string(data), filepath.Join(home, ".dure"), "HOME")
		}
		return "nobody answers it"
	}
	for _, tt := range []struct {
		q    agent.Query
		want string
	}{
		{query.ListSettings{}, `[{"key":"env","value":"(hidden)","origin":{"layer":"user","where":"HOME/settings.json:1:17"}},{"key":"maxSteps","value":5,"origin":{"layer":"user","where":"HOME/settings.json:1:2"}}]`},
		{query.ListSettings{Masked: true}, `[{"key":"env","value":"MASKED","origin":{"layer":"user","where":"HOME/settings.json:1:17"}},{"key":"maxSteps","value":5,"origin":{"layer":"user","where":"HOME/settings.json:1:2"}}]`},
		{query.FindSettings{Name: "max_steps", Language: "ko"}, `{"keys":[{"path":"maxSteps","type":"count","meaning":"한 차례의 단계 수, 0 = 제한 없음","default":"0","most":2147483647,"who":"tighter","live":false}]}`},
		{query.FindSettings{Name: "network.mod"}, `{"keys":[],"nearest":"network.mode"}`},
		{query.ExplainSetting{Key: "max_step"}, `there is no setting "max_step"`},
		{query.ExplainSetting{Key: "env.TOKEN"}, `{"key":"env.TOKEN","value":"(hidden)","layers":[{"key":"env.TOKEN","origin":{"layer":"user","where":"HOME/settings.json:1:17"},"value":"(hidden)","counts":true}]}`},
		{query.MakeSettings{Scope: "managed"}, `there are no settings of the scope "managed" here`},
		{query.ChangeSetting{Do: query.SettingUnset, Scope: "user", Key: "MaxSteps"}, `{"key":"maxSteps","scope":"user","path":"HOME/settings.json","value":null,"live":false,"counts":false}`},
		{query.ChangeSetting{Do: "Set", Scope: "user", Key: "maxSteps"}, `a setting cannot be changed by "Set"`},
		{query.CheckSettings{}, `true`},
	} {
		if got := ask(tt.q); got != tt.want {
			t.Errorf("%T: %s, want %s", tt.q, got, tt.want)
		}
	}
	var group query.FoundSettings
	if err := json.Unmarshal([]byte(ask(query.FindSettings{Name: "budget"})), &group); err != nil || len(group.Keys) != 3 || !group.Keys[0].IsGroup() || group.Keys[1].Path != "budget.tokens" {
		t.Errorf("%+v, %v", group, err)
	}
	if got := ask(query.ListSettingsFiles{}); !strings.Contains(got, `{"scope":"user","path":"HOME/settings.json","exists":true,"ours":true}`) {
		t.Error(got)
	}
}
