//go:build unix

package instruct

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/knowledge/memory"
	"dure/internal/knowledge/memory/notes"
)

// newAt returns the extension for a working folder that is trusted.
func newAt(t *testing.T, work, home string) *Extension {
	t.Helper()
	same := func(s string) string { return s }
	return New(Config{
		Files: memory.Config{Disk: memory.OS(), User: []string{home}}, Home: home, Workdir: work,
		Main: same, Project: func(dir string) (string, bool) { return dir, true }, Top: func(string) string { return "" },
		Redact: same, Clean: same, Explain: func(query.Finding) (detail, fix string) { return "", "" },
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(path string) string {
	data, _ := os.ReadFile(path) // "" = there is none
	return string(data)
}

// What a person remembers is added to their file, and taken back while nobody has
// changed it. A file that was made for it goes as well.
func TestAddAndUndo(t *testing.T) {
	work, ctx := t.TempDir(), t.Context()
	x := newAt(t, work, t.TempDir())
	theirs, local := filepath.Join(work, "CLAUDE.md"), filepath.Join(work, "AGENTS.local.md")
	write(t, theirs, "One.")
	added, err := x.add(ctx, query.AddMemory{Scope: "project", Text: "  Use\ttabs. "})
	if err != nil || added.Path != theirs || read(theirs) != "One.\n- Use tabs.\n" {
		t.Fatalf("%+v, %v: %q", added, err, read(theirs))
	}
	elsewhere := added
	elsewhere.Path = local
	if _, err := x.undo(ctx, query.UndoMemory{Added: elsewhere}); agent.ProblemOf(err) == nil {
		t.Errorf("a line of another file is taken back: %v", err)
	}
	if _, err := x.undo(ctx, query.UndoMemory{Added: added}); err != nil || read(theirs) != "One." {
		t.Errorf("%v: %q", err, read(theirs))
	}
	if added, err = x.add(ctx, query.AddMemory{Scope: "local", Text: "Mine."}); err != nil || !strings.HasSuffix(read(local), "-->\n- Mine.\n") {
		t.Fatalf("%v: %q", err, read(local))
	}
	write(t, local, "Other.")
	if _, err := x.undo(ctx, query.UndoMemory{Added: added}); agent.ProblemOf(err) == nil || read(local) != "Other." {
		t.Errorf("%v: %q", err, read(local))
	}
	if err := os.Remove(local); err != nil {
		t.Fatal(err)
	}
	if added, err = x.add(ctx, query.AddMemory{Scope: "local", Text: "Mine."}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.undo(ctx, query.UndoMemory{Added: added}); err != nil || read(local) != "" {
		t.Errorf("%v: %q", err, read(local))
	}
	for _, q := range []query.AddMemory{{Text: "x"}, {Scope: "nobody", Text: "x"}, {Scope: "user", Text: " \n"}} {
		if _, err := x.add(ctx, q); agent.ProblemOf(err) == nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// What a person writes for all projects is for nobody else, and neither is what an
// agent notes there.
func TestUsersMemoryIsPrivate(t *testing.T) {
	home := filepath.Join(t.TempDir(), "new", "dure")
	x := newAt(t, t.TempDir(), home)
	p, err := x.makeFile(t.Context(), query.MakeMemory{Scope: "user"})
	if err != nil {
		t.Fatal(err)
	}
	n := x.Notebook(t.TempDir(), "")
	if err := n.Append(string(notes.User), "a note"); err != nil {
		t.Fatal(err)
	}
	note, err := n.Path(string(notes.User))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{home, p.Path, filepath.Dir(note), note} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// A repository may have made its instructions a link: what a person remembers, or wants
// to edit, is not written to where it leads, nor taken back there.
func TestNoLinkOutIsFollowed(t *testing.T) {
	work, home, ctx := t.TempDir(), t.TempDir(), t.Context()
	shell := filepath.Join(home, ".bashrc")
	write(t, shell, "alias x=y\n")
	x := newAt(t, work, home)
	for scope, name := range map[string]string{"project": "AGENTS.md", "local": "AGENTS.local.md"} {
		path := filepath.Join(work, name)
		if err := os.Symlink(shell, path); err != nil {
			t.Fatal(err)
		}
		if _, err := x.add(ctx, query.AddMemory{Scope: scope, Text: "a note"}); agent.ProblemOf(err) == nil {
			t.Errorf("%s: %v", scope, err)
		}
		if p, err := x.makeFile(ctx, query.MakeMemory{Scope: scope}); agent.ProblemOf(err) == nil {
			t.Errorf("%s: %+v, %v", scope, p, err)
		}
		line := query.MemoryAdded{MemoryPlace: query.MemoryPlace{Scope: scope, Path: path, Exists: true}, Line: "alias x=y\n"}
		if p, err := x.undo(ctx, query.UndoMemory{Added: line}); agent.ProblemOf(err) == nil {
			t.Errorf("%s: %+v, %v", scope, p, err)
		}
	}
	if read(shell) != "alias x=y\n" {
		t.Errorf("it is %q", read(shell))
	}
}
