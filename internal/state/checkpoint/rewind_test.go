package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What somebody else has changed is a conflict, and stays, unless it is forced.
func TestRewindLeavesWhatOthersChanged(t *testing.T) {
	setup := func(t *testing.T) (*rig, ID) {
		r := newRig(t, "ours=1\n", "both=1\n", "theirs=1\n", "removed=1\n")
		first := r.take(false)
		r.write("ours=2\n", "both=2\n", "made=2\n")
		r.take(true)
		r.write("both=3\n", "theirs=3\n", "new=3\n")
		r.remove("removed")
		r.take(false) // before a call, which writes over one of them
		r.write("both=4\n")
		r.take(true)
		return r, first
	}
	t.Run("left", func(t *testing.T) {
		r, first := setup(t)
		equal(t, "plan", r.plan(first, Select{}),
			"restore both: outside\ndelete made\ndelete new: outside\nrestore ours\ncreate removed: outside\nrestore theirs: outside\n")
		res := r.rewind(first, Select{})
		equal(t, "left", r.items(res.Left), "restore both: outside\ndelete new: outside\ncreate removed: outside\nrestore theirs: outside\n")
		equal(t, "files", r.picture(), "./ 755\nboth 644 \"4\\n\"\nnew 644 \"3\\n\"\nours 644 \"1\\n\"\ntheirs 644 \"3\\n\"\n")
		var shown Change
		for _, it := range res.Left {
			if filepath.Base(it.Path) == "both" {
				shown = *it.Conflict.Outside
			}
		}
		equal(t, "what became of it", strings.Join(shown.Hunks[0].Lines, "|"), "-2|+4")
	})
	t.Run("forced", func(t *testing.T) {
		r, first := setup(t)
		sel := Select{Force: []string{r.path("both"), r.path("removed")}}
		res := r.rewind(first, sel)
		equal(t, "left", r.items(res.Left), "delete new: outside\nrestore theirs: outside\n")
		equal(t, "files", r.picture(), "./ 755\nboth 644 \"1\\n\"\nnew 644 \"3\\n\"\nours 644 \"1\\n\"\nremoved 644 \"1\\n\"\ntheirs 644 \"3\\n\"\n")
		res = r.rewind(res.Before, Select{})
		equal(t, "left of the way back", r.items(res.Left), "")
	})
	t.Run("selected", func(t *testing.T) {
		r, first := setup(t)
		equal(t, "plan", r.plan(first, Select{Paths: []string{r.path("ours"), r.path("theirs")}}), "restore ours\nrestore theirs: outside\n")
	})
	t.Run("after the plan", func(t *testing.T) {
		r, first := setup(t)
		p, err := r.Plan(t.Context(), first, Select{})
		must(t, err)
		r.write("ours=now\n")
		res, err := r.Apply(t.Context(), p)
		must(t, err)
		equal(t, "left", r.items(res.Left), "restore both: outside\ndelete new: outside\nrestore ours: changed\ncreate removed: outside\nrestore theirs: outside\n")
	})
}

// lines is a text of numbered lines, some of which are replaced.
func lines(n int, changed map[int]string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		if c, ok := changed[i]; ok {
			b.WriteString(c)
		} else {
			b.WriteString(strings.Repeat("x", i) + "\n")
		}
	}
	return b.String()
}

