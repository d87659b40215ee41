package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/sandbox/boxes"
)

const adminDir = "/etc/dure/managed-settings.d/"

// The administrator's files are one layer, in the order of their names.
func TestManagedFolder(t *testing.T) {
	skipWindows(t)
	c, err := Load(machine{files: map[string]string{
		adminFile:              `{"model": "first", "permissions": {"deny": ["A"]}}`,
		adminDir + "20-b.json": `{"model": "third", "permissions": {"deny": ["C"]}}`,
		adminDir + "10-a.json": `{"model": "second", "permissions": {"deny": ["B"]}}`,
		adminDir + ".z.json":   `{"permissions": {"deny": ["hidden"]}}`,
		adminDir + "note.txt":  `not JSON`,
	}}.sources())
	if err != nil || c.Model != "third" || cmp.Diff([]string{"A", "B", "C"}, texts(c.Deny)) != "" {
		t.Errorf("%s, %v, %v", c.Model, texts(c.Deny), err)
	}
	for name, files := range map[string]map[string]string{
		"unreadable folder": {strings.TrimSuffix(adminDir, "/"): "(unreadable)"},
		"unreadable file":   {adminDir + "a.json": "(unreadable)"},
		"no JSON":           {adminDir + "a.json": "{"},
	} {
		if _, err := Load(machine{files: files}.sources()); agent.ProblemOf(err) == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := map[string]string{}
	for i := range maxManaged + 1 {
		many[fmt.Sprintf("%s%d.json", adminDir, i)] = "{}"
	}
	if _, err := Load(machine{files: many}.sources()); agent.ProblemOf(err) == nil {
		t.Errorf("many files: %v", err)
	}
}

// What the administrator leaves to nobody else is listed, and not in force.
func TestManagedOnly(t *testing.T) {
	skipWindows(t)
	const user = `{
  "permissions": {"allow": ["Bash"], "deny": ["WebFetch"], "safeVars": ["CI"]},
  "sandbox": {"mode": "off", "write": ["/w"], "env": ["E"], "denyRead": ["/d"], "network": {"allow": ["*"], "deny": ["x"], "allowPrivate": true}, "limits": {"memory": "none"}}
}`
	for _, admin := range []string{
		`{"permissions": {"managedOnly": true, "allow": ["Read"]}, "sandbox": {"managedOnly": true, "write": ["/admin"]}}`,
		`{"allowManagedPermissionRulesOnly": true, "permissions": {"allow": ["Read"]}, "sandbox": {"managedOnly": true, "write": ["/admin"]}}`,
	} {
		src := machine{files: map[string]string{userFile: user, adminFile: admin}}.sources()
		src.Flags = Values{"permissions.allow": []string{"Write"}, "permissions.deny": []string{"Edit"}}
		c, err := Load(src)
		if err != nil {
			t.Fatal(err)
		}
		got := Config{Mode: c.Mode, SafeVars: c.SafeVars, Sandbox: c.Sandbox, ManagedOnly: c.ManagedOnly}
		want := Config{
			Mode: agent.ModeDefault, ManagedOnly: true,
			Sandbox: boxes.Settings{ManagedOnly: true, Write: []string{"/admin"}, DenyRead: []string{"/d"}, DenyHosts: []string{"x"}},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"Read"}, texts(c.Allow)); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"WebFetch", "Edit"}, texts(c.Deny)); d != "" {
			t.Error(d)
		}
		in := Origin{User, userFile}
		inert := []Inert{
			{"permissions.allow", Origin{User, userFile + ":2:29"}, Locked, "Bash"},
			{"permissions.allow", Origin{Flags, "--allow"}, Locked, "Write"},
			{"permissions.safeVars", in, Locked, "CI"},
			{"sandbox.write", in, Locked, "/w"},
			{"sandbox.env", in, Locked, "E"},
			{"sandbox.network.allow", in, Locked, "*"},
			{"sandbox.mode", in, Locked, ""},
			{"sandbox.network.allowPrivate", in, Locked, ""},
			{"sandbox.limits", Origin{}, Locked, ""},
		}
		if d := cmp.Diff(inert, c.Inert); d != "" {
			t.Error(d)
		}
	}

	// For anybody else the words have no force.
	c, err := Load(machine{files: map[string]string{userFile: `{"permissions": {"managedOnly": true, "allow": ["Bash"]}, "sandbox": {"managedOnly": true}}`}}.sources())
	want := []string{":1:18: permissions.managedOnly is for administrators", ":1:71: sandbox.managedOnly is for administrators"}
	if d := cmp.Diff(want, notesOf(c, userFile)); d != "" || err != nil || c.ManagedOnly || len(c.Allow) != 1 {
		t.Error(d, err)
	}
}

