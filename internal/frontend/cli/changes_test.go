package cli

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
	"dure/internal/prooftest"
)

// changedFiles is a report with every kind of change.
func changedFiles() query.DiffReport {
	file := func(f query.FileDiff) query.FileDiff {
		if f.Kind == "" && f.Status != query.FileDeleted {
			f.Kind = "file"
		}
		if f.KindWas == "" && f.Status != query.FileAdded {
			f.KindWas = "file"
		}
		f.Mode, f.ModeWas = max(f.Mode, 0o644), max(f.ModeWas, 0o644)
		return f
	}
	return query.DiffReport{Session: "s1", From: "000001-a", To: "000002-b", Added: 4, Removed: 3, Files: []query.FileDiff{
		file(query.FileDiff{ID: "1", Path: "added.txt", Status: query.FileAdded, Added: 1, Command: true, Hunks: []query.HunkDiff{{ID: "h1", NewStart: 1, NewLines: 1, Lines: []string{"+new"}}}}),
		file(query.FileDiff{ID: "2", Path: "gone.txt", Status: query.FileDeleted, Removed: 1, Hunks: []query.HunkDiff{{ID: "h2", OldStart: 1, OldLines: 1, Lines: []string{"-old", `\ No newline at end of file`}}}}),
		file(query.FileDiff{ID: "3", Path: "d/new.txt", From: "d/was.txt", Status: query.FileRenamed, Added: 1, Removed: 1, Others: true, Hunks: []query.HunkDiff{{ID: "h3", OldStart: 1, OldLines: 3, NewStart: 1, NewLines: 3, Lines: []string{" a", "-b", "+x", " c"}}}}),
		file(query.FileDiff{ID: "4", Path: "run.sh", Status: query.FileMode, Mode: 0o755}),
		file(query.FileDiff{ID: "5", Path: "한글 \x1b[31m.txt", Status: query.FileModified, Added: 2, Removed: 1, Children: []string{"c"}, Hunks: []query.HunkDiff{
			{ID: "h5", OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 2, Lines: []string{"-one", "+\x1b[2Jtwo", "+three"}},
		}}),
	}}
}

func TestPatch(t *testing.T) {
	var b strings.Builder
	w := bufio.NewWriter(&b)
	p := &patcher{w: w, t: text.For("en"), clean: true, most: 1, how: func(path string) string { return "dure diff s1 " + quoted(path) }}
	for _, f := range changedFiles().Files {
		p.file(f)
	}
	w.Flush()
	const want = `# added.txt: changed by a command
diff --git a/added.txt b/added.txt
new file mode 100644
--- /dev/null
+++ b/added.txt
@@ -0,0 +1,1 @@ #1
+new
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1,1 +0,0 @@ #1
-old
… 1 more line; all of them: dure diff s1 gone.txt
# d/new.txt: others have changed it since, too
diff --git a/d/was.txt b/d/new.txt
rename from d/was.txt
rename to d/new.txt
--- a/d/was.txt
+++ b/d/new.txt
@@ -1,3 +1,3 @@ #1
 a
… 3 more lines; all of them: dure diff s1 d/new.txt
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
# "한글 \x1b[31m.txt": changed by 1 child session
diff --git "a/한글 \x1b[31m.txt" "b/한글 \x1b[31m.txt"
--- "a/한글 \x1b[31m.txt"
+++ "b/한글 \x1b[31m.txt"
@@ -1,1 +1,2 @@ #1
-one
`
	got, rest, _ := strings.Cut(b.String(), "… 2 more lines; all of them: dure diff s1 '한글 ")
	if got != want || strings.Contains(rest, "\x1b") {
		t.Errorf("the patch is\n%s%q\nwant\n%s", got, rest, want)
	}
}

// What a diff writes to a file can be applied by git.
func TestPatchApplies(t *testing.T) {
	git := prooftest.Program(t, "git")
	dir := t.TempDir()
	for name, content := range map[string]string{"gone.txt": "old", "d/was.txt": "a\nb\nc\n", "run.sh": "x\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	w := bufio.NewWriter(&b)
	p := &patcher{w: w, t: text.For("en")}
	for _, f := range changedFiles().Files[:4] {
		p.file(f)
	}
	p.line(dim, "# 4 files changed")
	w.Flush()
	cmd := exec.Command(git, "apply", "--verbose", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(b.String())
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, b.String())
	}
	got, err := os.ReadFile(filepath.Join(dir, "d/new.txt"))
	if err != nil || string(got) != "a\nx\nc\n" {
		t.Errorf("the renamed file has %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "gone.txt")); err == nil {
		t.Error("the deleted file is there")
	}
}

// A review sends each answer, waits for what comes of it, and asks about what others
// have changed.
func TestReviewKeys(t *testing.T) {
	for name, c := range map[string]struct{ keys, want string }{
		"one by one":       {"arnnn", "accept 1\nreject 2\n"},
		"left":             {"aq", "accept 1\n"},
		"the rest":         {"nA", "accept 2 3 4 5\n"},
		"the rest back":    {"nRy", "reject 2 3 4 5\n"},
		"not after all":    {"Rnq", ""},
		"merged":           {"nnrmq", "reject 3 merge\n"},
		"forced":           {"nnrfq", "reject 3 force\n"},
		"others' are left": {"nnrnq", ""},
		"not known":        {"zq", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.answers = map[string]any{"diff": changedFiles()}
			f.on = func(f *fake, c agent.Command) {
				switch c := c.(type) {
				case agent.Accept:
					f.emit(agent.ChangesAccepted{At: c.At, Files: c.Files})
				case agent.Reject:
					f.emit(agent.FilesRewound{Files: len(c.Files)})
				}
			}
			lines := "/changes\n"
			for _, k := range c.keys {
				lines += string(k) + "\n"
			}
			out := &strings.Builder{}
			cl := New(Config{Client: f.client(), Text: text.For("en"), In: strings.NewReader(""), Out: out, Err: out, Now: time.Now})
			err := cl.Interact(context.Background(), InteractOptions{
				Open: agent.Open{Session: "s1"}, Terminal: Terminal{In: strings.NewReader(lines), Out: out, Size: func() (int, int) { return 0, 0 }},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := sentReviews(f.sent); got != c.want {
				t.Errorf("sent\n%swant\n%s%s", got, c.want, out)
			}
		})
	}
}

func sentReviews(sent []agent.Command) string {
	var b strings.Builder
	line := func(what string, files []agent.Pick, more string) {
		b.WriteString(what)
		for _, p := range files {
			b.WriteString(" " + p.ID)
		}
		b.WriteString(more + "\n")
	}
	for _, c := range sent {
		switch c := c.(type) {
		case agent.Accept:
			line("accept", c.Files, "")
		case agent.Reject:
			more := ""
			if c.Merge {
				more += " merge"
			}
			if c.Force {
				more += " force"
			}
			line("reject", c.Files, more)
		}
	}
	return b.String()
}
