package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A program that lies where a repository is, or leads there, is none.
func TestFindOutside(t *testing.T) {
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
		got := FindOutside("tool", func(path string) bool { return strings.HasPrefix(path, filepath.Join(dir, "repo")) })
		if (got != "") != found {
			t.Errorf("%s: %q", folder, got)
		}
	}
}