// Mode bypassPermissions can be switched off by anybody, and for everybody.
func TestNoBypass(t *testing.T) {
	skipWindows(t)
	const off = `{"permissions": {"disableBypassPermissionsMode": "disable"}}`
	for _, file := range []string{userFile, projectFile, adminFile} {
		src := machine{files: map[string]string{file: off}}.sources()
		src.Flags = Values{"permissions.defaultMode": "bypassPermissions"}
		c, err := Load(src)
		if err != nil || c.Mode != agent.ModeDefault || !c.NoBypass || len(c.Notes) != 1 ||
			!strings.HasPrefix(c.Notes[0].Text, "mode bypassPermissions is switched off by ") || !strings.Contains(c.Notes[0].Text, file) {
			t.Errorf("%s: %s, %v, %v", file, c.Mode, c.Notes, err)
		}
	}
}

func TestSandboxSettings(t *testing.T) {
	skipWindows(t)
	const file = `{"sandbox": {
  "mode": "off", "write": ["~/cache", "build"], "allowRead": ["/a"], "denyRead": ["~"], "protect": ["go.sum"], "env": ["GH_TOKEN"],
  "network": {"allow": ["*.Example.com", "localhost:8080", "[::1]:80", "10.0.0.0/8", "*"], "deny": ["a.example.com"], "allowPrivate": true},
  "limits": {"processes": 100, "openFiles": -1, "memory": "4GiB", "fileSize": "none"}}}`
	c, err := Load(machine{files: map[string]string{userFile: file}}.sources())
	want := boxes.Settings{
		Off: true, Write: []string{"/home/u/cache", "/repo/build"}, AllowRead: []string{"/a"}, DenyRead: []string{"/home/u"}, Protect: []string{"/repo/go.sum"},
		AllowHosts: []string{"*.example.com", "localhost:8080", "[::1]:80", "10.0.0.0/8", "*"}, DenyHosts: []string{"a.example.com"}, AllowPrivate: true,
		Env: []string{"GH_TOKEN"}, Limits: sandbox.Limits{Processes: 100, OpenFiles: -1, Memory: 4 << 30, FileSize: -1},
	}
	if d := cmp.Diff(want, c.Sandbox); d != "" || err != nil {
		t.Error(d, err)
	}
	c, err = Load(machine{files: map[string]string{userFile: `{"sandbox": {"mode": "off"}}`, projectFile: `{"sandbox": {"mode": "auto"}}`}}.sources())
	if err != nil || c.Sandbox.Off {
		t.Errorf("a repository may ask for confinement: %+v, %v", c.Sandbox, err)
	}
	for _, bad := range []string{
		`{"sandbox": {"mode": "on"}}`, `{"sandbox": {"write": [""]}}`, `{"sandbox": {"denyRead": ["*.pem"]}}`, `{"sandbox": {"denyRead": ["~root/x"]}}`,
		`{"sandbox": {"env": ["A*"]}}`, `{"sandbox": {"network": {"allow": ["http://x"]}}}`, `{"sandbox": {"network": {"allow": ["x:0"]}}}`,
		`{"sandbox": {"network": {"allow": ["10.0.0.0/8:80"]}}}`, `{"sandbox": {"network": {"allow": ["[::1:80"]}}}`, `{"sandbox": {"network": {"deny": [""]}}}`, `{"sandbox": {"network": {"deny": ["a\u0000.b"]}}}`,
		`{"sandbox": {"limits": {"processes": -2}}}`, `{"sandbox": {"limits": {"memory": "4"}}}`, `{"sandbox": {"limits": {"memory": "0MiB"}}}`,
		`{"sandbox": {"limits": {"fileSize": "9999GiB"}}}`, `{"sandbox": {"limits": {"memory": "-1GiB"}}}`,
		`{"trust": {"mode": "always"}}`, `{"permissions": {"safeVars": ["LD_*"]}}`, `{"permissions": {"disableBypassPermissionsMode": "yes"}}`,
		`{"guard": {"patterns": [{"pattern": "("}]}}`, `{"guard": {"patterns": [{"pattern": "a*"}]}}`, `{"guard": {"patterns": [{"name": "A B", "pattern": "a"}]}}`,
	} {
		p := agent.ProblemOf(func() error {
			_, err := Load(machine{files: map[string]string{userFile: bad}}.sources())
			return err
		}())
		if p == nil || !strings.HasPrefix(p.Message, "settings "+userFile+":1:") {
			t.Errorf("%s: %v", bad, p)
		}
	}
}

// A variable that should name a proxy and does not: requests would leave without.
func TestProxyVariables(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		ok          bool
	}{
		{"HTTPS_PROXY", "http://proxy:3128", true},
		{"https_proxy", "proxy:3128", true},
		{"HTTP_PROXY", "socks5h://user:pw@proxy", true},
		{"ALL_PROXY", "proxy", true},
		{"HTTPS_PROXY", " ", true},
		{"HTTPS_PROXY", "htp://proxy:3128", false},
		{"http_proxy", "http://", false},
		{"ALL_PROXY", "http://pro xy", false},
		{"HTTPS_PROXY", "http://u:secret@proxy:port", false},
		{"HTTPS_PROXY", "u:secret@proxy:port", false},
	} {
		m := machine{env: map[string]string{tt.name: tt.value}}
		_, err := Load(m.sources())
		if tt.ok != (err == nil) || (err != nil && (strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), tt.name))) {
			t.Errorf("%s=%s: %v", tt.name, tt.value, err)
		}
		src := m.sources()
		src.Settings = `{"network": {"proxy": "http://other:1"}}`
		if _, err := Load(src); err != nil {
			t.Errorf("%s=%s, with a proxy in the settings: %v", tt.name, tt.value, err)
		}
	}
}

