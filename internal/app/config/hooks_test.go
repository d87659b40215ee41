package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someHooks = `{
  "hooks": {"Stop": ["true"]},
  "disableAllHooks": true,
  "allowManagedHooksOnly": true,
  "allowedHttpHookUrls": ["https://a.example/*"],
  "httpHookAllowedEnvVars": ["A"],
  "hookEnvVars": ["PATH"]
}`

// Hooks come from all layers, the administrator's first. A repository says nothing about
// them before it is trusted, and never what programs later commands are.
func TestHooks(t *testing.T) {
	skipWindows(t)
	user, managed := `{"hooks": {"Stop": ["user"]}, "allowedHttpHookUrls": []}`, `{"hooks": {"Stop": ["managed"]}, "disableAllHooks": false, "allowManagedHooksOnly": true}`
	for _, tt := range []struct {
		name    string
		files   map[string]string
		trusted bool
		want    string
	}{
		{"nothing", nil, false, `off false/false only false urls [] own [] vars [] leave []`},
		{
			"own",
			map[string]string{userFile: someHooks},
			false,
			`user {"Stop": ["true"]}; off true/false only false urls [https://a.example/*] own [https://a.example/*] vars [A] leave [PATH]; left allowManagedHooksOnly managed`,
		},
		{
			"untrusted",
			map[string]string{projectFile: someHooks, userFile: user},
			false,
			`user {"Stop": ["user"]}; off false/false only false urls [] own [] vars [] leave []; ` +
				`left hooks untrusted, disableAllHooks untrusted, allowManagedHooksOnly managed, allowedHttpHookUrls untrusted, httpHookAllowedEnvVars untrusted, hookEnvVars repository`,
		},
		{
			"trusted",
			map[string]string{projectFile: someHooks, userFile: user},
			true,
			`user {"Stop": ["user"]}; project {"Stop": ["true"]}; off true/false only false urls [https://a.example/*] own [] vars [A] leave []; ` +
				`left allowManagedHooksOnly managed, hookEnvVars repository`,
		},
		{
			"managed",
			map[string]string{adminFile: managed, userFile: someHooks},
			false,
			`managed {"Stop": ["managed"]}; user {"Stop": ["true"]}; off false/false only true urls [https://a.example/*] own [https://a.example/*] vars [A] leave [PATH]; left allowManagedHooksOnly managed`,
		},
	} {
		src := machine{files: tt.files}.sources()
		src.Trusted = tt.trusted
		c, err := Load(src)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var got, left []string
		for _, s := range c.Hooks.Sources {
			got = append(got, fmt.Sprintf("%s %s", s.Layer, s.JSON))
		}
		h := c.Hooks
		got = append(got, fmt.Sprintf("off %v/%v only %v urls %v own %v vars %v leave %v", h.Off, h.ManagedOff, h.ManagedOnly, h.URLs, h.OwnURLs, h.Vars, h.Leave))
		for _, i := range c.Inert {
			left = append(left, i.Key+" "+string(i.Why))
		}
		if left != nil {
			got = append(got, "left "+strings.Join(left, ", "))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
