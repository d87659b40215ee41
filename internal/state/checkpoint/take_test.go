package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/internal/prooftest"
)

// A snapshot of nothing new is the same one, and nothing is written.
func TestNothingNewWritesNothing(t *testing.T) {
	r := newRig(t, "a=1\n", "d/b=2\n")
	first := r.take(false)
	r.age()
	r.take(false)
	r.Fault(func(boundary string) { t.Errorf("wrote: %s", boundary) })
	s, err := r.Take(t.Context(), Label{Session: "another", Ours: true})
	must(t, err)
	if s.ID != first || s.Label.Session != "" {
		t.Errorf("%+v", s)
	}
	if s, err = r.Touch(t.Context(), Label{}, r.path("a"), r.path("none"), "/elsewhere", "relative"); err != nil || s.ID != first {
		t.Errorf("%+v, %v", s, err)
	}
	r.Fault(func(string) {})
}

// A write of the same length right after the walk is seen by the next one.
func TestWritesWithinATick(t *testing.T) {
	r := newRig(t, "a=0000")
	last := r.take(false)
	for i := range 200 {
		f, err := os.OpenFile(r.path("a"), os.O_WRONLY, 0)
		must(t, err)
		fmt.Fprintf(f, "%04d", i+1)
		f.Close()
		id := r.take(true)
		if id == last {
			t.Fatalf("write %d was not seen", i)
		}
		last = id
	}
}

// A stat stands for a content only when it had rested before that was read.
func TestSettled(t *testing.T) {
	read := time.Unix(1000, 500_000_000)
	at := func(d time.Duration) int64 { return read.Add(d).UnixNano() }
	for _, tt := range []struct {
		name         string
		mtime, ctime int64
		want         bool
	}{
		{"old", at(-time.Hour), at(-time.Hour), true},
		{"just before", at(-51 * time.Millisecond), at(-time.Hour), true},
		{"within a tick", at(-49 * time.Millisecond), at(-time.Hour), false},
		{"entry within a tick", at(-time.Hour), at(-time.Millisecond), false},
		{"at the same moment", at(0), at(0), false},
		{"in the future", at(time.Hour), at(0), false},
		{"whole seconds", at(-1500 * time.Millisecond), 0, false},
		{"whole seconds ago", at(-2500 * time.Millisecond), 0, true},
	} {
		if got := (stat{mtime: tt.mtime, ctime: tt.ctime}).settled(read); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	r := newRig(t, "a=1\n")
	r.now = func() time.Time { return time.Now().Add(-time.Minute) }
	r.take(false)
	n := r.state[filepath.ToSlash(r.path("a"))]
	if n.sure {
		t.Error("a file that was written after its reading is trusted")
	}
	r.now = func() time.Time { return time.Now().Add(time.Minute) }
	if r.take(false); !n.sure {
		t.Error("a file that has rested is not trusted")
	}
}

// A change that keeps size and time is seen by the time of the entry itself.
func TestForgedTimes(t *testing.T) {
	r := newRig(t, "a=1\n")
	r.age()
	then := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(r.path("a"), then, then))
	first := r.take(false)
	r.state[filepath.ToSlash(r.path("a"))].sure = true // as if it had rested
	r.write("a=2\n")
	must(t, os.Chtimes(r.path("a"), then, then))
	if r.take(true) == first {
		t.Error("the change was not seen")
	}
}