// Files that changed are noticed without reading them.
func TestChanged(t *testing.T) {
	dir := t.TempDir()
	src := Sources{
		ReadFile: ReadFile, UserHome: filepath.Join(dir, "home"), Workdir: filepath.Join(dir, "repo"), OS: "linux",
		Stat: func(path string) (fs.FileInfo, error) {
			if !strings.HasPrefix(path, dir) {
				return nil, fs.ErrNotExist // the machine's own
			}
			return os.Stat(path)
		},
		ReadDir: func(string) ([]string, error) { return nil, fs.ErrNotExist },
	}
	user := filepath.Join(src.UserHome, ".dure", "settings.json")
	old := time.Now().Add(-time.Hour)
	write := func(data string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(user), 0o700), os.WriteFile(user, []byte(data), 0o600), os.Chtimes(user, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	var s Stamp
	step := func(what string, want bool) {
		t.Helper()
		var changed bool
		if s, changed = Changed(src, s); changed != want {
			t.Errorf("%s: changed %v", what, changed)
		}
	}
	step("first", true)
	step("nothing", false)
	write("{}")
	step("new", true)
	step("the same", false)
	write("{ }")
	step("another size", true)
	old = old.Add(time.Second)
	write("{ }")
	step("another time", true)
	if err := errors.Join(os.WriteFile(user+"2", []byte("{ }"), 0o600), os.Chtimes(user+"2", old, old), os.Rename(user+"2", user)); err != nil {
		t.Fatal(err)
	}
	step("another file", true)
	step("the same", false)
	old = time.Now()
	write("{ }")
	step("just written", true)
	step("just written, once more", true)
	if err := os.Remove(user); err != nil {
		t.Fatal(err)
	}
	step("gone", true)
	if err := os.WriteFile(filepath.Join(filepath.Dir(user), "policy.jsonc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	step("a policy", true)
	src.Settings = "more.json"
	step("another place", true)
}

// Settings that cannot be read again deny everything.
func TestClosed(t *testing.T) {
	skipWindows(t)
	m := machine{files: map[string]string{userFile: `{"permissions": {"allow": ["Bash"], "ask": ["Read"], "defaultMode": "bypassPermissions"}}`}}
	c, err := Load(m.sources())
	if err != nil {
		t.Fatal(err)
	}
	m.files[userFile] = "{"
	_, fault := Load(m.sources())
	got := c.Closed(fault)
	want := c
	want.Mode, want.Allow, want.Ask = agent.ModeDontAsk, nil, nil
	const why = "settings " + userFile + ":1:1: this is no valid JSON: unexpected end of JSON input"
	want.Deny = []Rule{{Text: "*", Verdict: agent.Deny, Reason: "the settings cannot be read: " + why, Origin: Origin{Layer: BuiltIn}}}
	want.Notes = []agent.Note{{Level: "warn", Code: "settings", Text: "every call is denied until this is mended: " + why}}
	if d := cmp.Diff(want, got); d != "" || len(c.Allow) != 1 {
		t.Error(d)
	}
}

func texts(rules []Rule) []string {
	out := make([]string, len(rules))
	for i, r := range rules {
		out[i] = r.Text
	}
	return out
}

// Which files of settings have changed is told of all of them: also of the one at the top
// of a repository.
func TestSince(t *testing.T) {
	skipWindows(t)
	dir := t.TempDir()
	src := Sources{
		ReadFile: ReadFile, UserHome: filepath.Join(dir, "home"), Workdir: filepath.Join(dir, "repo", "below"), OS: "linux",
		ReadDir: func(string) ([]string, error) { return nil, fs.ErrNotExist },
		Stat: func(path string) (fs.FileInfo, error) {
			if !strings.HasPrefix(path, dir) {
				return nil, fs.ErrNotExist
			}
			return os.Stat(path)
		},
	}
	files := map[string]Layer{"home/.claude/settings.json": User, "repo/below/.dure/settings.json": Project, "repo/.claude/settings.local.json": Local}
	if err := os.MkdirAll(filepath.Join(dir, "repo", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	before, _ := Changed(src, Stamp{})
	for path := range files {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	after, _ := Changed(src, before)
	got := map[string]Layer{}
	for _, c := range after.Since(before) {
		rel, _ := filepath.Rel(dir, c.Path)
		got[filepath.ToSlash(rel)] = c.Layer
	}
	if d := cmp.Diff(files, got); d != "" {
		t.Error(d)
	}
}
