package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A program that lies where a repository is, or leads there, is none.
func TestOutside(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name := "tool"
	if runtime.GOOS == "windows" {
		name = "tool.exe"
	}
	put := func(folder string) {
		path := filepath.Join(dir, folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("repo")
	put("usual")
	for folder, found := range map[string]bool{"usual": true, "repo": false, "link": false} {
		if folder == "link" {
			if err := os.Symlink(filepath.Join(dir, "repo"), filepath.Join(dir, folder)); err != nil {
				continue // links need a privilege on Windows
			}
		}
		t.Setenv("PATH", filepath.Join(dir, folder))
		got := Outside(func(path string) bool { return strings.HasPrefix(path, filepath.Join(dir, "repo")) })("tool")
		if (got != "") != found {
			t.Errorf("%s: %q", folder, got)
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
	got := PathOutside(env, func(path string) bool { return strings.HasPrefix(path, theirs) })
	if want := []string{"PATHS=" + theirs, "PATH=" + usual}; !slices.Equal(got, want) || env[1] == got[1] {
		t.Errorf("%q, want %q", got, want)
	}
}
