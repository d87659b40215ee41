package active

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/internal/base/frontmatter"
	"dure/internal/extend/plugins"
)

// What comes beside skills while a program runs counts, and what goes counts no longer,
// though not every folder is looked into whenever somebody asks.
func TestPluginsComeBesideSkills(t *testing.T) {
	t.Parallel()
	dir, now := filepath.Join(t.TempDir(), "skills"), time.Unix(1_000, 0)
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := &plugins.Store{Dir: t.TempDir()}
	x := New(Config{
		Workdir: t.TempDir(), Store: func() *plugins.Store { return store }, Logger: slog.New(slog.DiscardHandler),
		Layer: func(string) string { return "" }, Now: func() time.Time { return now },
		Skills: func(string) []frontmatter.Place {
			return []frontmatter.Place{{Scope: frontmatter.User, Dir: dir, Trusted: true}}
		},
	})
	check := func(when, want string) {
		t.Helper()
		var ids []string
		for _, p := range x.In(x.cfg.Workdir) {
			ids = append(ids, p.ID)
		}
		slices.Sort(ids)
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s, %q are active and not %q", when, got, want)
		}
	}
	write("first/SKILL.md", "---\nname: first\ndescription: d\n---\nText.\n")
	check("at first", "")
	write("tool/.claude-plugin/plugin.json", `{"name": "tool"}`)
	if err := os.Chtimes(dir, time.Time{}, time.Unix(1, 0)); err != nil { // disks tell times of one moment apart or not
		t.Fatal(err)
	}
	check("with a new folder", "tool@skills-dir")
	write("first/.claude-plugin/plugin.json", `{"name": "first"}`)
	now = now.Add(time.Second)
	check("a moment after a folder got a manifest", "first@skills-dir tool@skills-dir")
	write("tool/.claude-plugin/plugin.json", `{"name": "tools"}`)
	check("with another manifest", "first@skills-dir tools@skills-dir")
	if err := os.Remove(filepath.Join(dir, "tool", ".claude-plugin", "plugin.json")); err != nil {
		t.Fatal(err)
	}
	check("without one", "first@skills-dir")
}
