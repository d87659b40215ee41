package files

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dure/agent"
	"dure/internal/safety/workspace"
)

// seen writes files and reads them with the tool.
func (d *desk) seen(files map[string]string) {
	d.Helper()
	for name, content := range files {
		d.put(name, content)
		if r := d.do("read", in{"file_path": name}); r.Failed() {
			d.Fatal(r.Text)
		}
	}
}

func (d *desk) patch(text string) string {
	d.Helper()
	return d.text("patch", in{"patch": text})
}

func envelope(body string) string { return "*** Begin Patch\n" + body + "*** End Patch\n" }

func TestPatchEnvelope(t *testing.T) {
	d := newDesk(t)
	d.seen(map[string]string{"a.go": "package a\n\nfunc one() {\n\treturn\n}\n\nfunc two() {\n\treturn\n}\n", "b.txt": "x\ny\n", "gone": "bye\n", "crlf": "1\r\n2\r\n3\r\n"})
	e, err := d.plan("patch", in{"patch": envelope("*** Add File: n/new\n+x\n*** Delete File: gone\n*** Update File: b.txt\n*** Move to: c.txt\n")})
	if got := strings.ReplaceAll(strings.Join(e.Reads, " ")+">"+strings.Join(e.Writes, " "), d.ws+"/", ""); err != nil || got != "gone b.txt>n/new gone b.txt c.txt" {
		t.Errorf("%s, %v", got, err)
	}
	got := d.patch(envelope(`*** Add File: n/new
+first
+
+third
*** Update File: a.go
@@ func two() {
-	return
+	return // two
*** Update File: b.txt
*** Move to: sub/c.txt
@@
 x
-y
+z
*** Update File: crlf
@@
 2
+2.5
 3
*** Delete File: gone
`))
	if want := "Created n/new: +3 -0 lines.\nEdited a.go: +1 -1 lines.\nMoved b.txt to sub/c.txt: +1 -1 lines.\nEdited crlf: +1 -0 lines.\nDeleted gone."; got != want {
		t.Errorf("%s", got)
	}
	if got, want := d.tree(), "a.go=package a\n\nfunc one() {\n\treturn\n}\n\nfunc two() {\n\treturn // two\n}\n crlf=1\r\n2\r\n2.5\r\n3\r\n n/ n/new=first\n\nthird\n sub/ sub/c.txt=x\nz\n"; got != want {
		t.Errorf("%q", got)
	}
	// What was written may be changed again.
	d.want("edit", in{"file_path": "sub/c.txt", "old_string": "z", "new_string": "q"}, "Edited sub/c.txt: +1 -1 lines.\n@@ -1,2 +1,2 @@\n x\n-z\n+q")
}

func TestPatchUnified(t *testing.T) {
	d := newDesk(t)
	long := count(1, 40)
	d.seen(map[string]string{"a": long, "old name": "1\n2\n3\n", "del": "x\n-- y\n", "open": "a\nb"})
	got := d.patch(`From: somebody
diff --git a/a b/a
index 123..456 100644
--- a/a
+++ b/a
@@ -9,3 +9,4 @@ line 8
 line 9
-line 10
+line ten
+line ten and a half
 line 11
@@ -30,3 +31,2 @@
 line 30
-line 31
 line 32
diff --git a/old name b/new name
similarity index 90%
rename from old name
rename to new name
--- a/old name
+++ b/new name
@@ -1,3 +1,3 @@
 1
-2
+two
 3
diff --git a/del b/del
deleted file mode 100644
--- a/del
+++ /dev/null
@@ -1,2 +0,0 @@
-x
--- y
diff --git a/empty b/empty
new file mode 100644
diff --git a/fresh b/fresh
new file mode 100644
--- /dev/null
+++ b/fresh
@@ -0,0 +1,1 @@
+no end
\ No newline at end of file
--- a/open
+++ b/open
@@ -1,2 +1,2 @@
 a
-b
\ No newline at end of file
+c
`)
	want := "Edited a: +2 -2 lines.\nMoved old name to new name: +1 -1 lines.\nDeleted del.\nCreated empty: +0 -0 lines.\nCreated fresh: +1 -0 lines.\nEdited open: +1 -1 lines."
	if got != want {
		t.Errorf("%s", got)
	}
	after := strings.Replace(strings.Replace(long, "line 10\n", "line ten\nline ten and a half\n", 1), "line 31\n", "", 1)
	if got, want := d.tree(), "a="+after+" empty= fresh=no end new name=1\ntwo\n3\n open=a\nc\n"; got != want {
		t.Errorf("%q", got)
	}
}

