package live_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"dure/internal/app/config"
	"dure/internal/app/config/live"
)

// A file for another program that breaks while this one runs closes it until it is
// mended: what it forbade held until then.
func TestTheirSettingsReload(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := filepath.Join(home, ".claude", "settings.json")
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"permissions": {"deny": ["WebFetch"]}}`)
	settings, err := live.Open(config.Sources{ReadFile: config.ReadFile, UserHome: home, Workdir: t.TempDir(), OS: runtime.GOOS}, false)
	if err != nil {
		t.Fatal(err)
	}
	denied := func() (all []string) {
		cfg, _ := settings.Now()
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
		write(step.file)
		if got := strings.Join(denied(), " "); got != step.want {
			t.Errorf("%s: denied %s, want %s", step.file, got, step.want)
		}
	}
}
