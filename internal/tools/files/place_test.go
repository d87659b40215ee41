package files

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
)

// tree is what is in the workspace: names, with the content of files.
func (d *desk) tree() string {
	d.Helper()
	var lines []string
	d.check(filepath.WalkDir(d.ws, func(p string, e os.DirEntry, err error) error {
		d.check(err)
		rel, _ := filepath.Rel(d.ws, p)
		switch {
		case rel == ".":
		case e.IsDir():
			lines = append(lines, rel+"/")
		case e.Type()&os.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			lines = append(lines, rel+" -> "+target)
		default:
			data, err := os.ReadFile(p)
			d.check(err)
			lines = append(lines, rel+"="+string(data))
		}
		return nil
	}))
	return strings.Join(lines, " ")
}

func (d *desk) plan(tool string, input any) (agent.Effects, error) {
	return d.tools[tool].Plan(d.Context(), d.context(), d.newCall(input))
}

func TestDelete(t *testing.T) {
	d := newDesk(t)
	for _, f := range []string{"a", "dir/b", "dir/sub/c", "keep", "repo/.git/config", "repo/x"} {
		d.put(f, "12")
	}
	d.put(filepath.Join(d.out, "theirs"), "x")
	d.check(os.Symlink("keep", filepath.Join(d.ws, "link")))
	d.check(os.Symlink(d.out, filepath.Join(d.ws, "away")))
	d.want("delete", in{"path": "gone"}, "E_FILE_NOT_FOUND: WS/gone does not exist\nLook for it with the glob or list tool.")
	d.want("delete", in{"path": "dir"}, "E_FILE_TYPE: WS/dir is a folder\nSet recursive to remove it with all that is in it.")
	for _, p := range []string{".", d.ws, filepath.Dir(d.ws), "/", ".git", "repo/.git/config", "repo", "away/theirs"} {
		if got := d.text("delete", in{"path": p, "recursive": true}); !strings.HasPrefix(got, "E_FILE_ACCESS: ") {
			t.Errorf("%s: %s", p, got)
		}
	}
	e, err := d.plan("delete", in{"path": "dir", "recursive": true})
	if want := []string{"dir", "dir/b", "dir/sub", "dir/sub/c"}; err != nil || len(e.Reads) > 0 || !slices.EqualFunc(e.Writes, want, func(a, b string) bool { return a == filepath.Join(d.ws, b) }) {
		t.Errorf("%+v, %v", e, err)
	}
	d.want("delete", in{"path": "dir", "recursive": true}, "Removed dir (2 files, 2 folders, 4 bytes).")
	d.want("delete", in{"path": "link"}, "Removed link (1 link, 0 bytes).")
	d.want("delete", in{"path": "away"}, "Removed away (1 link, 0 bytes).")
	r := d.do("delete", in{"path": "a"})
	if got := strings.ReplaceAll(string(r.Output), d.ws, "WS"); got != `{"path":"WS/a","entries":1,"bytes":2}` || len(r.Files) != 1 || !r.Files[0].Gone {
		t.Errorf("%s %+v", got, r.Files)
	}
	if got := d.tree(); got != "keep=12 repo/ repo/.git/ repo/.git/config=12 repo/x=12" {
		t.Error(got)
	}
}

func TestDeleteIsWhatWasDecided(t *testing.T) {
	d := newDesk(t)
	d.put("dir/a", "x")
	c := d.newCall(in{"path": "dir", "recursive": true})
	_, err := d.tools["delete"].Plan(t.Context(), d.context(), c)
	d.check(err)
	d.put("dir/new", "x")
	r, err := d.tools["delete"].Run(t.Context(), d.context(), c)
	if err != nil || !r.Failed() || r.Error.Code != ErrFileChanged || d.get("dir/a") != "x" {
		t.Errorf("%+v, %v", r, err)
	}
	for i := range maxEntries {
		d.put(fmt.Sprintf("dir/%d", i), "")
	}
	if _, err := d.plan("delete", in{"path": "dir", "recursive": true}); err == nil || !strings.Contains(err.Error(), "more than 1000") {
		t.Error(err)
	}
}

