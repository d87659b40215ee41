package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each layer's word about a key, and why it counts or does not.
func TestExplain(t *testing.T) {
	skipWindows(t)
	m := machine{
		files: map[string]string{
			theirUser:    `{"model": "opus", "permissions": {"deny": ["Read(.env)", "WebFetch"]}, "env": {"TOKEN": "s3cret"}}`,
			userFile:     "{\n  // mine\n  \"model\": \"haiku\", \"max_steps\": 9, \"sandbox\": {\"managedOnly\": true}}",
			projectFile:  `{"model": "sonnet", "permissions": {"allow": ["Bash(go test)"], "deny": ["WebSearch"], "defaultMode": "bypassPermissions"}, "max_steps": 20}`,
			theirProject: `{"env": {"PATH": "/x", "OTHER": "y"}}`,
			adminFile:    `{"permissions": {"ask": ["Write"]}}`,
		},
		env: map[string]string{"DURE_MODEL": "m-env"},
	}
	for _, tt := range []struct {
		trusted bool
		path    string
		want    string
	}{
		{false, "model", `"m-env"
built-in  "claude-sonnet-4-6" - overridden by environment (DURE_MODEL)
user (/home/u/.claude/settings.json:1:2) "opus" - overridden by environment (DURE_MODEL)
user (/home/u/.dure/settings.json:3:3) "haiku" - overridden by environment (DURE_MODEL)
project (/repo/.dure/settings.json:1:2) "sonnet" - overridden by environment (DURE_MODEL)
environment (DURE_MODEL) "m-env" + `},
		{false, "permissions.deny", `["Read(.env)","WebFetch","WebSearch"]
user (/home/u/.claude/settings.json:1:35) ["Read(.env)","WebFetch"] + 
project (/repo/.dure/settings.json:1:65) ["WebSearch"] + `},
		{false, "permissions.allow", `null
project (/repo/.dure/settings.json:1:37) ["Bash(go test)"] - untrusted Bash(go test)`},
		{true, "permissions.allow", `["Bash(go test)"]
project (/repo/.dure/settings.json:1:37) ["Bash(go test)"] + `},
		{true, "permissions.defaultMode", `"default"
built-in  "default" + 
project (/repo/.dure/settings.json:1:88) "bypassPermissions" - repository`},
		{false, "maxSteps", `9
built-in  0 - overridden by user (/home/u/.dure/settings.json:3:21)
user (/home/u/.dure/settings.json:3:21) 9 + 
project (/repo/.dure/settings.json:1:125) 20 - repository`},
		{false, "sandbox.managedOnly", `false
built-in  false + 
user (/home/u/.dure/settings.json:3:49) true - managed`},
		{false, "env", `"(hidden)"
user (/home/u/.claude/settings.json:1:72) "(hidden)" + 
project (/repo/.claude/settings.json:1:2) "(hidden)" - untrusted OTHER, PATH`},
		{false, "env.TOKEN", `"(hidden)"
user (/home/u/.claude/settings.json:1:72) "(hidden)" + `},
	} {
		src := m.sources()
		src.Trusted = tt.trusted
		e, err := Explain(src, tt.path)
		if err != nil {
			t.Fatal(err)
		}
		got := string(e.Value)
		for _, s := range e.Layers {
			counts := "+ "
			if !s.Counts {
				counts = "- " + s.Why
			}
			if s.By != nil {
				counts += " by " + s.By.String()
			}
			if len(s.Left) > 0 {
				counts += " " + strings.Join(s.Left, ", ")
			}
			origin := s.Origin.String()
			if s.Origin.Where == "" {
				origin += " "
			}
			got += fmt.Sprintf("\n%s %s %s", origin, s.Value, counts)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s, trusted %v: %s", tt.path, tt.trusted, d)
		}
	}
	list, err := All(m.sources(), false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		got = append(got, fmt.Sprintf("%s = %s (%s)", s.Key, s.Value, s.Origin.Layer))
	}
	want := []string{`env = "(hidden)" (user)`, "maxSteps = 9 (user)", `model = "m-env" (environment)`, `permissions.ask = ["Write"] (managed)`, `permissions.deny = ["Read(.env)","WebFetch","WebSearch"] (project)`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A key is found in any spelling, with what may have been meant where it is not.
func TestFind(t *testing.T) {
	for _, tt := range []struct{ name, path, nearest string }{
		{"max_steps", "maxSteps", ""},
		{"MaxSteps", "maxSteps", ""},
		{"permissions.default_mode", "permissions.defaultMode", ""},
		{"providers.My_Own.base_url", "providers.My_Own.baseUrl", ""},
		{"env.FOO_BAR", "env.FOO_BAR", ""},
		{"skillOverrides.a.b", "skillOverrides.a.b", ""},
		{"sandbox", "sandbox", ""},
		{"maxStep", "", "maxSteps"},
		{"permissions.alow", "", "permissions.allow"},
		{"defaultMode", "", "permissions.defaultMode"},
		{"permissionMode", "permissions.defaultMode", ""},
		{"nothing.like.it", "", ""},
		{"model.x", "", "model"},
		{"", "", ""},
	} {
		if _, path, nearest := Find(tt.name); path != tt.path || nearest != tt.nearest {
			t.Errorf("%s: %q, %q", tt.name, path, nearest)
		}
	}
}
