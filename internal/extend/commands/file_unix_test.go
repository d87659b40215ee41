//go:build unix

package commands

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dure/internal/base/frontmatter"
)

// A pipe keeps nobody waiting, whether it lies there or a link leads to it.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, ".claude/commands")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(at, "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe.md", filepath.Join(at, "link.md")); err != nil {
		t.Fatal(err)
	}
	for _, scope := range []frontmatter.Scope{frontmatter.Project, frontmatter.User} {
		list := Discover([]frontmatter.Place{{Scope: scope, Dir: at, Trusted: true}})
		if len(list) != 2 || list[0].Broken == nil || list[1].Broken == nil || !strings.Contains(list[0].Broken.Message, "it is no file") {
			t.Errorf("%s: %+v", scope, list)
		}
	}
}

// A name is the same however the disk and whoever types it write its letters.
func TestNamesOfSeveralParts(t *testing.T) {
	dir := t.TempDir()
	apart := "\u1107\u1162\u1111\u1169" // 배포
	if err := os.WriteFile(filepath.Join(dir, apart+".md"), []byte("Deploy."), 0o600); err != nil {
		t.Fatal(err)
	}
	find := Lookup(Discover([]frontmatter.Place{{Scope: frontmatter.User, Dir: dir, Trusted: true}}))
	for _, typed := range []string{"배포", apart} {
		if c, ok := find(typed); !ok || c.Name != "배포" || c.Info().Off != "" {
			t.Errorf("%q is %q, %v", typed, c.Name, ok)
		}
	}
}
