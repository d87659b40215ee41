package checkpoint

import (
	"os"
	"testing"
)

// Each case changes a folder, and says what a comparison tells of it. A rewind
// gives the folder back as it was, and a rewind to before the rewind undoes it.
func TestEveryKindOfChange(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string
		do    func(*rig)
		diff  string
	}{
		{"nothing", []string{"a=1\n"}, func(*rig) {}, ""},
		{"edit", []string{"a=1\n2\n"}, func(r *rig) { r.write("a=1\n3\n4\n") }, "modified a +2 -1\n"},
		{"create", []string{"a=1\n"}, func(r *rig) { r.write("b/c/d=x\n") }, "added b\nadded b/c\nadded b/c/d +1 -0\n"},
		{"delete", []string{"a=1\n", "d/b=2\n"}, func(r *rig) { r.remove("d") }, "deleted d\ndeleted d/b +0 -1\n"},
		{"empty folder", []string{"e/"}, func(r *rig) { r.remove("e") }, "deleted e\n"},
		{"rename", []string{"a=same\n", "d/"}, func(r *rig) { must(r.t, os.Rename(r.path("a"), r.path("d/b"))) }, "renamed d/b from a\n"},
		{"rename and mode", []string{"a=same\n"}, func(r *rig) {
			must(r.t, os.Rename(r.path("a"), r.path("b")))
			must(r.t, os.Chmod(r.path("b"), 0o755))
		}, "renamed b from a\n"},
		{"mode of a file", []string{"a=1\n"}, func(r *rig) { must(r.t, os.Chmod(r.path("a"), 0o755)) }, "mode a\n"},
		{"mode of a folder", []string{"d/a=1\n"}, func(r *rig) { must(r.t, os.Chmod(r.path("d"), 0o700)) }, "mode d\n"},
		{"sealed folder", []string{"d/a=1\n"}, func(r *rig) {
			r.write("d/a=2\n")
			must(r.t, os.Chmod(r.path("d"), 0o555))
		}, "mode d\nmodified d/a +1 -1\n"},
		{"link", []string{"l->a"}, func(r *rig) { r.remove("l"); r.write("l->b") }, "modified l\n"},
		{"file to link", []string{"a=1\n"}, func(r *rig) { r.remove("a"); r.write("a->b") }, "type a file to link +0 -1\n"},
		{"file to folder", []string{"a=1\n"}, func(r *rig) { r.remove("a"); r.write("a/b=2\n") }, "type a file to folder +0 -1\nadded a/b +1 -0\n"},
		{"folder to file", []string{"a/b/c=1\n", "a/d->x"}, func(r *rig) { r.remove("a"); r.write("a=2\n") }, "type a folder to file +1 -0\ndeleted a/b\ndeleted a/b/c +0 -1\ndeleted a/d\n"},
		{"folder to link", []string{"a/b=1\n", "other/b=2\n"}, func(r *rig) { r.remove("a"); r.write("a->other") }, "type a folder to link\ndeleted a/b +0 -1\n"},
		{"binary", []string{"a=\x00\x01"}, func(r *rig) { r.write("a=\x00\x02") }, "modified a binary\n"},
		{"no newline", []string{"a=1\n2"}, func(r *rig) { r.write("a=1\n2\n") }, "modified a +1 -1\n"},
		{"emptied", []string{"a=1\n"}, func(r *rig) { r.write("a=") }, "modified a +0 -1\n"},
		{"names", []string{"한글/파일 이름\n=1\n", "\xff\xfe=2\n", "-rf=3\n"}, func(r *rig) { r.remove("한글", "\xff\xfe", "-rf") }, "deleted -rf +0 -1\ndeleted 한글\ndeleted 한글/파일 이름\n +0 -1\ndeleted \xff\xfe +0 -1\n"},
		{"two of a name", []string{"a=1\n"}, func(r *rig) { r.write("A=2\n") }, "added A +1 -0\n"},
		{"hard link", []string{"a=1\n"}, func(r *rig) { must(r.t, os.Link(r.path("a"), r.path("b"))) }, "added b +1 -0\n"},
		{"git", []string{".git/HEAD=x", "sub/.git/HEAD=y", "sub/a=1\n"}, func(r *rig) {
			r.write(".git/HEAD=z", "sub/.git/index=new", "sub/a=2\n")
		}, "modified sub/a +1 -1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.files...)
			before := r.picture()
			first := r.take(false)
			tt.do(r)
			after := r.picture()
			second := r.take(true)
			equal(t, "difference", r.diff(first, second), tt.diff)
			res := r.rewind(first, Select{})
			if tt.name == "git" {
				before = picture(t, r.root)
			}
			equal(t, "left", r.items(res.Left), "")
			equal(t, "rewound", r.picture(), before)
			res = r.rewind(res.Before, Select{})
			equal(t, "left", r.items(res.Left), "")
			if tt.name != "git" {
				equal(t, "undone", r.picture(), after)
			}
			r.reopen()
			equal(t, "difference after opening again", r.diff(first, second), tt.diff)
			if tt.diff == "" != (first == second) {
				t.Errorf("snapshots %s and %s", first, second)
			}
		})
	}
}
