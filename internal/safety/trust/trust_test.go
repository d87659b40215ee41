package trust

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent/query"
	"dure/internal/base/record"
)

var noon = time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)

func newStore(t *testing.T) Store {
	t.Helper()
	return Store{Path: filepath.Join(t.TempDir(), "data", "trust.json"), Now: func() time.Time { return noon }}
}

func check(t *testing.T, s Store, dir string) State {
	t.Helper()
	st, err := s.Check(lookAt(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func trustNow(t *testing.T, s Store, dir string) {
	t.Helper()
	if err := s.Trust(lookAt(t, dir), "prompt"); err != nil {
		t.Fatal(err)
	}
}

// The life of a folder: unknown, trusted, changed, trusted again, revoked.
func TestTrust(t *testing.T) {
	s, dir := newStore(t), repo(t)
	if st := check(t, s, dir); !cmp.Equal(st, State{Nothing: true}) || st.Ask() {
		t.Errorf("without content: %+v", st)
	}
	lay(t, dir, [2]string{".dure/settings.json", "{\n \"a\": 1\n}\n"})
	if st := check(t, s, dir); !cmp.Equal(st, State{}) || !st.Ask() {
		t.Errorf("unknown: %+v", st)
	}
	trustNow(t, s, dir)
	if st := check(t, s, dir); !cmp.Equal(st, State{Trusted: true, At: noon, By: "prompt"}) || st.Ask() {
		t.Errorf("trusted: %+v", st)
	}
	lay(t, dir, [2]string{".dure/settings.json", "{\n \"a\": 2\n}\n"}, [2]string{".mcp.json", "{}\n"})
	want := State{At: noon, By: "prompt", Changed: []Change{
		{Path: ".dure/settings.json", Kind: Changed, What: "settings", Diff: "--- .dure/settings.json\n+++ .dure/settings.json\n@@ -1,3 +1,3 @@\n {\n- \"a\": 1\n+ \"a\": 2\n }\n"},
		{Path: ".mcp.json", Kind: Added, What: "server", Diff: "--- .mcp.json\n+++ .mcp.json\n@@ -0,0 +1,1 @@\n+{}\n"},
	}}
	st := check(t, s, dir)
	if d := cmp.Diff(want, st); d != "" || !st.Ask() {
		t.Error(d)
	}
	trustNow(t, s, dir)
	if st := check(t, s, dir); !st.Trusted {
		t.Errorf("trusted again: %+v", st)
	}
	if found, err := s.Revoke(dir); !found || err != nil {
		t.Error(found, err)
	}
	if st := check(t, s, dir); !cmp.Equal(st, State{}) {
		t.Errorf("revoked: %+v", st)
	}
	if found, err := s.Revoke(dir); found || err != nil {
		t.Error(found, err)
	}
	if left, err := os.ReadDir(s.texts()); len(left) != 0 || err != nil {
		t.Errorf("copies of texts are left: %v, %v", left, err)
	}
}

// A folder that only tells a model what to do is asked about as well. What it tells
// changes often, and asks no more; nor do the notes that agents leave in it.
func TestTrustOfTexts(t *testing.T) {
	s, dir := newStore(t), repo(t, [2]string{"AGENTS.md", "1"}, [2]string{"CLAUDE.md", "-> AGENTS.md"}, [2]string{"src/AGENTS.md", "1"})
	if c := lookAt(t, dir); !slices.Equal(c.Texts, []string{"AGENTS.md", "CLAUDE.md"}) || c.Files != nil {
		t.Errorf("it has %q and %v", c.Texts, c.Files)
	}
	if st := check(t, s, dir); !cmp.Equal(st, State{}) || !st.Ask() {
		t.Errorf("unknown: %+v", st)
	}
	trustNow(t, s, dir)
	lay(t, dir, [2]string{"AGENTS.md", "2"}, [2]string{".dure/agent-memory/default/MEMORY.md", "2"}, [2]string{".dure/agent-memory-local/default/MEMORY.md", "2"})
	if st := check(t, s, dir); !st.Trusted {
		t.Errorf("with another text: %+v", st)
	}
	lay(t, dir, [2]string{".dure/settings.json", "{}"})
	if st := check(t, s, dir); st.Trusted || !st.Ask() || len(st.Changed) != 1 {
		t.Errorf("with settings: %+v", st)
	}

	empty := repo(t)
	trustNow(t, s, empty)
	if st := check(t, s, empty); !st.Trusted {
		t.Errorf("a folder that brings nothing: %+v", st)
	}
}

// What became of each file is told, with as much of it as can be shown.
func TestChanges(t *testing.T) {
	skipWindows(t)
	s := newStore(t)
	dir := repo(t,
		[2]string{".dure/binary", "a\x00b"}, [2]string{".dure/gone", "1\n"}, [2]string{".dure/hooks/h.sh", "1\n"},
		[2]string{".dure/link", "-> gone"}, [2]string{".dure/long", strings.Repeat("a\n", 1000)}, [2]string{".dure/same", "1"},
		[2]string{".mcp.json", "-> OUT/file"})
	trustNow(t, s, dir)
	lay(t, dir,
		[2]string{".dure/binary", "a\x00c"}, [2]string{".dure/link", "-> same"}, [2]string{".dure/long", strings.Repeat("b\n", 1000)},
		[2]string{".dure/new\nname", "safe\rrm -rf \u202ecod\u202c\x1b[2K\n"}, [2]string{"../out/file", "something else"})
	if err := errors.Join(os.Remove(filepath.Join(dir, ".dure/gone")), os.Chmod(filepath.Join(dir, ".dure/hooks/h.sh"), 0o755)); err != nil {
		t.Fatal(err)
	}
	got := check(t, s, dir).Changed
	long := got[4].Diff
	if n := strings.Count(long, "\n"); n != maxDiffLines+1 || !strings.HasSuffix(long, "\n... 1804 more lines\n") {
		t.Errorf("the long one has %d lines: %s", n, long[max(0, len(long)-50):])
	}
	got[4].Diff = ""
	want := []Change{
		{Path: ".dure/binary", Kind: Changed, What: "other"},
		{Path: ".dure/gone", Kind: Removed, What: "other", Diff: "--- .dure/gone\n+++ .dure/gone\n@@ -1,1 +0,0 @@\n-1\n"},
		{Path: ".dure/hooks/h.sh", Kind: Changed, What: "hook", Note: "it can be executed now"},
		{Path: ".dure/link", Kind: Changed, What: "other", Note: `it led to "gone", and leads to "same"`, Diff: "--- .dure/link\n+++ .dure/link\n@@ -1,1 +1,1 @@\n-1\n+1\n\\ No newline at end of file\n"},
		{Path: ".dure/long", Kind: Changed, What: "other"},
		{Path: ".dure/new\nname", Kind: Added, What: "other", Diff: "--- .dure/new\\nname\n+++ .dure/new\\nname\n@@ -0,0 +1,1 @@\n+safe\\rrm -rf \\u202ecod\\u202c\\x1b[2K\n"},
		{Path: ".mcp.json", Kind: Changed, What: "server"}, // what stands outside may be secret
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Games with folders: whatever takes the place of a trusted one is asked about.
func TestFolders(t *testing.T) {
	skipWindows(t)
	content := [][2]string{{".dure/settings.json", "{}"}}
	for _, tt := range []struct {
		name string
		play func(t *testing.T, base, dir string) (look string)
		want State
	}{
		{"the same", func(_ *testing.T, _, dir string) string { return dir }, State{Trusted: true, At: noon, By: "prompt"}},
		{"a link to it", func(t *testing.T, base, dir string) string {
			lay(t, base, [2]string{"link", "-> " + dir})
			return filepath.Join(base, "link")
		}, State{Trusted: true, At: noon, By: "prompt"}},
		{"another spelling", func(_ *testing.T, base, _ string) string { return base + "/out/../repo/." }, State{Trusted: true, At: noon, By: "prompt"}},
		{"a child", func(t *testing.T, _, dir string) string {
			lay(t, dir, [2]string{"sub/.dure/settings.json", "{}"})
			return filepath.Join(dir, "sub")
		}, State{}},
		{"a folder above", func(t *testing.T, base, _ string) string {
			lay(t, base, content...)
			return base
		}, State{}},
		{"renamed", func(t *testing.T, base, dir string) string {
			if err := os.Rename(dir, base+"/moved"); err != nil {
				t.Fatal(err)
			}
			return base + "/moved"
		}, State{}},
		{"a link in its place", func(t *testing.T, base, dir string) string {
			if err := os.Rename(dir, base+"/moved"); err != nil {
				t.Fatal(err)
			}
			lay(t, base, [2]string{"evil/.dure/settings.json", "{}"}, [2]string{"repo", "-> evil"})
			return dir
		}, State{}},
		{"another folder of the same name", func(t *testing.T, base, dir string) string {
			if err := os.Rename(dir, base+"/moved"); err != nil {
				t.Fatal(err)
			}
			lay(t, dir, content...)
			return dir
		}, State{Replaced: true, At: noon, By: "prompt"}},
		{"a worktree that names it as its main checkout", func(t *testing.T, base, dir string) string {
			lay(t, base, [2]string{"tree/.dure/settings.json", "{}"}, [2]string{"tree/.git", "gitdir: " + dir + "/.git/worktrees/tree\n"},
				[2]string{"repo/.git/worktrees/tree/commondir", "../..\n"})
			return base + "/tree"
		}, State{}},
		{"a repository that says it is the main checkout", func(t *testing.T, base, dir string) string {
			lay(t, base, [2]string{"evil/.dure/settings.json", "{}"}, [2]string{"evil/.git/commondir", dir + "/.git\n"})
			return base + "/evil"
		}, State{}},
		{"a copy", func(t *testing.T, base, _ string) string {
			lay(t, base, [2]string{"copy/.dure/settings.json", "{}"})
			return base + "/copy"
		}, State{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, dir := newStore(t), repo(t, content...)
			trustNow(t, s, dir)
			if d := cmp.Diff(tt.want, check(t, s, tt.play(t, filepath.Dir(dir), dir))); d != "" {
				t.Error(d)
			}
		})
	}
}

// The user trusts what was shown, not what came into its place meanwhile.
func TestTrustWhatWasShown(t *testing.T) {
	s, dir := newStore(t), repo(t, [2]string{".dure/settings.json", "shown"})
	shown := lookAt(t, dir)
	lay(t, dir, [2]string{".dure/settings.json", "not shown"})
	if err := s.Trust(shown, "prompt"); err != nil {
		t.Fatal(err)
	}
	if st := check(t, s, dir); st.Trusted || len(st.Changed) != 1 {
		t.Errorf("%+v", st)
	}
	if st, err := s.Check(shown); !st.Trusted || err != nil {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestNever(t *testing.T) {
	s, dir := newStore(t), repo(t, [2]string{".dure/a", "1"})
	if err := s.Never(lookAt(t, dir).Folder, "prompt"); err != nil {
		t.Fatal(err)
	}
	lay(t, dir, [2]string{".dure/a", "2"})
	if st := check(t, s, dir); !cmp.Equal(st, State{Never: true, At: noon, By: "prompt"}) || st.Ask() {
		t.Errorf("%+v", st)
	}
	trustNow(t, s, dir) // the user may think again
	if st := check(t, s, dir); !st.Trusted {
		t.Errorf("%+v", st)
	}
}

func TestUnfit(t *testing.T) {
	s := newStore(t)
	c := Content{Folder: lookAt(t, repo(t)).Folder, Unfit: "it is too large"}
	if err := s.Trust(c, ""); !errors.Is(err, ErrUnfit) {
		t.Error(err)
	}
	if err := s.Trust(Content{}, ""); !errors.Is(err, ErrUnfit) {
		t.Error(err)
	}
	if st, err := s.Check(c); !cmp.Equal(st, State{Unfit: "it is too large"}) || st.Ask() || err != nil {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := os.Stat(s.Path); err == nil {
		t.Error("something was recorded")
	}
}

// A store that cannot be read trusts nothing, names itself, and is left alone.
func TestDamagedStore(t *testing.T) {
	s, dir := newStore(t), repo(t, [2]string{".dure/a", "1"})
	trustNow(t, s, dir)
	whole, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		data string
		mode os.FileMode
		want string
	}{
		{"torn", string(whole[:len(whole)/2]), 0o600, "it is damaged: unexpected EOF"},
		{"empty", "", 0o600, "it is damaged: EOF"},
		{"twice", string(whole) + string(whole), 0o600, "it is damaged: something follows its end"},
		{"another kind", `{"folders": "all"}`, 0o600, "it is damaged: json: cannot unmarshal string"},
		{"unknown member", `{"version": 1, "all": true}`, 0o600, `it is damaged: json: unknown field "all"`},
		{"newer", `{"version": 2, "folders": []}`, 0o600, "it is of a newer version of dure"},
		{"open to others", string(whole), 0o622, "others may write it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && tt.mode != 0o600 {
				t.Skip("there are no such modes")
			}
			if err := errors.Join(os.WriteFile(s.Path, []byte(tt.data), 0o600), os.Chmod(s.Path, tt.mode)); err != nil {
				t.Fatal(err)
			}
			st, err := s.Check(lookAt(t, dir))
			if st.Trusted || err == nil || !strings.Contains(err.Error(), s.Path+": "+tt.want) {
				t.Errorf("%+v, %v", st, err)
			}
			for what, err := range map[string]error{
				"trust":  s.Trust(lookAt(t, dir), ""),
				"revoke": func() error { _, err := s.Revoke(dir); return err }(),
				"list":   func() error { _, err := s.List(); return err }(),
			} {
				if err == nil || !strings.Contains(err.Error(), s.Path) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if now, err := os.ReadFile(s.Path); string(now) != tt.data || err != nil {
				t.Errorf("the file was changed: %q, %v", now, err)
			}
		})
	}
}

// A store that cannot be written leaves everything as it was.
func TestUnwritableStore(t *testing.T) {
	dir := repo(t, [2]string{".dure/a", "1"})
	file := filepath.Join(t.TempDir(), "file")
	lay(t, filepath.Dir(file), [2]string{"file", ""})
	s := Store{Path: filepath.Join(file, "trust.json")}
	if err := s.Trust(lookAt(t, dir), ""); err == nil || !strings.Contains(err.Error(), s.Path) {
		t.Error(err)
	}
}

func TestStoreIsPrivate(t *testing.T) {
	skipWindows(t)
	s, dir := newStore(t), repo(t, [2]string{".dure/a", "1"})
	trustNow(t, s, dir)
	for _, path := range []string{s.Path, s.Path + ".lock", filepath.Dir(s.Path), s.texts(), filepath.Join(s.texts(), sum([]byte("1")))} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// Two programs that decide at once both have it their way.
func TestTwoWriters(t *testing.T) {
	s := newStore(t)
	const writers, each = 4, 10
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		dirs := make([]Content, each)
		for i := range dirs {
			dirs[i] = lookAt(t, repo(t, [2]string{".dure/a", "1"}))
		}
		wg.Go(func() {
			for _, c := range dirs {
				errs[w] = errors.Join(errs[w], s.Trust(c, "prompt"))
			}
		})
	}
	wg.Wait()
	list, err := s.List()
	if err := errors.Join(append(errs, err)...); err != nil || len(list) != writers*each {
		t.Errorf("%d folders, %v", len(list), err)
	}
}

func TestFullStore(t *testing.T) {
	s, dir := newStore(t), repo(t, [2]string{".dure/a", "1"})
	b := book{Version: version, Folders: make([]entry, maxFolders)}
	err := record.Change(s.Path, func(to *book) error { *to = b; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Trust(lookAt(t, dir), ""); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	skipWindows(t)
	s := newStore(t)
	a, b := repo(t, [2]string{".dure/settings.json", "{}"}, [2]string{".dure/skills/s/SKILL.md", "x"}), repo(t, [2]string{".dure/a", "1"})
	trustNow(t, s, a)
	if err := s.Never(lookAt(t, b).Folder, "command"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(b); err != nil {
		t.Fatal(err)
	}
	list, err := s.List()
	want := []query.DecidedFolder{{Path: a, At: noon, By: "prompt", Files: 2}, {Path: b, At: noon, By: "command", Never: true, Gone: true}}
	if a > b {
		want[0], want[1] = want[1], want[0]
	}
	if d := cmp.Diff(want, list); d != "" || err != nil {
		t.Error(d, err)
	}
	if found, err := s.Revoke(b); !found || err != nil {
		t.Errorf("a folder that is gone: %v, %v", found, err)
	}
}

// A folder is revoked by the path that the list gives, also when that leads
// elsewhere by now.
func TestRevokeWhatWasReplaced(t *testing.T) {
	skipWindows(t)
	s, dir := newStore(t), repo(t, [2]string{".dure/a", "1"})
	trustNow(t, s, dir)
	if err := os.Rename(dir, dir+"2"); err != nil {
		t.Fatal(err)
	}
	lay(t, filepath.Dir(dir), [2]string{"repo", "-> out"})
	if found, err := s.Revoke(dir); !found || err != nil {
		t.Error(found, err)
	}
	if list, err := s.List(); len(list) != 0 || err != nil {
		t.Error(list, err)
	}
}

func TestWhat(t *testing.T) {
	for name, want := range map[string]string{
		".mcp.json": "server", ".lsp.json": "server", ".dure/settings.json": "settings", ".Claude/Settings.Local.json": "settings",
		".claude/hooks/a.sh": "hook", ".dure/hooks.json": "hook", ".claude/skills/a/b/SKILL.md": "skill", ".ax/commands/x.md": "command",
		".agents/agents/x.md": "agent", ".claude/rules/x.md": "rule", ".claude-plugin/plugin.json": "plugin", ".dure/plugins/p/x": "plugin",
		".dure/mcp.json": "server", ".dure/notes.md": "other", ".dure": "other", ".dure/settings/x": "other",
	} {
		if got := What(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