func TestHunksAreTakenBackOneByOne(t *testing.T) {
	old := lines(40, nil)
	three := map[int]string{3: "three\n", 20: "twenty\nand more\n", 38: ""}
	for _, tt := range []struct {
		name  string
		now   string // by the session
		later string // by somebody else, "" = nothing
		since bool   // take back what the session did, whatever came later
		hunks []int  // nil = all
		left  string
		want  string
	}{
		{"first", lines(40, three), "", false, []int{0}, "", lines(40, map[int]string{20: "twenty\nand more\n", 38: ""})},
		{"last two", lines(40, three), "", false, []int{1, 2}, "", lines(40, map[int]string{3: "three\n"})},
		{"all by number", lines(40, three), "", false, []int{2, 1, 0, 0}, "", old},
		{"around a later edit", lines(40, three), lines(40, map[int]string{3: "three\n", 10: "mine\n\n\n", 20: "twenty\nand more\n", 38: ""}), true, nil, "", lines(40, map[int]string{10: "mine\n\n\n"})},
		{"under a later edit", lines(40, three), lines(40, map[int]string{3: "three, or four\n"}), true, nil, "restore f: hunk\n", lines(40, map[int]string{3: "three, or four\n"})},
		{"the end of the file", strings.TrimSuffix(lines(40, map[int]string{40: "end"}), "\n"), "", false, []int{0}, "", old},
		{"emptied", "", "", false, []int{0}, "", old},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, "f="+old, "other=1\n")
			first := r.take(false)
			r.write("f="+tt.now, "other=2\n")
			second := r.take(true)
			sel := Select{}
			if tt.later != "" {
				r.write("f=" + tt.later)
			}
			if tt.hunks != nil {
				sel.Hunks = map[string][]int{r.path("f"): tt.hunks}
			} else {
				sel.Paths = []string{r.path("f")}
			}
			if tt.since {
				sel.Since = second
			}
			res := r.rewind(first, sel)
			equal(t, "left", r.items(res.Left), tt.left)
			data, err := os.ReadFile(r.path("f"))
			must(t, err)
			equal(t, "text", string(data), tt.want)
			data, err = os.ReadFile(r.path("other"))
			must(t, err)
			equal(t, "the other file", string(data), "2\n")
			r.reopen()
			into := filepath.Join(t.TempDir(), "copy")
			must(t, r.Export(t.Context(), res.After, into))
			equal(t, "the snapshot behind it", picture(t, into), r.picture())
		})
	}
	t.Run("no such hunk", func(t *testing.T) {
		r := newRig(t, "f="+old)
		first := r.take(false)
		r.write("f=" + lines(40, three))
		r.take(true)
		if _, err := r.Plan(t.Context(), first, Select{Hunks: map[string][]int{r.path("f"): {3}}}); err == nil {
			t.Error("a hunk that does not exist was taken back")
		}
	})
}

// A content that is damaged is named, and nothing is changed.
func TestDamagedContent(t *testing.T) {
	r := newRig(t, "a=one\n", "b=two\n")
	first := r.take(false)
	r.write("a=1\n", "b=2\n")
	r.take(true)
	pack := filepath.Join(r.c.Dir, "packs", "00000001")
	data, err := os.ReadFile(pack)
	must(t, err)
	must(t, os.WriteFile(pack, []byte(strings.Replace(string(data), "two", "toe", 1)), 0o600))
	p, err := r.Plan(t.Context(), first, Select{})
	must(t, err)
	equal(t, "plan", r.items(p.Items), "restore a\nrestore b: damaged\n")
	p.Items[1].Conflict = nil // as if it were damaged after the plan
	_, err = r.Apply(t.Context(), p)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), r.path("b")) {
		t.Error(err)
	}
	equal(t, "files", r.picture(), "./ 755\na 644 \"1\\n\"\nb 644 \"2\\n\"\n")
	// The same content makes good for it.
	r.write("c=two\n")
	r.take(true)
	equal(t, "plan", r.plan(first, Select{}), "restore a\nrestore b\ndelete c\n")
}

// No link that appears on the way leads a rewind out of its folder.
func TestLinksOnTheWay(t *testing.T) {
	r := newRig(t, "dir/file=old\n", "safe=1\n")
	outside := filepath.Join(filepath.Dir(r.root), "outside")
	must(t, os.Mkdir(outside, 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "file"), []byte("mine\n"), 0o644))
	first := r.take(false)
	r.write("dir/file=new\n", "safe=2\n")
	r.take(true)
	p, err := r.Plan(t.Context(), first, Select{})
	must(t, err)
	r.Fault(func(boundary string) {
		if boundary == "intent.named" {
			must(t, os.RemoveAll(r.path("dir")))
			must(t, os.Symlink(outside, r.path("dir")))
		}
	})
	res, err := r.Apply(t.Context(), p)
	must(t, err)
	equal(t, "left", r.items(res.Left), "restore dir/file: in-way\n")
	data, err := os.ReadFile(filepath.Join(outside, "file"))
	must(t, err)
	equal(t, "the file outside", string(data), "mine\n")
}

// Lines that stand twice, and not where they should, are not guessed at.
func TestHunkThatFitsTwice(t *testing.T) {
	block := "{\n\tone\n\ttwo\n\tthree\n}\n"
	r := newRig(t, "f="+block)
	first := r.take(false)
	changed := strings.Replace(block, "two", "2", 1)
	r.write("f=" + changed)
	second := r.take(true)
	r.write("f=new\n" + changed)
	equal(t, "once", r.plan(first, Select{Since: second}), "restore f\n")
	r.write("f=new\n" + changed + changed)
	equal(t, "twice", r.plan(first, Select{Since: second}), "restore f: hunk\n")
}