// Files that a call names are looked at alone, and kept although they are ignored.
func TestTouch(t *testing.T) {
	r := newRig(t, ".git/HEAD=x", ".gitignore=build/\nnotes.txt\n", "a=1\n", "b=1\n", "build/old=1\n", "build/other=1\n", "notes.txt=1\n")
	ctx := t.Context()
	first := r.take(false)
	equal(t, "kept", paths(r, first), ". .gitignore a b")

	named := []string{r.path("a"), r.path("build/old"), r.path("build/new/file"), r.path("notes.txt")}
	before, err := r.Touch(ctx, Label{}, named...)
	must(t, err)
	r.write("a=2\n", "b=2\n", "build/old=2\n", "build/new/file=2\n", "build/other=2\n", "notes.txt=2\n")
	after, err := r.Touch(ctx, Label{Ours: true}, named...)
	must(t, err)
	want := "modified a +1 -1\nadded build/new\nadded build/new/file +1 -0\nmodified build/old +1 -1\nmodified notes.txt +1 -1\n"
	equal(t, "difference", r.diff(before.ID, after.ID), want)

	full := r.take(false)
	equal(t, "what nobody named", r.diff(after.ID, full), "modified b +1 -1\n")
	res := r.rewind(before.ID, Select{})
	equal(t, "left", r.items(res.Left), "restore b: outside\n")
	equal(t, "files", r.picture(), "./ 755\n.git/ 755\n.git/HEAD 644 \"x\"\n.gitignore 644 \"build/\\nnotes.txt\\n\"\n"+
		"a 644 \"1\\n\"\nb 644 \"2\\n\"\nbuild/ 755\nbuild/old 644 \"1\\n\"\nbuild/other 644 \"2\\n\"\nnotes.txt 644 \"1\\n\"\n")
}

// Touching a folder keeps what is in it: a call that removes it can be undone.
func TestTouchAFolder(t *testing.T) {
	r := newRig(t, ".git/HEAD=x", ".gitignore=out/\n", "out/deep/a=1\n", "out/b=2\n")
	r.take(false)
	want := r.picture()
	before, err := r.Touch(t.Context(), Label{}, r.path("out"))
	must(t, err)
	r.remove("out")
	_, err = r.Touch(t.Context(), Label{Ours: true}, r.path("out"))
	must(t, err)
	r.reopen()
	r.take(true)
	res := r.rewind(before.ID, Select{})
	equal(t, "left", r.items(res.Left), "")
	equal(t, "files", r.picture(), want)
}

// A file that was named in an ignored folder can go and come back like others.
func TestTouchedFileGoes(t *testing.T) {
	r := newRig(t, ".git/HEAD=x", ".gitignore=out/\n", "out/a=1\n", "out/b=1\n")
	r.take(false)
	before, err := r.Touch(t.Context(), Label{}, r.path("out/a"))
	must(t, err)
	r.remove("out/a")
	after := r.take(true)
	equal(t, "difference", r.diff(before.ID, after), "deleted out/a +0 -1\n")
	res := r.rewind(before.ID, Select{})
	equal(t, "left", r.items(res.Left), "")
	equal(t, "back", r.diff(before.ID, res.After), "")
	res = r.rewind(after, Select{})
	equal(t, "left", r.items(res.Left), "")
	equal(t, "gone again", r.diff(after, res.After), "")
	if _, err := os.Lstat(r.path("out/b")); err != nil {
		t.Error(err)
	}
}

// A call that writes through a link is found at the file that it leads to.
func TestTouchThroughALink(t *testing.T) {
	r := newRig(t, "real/a=1\n", "link->real/a", "folder->real")
	r.take(false)
	before, err := r.Touch(t.Context(), Label{}, r.path("link"), r.path("folder/a"))
	must(t, err)
	r.write("link=2\n")
	after, err := r.Touch(t.Context(), Label{Ours: true}, r.path("link"))
	must(t, err)
	equal(t, "difference", r.diff(before.ID, after.ID), "modified real/a +1 -1\n")
}

// paths is what a snapshot keeps.
func paths(r *rig, id ID) string {
	t, err := r.log.tree(id)
	must(r.t, err)
	var all []string
	for _, p := range t.paths() {
		if k := t[p].kind; k != Skipped && k != None {
			rel, _ := filepath.Rel(r.root, p)
			all = append(all, filepath.ToSlash(rel))
		}
	}
	return strings.Join(all, " ")
}