func TestPatchFindsPlaces(t *testing.T) {
	file := "a\nx\nb\nx\nc \nx\nd\n"
	for _, c := range []struct{ name, before, hunks, want string }{
		{"line number decides", file, "@@ -4,1 +4,1 @@\n-x\n+y\n", "a\nx\nb\ny\nc \nx\nd\n"},
		{"a wrong number, one place", file, "@@ -1,2 +1,2 @@\n b\n-x\n+y\n", "a\nx\nb\ny\nc \nx\nd\n"},
		{"wrong counts", file, "@@ -1,9 +1,9 @@\n b\n-x\n+y\n", "a\nx\nb\ny\nc \nx\nd\n"},
		{"anchor", file, "@@ b\n-x\n+y\n", "a\nx\nb\ny\nc \nx\nd\n"},
		{"anchor that is context too", file, "@@ b\n b\n-x\n+y\n", "a\nx\nb\ny\nc \nx\nd\n"},
		{"anchor by its beginning", "func f(a int) {\n\tx\n}\nfunc g() {\n\tx\n}\n", "@@ func g\n-\tx\n+\ty\n", "func f(a int) {\n\tx\n}\nfunc g() {\n\ty\n}\n"},
		{"two anchors", "class A:\n def f\n  x\nclass B:\n def f\n  x\n", "@@ class B\n@@ def f\n-  x\n+  y\n", "class A:\n def f\n  x\nclass B:\n def f\n  y\n"},
		{"anchor nowhere, one place", file, "@@ none\n-d\n+D\n", "a\nx\nb\nx\nc \nx\nD\n"},
		{"space at line ends is kept", file, "@@\n c\n-x\n+y\n", "a\nx\nb\nx\nc \ny\nd\n"},
		{"at the end", "x\na\nx\n", "@@\n-x\n+y\n*** End of File\n", "x\na\ny\n"},
		{"insertion at the end", "a\n", "@@\n+b\n", "a\nb\n"},
		{"insertion at an open end", "a", "@@\n+b\n", "a\nb"},
		{"insertion behind an anchor", file, "@@ b\n+new\n", "a\nx\nb\nnew\nx\nc \nx\nd\n"},
		{"insertion behind a line", file, "@@ -1,0 +2,1 @@\n+new\n", "a\nnew\nx\nb\nx\nc \nx\nd\n"},
		{"several in order", file, "@@\n-a\n+A\n@@\n-d\n+D\n", "A\nx\nb\nx\nc \nx\nD\n"},
		{"mixed line ends", "a\r\nb\nc\r\n", "@@\n-b\n+B\n+BB\n@@\n-c\n+C\n", "a\r\nB\nBB\nC\r\n"},
		{"blank context without its space", "a\n\nb\n", "@@\n a\n\n-b\n+B\n", "a\n\nB\n"},

		{"an empty line behind the hunk", "a\nb\n", "@@\n a\n-b\n+B\n\n", "a\nB\n"},

		{"only empty lines", "a\nb\n", "@@\n\n+B\n", "E_EDIT_NO_MATCH: f: hunk 1 of 1 has nothing but empty lines to be found by, and they are not there"},
		{"ambiguous", file, "@@\n-x\n+y\n", "E_EDIT_AMBIGUOUS: f: hunk 1 of 1 fits 3 places, at lines 2, 4, 6"},
		{"ambiguous anchor", "f\nx\nf\nx\n", "@@ f\n-x\n+y\n", "E_EDIT_AMBIGUOUS: f: hunk 1 of 1 fits 2 places, at lines 2, 4"},
		{"not in order", file, "@@\n-d\n+D\n@@\n-a\n+A\n", "E_EDIT_NO_MATCH: f: hunk 2 of 2 fits only before the one above it, or not where it has to be"},
		{"nowhere", file, "@@\n-zzzz\n+y\n", "E_EDIT_NO_MATCH: f: hunk 1 of 1: the text of its context and removed lines does not occur in the file, and nothing like it"},
		{"indentation", "\tif x {\n\t}\n", "@@\n-  if x {\n+  if y {\n", "E_EDIT_NO_MATCH: f: hunk 1 of 1: the text of its context and removed lines does not occur in the file: the indentation, or space at the ends of lines, differs. Its line 1 begins with 2 spaces, the file's with 1 tab."},
		{"nothing", file, "@@\n a\n", "E_EDIT_NO_CHANGE: f: the hunks change nothing"},
	} {
		d := newDesk(t)
		d.seen(map[string]string{"f": c.before})
		got := d.patch(envelope("*** Update File: f\n" + c.hunks))
		if strings.HasPrefix(got, "E_") {
			got, _, _ = strings.Cut(got, "\n")
			if d.get("f") != c.before {
				t.Errorf("%s: changed", c.name)
			}
		} else {
			got = d.get("f")
		}
		if got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestPatchRefuses(t *testing.T) {
	d := newDesk(t)
	d.seen(map[string]string{"f": "x\n", "g": "y\n"})
	d.put("unread", "x\n")
	d.put("changed", "x\n")
	d.do("read", in{"file_path": "changed"})
	d.put("changed", "X\n")
	d.check(os.Symlink("f", filepath.Join(d.ws, "link")))
	before := d.tree()
	good := "*** Update File: f\n@@\n-x\n+y\n"
	for _, c := range []struct{ patch, want string }{
		{"", "E_TOOL_INPUT: the patch is neither in an envelope nor a unified diff"},
		{"*** Begin Patch\n" + good, "E_TOOL_INPUT: the patch has no *** End Patch: it was cut off"},
		{envelope(""), `E_TOOL_INPUT: line 2 of the patch: the patch is empty: "*** End Patch"`},
		{envelope("*** Add File: n\nline\n"), `E_TOOL_INPUT: line 3 of the patch: a line of a new file begins with +: "line"`},
		{envelope("*** Update File: f\n?x\n"), `E_TOOL_INPUT: line 3 of the patch: a line of a hunk begins with a space, "+" or "-": "?x"`},
		{envelope(good + "*** Add File: g\n+x\n"), "E_FILE_EXISTS: WS/g exists already"},
		{envelope(good + "*** Update File: unread\n@@\n-x\n+y\n"), "E_FILE_NOT_READ: WS/unread exists and has not been read in this session"},
		{envelope(good + "*** Delete File: unread\n"), "E_FILE_NOT_READ: WS/unread exists and has not been read in this session"},
		{envelope(good + "*** Update File: changed\n@@\n-X\n+y\n"), "E_FILE_CHANGED: WS/changed has changed since it was read: someone else, or a command, wrote to it"},
		{envelope(good + "*** Update File: none\n@@\n-x\n+y\n"), "E_FILE_NOT_FOUND: WS/none does not exist"},
		{envelope(good + "*** Delete File: f\n"), "E_TOOL_INPUT: f appears twice in the patch"},
		{envelope("*** Update File: f\n*** Move to: g\n"), "E_FILE_EXISTS: WS/g exists already"},
		{envelope("*** Update File: f\n*** Move to: .git/g\n"), "E_FILE_ACCESS: WS/.git/g belongs to the git repository"},
		{envelope("*** Delete File: link\n"), "E_FILE_TYPE: WS/link is a link"},
		{"--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-z\n", "E_EDIT_NO_MATCH: g: hunk 1 of 1: the text of its context and removed lines does not occur in the file, and nothing like it"},
		{"diff --git a/i b/i\nGIT binary patch\n", `E_TOOL_INPUT: line 2 of the patch: copies and binary patches cannot be applied: "GIT binary patch"`},
	} {
		if got, _, _ := strings.Cut(d.patch(c.patch), "\n"); got != c.want {
			t.Errorf("%q: %s", c.patch, got)
		}
	}
	if got := d.tree(); got != before {
		t.Errorf("changed: %q", got)
	}
	// Two parts for one file are one after the other.
	if got := d.patch(envelope(good + "*** Update File: f\n@@\n-y\n+z\n")); got != "Edited f: +1 -1 lines." || d.get("f") != "z\n" {
		t.Error(got, d.get("f"))
	}
}

// failing fails the writes of one file.
type failing struct {
	workspace.FS
	name string
}

func (f failing) Write(path string, data []byte, o workspace.WriteOptions) (os.FileInfo, error) {
	if filepath.Base(path) == f.name {
		return nil, &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
	}
	return f.FS.Write(path, data, o)
}

// When a write fails, what was written before it is put back.
func TestPatchIsAllOrNothing(t *testing.T) {
	d := newDesk(t)
	d.files.FS = failing{d.files.Workspace, "last"}
	d.open()
	d.seen(map[string]string{"a": "x\n", "m": "m\n", "del": "d\n"})
	d.check(os.Chmod(filepath.Join(d.ws, "m"), 0o750))
	before := d.tree()
	got := d.patch(envelope("*** Update File: a\n@@\n-x\n+y\n*** Update File: m\n*** Move to: moved\n@@\n-m\n+M\n*** Add File: new\n+x\n*** Delete File: del\n*** Add File: last\n+x\n"))
	if want := "E_DISK_FULL: no space left on the disk for WS/last; the file is as it was\nTell the user; space has to be freed first. None of the patch was applied: what had been written was put back."; got != want {
		t.Error(got)
	}
	if got := d.tree(); got != before {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(filepath.Join(d.ws, "m")); err != nil || info.Mode().Perm() != 0o750 {
		t.Error(info, err)
	}
}

// A patch that was interrupted is known as not begun, done, or done in part.
func TestProbeOfPatch(t *testing.T) {
	d := newDesk(t)
	d.seen(map[string]string{"a": "x\n", "m": "m\n", "del": "d\n"})
	c := d.newCall(in{"patch": envelope("*** Update File: a\n@@\n-x\n+y\n*** Update File: m\n*** Move to: moved\n@@\n-m\n+M\n*** Delete File: del\n*** Add File: new\n+n\n")})
	k := d.tools["patch"].(agent.Checker)
	mark, err := k.Mark(t.Context(), d.context(), c)
	d.check(err)
	for _, step := range []struct {
		do   func()
		want agent.Probe
		text string
	}{
		{func() {}, agent.ProbeNotDone, ""},
		{func() { d.put("a", "y\n") }, agent.ProbeDone, "the program was interrupted while it applied the patch. Changed: a. Not changed: m, del, new\nRead these files, then send a patch for the rest."},
		{func() { d.check(os.Rename(filepath.Join(d.ws, "m"), filepath.Join(d.ws, "moved"))) }, agent.ProbeDone, "the program was interrupted while it applied the patch. Changed: a, m (moved to moved, its lines unchanged). Not changed: del, new\nRead these files, then send a patch for the rest."},
		{func() { d.put("moved", "other\n") }, agent.ProbeUnknown, ""},
		{func() { d.put("moved", "M\n"); d.put("new", "n\n"); d.check(os.Remove(filepath.Join(d.ws, "del"))) }, agent.ProbeDone, "The patch was applied before the program was interrupted: a, m, del, new."},
	} {
		step.do()
		p, r, err := k.Probe(t.Context(), d.context(), c, mark)
		if err != nil || p != step.want || r.Text != step.text {
			t.Errorf("%s %q, %v", p, r.Text, err)
		}
	}
}

func FuzzPatch(f *testing.F) {
	for _, s := range []string{
		envelope("*** Update File: f\n@@ a\n-x\n+y\n"), envelope("*** Add File: f\n+y\n"), envelope("*** Delete File: f\n"),
		"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-x\n+y\n", "diff --git a/f b/g\nrename from f\nrename to g\n", "--- a\n+++ /dev/null\n@@ -1 +0,0 @@\n--- a\n+++ b\n",
		envelope("*** Update File: f\n*** Move to: g\n@@ -9,0 +9,1 @@\n+\n*** End of File\n"), "--- \"a/\\303\\261\"\n+++ b/f\n@@\n\\ No newline\n",
	} {
		f.Add(s, "a\nx\r\nb")
	}
	f.Add(envelope("*** Update File: f\n\n"), "0")
	f.Fuzz(func(t *testing.T, text, content string) {
		list, err := parsePatch(text)
		if err != nil {
			return
		}
		for _, p := range list {
			after, err := applyHunks(content, p.hunks)
			if err != nil {
				continue
			}
			added, removed := 0, 0
			for _, h := range p.hunks {
				old, new := h.withoutBlankEnd().sides()
				added, removed = added+len(new), removed+len(old)
			}
			if got, want := len(linesOf(after)), len(linesOf(content))+added-removed; got != want && !strings.ContainsAny(text, "\r") {
				t.Fatalf("%q: %d lines, want %d: %q", text, got, want, after)
			}
		}
	})
}
