package config

import (
	"path"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/safety/policy"
)

// What a program that drives this one restricts holds against whoever else speaks, but the
// administrator; what it would permit does not.
func TestDriver(t *testing.T) {
	skipWindows(t)
	const user = `{"permissions": {"allow": ["Bash"]}, "sandbox": {"mode": "off", "write": ["/w"]}}`
	load := func(driver, admin string) Config {
		t.Helper()
		files := map[string]string{userFile: user}
		if admin != "" {
			files[adminFile] = admin
		}
		src := machine{files: files}.sources()
		src.Driver = driver
		c, err := Load(src)
		if err != nil {
			t.Fatalf("%s: %v", driver, err)
		}
		return c
	}
	c := load(`{"permissions":{"deny":["WebFetch"],"ask":["Read"],"allow":["Write"],"defaultMode":"bypassPermissions","additionalDirectories":["/x"],"disableBypassPermissionsMode":"disable"},
		"sandbox":{"enabled":true,"network":{"deniedDomains":["a.example"],"allowedDomains":["b.example"]},"filesystem":{"denyRead":["/r"],"denyWrite":["/d"],"allowWrite":["/a"]}},
		"deniedMcpServers":[{"serverName":"s"}],"env":{"A":"b"},"model":"m","hooks":{},"disableAllHooks":true,"availableModels":null,"disableRemoteControl":true}`, "")
	if !slices.Equal(texts(c.Deny), []string{"WebFetch"}) || !slices.Equal(texts(c.Ask), []string{"Read"}) || !slices.Equal(texts(c.Allow), []string{"Bash"}) || !c.NoBypass {
		t.Errorf("rules: %v %v %v %v", texts(c.Allow), texts(c.Ask), texts(c.Deny), c.NoBypass)
	}
	if c.Mode != agent.ModeDefault || len(c.AddDirs) != 0 || c.Model != DefaultModel || len(c.Env) != 0 {
		t.Errorf("it permits: %s %v %s %v", c.Mode, c.AddDirs, c.Model, c.Env)
	}
	b := c.Sandbox
	if b.Off || !slices.Equal(b.DenyHosts, []string{"a.example"}) || len(b.AllowHosts) != 0 || !slices.Equal(b.DenyRead, []string{"/r"}) || !slices.Equal(b.Protect, []string{"/d"}) || !slices.Equal(b.Write, []string{"/w"}) {
		t.Errorf("confinement: %+v", b)
	}
	if !c.Hooks.ManagedOnly || c.Hooks.ManagedOff || len(c.MCP.Denied) != 1 {
		t.Errorf("%+v %+v", c.Hooks, c.MCP.Denied)
	}
	if c := load(`{"allowManagedPermissionRulesOnly":true,"sandbox":{"network":{"allowManagedDomainsOnly":true}}}`, ""); len(c.Allow) != 0 || !c.Sandbox.ManagedOnly || len(c.Sandbox.Write) != 0 {
		t.Errorf("locks: %v %+v", texts(c.Allow), c.Sandbox)
	}
	if c := load(`{"allowManagedPermissionRulesOnly":false,"sandbox":{"enabled":false}}`, ""); len(c.Allow) != 1 || !c.Sandbox.Off {
		t.Errorf("what does not restrict: %v %+v", texts(c.Allow), c.Sandbox)
	}
	if c := load(`{"permissions":{"deny":["A"]},"allowedMcpServers":[{"serverName":"mine"}]}`, `{"permissions":{"deny":["B"]},"allowedMcpServers":[]}`); !slices.Equal(texts(c.Deny), []string{"A", "B"}) || c.MCP.Allowed == nil || len(*c.MCP.Allowed) != 0 {
		t.Errorf("with an administrator: %v %v", texts(c.Deny), c.MCP.Allowed)
	}
	if c := load(`{"enabledPlugins":{"a.b@c":false,"d@e":true,"f@g":["1"],"h@i":null}}`, ""); len(c.Extend.Plugins) != 1 || !c.Extend.ManagedPlugin["a.b@c"] || c.Extend.Plugins["a.b@c"] {
		t.Errorf("plugins: %v %v", c.Extend.Plugins, c.Extend.ManagedPlugin)
	}
	for _, bad := range []string{
		"x", "[]", "null", `{"permissions":[]}`, `{"permissions":{"deny":["Bash("]}}`, `{"permissions":{"deny":"Bash"}}`, `{"deniedModels":["x"]}`,
		`{"sandbox":{"failIfUnavailable":true}}`, `{"sandbox":{"filesystem":{"denyRead":["/a/*"]}}}`, `{"somethingNew":true}`, `{"permissions":{"denyInsteadOfPrompting":true}}`,
		`{"allowManagedPermissionRulesOnly":"true"}`, `{"allowManagedHooksOnly":"yes"}`, `{"allowManagedMcpServersOnly":1}`, `{"disableSkillShellExecution":{}}`,
		`{"disableBundledSkills":[]}`, `{"enableAllProjectMcpServers":"false"}`, `{"sandbox":{"enabled":1}}`, `{"sandbox":{"network":{"allowManagedDomainsOnly":"true"}}}`,
		`{"sandbox":{"filesystem":{"allowManagedReadPathsOnly":1}}}`, `{"enabledPlugins":{"a@b":"false"}}`, `{"enabledPlugins":["a@b"]}`,
		`{"permissions":{"deny":["` + strings.Repeat("a", maxFile) + `"]}}`,
	} {
		src := machine{}.sources()
		src.Driver = bad
		if _, err := Load(src); agent.ProblemOf(err) == nil {
			t.Errorf("%.60s was taken: %v", bad, err)
		}
	}
}

// The paths in what a host restricts are those of the project: its settings lie in no folder.
func TestDriverPaths(t *testing.T) {
	skipWindows(t)
	src := machine{}.sources()
	src.Driver = `{"permissions":{"deny":["Read(/x/**)","Edit(/gen/**)","Read(/../other/**)","Read(//srv/a)"]}}`
	c, err := Load(src)
	if err != nil {
		t.Fatal(err)
	}
	pc := policy.Config{
		Dir: src.Workdir, Home: src.UserHome, Inside: func(string) bool { return false },
		Resolve: func(p string) (string, string, error) { return path.Clean(p), path.Clean(p), nil },
	}
	for _, r := range c.Deny {
		pc.Rules = append(pc.Rules, policy.Rule{Text: r.Text, Verdict: r.Verdict, Source: policy.Source{Layer: policy.Managed, Dir: r.Dir}})
	}
	p, err := policy.New(pc)
	if err != nil {
		t.Fatal(err)
	}
	reads, edits := p.DeniedPaths()
	if want := []string{"/other", "/repo/x", "/srv/a"}; !slices.Equal(slices.Sorted(slices.Values(reads)), want) {
		t.Errorf("denied to read: %v, want %v", reads, want)
	}
	if want := []string{"/other", "/repo/gen", "/repo/x", "/srv/a"}; !slices.Equal(slices.Sorted(slices.Values(edits)), want) {
		t.Errorf("denied to change: %v, want %v", edits, want)
	}
}
