package trust

import (
	"os"
	"path/filepath"
	"testing"
)

// A file is covered by the trust in the folder that it belongs to, as it was then, under
// the names that lead to it, and by no other.
func TestHeld(t *testing.T) {
	skipWindows(t)
	dir := repo(t,
		[2]string{".claude/skills/a/SKILL.md", "a"},
		[2]string{"shared/b/SKILL.md", "b"},
		[2]string{".dure/skills", "-> ../shared"},
		[2]string{"sub/.claude/skills/c/SKILL.md", "c"},
		[2]string{"src/x.md", "x"},
	)
	lay(t, filepath.Dir(dir), [2]string{"way", "-> repo"})
	s := Store{Path: filepath.Join(t.TempDir(), "trust.json")}
	var h Held
	covers := func(name, data string) bool {
		t.Helper()
		h = s.Held(h)
		return h.Covers(filepath.Join(dir, filepath.FromSlash(name)), []byte(data))
	}
	expect := func(when string, want map[[2]string]bool) {
		t.Helper()
		for f, is := range want {
			if covers(f[0], f[1]) != is {
				t.Errorf("%s: %s = %q is covered: %v", when, f[0], f[1], !is)
			}
		}
	}
	expect("nothing is trusted", map[[2]string]bool{{".claude/skills/a/SKILL.md", "a"}: false})
	if err := s.Trust(lookAt(t, dir), "test"); err != nil {
		t.Fatal(err)
	}
	expect("the folder is", map[[2]string]bool{
		{".claude/skills/a/SKILL.md", "a"}:             true,
		{".claude/skills/a/SKILL.md", "changed"}:       false,
		{".claude/skills/new/SKILL.md", "a"}:           false,
		{".dure/skills/b/SKILL.md", "b"}:               true,
		{"../way/.claude/skills/a/SKILL.md", "a"}:      true,
		{"../way/.dure/skills/b/SKILL.md", "b"}:        true,
		{"../out/.claude/skills/a/SKILL.md", "a"}:      false,
		{"sub/.claude/skills/c/SKILL.md", "c"}:         false,
		{"src/x.md", "x"}:                              false,
		{"sub/../.claude/skills/a/../a/SKILL.md", "a"}: true,
	})
	if err := s.Trust(lookAt(t, filepath.Join(dir, "sub")), "test"); err != nil {
		t.Fatal(err)
	}
	expect("the folder below is, too", map[[2]string]bool{
		{"sub/.claude/skills/c/SKILL.md", "c"}: true,
		{"sub/.claude/skills/c/SKILL.md", "d"}: false,
	})
	if err := os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "was")); err != nil {
		t.Fatal(err)
	}
	lay(t, dir, [2]string{"sub/.claude/skills/c/SKILL.md", "c"})
	if now := lookAt(t, filepath.Join(dir, "sub")); now.Folder.Inode != 0 {
		expect("another folder has its name", map[[2]string]bool{{"sub/.claude/skills/c/SKILL.md", "c"}: false})
	}
	if _, err := s.Revoke(dir); err != nil {
		t.Fatal(err)
	}
	expect("taken back", map[[2]string]bool{{".claude/skills/a/SKILL.md", "a"}: false})
	if got := h.With(lookAt(t, dir)); !got.Covers(filepath.Join(dir, ".claude", "skills", "a", "SKILL.md"), []byte("a")) {
		t.Error("what holds for this run covers nothing")
	}
}

// A file of servers beside the folders of agents is taken in as they are.
func TestTakes(t *testing.T) {
	for path, want := range map[string]bool{
		"/w/.mcp.json": true, "/w/.lsp.json": true, "/w/.dure/settings.json": true, "/w/.dure/worktrees/x": false,
		"/w/sub/.mcp.json": false, "/w/main.go": false, "/other/.mcp.json": false,
	} {
		if got := Takes("/w", path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
