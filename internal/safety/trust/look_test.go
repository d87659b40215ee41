package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lay writes a tree: a name that ends in "/" is a folder, "-> x" a link to x.
func lay(t *testing.T, dir string, tree ...[2]string) {
	t.Helper()
	for _, e := range tree {
		path := filepath.Join(dir, filepath.FromSlash(e[0]))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch to, link := strings.CutPrefix(e[1], "-> "); {
		case strings.HasSuffix(e[0], "/"):
			err = os.MkdirAll(path, 0o755)
		case link:
			os.Remove(path)
			err = os.Symlink(strings.ReplaceAll(to, "OUT", filepath.Join(filepath.Dir(dir), "out")), path)
		default:
			err = os.WriteFile(path, []byte(e[1]), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// repo makes a folder "repo" with a folder "out" beside it.
func repo(t *testing.T, tree ...[2]string) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "repo")
	lay(t, base, [2]string{"repo/", ""}, [2]string{"out/", ""}, [2]string{"out/file", "outside"}, [2]string{"out/dir/file", "outside"})
	lay(t, dir, tree...)
	return dir
}

func lookAt(t *testing.T, dir string) Content {
	t.Helper()
	c, err := Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// say describes a content in short.
func say(c Content) string {
	if c.Unfit != "" {
		return "unfit: " + strings.ReplaceAll(c.Unfit, filepath.Dir(c.Folder.Path), "BASE")
	}
	var lines []string
	for _, f := range c.Files {
		line := f.Path
		if f.Link != "" {
			line += " -> " + strings.ReplaceAll(f.Link, filepath.Dir(c.Folder.Path), "BASE")
		}
		if f.Hash != "" {
			data, err := c.Read(f.Path)
			line += fmt.Sprintf(" = %q %v", data, err == nil)
		}
		if f.Exec {
			line += " x"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func skipWindows(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege here")
	}
}

func TestLook(t *testing.T) {
	skipWindows(t)
	for _, tt := range []struct {
		name string
		tree [][2]string
		want string
	}{
		{"nothing", [][2]string{{"AGENTS.md", "read me"}, {"src/.dure/settings.json", "{}"}, {".dure/", ""}, {".git/hooks/pre-commit", "x"}}, ""},
		{"all places", [][2]string{
			{".agents/a", "1"},
			{".ax/a", "2"},
			{".axcopilot/a", "3"},
			{".claude/settings.local.json", "4"},
			{".claude-plugin/plugin.json", "5"},
			{".dure/skills/s/SKILL.md", "6"},
			{".lsp.json", "7"},
			{".mcp.json", "8"},
		}, `.agents/a = "1" true
.ax/a = "2" true
.axcopilot/a = "3" true
.claude-plugin/plugin.json = "5" true
.claude/settings.local.json = "4" true
.dure/skills/s/SKILL.md = "6" true
.lsp.json = "7" true
.mcp.json = "8" true`},
		{"worktrees are folders of their own", [][2]string{{".claude/worktrees/a/.claude/settings.json", "1"}, {".dure/skills/worktrees/SKILL.md", "2"}}, `.dure/skills/worktrees/SKILL.md = "2" true`},
		{"link to a file in the content", [][2]string{{".dure/a", "1"}, {".dure/b", "-> a"}}, ".dure/a = \"1\" true\n.dure/b -> a = \"1\" true"},
		{"link to a file of the repository", [][2]string{{"x.sh", "1"}, {".dure/b", "-> ../x.sh"}}, `.dure/b -> ../x.sh = "1" true`},
		{"link to a file outside", [][2]string{{".mcp.json", "-> OUT/file"}}, `.mcp.json -> BASE/out/file = "outside" true`},
		{"link that leads nowhere", [][2]string{{".mcp.json", "-> OUT/none"}}, `.mcp.json -> BASE/out/none`},
		{"link to a folder of the repository", [][2]string{{"shared/s/SKILL.md", "1"}, {".claude/skills", "-> ../shared"}}, ".claude/skills -> ../shared\n.claude/skills/s/SKILL.md = \"1\" true"},
		{"link in a folder that a link leads to", [][2]string{{"x.sh", "1"}, {"shared/s/run", "-> ../../x.sh"}, {".claude/skills", "-> ../shared"}}, ".claude/skills -> ../shared\n.claude/skills/s/run -> ../../x.sh = \"1\" true"},
		{"place that is a link", [][2]string{{"conf/settings.json", "{}"}, {".dure", "-> conf"}}, ".dure -> conf\n.dure/settings.json = \"{}\" true"},
		{"link to itself above", [][2]string{{".dure/a", "1"}, {".dure/loop", "-> ."}}, ".dure/a = \"1\" true\n.dure/loop -> ."},
		{"link to the folder itself", [][2]string{{"hook.sh", "1"}, {".dure/all", "-> .."}}, ".dure/all -> ..\n.dure/all/hook.sh = \"1\" true"},
		{"link to a folder outside", [][2]string{{".dure/skills", "-> OUT/dir"}}, `unfit: ".dure/skills" leads to a folder outside, "BASE/out/dir"`},
		{"link to a device", [][2]string{{".mcp.json", "-> /dev/null"}}, `unfit: ".mcp.json" leads to what is neither file nor folder, "/dev/null"`},
		{"link to what the system makes up", [][2]string{{".mcp.json", "-> /proc/version"}}, `unfit: ".mcp.json" leads to what is neither file nor folder, "/proc/version"`},
		{"circle of links", [][2]string{{".dure/a", "-> b"}, {".dure/b", "-> a"}}, `unfit: ".dure/a" cannot be followed: EvalSymlinks: too many links`},
		{"line ends and signs in names", [][2]string{{".dure/a\nb\x1b[2J", "1"}}, ".dure/a\nb\x1b[2J = \"1\" true"},
		{"a name that is no text", [][2]string{{".dure/\xff", "1"}}, `unfit: the name ".dure/\xff" is no text`},
		{"other case", [][2]string{{".Dure/settings.json", "1"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "darwin" && (tt.name == "a name that is no text" || tt.name == "other case") {
				t.Skip("the file system has its own idea of names")
			}
			if _, err := os.Stat("/proc/version"); err != nil && strings.Contains(tt.want, "/proc") {
				t.Skip("the system makes no such file up")
			}
			dir := repo(t, tt.tree...)
			if d := cmp.Diff(tt.want, say(lookAt(t, dir))); d != "" {
				t.Error(d)
			}
		})
	}
}

// What can be counted on is bounded: a folder beyond the bounds is not trusted,
// and costs no more than a folder at them.
func TestLookIsBounded(t *testing.T) {
	skipWindows(t)
	for _, tt := range []struct {
		name string
		make func(dir string)
		want string
	}{
		{"many files", func(dir string) {
			for i := range MaxFiles + 1 {
				lay(t, dir, [2]string{fmt.Sprintf(".dure/f%d", i), ""})
			}
		}, "unfit: there are more than 2000 files"},
		{"large file", func(dir string) {
			lay(t, dir, [2]string{".dure/f", ""})
			if err := os.Truncate(filepath.Join(dir, ".dure/f"), 1<<40); err != nil {
				t.Fatal(err)
			}
		}, "unfit: the files are larger than 16 MiB together"},
		{"deep folders", func(dir string) {
			lay(t, dir, [2]string{".dure" + strings.Repeat("/d", maxDepth) + "/f", ""})
		}, `unfit: ".dure` + strings.Repeat("/d", maxDepth) + `" stands more than 32 folders deep`},
		{"many folders", func(dir string) {
			lay(t, dir, [2]string{"d/", ""})
			for i := range 150 {
				lay(t, dir, [2]string{fmt.Sprintf("d/%d/", i), ""}, [2]string{fmt.Sprintf(".dure/l%d", i), "-> ../d"})
			}
		}, "unfit: there are more than 10000 files and folders"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := repo(t)
			tt.make(dir)
			c := lookAt(t, dir)
			if got := say(c); got != tt.want || c.Files != nil || c.Nothing() {
				t.Errorf("%.200s", got)
			}
		})
	}
}

// The size and the right to execute count as content; the time does not.
func TestLookAtModes(t *testing.T) {
	skipWindows(t)
	dir := repo(t, [2]string{".dure/hooks/h.sh", "1"})
	before := lookAt(t, dir)
	if err := os.Chmod(filepath.Join(dir, ".dure/hooks/h.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	after := lookAt(t, dir)
	if before.Hash == after.Hash || say(after) != `.dure/hooks/h.sh = "1" true x` {
		t.Error(say(after))
	}
}

// A file that cannot be read could hold anything.
func TestLookAtUnreadable(t *testing.T) {
	skipWindows(t)
	if os.Geteuid() == 0 {
		t.Skip("nothing is unreadable for root")
	}
	dir := repo(t, [2]string{".dure/a", "1"})
	if err := os.Chmod(filepath.Join(dir, ".dure/a"), 0); err != nil {
		t.Fatal(err)
	}
	if got := say(lookAt(t, dir)); got != `unfit: ".dure/a" cannot be read: permission denied` {
		t.Error(got)
	}
}

// What is read later is what was looked at, or nothing.
func TestReadAfterChange(t *testing.T) {
	big := strings.Repeat("x", MaxText+1)
	dir := repo(t, [2]string{".dure/small", "1"}, [2]string{".dure/big", big})
	c := lookAt(t, dir)
	lay(t, dir, [2]string{".dure/small", "2"})
	if data, err := c.Read(".dure/small"); string(data) != "1" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := c.Read(".dure/big"); string(data) != big || err != nil {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	lay(t, dir, [2]string{".dure/big", "y" + big[1:]})
	if data, err := c.Read(".dure/big"); data != nil || !errors.Is(err, ErrChanged) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if _, err := c.Read(".dure/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Settings of a trusted folder are those that were looked at, whatever came since.
func TestUnder(t *testing.T) {
	dir := repo(t, [2]string{".dure/settings.json", "1"}, [2]string{"other", "1"})
	c := lookAt(t, dir)
	lay(t, dir, [2]string{".dure/settings.json", "2"}, [2]string{".dure/settings.local.json", "2"}, [2]string{"other", "2"})
	as := filepath.Join(filepath.Dir(dir), "alias")
	read := c.Under(as, func(path string) ([]byte, error) { return []byte("next: " + filepath.Base(path)), nil })
	for name, want := range map[string]string{
		"alias/.dure/settings.json": "1", "alias/.dure/settings.local.json": "", "alias/other": "next: other",
		"alias/.dured/x": "next: x", "home/.dure/settings.json": "next: settings.json", ".": "next: " + filepath.Base(filepath.Dir(dir)),
	} {
		data, err := read(filepath.Join(filepath.Dir(dir), filepath.FromSlash(name)))
		if string(data) != want || (want == "") != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	// On a volume that does not tell letters by their case, one file has many names.
	upper := repo(t, [2]string{".dure/Settings.json", "1"})
	seen := lookAt(t, upper)
	lay(t, upper, [2]string{".dure/SETTINGS.json", "another"})
	if _, err := os.Lstat(filepath.Join(upper, ".dure/settings.json")); err != nil {
		if err := os.Link(filepath.Join(upper, ".dure/Settings.json"), filepath.Join(upper, ".dure/settings.json")); err != nil {
			t.Fatal(err)
		}
		read = seen.Under(upper, nil)
		if data, err := read(filepath.Join(upper, ".dure/settings.json")); string(data) != "1" || err != nil {
			t.Errorf("%q, %v", data, err)
		}
		if data, err := read(filepath.Join(upper, ".dure/SETTINGS.json")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q, %v", data, err)
		}
	}

	c.Unfit = "too large" // its denials count all the same
	if data, err := c.Under(as, func(string) ([]byte, error) { return []byte("next"), nil })(filepath.Join(as, ".dure/settings.json")); string(data) != "next" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

func TestFind(t *testing.T) {
	skipWindows(t)
	dir := repo(t)
	link := filepath.Join(filepath.Dir(dir), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	a, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Find(link)
	if err != nil || a != b || a.Path != dir || a.Inode == 0 {
		t.Errorf("%+v, %+v, %v", a, b, err)
	}
	for _, bad := range []string{filepath.Join(dir, "none"), filepath.Join(filepath.Dir(dir), "out", "file"), "a\x00b"} {
		if f, err := Find(bad); err == nil {
			t.Errorf("%q: %+v", bad, f)
		}
	}
	upper := filepath.Join(filepath.Dir(dir), "REPO")
	if _, err := os.Stat(upper); err == nil {
		if !a.Names(upper) {
			t.Errorf("%s is not %s", upper, dir)
		}
		return
	}
	if a.Names(upper) {
		t.Errorf("%s is not there", upper)
	}
	lay(t, filepath.Dir(dir), [2]string{"REPO/", ""})
	if a.Names(upper) {
		t.Errorf("%s is another folder than %s", upper, dir)
	}
}

// Names that would read the same in a row are told apart.
func TestHashOf(t *testing.T) {
	sets := [][]File{
		nil,
		{{Path: "a", Hash: "b"}},
		{{Path: "ab"}},
		{{Path: "a", Link: "b"}},
		{{Path: "a", Hash: "b", Exec: true}},
		{{Path: "a"}, {Path: "b"}},
		{{Path: "a\nb"}},
	}
	seen := map[string]int{}
	for i, s := range sets {
		if at, twice := seen[hashOf(s)]; twice {
			t.Errorf("%+v has the hash of %+v", s, sets[at])
		}
		seen[hashOf(s)] = i
	}
}

// A folder as it usually is: a look at the start of each turn costs little.
func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	for i := range 20 {
		path := filepath.Join(dir, ".dure/skills", fmt.Sprint(i), "SKILL.md")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(strings.Repeat("text\n", 400)), 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := Look(dir); err != nil {
			b.Fatal(err)
		}
	}
}
