package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a repository names for git to run, and what looks like it and is harmless.
func TestRunsPrograms(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  bool
	}{
		{"no repository", nil, false},
		{"plain", map[string]string{".git/config": "[core]\n\tbare = false\n\tfsmonitor = true\n[remote \"origin\"]\n\turl = git@host.example:x.git\n"}, false},
		{"hooks in the work tree", map[string]string{".git/config": "[core]\n\thooksPath = .husky\n", ".husky/pre-commit": ""}, false},
		{"large files", map[string]string{".git/config": "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process\n"}, false},
		{"a submodule", map[string]string{".git/config": "", ".gitmodules": "[submodule \"a\"]\n\tpath = a\n", "a/.git": "gitdir: ../.git/modules/a", ".git/modules/a/HEAD": "", ".git/modules/a/config": "[core]\n\tworktree = ../../../a\n"}, false},
		{"an alias", map[string]string{".git/config": "[alias]\n\tx = !id\n"}, false},

		{"a monitor", map[string]string{".git/config": "[core]\n\tfsmonitor = ./x.sh\n"}, true},
		{"on the line of its section", map[string]string{".git/config": "[CORE] FSMonitor=./x.sh\n"}, true},
		{"two sections in a line", map[string]string{".git/config": "[a \"]\"] [diff \"b\"] textconv = x\n"}, true},
		{"after a mark", map[string]string{".git/config": "\ufeff[diff]\nexternal = x\n"}, true},
		{"an old header", map[string]string{".git/config": "[diff.b]\n\tcommand = x\n"}, true},
		{"a filter", map[string]string{".git/config": "[filter \"x\"]\n\tclean = ./x.sh\n"}, true},
		{"a filter with more behind it", map[string]string{".git/config": "[filter \"x\"]\n\tclean = git-lfs clean; ./x.sh\n"}, true},
		{"more settings", map[string]string{".git/config": "[include]\n\tpath = ../settings\n"}, true},
		{"more settings on a condition", map[string]string{".git/config": "[includeIf \"gitdir:/\"]\n\tpath = ../settings\n"}, true},
		{"other files", map[string]string{".git/config": "[core]\n\tworktree = /\n"}, true},
		{"a fetch", map[string]string{".git/config": "[core]\n\tsshCommand = ./x.sh\n[remote \"o\"]\n\tpromisor = true\n"}, true},
		{"a signer", map[string]string{".git/config": "[log]\n\tshowSignature\n[gpg \"ssh\"]\n\tprogram = ./x.sh\n"}, true},
		{"a hook", map[string]string{".git/config": "", ".git/hooks/post-index-change": ""}, true},
		{"a hook in the work tree", map[string]string{".git/config": "[core]\n\thooksPath = h\n", "h/post-index-change": ""}, true},
		{"of one work tree", map[string]string{".git/config": "", ".git/config.worktree": "[core]\n\tfsmonitor = x\n"}, true},
		{"a submodule's", map[string]string{".git/config": "", ".git/modules/a/b/HEAD": "", ".git/modules/a/b/config": "[core]\n\tfsmonitor = x\n"}, true},
		{"a repository below", map[string]string{".git/config": "", ".gitmodules": "[submodule \"a\"]\n\tpath = a\n", "a/.git/config": "[core]\n\tfsmonitor = x\n"}, true},
		{"a linked one", map[string]string{".git": "gitdir: real", "real/commondir": "../shared\n", "shared/config": "[core]\n\tfsmonitor = x\n"}, true},
		{"the folder itself", map[string]string{"HEAD": "", "objects/x": "", "refs/x": "", "config": "[core]\n\tfsmonitor = x\n"}, true},
		{"an unreadable file", map[string]string{".git": "x"}, true},
		{"an open header", map[string]string{".git/config": "[core\n"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tt.files {
				path := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(filepath.Join(dir, "src", "deep"), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{dir, filepath.Join(dir, "src", "deep")} {
				if got := RunsPrograms(at); got != tt.want {
					t.Errorf("in %s: %v, want %v", at, got, tt.want)
				}
			}
		})
	}
}

func TestBranch(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no repository":  {nil, ""},
		"a branch":       {map[string]string{".git/HEAD": "ref: refs/heads/feature/x\n"}, "feature/x"},
		"no branch":      {map[string]string{".git/HEAD": "8c1f0f6f7f0e3a5d4e9b\n"}, "HEAD"},
		"kept elsewhere": {map[string]string{".git/HEAD": "ref: refs/heads/.invalid\n"}, ""},
		"not a branch":   {map[string]string{".git/HEAD": "ref: refs/remotes/o/x\n"}, ""},
		"two lines":      {map[string]string{".git/HEAD": "ref: refs/heads/a\nb\n"}, ""},
		"too long":       {map[string]string{".git/HEAD": "ref: refs/heads/" + strings.Repeat("a", 300)}, ""},
		"a work tree":    {map[string]string{".git": "gitdir: real\n", "real/HEAD": "ref: refs/heads/tree\n"}, "tree"},
		"nothing behind": {map[string]string{".git": "x"}, ""},
		"no HEAD":        {map[string]string{".git/config": ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, text := range c.files {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			below := filepath.Join(dir, "a", "b")
			if err := os.MkdirAll(below, 0o700); err != nil {
				t.Fatal(err)
			}
			if got := Branch(below); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
