package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Servers come from all layers with the place where they stand. A repository names some
// once it is trusted, approves none, and may forbid.
func TestServers(t *testing.T) {
	skipWindows(t)
	const some = `{
  "mcpServers": {"a": {"command": "x"}},
  "enabledMcpjsonServers": ["a"],
  "disabledMcpjsonServers": ["b"],
  "enableAllProjectMcpServers": true,
  "allowedMcpServers": [],
  "deniedMcpServers": [{"serverName": "c"}],
  "allowManagedMcpServersOnly": true
}`
	for _, tt := range []struct {
		name    string
		files   map[string]string
		trusted bool
		want    string
	}{
		{"nothing", nil, false, `all false on [] off [] denied 0 allowed false only false`},
		{"own", map[string]string{userFile: some}, false, `user:2 all true on [a] off [b] denied 1 allowed false only false; allowedMcpServers managed, allowManagedMcpServersOnly managed`},
		{
			"untrusted",
			map[string]string{projectFile: some},
			false,
			`all false on [] off [b] denied 1 allowed false only false; mcpServers untrusted, enabledMcpjsonServers repository, enableAllProjectMcpServers repository, allowedMcpServers managed, allowManagedMcpServersOnly managed`,
		},
		{
			"trusted",
			map[string]string{projectFile: some},
			true,
			`project:2 all false on [] off [b] denied 1 allowed false only false; enabledMcpjsonServers repository, enableAllProjectMcpServers repository, allowedMcpServers managed, allowManagedMcpServersOnly managed`,
		},
		{"managed", map[string]string{adminFile: some}, false, `managed:2 all true on [a] off [b] denied 1 allowed true only true`},
	} {
		src := machine{files: tt.files}.sources()
		src.Trusted = tt.trusted
		c, err := Load(src)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		m := c.MCP
		got := ""
		for _, s := range m.Sources {
			got += fmt.Sprintf("%s:%d ", s.Layer, s.Line)
			if strings.Contains(fmt.Sprint(s), "command") {
				t.Error("values of servers are shown")
			}
		}
		got += fmt.Sprintf("all %v on %v off %v denied %d allowed %v only %v", m.AllProject, m.Enabled, m.Disabled, len(m.Denied), m.Allowed != nil, m.ManagedOnly)
		var left []string
		for _, i := range c.Inert {
			left = append(left, i.Key+" "+string(i.Why))
		}
		if len(left) > 0 {
			got += "; " + strings.Join(left, ", ")
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}