func TestMove(t *testing.T) {
	d := newDesk(t)
	for _, f := range []string{"a", "b", "dir/x", "dir/sub/y"} {
		d.put(f, f)
	}
	d.check(os.Chmod(filepath.Join(d.ws, "a"), 0o750))
	d.do("read", in{"file_path": "a"})
	move := func(from, to string) in { return in{"source": from, "destination": to} }
	over := func(from, to string) in { return in{"source": from, "destination": to, "overwrite": true} }
	for _, c := range []struct {
		input in
		want  string
	}{
		{move("none", "c"), "E_FILE_NOT_FOUND: WS/none does not exist"},
		{move("a", "b"), "E_FILE_EXISTS: WS/b exists already"},
		{over("a", "b"), "E_FILE_NOT_READ: WS/b exists and has not been read in this session"},
		{move("a", "dir"), "E_FILE_EXISTS: WS/dir is an existing folder"},
		{over("a", "dir"), "E_FILE_EXISTS: WS/dir is an existing folder"},
		{over("dir", "b"), "E_FILE_TYPE: only a file can replace a file, and only a regular one"},
		{move("dir", "dir/sub/z"), "E_TOOL_INPUT: WS/dir/sub/z is inside of what is moved"},
		{move("a", "./a"), "E_TOOL_INPUT: source and destination are the same"},
		{move("a", ".git/a"), "E_FILE_ACCESS: WS/.git/a belongs to the git repository"},
		{move(".", "b/c"), "E_FILE_ACCESS: WS is the workspace, or holds it"},
		{move("a", "b/c"), "E_TOOL: moving to WS/b/c: a file stands where a folder is needed"},
	} {
		if got, _, _ := strings.Cut(d.text("move", c.input), "\n"); got != c.want {
			t.Errorf("%v: %s", c.input, got)
		}
	}
	if got := d.tree(); got != "a=a b=b dir/ dir/sub/ dir/sub/y=dir/sub/y dir/x=dir/x" {
		t.Fatal(got)
	}
	e, err := d.plan("move", move("dir", "new/dir"))
	if short := strings.ReplaceAll(strings.Join(e.Writes, " "), d.ws+"/", ""); err != nil || short != "dir dir/sub dir/sub/y dir/x new/dir new/dir/sub new/dir/sub/y new/dir/x" {
		t.Errorf("%s, %v", short, err)
	}
	d.want("move", move("a", "deep/er/a2"), "Moved a to deep/er/a2 (1 file, 1 byte).")
	d.want("edit", in{"file_path": "deep/er/a2", "old_string": "a", "new_string": "A"}, "Edited deep/er/a2: +1 -1 lines.\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+A\n\\ No newline at end of file")
	if info, err := os.Stat(filepath.Join(d.ws, "deep/er/a2")); err != nil || info.Mode().Perm() != 0o750 {
		t.Error(info.Mode(), err)
	}
	d.want("move", move("dir", "new/dir"), "Moved dir to new/dir (2 files, 2 folders, 14 bytes).")
	d.do("read", in{"file_path": "b"})
	d.want("move", over("deep/er/a2", "b"), "Moved deep/er/a2 to b (1 file, 1 byte), replacing the file that was there.")
	d.check(os.Symlink("b", filepath.Join(d.ws, "link")))
	d.want("move", move("link", "link2"), "Moved link to link2 (1 link, 0 bytes).")
	if got := d.tree(); got != "b=A deep/ deep/er/ link2 -> b new/ new/dir/ new/dir/sub/ new/dir/sub/y=dir/sub/y new/dir/x=dir/x" {
		t.Error(got)
	}
}

// A call that was cut short, before it did anything or behind it, is told apart.
func TestProbeOfDeleteAndMove(t *testing.T) {
	for tool, input := range map[string]in{
		"delete": {"path": "dir", "recursive": true},
		"move":   {"source": "dir", "destination": "to/dir"},
	} {
		d := newDesk(t)
		d.put("dir/a", "x")
		c := d.newCall(input)
		k := d.tools[tool].(agent.Checker)
		mark, err := k.Mark(t.Context(), d.context(), c)
		d.check(err)
		probe := func() agent.Probe {
			p, r, err := k.Probe(t.Context(), d.context(), c, mark)
			d.check(err)
			if (p == agent.ProbeDone) != (r.Text != "") {
				t.Errorf("%s: %s with %q", tool, p, r.Text)
			}
			return p
		}
		if got := probe(); got != agent.ProbeNotDone {
			t.Errorf("%s, before: %s", tool, got)
		}
		_, err = k.(agent.Tool).Run(t.Context(), d.context(), c)
		d.check(err)
		if got := probe(); got != agent.ProbeDone {
			t.Errorf("%s, after: %s", tool, got)
		}
		d.put("dir/other", "x")
		if got := probe(); got != agent.ProbeUnknown {
			t.Errorf("%s, after somebody else: %s", tool, got)
		}
		mark, err = k.Mark(t.Context(), d.context(), d.newCall(in{"path": "none", "source": "none"}))
		d.check(err)
		if string(mark) != `{}` {
			t.Errorf("%s, going to fail: %s", tool, mark)
		}
	}
}

