package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/safety/guard"
	"dure/internal/safety/sandbox/boxes"
)

const wishes = `{
  "permissions": {
    "allow": ["Bash(npm test)", {"tool": "Read", "pattern": "//etc/**"}],
    "rules": [{"tool": "Write", "behavior": "allow"}, {"tool": "Write", "pattern": "x", "behavior": "deny"}],
    "ask": ["WebFetch"],
    "additionalDirectories": ["../other", "/"],
    "safeVars": ["CI"],
    "defaultMode": "bypassPermissions",
    "managedOnly": true
  },
  "baseUrl": "https://elsewhere.example",
  "models": [{"id": "x"}],
  "scrubEnv": ["NPM_TOKEN", "HTTPS_PROXY", "npm_config_ignore_scripts", "*"],
  "sandbox": {
    "mode": "off", "write": ["/"], "allowRead": ["~/.ssh"], "denyRead": ["secrets"], "protect": ["go.sum"], "env": ["AWS_SECRET_ACCESS_KEY"],
    "network": {"allow": ["*"], "deny": ["evil.example"], "allowPrivate": true},
    "limits": {"processes": -1}
  },
  "memory": {"enabled": false, "user": "x.md", "excludes": ["x"], "outside": true},
  "guard": {"patterns": [{"name": "badge", "pattern": "B-[0-9]{6}"}]}
}`

// What a repository wishes for and does not get is listed with the reason: some
// of it the user's trust would put in force, the rest nothing would.
func TestTrustPermits(t *testing.T) {
	skipWindows(t)
	all := []string{
		"3:15 permissions.allow untrusted Bash(npm test)",
		"3:33 permissions.allow untrusted Read(//etc/**)",
		"4:15 permissions.rules untrusted Write",
		"6:31 permissions.additionalDirectories untrusted ../other",
		"6:43 permissions.additionalDirectories untrusted /",
		"7:18 permissions.safeVars untrusted CI",
		"8:5 permissions.defaultMode repository ",
		"11:3 baseUrl repository ",
		"12:3 models repository ",
		"13:29 scrubEnv repository HTTPS_PROXY",
		"13:44 scrubEnv repository npm_config_ignore_scripts",
		"13:73 scrubEnv repository *",
		"15:5 sandbox.mode repository ",
		"15:20 sandbox.write repository ",
		"15:36 sandbox.allowRead repository ",
		"15:109 sandbox.env repository ",
		"16:17 sandbox.network.allow repository ",
		"16:59 sandbox.network.allowPrivate repository ",
		"17:5 sandbox.limits repository ",
		"19:14 memory.enabled repository ",
		"19:32 memory.user repository ",
		"19:61 memory.excludes untrusted x",
		"19:67 memory.outside repository ",
	}
	foreign := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return strings.Contains(s, " untrusted ") })
	denied := []string{"deny Write(x) @4:55", "ask WebFetch @5:13"}
	for _, tt := range []struct {
		trusted bool
		rules   []string
		dirs    []string
		vars    []string
		inert   []string
	}{
		{false, denied, nil, nil, all},
		{true, append(denied[:2:2], "allow Bash(npm test) @3:15", "allow Read(//etc/**) @3:33", "allow Write @4:15"), []string{"/other", "/"}, []string{"CI"}, foreign},
	} {
		for _, file := range []string{projectFile, localFile} {
			src := machine{files: map[string]string{file: wishes}}.sources()
			src.Trusted = tt.trusted
			c, err := Load(src)
			if err != nil {
				t.Fatal(err)
			}
			var inert []string
			for _, i := range c.Inert {
				inert = append(inert, fmt.Sprintf("%s %s %s %s", strings.TrimPrefix(i.Origin.Where, file+":"), i.Key, i.Why, i.What))
			}
			if d := cmp.Diff(tt.inert, inert); d != "" {
				t.Errorf("trusted %v: inert: %s", tt.trusted, d)
			}
			if d := cmp.Diff(tt.rules, rulesOf(c)); d != "" {
				t.Errorf("trusted %v: rules: %s", tt.trusted, d)
			}
			got := Config{Trusted: c.Trusted, Mode: c.Mode, AddDirs: c.AddDirs, SafeVars: c.SafeVars, BaseURL: c.BaseURL, Models: c.Models, ScrubEnv: c.ScrubEnv, Sandbox: c.Sandbox, Patterns: c.Patterns, ManagedOnly: c.ManagedOnly}
			want := Config{
				Trusted: tt.trusted, Mode: agent.ModeDefault, AddDirs: tt.dirs, SafeVars: tt.vars, ScrubEnv: []string{"NPM_TOKEN"}, Patterns: []guard.Pattern{{Name: "badge", Regexp: "B-[0-9]{6}"}},
				Sandbox: boxes.Settings{DenyRead: []string{"/repo/secrets"}, Protect: []string{"/repo/go.sum"}, DenyHosts: []string{"evil.example"}},
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("trusted %v: %s", tt.trusted, d)
			}
		}
	}
}

// Nobody's trust helps where nothing of a repository is wanted, whoever says so.
func TestTrustNever(t *testing.T) {
	skipWindows(t)
	const never = `{"trust": {"mode": "never"}}`
	for name, files := range map[string]map[string]string{
		"the user": {userFile: never}, "the administrator": {adminFile: never}, "itself": {localFile: never},
	} {
		files[projectFile] = `{"permissions": {"allow": ["Bash"]}}`
		src := machine{files: files}.sources()
		src.Trusted = true
		c, err := Load(src)
		if err != nil || c.Allow != nil || len(c.Inert) != 1 || c.Trust != TrustNever || c.Trusted {
			t.Errorf("%s: %+v, %+v, %v", name, c.Allow, c.Inert, err)
		}
	}
	c, err := Load(machine{files: map[string]string{userFile: never, projectFile: `{"trust": {"mode": "ask"}}`}}.sources())
	if err != nil || c.Trust != TrustNever || len(c.Inert) != 1 {
		t.Errorf("a repository loosened it: %+v, %v", c.Inert, err)
	}
}

// The list of what is inert is as long as can be read.
func TestManyInert(t *testing.T) {
	skipWindows(t)
	file := `{"permissions": {"allow": [` + strings.Repeat(`"`+strings.Repeat("x", 40)+`",`, maxInert+4) + `"x"]}}`
	c, err := Load(machine{files: map[string]string{projectFile: file}}.sources())
	if err != nil || len(c.Inert) != maxInert+1 || c.Inert[maxInert] != (Inert{What: "5 more"}) || len(c.Notes) != 0 {
		t.Errorf("%d, %v", len(c.Inert), err)
	}
}

// In the home folder the project's settings are the user's own.
func TestHomeAsProject(t *testing.T) {
	skipWindows(t)
	src := machine{files: map[string]string{userFile: `{"permissions": {"allow": ["Bash"]}}`}}.sources()
	src.Workdir = "/home/u"
	c, err := Load(src)
	if err != nil || len(c.Allow) != 1 || c.Inert != nil || c.Notes != nil {
		t.Errorf("%+v, %+v, %v", c.Allow, c.Inert, err)
	}
}