// When the rules change, what was kept stays kept, and what was ignored is not
// taken for new.
func TestRulesThatChange(t *testing.T) {
	r := newRig(t, ".git/HEAD=x", ".gitignore=big/\n", "src/a=1\n", "big/lib=1\n")
	first := r.take(false)
	r.write(".gitignore=src/\n", "src/new=1\n")
	second := r.take(true)
	equal(t, "difference", r.diff(first, second), "modified .gitignore +1 -1\nmodified big not kept to folder unkept\nadded big/lib +1 -0\n")
	r.write("src/a=2\n")
	r.take(true)
	res := r.rewind(first, Select{})
	equal(t, "left", r.items(res.Left), "")
	equal(t, "files", r.picture(), "./ 755\n.git/ 755\n.git/HEAD 644 \"x\"\n.gitignore 644 \"big/\\n\"\n"+
		"big/ 755\nbig/lib 644 \"1\\n\"\nsrc/ 755\nsrc/a 644 \"1\\n\"\nsrc/new 644 \"1\\n\"\n")
}

func TestWhatIsNotKept(t *testing.T) {
	r := newRig(t, "small=1\n", "large="+strings.Repeat("x", 2000), "sub/.svn/x=1", "node_modules/a=1")
	r.c.MaxFile = 1000
	r.reopen()
	l, err := net.Listen("unix", r.path("socket"))
	must(t, err)
	defer l.Close()
	first := r.take(false)
	all, err := r.Unkept(t.Context(), first)
	must(t, err)
	want := []Unkept{{r.path("large"), Large, 2000}, {r.path("socket"), Special, 0}}
	if !slices.Equal(all, want) {
		t.Errorf("%+v", all)
	}
	r.write("large="+strings.Repeat("y", 3000), "small=2\n")
	second := r.take(true)
	equal(t, "difference", r.diff(first, second), "modified large unkept\nmodified small +1 -1\n")
	res := r.rewind(first, Select{})
	equal(t, "left", r.items(res.Left), "restore large: lost\n")

	// What is there now and not kept is lost only when that is forced.
	r.write("small=" + strings.Repeat("z", 2000))
	r.take(true)
	sel := Select{Paths: []string{r.path("small")}}
	equal(t, "plan", r.plan(first, sel), "restore small: not-kept\n")
	sel.Force = []string{r.root}
	res = r.rewind(first, sel)
	equal(t, "left", r.items(res.Left), "")
	if data, err := os.ReadFile(r.path("small")); err != nil || string(data) != "1\n" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestLimits(t *testing.T) {
	t.Run("files", func(t *testing.T) {
		r := newRig(t, "a=1", "b=1", "c=1")
		r.c.MaxFiles = 2
		r.reopen()
		if _, err := r.Take(t.Context(), Label{}); !errors.Is(err, ErrTooMany) {
			t.Error(err)
		}
		if len(r.List()) > 0 || r.Usage() > 0 {
			t.Errorf("%v, %d bytes", r.List(), r.Usage())
		}
	})
	t.Run("bytes", func(t *testing.T) {
		r := newRig(t, "a="+noise(1, 600), "b="+noise(2, 600))
		r.c.MaxBytes = 1000
		r.reopen()
		id := r.take(false)
		all, err := r.Unkept(t.Context(), id)
		must(t, err)
		if len(all) != 1 || all[0].Reason != Full {
			t.Errorf("%+v", all)
		}
	})
	t.Run("depth", func(t *testing.T) {
		r := newRig(t, strings.Repeat("d/", 200)+"a=1")
		id := r.take(false)
		all, err := r.Unkept(t.Context(), id)
		must(t, err)
		if len(all) != 1 || all[0].Reason != Deep {
			t.Errorf("%+v", all)
		}
	})
	t.Run("context", func(t *testing.T) {
		r := newRig(t, "a=1")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Take(ctx, Label{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("two processes", func(t *testing.T) {
		r := newRig(t, "a=1")
		if _, err := Open(r.c); !errors.Is(err, ErrInUse) {
			t.Error(err)
		}
	})
}

func noise(seed byte, n int) string {
	b := make([]byte, n)
	x := uint32(seed)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

// The oldest snapshots go when the store is full, and the rest stays whole.
func TestOldSnapshotsGo(t *testing.T) {
	r := newRig(t, "a=0", "always=1\n")
	r.c.MaxBytes = 100_000
	r.reopen()
	want := map[ID]string{}
	for i := range 40 {
		r.write("a=" + noise(byte(i), 10_000))
		want[r.take(true)] = noise(byte(i), 10_000)
		if u := r.Usage(); u > 110_000 {
			t.Fatalf("%d bytes", u)
		}
	}
	r.reopen()
	all := r.List()
	if len(all) < 5 || len(all) > 10 {
		t.Errorf("%d snapshots", len(all))
	}
	for _, s := range all {
		into := filepath.Join(t.TempDir(), "copy")
		must(t, r.Export(t.Context(), s.ID, into))
		data, err := os.ReadFile(filepath.Join(into, "a"))
		if err != nil || string(data) != want[s.ID] {
			t.Errorf("snapshot %s is not whole: %v", s.ID, err)
		}
	}
}

// Snapshots that nobody names any more go, and with them what only they need.
func TestKeep(t *testing.T) {
	r := newRig(t, "a=1\n")
	var ids []ID
	for i := range 6 {
		r.write("a=" + noise(byte(i), 5000))
		ids = append(ids, r.take(i != 3))
	}
	before := r.Usage()
	must(t, r.Keep(t.Context(), []ID{ids[1], ids[4], "none"}))
	r.reopen()
	var left []ID
	for _, s := range r.List() {
		left = append(left, s.ID)
	}
	if !slices.Equal(left, []ID{ids[1], ids[4], ids[5]}) {
		t.Errorf("%v", left)
	}
	if now := r.Usage(); now > before*6/10 {
		t.Errorf("%d bytes of %d", now, before)
	}
	equal(t, "what others did is still known", r.plan(ids[1], Select{}), "restore a: outside\n")
	equal(t, "and what they did not", r.plan(ids[4], Select{}), "restore a\n")
}

func TestDamagedLog(t *testing.T) {
	r := newRig(t, "a=1\n")
	ids := []ID{r.take(false)}
	for i := range 3 {
		r.write(fmt.Sprintf("a=%d\n", i+5))
		ids = append(ids, r.take(true))
	}
	second := r.log.heads[2].offset
	must(t, r.Close())
	name := filepath.Join(r.c.Dir, "log")
	data, err := os.ReadFile(name)
	must(t, err)
	must(t, os.WriteFile(name, data[:len(data)-3], 0o600))
	r.open()
	if len(r.List()) != 3 || r.Damage() != "" {
		t.Errorf("torn: %d snapshots, %q", len(r.List()), r.Damage())
	}
	must(t, r.Close())
	data[second+30] ^= 1
	must(t, os.WriteFile(name, data, 0o600))
	r.open()
	if len(r.List()) != 2 || !strings.Contains(r.Damage(), "damaged at byte") {
		t.Errorf("damaged: %d snapshots, %q", len(r.List()), r.Damage())
	}
	kept, err := os.ReadFile(name + ".damaged")
	if err != nil || string(kept) != string(data) {
		t.Errorf("the log is not kept: %v", err)
	}
	r.take(true)
	equal(t, "files", r.plan(ids[0], Select{}), "restore a\n")
}

// What a store that died has left behind the named contents is removed.
func TestLeftovers(t *testing.T) {
	r := newRig(t, "a=1\n")
	r.take(false)
	must(t, r.Close())
	pack, stray := filepath.Join(r.c.Dir, "packs", "00000001"), filepath.Join(r.c.Dir, "packs", "00000007")
	must(t, os.WriteFile(pack, []byte("1\nand what was never named"), 0o600))
	must(t, os.WriteFile(stray, []byte("x"), 0o600))
	r.open()
	data, err := os.ReadFile(pack)
	must(t, err)
	equal(t, "the pack", string(data), "1\n")
	if _, err := os.Lstat(stray); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the stray pack is there still")
	}
}

// Without the index, or with one that is damaged, everything is read again.
func TestIndexIsAMemoryOnly(t *testing.T) {
	r := newRig(t, "a=1\n", "b=2\n")
	r.age()
	first := r.take(false)
	index := filepath.Join(r.c.Dir, "index")
	for _, damage := range []func(){func() {}, func() { must(t, os.Remove(index)) }, func() { must(t, os.WriteFile(index, []byte("\x01no index at all, but long enough to be one"), 0o600)) }} {
		must(t, r.Close())
		damage()
		r.open()
		if id := r.take(false); id != first {
			t.Errorf("%s", id)
		}
	}
}

// An index that knows more than the log is not believed.
func TestIndexAheadOfTheLog(t *testing.T) {
	r := newRig(t, "a=1\n")
	first := r.take(false)
	r.write("a=2\n")
	r.age()
	r.now = func() time.Time { return time.Now().Add(time.Minute) }
	r.take(true)
	must(t, r.Close())
	must(t, os.Truncate(filepath.Join(r.c.Dir, "log"), r.log.heads[1].offset))
	r.open()
	equal(t, "difference", r.diff(first, r.take(true)), "modified a +1 -1\n")
}

// Several roots are one snapshot. A folder that became a root later is not new.
func TestRoots(t *testing.T) {
	r := newRig(t, "a/x=1\n", "b/y=1\n", "a/inner/z=1\n")
	r.c.Roots = []string{r.path("a"), r.path("a/inner")}
	r.reopen()
	first := r.take(false)
	equal(t, "one root", paths(r, first), "a a/inner a/inner/z a/x")
	r.c.Roots = append(r.c.Roots, r.path("b"))
	r.reopen()
	second := r.take(false)
	equal(t, "two roots", paths(r, second), "a a/inner a/inner/z a/x b b/y")
	r.write("a/x=2\n", "b/y=2\n")
	r.take(true)
	if data, err := r.Content(t.Context(), second, r.path("b/y")); err != nil || string(data) != "1\n" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := r.Content(t.Context(), first, r.path("b/y")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	equal(t, "to before the second", r.plan(first, Select{}), "restore a/x\n")
	equal(t, "to both", r.plan(second, Select{}), "restore a/x\nrestore b/y\n")
}

// A root that is not there has nothing in it, and keeps nothing of the others from being
// kept. The first is no root to do without.
func TestMissingRoots(t *testing.T) {
	r := newRig(t, "a/x=1\n", "b/y=1\n")
	r.c.Roots = []string{r.path("a"), r.path("gone"), r.path("b")}
	r.reopen()
	first := r.take(false)
	equal(t, "kept", paths(r, first), "a a/x b b/y")
	must(t, os.RemoveAll(r.path("b")))
	r.write("a/x=2\n", "gone/z=1\n")
	equal(t, "afterwards", paths(r, r.take(true)), "a a/x gone gone/z")
	r.c.Roots = []string{r.path("nowhere"), r.path("a")}
	if _, err := Open(r.c); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Rules of the caller's own take the place of git's.
func TestOwnRules(t *testing.T) {
	r := newRig(t, ".gitignore=a\n", "a=1", "b=1", "c/d=1")
	skip := []string{r.path("b"), r.path("c")}
	r.c.Ignored = func(path string, dir bool) bool {
		return slices.Contains(skip, path) && dir == (filepath.Base(path) == "c")
	}
	r.reopen()
	equal(t, "kept", paths(r, r.take(false)), ". .gitignore a")
}

// The program's own data, and the store itself, are left alone wherever they lie.
func TestWhatIsLeftAlone(t *testing.T) {
	r := newRig(t, "a=1\n", ".data/log=1\n", ".data/sub/x=1\n", "b/c=1\n")
	r.c.Dir = r.path("b/store")
	r.c.Leave = []string{r.path(".data")}
	r.reopen()
	first := r.take(false)
	equal(t, "kept", paths(r, first), ". a b b/c")
	r.write("a=2\n", ".data/log=2\n", ".data/new=1\n")
	if _, err := r.Touch(t.Context(), Label{Ours: true}, r.path(".data/log"), r.path("a")); err != nil {
		t.Error(err)
	}
	r.take(true)
	equal(t, "plan", r.plan(first, Select{}), "restore a\n")
	r.c.Leave = append(r.c.Leave, r.path("b"))
	r.reopen()
	r.remove("b/c")
	equal(t, "what is left alone from now on", r.plan(first, Select{}), "restore a\n")
}

// A snapshot of few changes among many files is small.
func TestSmallChangesAreSmall(t *testing.T) {
	r := newRig(t)
	for i := range 1000 {
		r.write(fmt.Sprintf("d%d/f%d=%d\n", i%10, i, i))
	}
	r.take(false)
	before := r.Usage()
	r.write("d1/f1=x\n", "d2/f2=x\n")
	r.remove("d3/f3")
	r.take(true)
	if grown := r.Usage() - before; grown > 500 {
		t.Errorf("three changes take %d bytes", grown)
	}
}

// What nobody may read any more is what it was, but for its mode.
func TestPermissionsThatAreTakenAway(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	r := newRig(t, "dir/in/a=1\n", "file=1\n")
	first, want := r.take(false), r.picture()
	must(t, os.Chmod(r.path("dir/in"), 0o200))
	must(t, os.Chmod(r.path("dir"), 0o400))
	must(t, os.Chmod(r.path("file"), 0))
	second := r.take(true)
	equal(t, "difference", r.diff(first, second), "mode dir\nmode file\n")
	res := r.rewind(first, Select{})
	equal(t, "left", r.items(res.Left), "")
	// What came to light only then cannot be known to be the session's own.
	equal(t, "plan", r.plan(first, Select{}), "mode dir/in: outside\n")
	res = r.rewind(first, Select{Force: []string{r.root}})
	equal(t, "left", r.items(res.Left), "")
	equal(t, "files", r.picture(), want)
}

// The rules are those of git: of every path here git is asked what it thinks.
func TestRulesAreThoseOfGit(t *testing.T) {
	git := prooftest.Program(t, "git")
	r := newRig(t,
		".gitignore=*.o\n!keep.o\n/top\nsub/*.tmp\n**/deep\na/**/z\nlib/**\n\\#x\n\\!y\ntrail \nspace\\ \n[ab]c\n[!ab]d\n?e\ndir/\n#comment\n\nq[\nx/**/\nfoo*bar*baz\n[]x]y\n[a-c-]w\n/*.root\n",
		"sub/.gitignore=!special.o\n*.log\n/only\n", "sub/more/.gitignore=*\n!.gitignore\n!a.txt\n", "bom/.gitignore=\ufeff*.bom\n",
		".git/info/exclude=*.secret\n", "nested/.git/HEAD=ref: refs/heads/main\n", "nested/a.o=1", "nested/.gitignore=*.n\n", "nested/b.n=1",
	)
	cmd := exec.Command(git, "init", "-q")
	cmd.Dir = r.root
	must(t, cmd.Run())
	r.write(".git/info/exclude=*.secret\n")
	for _, name := range []string{
		"a.o", "keep.o", "top", "sub/top", "sub/a.tmp", "sub/in/a.tmp", "x1/deep", "deep", "a/z", "a/b/z", "a/b/c/z", "lib/x", "lib/y/z",
		"#x", "!y", "trail", "space ", "ac", "bc", "cc", "cd", "ad", "xe", "e", "dir/x", "files/dir", "q[", "x/y/file", "foobarbaz", "foo1bar2baz", "foo1bar2", "]y", "xy",
		"-w", "bw", "dw", "r.root", "sub/r.root", "sub/special.o", "sub/other.o", "sub/a.log", "a.log", "sub/only", "sub/in/only", "sub/more/a.txt", "sub/more/b.txt",
		"bom/a.bom", "k.secret", "sub/k.secret", "sub/in/special.o",
	} {
		r.write(name + "=1")
	}
	id := r.take(false)
	out, err := func() ([]byte, error) {
		cmd := exec.Command(git, "ls-files", "-z", "--others", "--exclude-standard", "--exclude=nested")
		cmd.Dir = r.root
		return cmd.Output()
	}()
	must(t, err)
	want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	want = append(want, "nested/.gitignore", "nested/a.o") // git does not look into another repository
	slices.Sort(want)
	var got []string
	tr, err := r.log.tree(id)
	must(t, err)
	for _, p := range tr.paths() {
		if tr[p].kind == File {
			rel, _ := filepath.Rel(r.root, p)
			got = append(got, filepath.ToSlash(rel))
		}
	}
	slices.Sort(got)
	equal(t, "what is kept", strings.Join(got, "\n"), strings.Join(want, "\n"))
}