func TestMultiRead(t *testing.T) {
	d := newDesk(t)
	d.put("a", "one\ntwo\n")
	d.put("b", count(1, 3))
	d.put("bin", "\x00")
	d.want("multi-read", in{"paths": []any{"a", in{"file_path": "b", "offset": 2, "limit": 1}, "none", "bin"}},
		"==> a <==\n1\tone\n2\ttwo\n\n==> b <==\n2\tline 2\n[lines 2-2 of 3; continue with offset 3]\n\n"+
			"==> none <==\n[E_FILE_NOT_FOUND: WS/none does not exist Look for it with the glob or list tool.]\n\n"+
			"==> bin <==\n[E_FILE_BINARY: WS/bin is a binary file of 1 bytes and cannot be shown as text Use a command that understands its format.]")
	e, err := d.plan("multi-read", in{"paths": []any{"a", in{"file_path": "b"}, "output:abc123"}})
	if got := strings.ReplaceAll(strings.Join(e.Reads, " "), d.ws, "WS"); err != nil || got != "WS/a WS/b" {
		t.Errorf("%s, %v", got, err)
	}
	d.want("edit", in{"file_path": "a", "old_string": "one", "new_string": "1"}, "Edited a: +1 -1 lines.\n@@ -1,2 +1,2 @@\n-one\n+1\n two")
	if r := d.do("multi-read", in{"paths": []string{"none", "bin"}}); !r.Failed() {
		t.Error(r.Text)
	}
	for _, bad := range []string{`{"paths":[]}`, `{"paths":[7]}`, `{"paths":[{"file_path":"a","x":1}]}`, `{"paths":[` + strings.Repeat(`"a",`, 20) + `"a"]}`} {
		if got := d.text("multi-read", bad); !strings.HasPrefix(got, "E_TOOL_INPUT: ") {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

// Small files leave their share of the budget to large ones.
func TestMultiReadShares(t *testing.T) {
	d := newDesk(t)
	var paths []string
	for i := range 18 {
		d.put(fmt.Sprint("small", i), "x\n")
		paths = append(paths, fmt.Sprint("small", i))
	}
	d.put("large1", count(1, 5000))
	d.put("large2", count(1, 5000))
	r := d.do("multi-read", in{"paths": append(paths, "large1", "large2")})
	if n := len([]rune(r.Text)); n > multiBudget || n < multiBudget*8/10 {
		t.Errorf("%d characters", n)
	}
	r = d.do("multi-read", in{"paths": []string{"large1", "large2"}, "max_bytes": 1000})
	if n := len([]rune(r.Text)); n > 1300 {
		t.Errorf("%d characters", n)
	}
}

// Names that would break a line, or hide, are quoted wherever the model reads
// them.
func TestNamesAreQuoted(t *testing.T) {
	d := newDesk(t)
	d.put("two\nlines", "needle\n")
	d.put("hid\u202eden", "needle\n")
	d.put("두레 é.txt", "needle\n")
	d.want("glob", in{"pattern": "*", "path": "."}, d.text("glob", in{"pattern": "*"}))
	for tool, input := range map[string]in{"list": {}, "glob": {"pattern": "*"}, "grep": {"pattern": "needle"}} {
		got := d.text(tool, input)
		for _, name := range []string{`"two\nlines"`, `"hid\u202eden"`, "\n두레 é.txt"} {
			if !strings.Contains("\n"+got, name) {
				t.Errorf("%s has no %s: %s", tool, name, got)
			}
		}
	}
	d.want("read", in{"file_path": "no\nfile"}, "E_FILE_NOT_FOUND: \"WS/no\\nfile\" does not exist\nLook for it with the glob or list tool.")
	var out struct{ Filenames []string }
	d.check(json.Unmarshal(d.do("grep", in{"pattern": "needle"}).Output, &out))
	if !slices.Contains(out.Filenames, "two\nlines") {
		t.Error(out.Filenames)
	}
}