// A folder that was opened for a rewind, and stays, gets its mode back.
func TestSealedFolderThatStays(t *testing.T) {
	r := newRig(t, ".git/HEAD=x", ".gitignore=*.o\n")
	first := r.take(false)
	r.write("d/a.c=1\n", "d/a.o=1\n")
	must(t, os.Chmod(r.path("d"), 0o555))
	r.take(true)
	res := r.rewind(first, Select{})
	equal(t, "left", r.items(res.Left), "delete d: in-way\n")
	if info, err := os.Lstat(r.path("d")); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A root may be named by a link to it.
func TestRootBehindALink(t *testing.T) {
	r := newRig(t, "a=1\n", "b=1\n")
	link := filepath.Join(filepath.Dir(r.root), "link")
	must(t, os.Symlink(r.root, link))
	r.c.Roots = []string{link}
	r.reopen()
	first := r.take(false)
	r.write("a=2\n", "b=2\n")
	_, err := r.Touch(t.Context(), Label{Ours: true}, filepath.Join(link, "a"))
	must(t, err)
	if data, err := r.Content(t.Context(), first, filepath.Join(link, "a")); err != nil || string(data) != "1\n" {
		t.Errorf("%q, %v", data, err)
	}
	equal(t, "plan", r.plan(first, Select{Paths: []string{filepath.Join(link, "a")}}), "restore a\n")
	equal(t, "plan", r.plan(first, Select{Hunks: map[string][]int{filepath.Join(link, "a"): {0}}}), "restore a\n")
	equal(t, "forced", r.plan(first, Select{Force: []string{link}}), "restore a\nrestore b: outside forced\n")
}

// What is too long to be compared line by line is said to be.
func TestLongTexts(t *testing.T) {
	r := newRig(t, "long="+strings.Repeat("x\n", maxText), "short=1\n")
	first := r.take(false)
	r.write("long="+strings.Repeat("y\n", maxText), "short=2\n")
	second := r.take(true)
	equal(t, "difference", r.diff(first, second), "modified long cut\nmodified short +1 -1\n")
	all, err := r.Diff(t.Context(), first, second)
	must(t, err)
	if got, want := Total(all), (Totals{Files: 2, Added: 1, Removed: 1}); got != want {
		t.Errorf("%+v", got)
	}
}

// A folder that holds what is not kept stays, and the rest is taken back.
func TestFolderWithWhatIsNotKept(t *testing.T) {
	r := newRig(t, ".gitignore=*.o\n", ".git/HEAD=x")
	first := r.take(false)
	r.write("made/a.c=1\n", "made/a.o=2")
	r.take(true)
	res := r.rewind(first, Select{})
	equal(t, "left", r.items(res.Left), "delete made: in-way\n")
	equal(t, "files", r.diff(first, res.After), "added made\n")
	if _, err := os.Lstat(r.path("made/a.o")); err != nil {
		t.Error(err)
	}
}

// Fault sets what is called at the boundaries of changes.
func (r *rig) Fault(f func(string)) { r.fault = f }

// The mode of a file with several names is that of each: a rewind that wants it for
// one of them leaves the others as they are.
func TestModesOfHardLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are not kept here")
	}
	for _, tt := range []struct {
		name string
		do   func(*rig)
	}{
		{"both change", func(r *rig) {
			r.remove("b")
			must(r.t, os.Link(r.path("a"), r.path("b")))
			must(r.t, os.Chmod(r.path("a"), 0o755))
		}},
		{"the other stays", func(r *rig) {
			r.remove("a")
			must(r.t, os.Link(r.path("stays"), r.path("a")))
		}},
		{"the other becomes a link", func(r *rig) {
			r.remove("link")
			must(r.t, os.Link(r.path("a"), r.path("link")))
			must(r.t, os.Chmod(r.path("a"), 0o755))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, "a=1\n", "b=1\n", "stays=1\n", "link->nowhere")
			must(t, os.Chmod(r.path("b"), 0o600))
			must(t, os.Chmod(r.path("stays"), 0o755))
			before := r.picture()
			first := r.take(true)
			tt.do(r)
			r.take(true)
			res := r.rewind(first, Select{})
			equal(t, "left", r.items(res.Left), "")
			equal(t, "rewound", r.picture(), before)
		})
	}
	t.Run("damaged", func(t *testing.T) {
		r := newRig(t, "a=one\n")
		first := r.take(true)
		must(t, os.Link(r.path("a"), filepath.Join(r.root, "other")))
		must(t, os.Chmod(r.path("a"), 0o755))
		r.take(true)
		pack := filepath.Join(r.c.Dir, "packs", "00000001")
		data, err := os.ReadFile(pack)
		must(t, err)
		must(t, os.WriteFile(pack, []byte(strings.Replace(string(data), "one", "two", 1)), 0o600))
		res := r.rewind(first, Select{Paths: []string{r.path("a")}})
		equal(t, "left", r.items(res.Left), "mode a: damaged\n")
		equal(t, "files", r.picture(), "./ 755\na 755 \"one\\n\"\nother 755 \"one\\n\"\n")
	})
}
