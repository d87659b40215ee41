package config_test

import (
	"slices"
	"strings"
	"testing"

	"dure/internal/app/config"
)

func TestWorktree(t *testing.T) {
	load := func(file string) (config.Config, error) {
		return config.Load(config.Sources{
			UserHome: "/home/u", Workdir: "/repo", OS: "linux", Getenv: func(string) string { return "" }, Settings: file,
			ReadFile: func(string) ([]byte, error) { return nil, nil },
		})
	}
	c, err := load(`{"worktree":{"baseRef":"fresh","symlinkDirectories":["node_modules","node_modules"],"sparsePaths":["a/b"]}}`)
	if err != nil || c.Worktree.From != "fresh" || !slices.Equal(c.Worktree.Links, []string{"node_modules"}) || !slices.Equal(c.Worktree.Only, []string{"a/b"}) {
		t.Errorf("%+v, %v", c.Worktree, err)
	}
	for _, bad := range []string{`"baseRef":"main"`, `"symlinkDirectories":["../x"]`, `"symlinkDirectories":["/etc"]`, `"sparsePaths":["."]`, `"sparsePaths":["a\nb"]`} {
		if _, err := load(`{"worktree":{` + bad + `}}`); err == nil || !strings.Contains(err.Error(), "worktree.") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
