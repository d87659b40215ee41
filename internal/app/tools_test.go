package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/internal/models/registry"
)

// What tools start has the key of no provider.
func TestCommandsHaveNoKeys(t *testing.T) {
	t.Parallel()
	env := []string{"KEEP=1", "MY_KEY=k"}
	for _, p := range registry.Providers() {
		for _, name := range p.Keys {
			env = append(env, name+"=k")
		}
	}
	a := newApp(t, `{"providers":{"mine":{"baseUrl":"https://models.example.org","keyEnv":"MY_KEY"}}}`, env...)
	for _, entry := range a.commandEnv() {
		if strings.HasSuffix(entry, "=k") {
			t.Error(entry)
		}
	}
}

// What a language server finds on its PATH is not the repository's.
func TestPathOfLanguageServers(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	usual, theirs, link := filepath.Join(dir, "usual"), filepath.Join(dir, "repo"), filepath.Join(dir, "link")
	for _, d := range []string{usual, theirs} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Symlink(theirs, link) // where there is none, there is nothing to leave out
	all := []string{theirs, "bin", "", link, usual, filepath.Join(dir, "none")}
	env := []string{"PATHS=" + theirs, "PATH=" + strings.Join(all, string(filepath.ListSeparator))}
	got := outsidePath(env, func(path string) bool { return strings.HasPrefix(path, theirs) })
	if want := []string{"PATHS=" + theirs, "PATH=" + usual}; !slices.Equal(got, want) || env[1] == got[1] {
		t.Errorf("%q, want %q", got, want)
	}
}
