package changeset

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/extend/bundle"
	"dure/internal/prooftest"
	"dure/internal/safety/workspace"
)

const desk = `apiVersion: goondan.ai/v1
kind: Model
metadata: { name: fast }
spec: { provider: anthropic, model: script }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: clerk }
spec: { modelConfig: { modelRef: Model/fast }, prompt: { systemRef: prompts/clerk.md } }
`

// office is a bundle in a workspace, and its changesets.
type office struct {
	t    *testing.T
	work string
	c    *Changesets
}

func newOffice(t *testing.T, allowed ...string) *office {
	t.Helper()
	work := t.TempDir()
	o := &office{t: t, work: work}
	o.write("desk/goondan.yaml", desk)
	o.write("desk/prompts/clerk.md", "Sort letters.")
	o.write("desk/old.md", "Not used.")
	o.write("desk/.env", "KEY=secret")
	o.write("desk/node_modules/x/index.js", "1")
	ws, err := workspace.New(workspace.Config{Root: work})
	if err != nil {
		t.Fatal(err)
	}
	o.c = New(Config{
		Dir: filepath.Join(ws.Root(), "desk"), Records: t.TempDir(), Workspace: ws, Allowed: allowed,
		Load: func(files fs.FS) []bundle.Problem {
			_, list := bundle.Load(bundle.Options{Sources: []bundle.Source{{FS: files}}})
			return list
		},
	})
	return o
}

func (o *office) write(name, text string) {
	o.t.Helper()
	name = filepath.Join(o.work, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) read(name string) string {
	data, err := os.ReadFile(filepath.Join(o.work, filepath.FromSlash(name)))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (o *office) gone(name string) bool {
	_, err := os.Lstat(filepath.Join(o.work, filepath.FromSlash(name)))
	return errors.Is(err, fs.ErrNotExist)
}

func (o *office) open() (id, in string) {
	o.t.Helper()
	id, n, err := o.c.Open()
	if err != nil || n != 3 {
		o.t.Fatalf("%d files, %v", n, err)
	}
	return id, Folder + "/" + id + "/"
}

// refuses checks that a changeset cannot be committed, why, and that nothing was written.
func (o *office) refuses(id string, code agent.ErrorCode, words ...string) {
	o.t.Helper()
	_, err := o.c.Look(id)
	te, ok := errors.AsType[*agent.ToolError](err)
	if !ok || te.Code != code {
		o.t.Fatalf("%v, want %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(te.Message, w) {
			o.t.Errorf("%q does not say %q", te.Message, w)
		}
	}
	if _, err := o.c.Commit(o.t.Context(), id, ""); err == nil {
		o.t.Error("it was committed")
	}
	if got := o.read("desk/prompts/clerk.md"); got != "Sort letters." && code != ErrConflict {
		o.t.Errorf("the bundle has %q", got)
	}
}

// What was changed, made and removed in a changeset is so in the bundle once it is committed,
// and not before; nothing else is.
func TestCommit(t *testing.T) {
	o := newOffice(t)
	id, in := o.open()
	if !o.gone(in+".env") || !o.gone(in+"node_modules") || o.read(Folder+"/.gitignore") != "*\n" {
		t.Error("it has what is no part of it, or git tells of it")
	}
	o.write(in+"prompts/clerk.md", "Sort letters by date.")
	o.write(in+"prompts/more/new.md", "New.")
	if err := os.Remove(filepath.Join(o.work, filepath.FromSlash(in+"old.md"))); err != nil {
		t.Fatal(err)
	}
	change, err := o.c.Look(id)
	if err != nil {
		t.Fatal(err)
	}
	if got := o.read("desk/prompts/clerk.md"); got != "Sort letters." {
		t.Errorf("looking has written %q", got)
	}
	if got := strings.Join(change.Written(), " ") + "; " + strings.Join(change.Removed(), " "); got != "prompts/clerk.md prompts/more/new.md; old.md" || len(change.Paths) != 3 {
		t.Errorf("%s: %q", got, change.Paths)
	}
	if _, err := o.c.Commit(t.Context(), id, change.Digest); err != nil {
		t.Fatal(err)
	}
	if o.read("desk/prompts/clerk.md") != "Sort letters by date." || o.read("desk/prompts/more/new.md") != "New." || !o.gone("desk/old.md") || o.read("desk/.env") != "KEY=secret" {
		t.Error("the bundle is not what was committed")
	}
	if !o.gone(in) {
		t.Error("the changeset is still there")
	}
	o.refusesAfter(id)
}

func (o *office) refusesAfter(id string) {
	o.t.Helper()
	_, err := o.c.Commit(o.t.Context(), id, "")
	if te, ok := errors.AsType[*agent.ToolError](err); !ok || te.Code != ErrUnknown {
		o.t.Errorf("committed twice: %v", err)
	}
}

// A changeset is not committed when it is not what was agreed to any more.
func TestCommitOfSomethingElse(t *testing.T) {
	o := newOffice(t)
	id, in := o.open()
	o.write(in+"prompts/clerk.md", "Sort letters by date.")
	change, err := o.c.Look(id)
	if err != nil {
		t.Fatal(err)
	}
	o.write(in+"prompts/clerk.md", "Burn all letters.")
	_, err = o.c.Commit(t.Context(), id, change.Digest)
	if te, ok := errors.AsType[*agent.ToolError](err); !ok || te.Code != ErrConflict || o.read("desk/prompts/clerk.md") != "Sort letters." {
		t.Errorf("%v; the bundle has %q", err, o.read("desk/prompts/clerk.md"))
	}
}

// What cannot be committed is refused whole, with why.
func TestRefused(t *testing.T) {
	t.Run("mistakes", func(t *testing.T) {
		o := newOffice(t)
		id, in := o.open()
		o.write(in+"goondan.yaml", strings.NewReplacer("Model/fast", "Model/slow", "clerk.md", "nobody.md").Replace(desk))
		o.write(in+"prompts/clerk.md", "Other.")
		o.refuses(id, ErrInvalid, "goondan.yaml:9:", "no Model/slow", "E_CONFIG_ENTRY_NOT_FOUND")
	})
	t.Run("conflict", func(t *testing.T) {
		o := newOffice(t)
		id, in := o.open()
		o.write(in+"prompts/clerk.md", "Mine.")
		o.write(in+"old.md", "Mine.")
		o.write("desk/prompts/clerk.md", "Theirs.")
		o.refuses(id, ErrConflict, "prompts/clerk.md")
		if o.read("desk/old.md") != "Not used." || o.read("desk/prompts/clerk.md") != "Theirs." {
			t.Error("something was written")
		}
	})
	t.Run("the same meanwhile", func(t *testing.T) {
		o := newOffice(t)
		id, in := o.open()
		o.write(in+"prompts/clerk.md", "The same.")
		o.write(in+"old.md", "Mine.")
		o.write("desk/prompts/clerk.md", "The same.")
		if change, err := o.c.Look(id); err != nil || strings.Join(change.Written(), " ") != "old.md" {
			t.Errorf("%+v, %v", change, err)
		}
	})
	t.Run("a file of that name", func(t *testing.T) {
		o := newOffice(t)
		id, in := o.open()
		o.write(in+"new.md", "Mine.")
		o.write("desk/new.md", "Theirs.")
		o.refuses(id, ErrConflict, "new.md")
	})
	t.Run("nothing", func(t *testing.T) {
		o := newOffice(t)
		id, _ := o.open()
		o.refuses(id, ErrRefused, "changes nothing")
	})
	t.Run("hidden", func(t *testing.T) {
		o := newOffice(t)
		id, in := o.open()
		o.write(in+".env", "KEY=other")
		o.write(in+bundle.LockFile, "{}")
		o.write(in+"prompts/node_modules/y.js", "2")
		o.refuses(id, ErrRefused, ".env", bundle.LockFile, "prompts/node_modules")
	})
	t.Run("link", func(t *testing.T) {
		o := newOffice(t)
		id, in := o.open()
		prooftest.Link(t, os.Symlink(filepath.Join(o.work, "desk", ".env"), filepath.Join(o.work, filepath.FromSlash(in+"stolen.md"))))
		o.refuses(id, ErrRefused, "stolen.md")
	})
	t.Run("a folder that is a link", func(t *testing.T) {
		o := newOffice(t)
		id, in := o.open()
		at := filepath.Join(o.work, filepath.FromSlash(strings.TrimSuffix(in, "/")))
		prooftest.Link(t, errors.Join(os.RemoveAll(at), os.Symlink(t.TempDir(), at)))
		o.refuses(id, ErrRefused, "no folder")
	})
	t.Run("beyond", func(t *testing.T) {
		o := newOffice(t, "prompts/**", "*.txt")
		id, in := o.open()
		o.write(in+"prompts/deep/new.md", "Mine.")
		o.write(in+"old.md", "Mine.")
		o.refuses(id, ErrRefused, "may not change: old.md")
	})
	t.Run("unknown", func(t *testing.T) {
		o := newOffice(t)
		for _, id := range []string{"cs-7", "../desk", "", "cs-0"} {
			o.refuses(id, ErrUnknown)
		}
	})
	t.Run("somebody else's", func(t *testing.T) {
		o := newOffice(t)
		id, _ := o.open()
		other := newOffice(t)
		other.c.c.Records = o.c.c.Records
		other.refuses(id, ErrUnknown)
	})
}

// When a file cannot be written, those before it are what they were.
func TestUndone(t *testing.T) {
	o := newOffice(t)
	id, in := o.open()
	o.write(in+"a/new.md", "Mine.")
	o.write(in+"old.md", "Mine.")
	o.write(in+"prompts/clerk.md", "Mine.")
	if err := os.Chmod(filepath.Join(o.work, "desk", "prompts", "clerk.md"), 0o444); err != nil {
		t.Fatal(err)
	}
	change, err := o.c.Look(id)
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.c.Commit(t.Context(), id, change.Digest)
	if te, ok := errors.AsType[*agent.ToolError](err); !ok || te.Code != ErrRefused || !strings.Contains(te.Message, "nothing of the changeset was") {
		t.Errorf("%v", err)
	}
	if !o.gone("desk/a/new.md") || o.read("desk/old.md") != "Not used." || o.read("desk/prompts/clerk.md") != "Sort letters." {
		t.Error("the bundle has a part of the changeset")
	}
	if _, err := o.c.Look(id); err != nil {
		t.Errorf("the changeset is over: %v", err)
	}
}

// Of changesets that nobody commits the oldest are forgotten, and the newest never is.
func TestForgotten(t *testing.T) {
	o := newOffice(t)
	last := ""
	for range maxRecords + 2 {
		last, _ = o.open()
	}
	root, err := o.c.records()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	list, err := fs.ReadDir(root.FS(), ".")
	if err != nil || len(list) != maxRecords {
		t.Errorf("%d are kept, %v", len(list), err)
	}
	if _, err := o.c.recorded(last); err != nil {
		t.Errorf("the newest: %v", err)
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.md", "a.md", true},
		{"*.md", "b/a.md", false},
		{"**/*.md", "a.md", true},
		{"**/*.md", "c/b/a.md", true},
		{"b/**", "b/c/a.md", true},
		{"b/**", "bc/a.md", false},
		{"b/../goondan.yaml", "goondan.yaml", true},
		{"[", "a", false},
	} {
		if got := matches(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%s and %s: %v", tt.pattern, tt.name, got)
		}
	}
}

// torn is a commit of three files that the program has died in after some of them.
func torn(t *testing.T, after int) (o *office, id string, change *Change) {
	t.Helper()
	o = newOffice(t)
	id, in := o.open()
	o.write(in+"prompts/clerk.md", "Sort letters by date.")
	o.write(in+"new.md", "New.")
	if err := os.Remove(filepath.Join(o.work, filepath.FromSlash(in+"old.md"))); err != nil {
		t.Fatal(err)
	}
	change, err := o.c.Look(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.c.note(change); err != nil {
		t.Fatal(err)
	}
	for i, e := range append(change.write, change.remove...) {
		do := o.c.put
		if i >= len(change.write) {
			do = o.c.drop
		}
		if i == after {
			break
		}
		if err := do(e); err != nil {
			t.Fatal(err)
		}
	}
	return o, id, change
}

// A commit that was cut short, wherever that was, is taken back as a whole, once, when the
// bundle is started or changed again; it can be made anew.
func TestTorn(t *testing.T) {
	for after := range 4 {
		o, id, change := torn(t, after)
		names, err := Restore(o.c.c.Dir, o.c.c.Records)
		if err != nil || len(names) != after {
			t.Errorf("after %d: %q, %v", after, names, err)
		}
		if o.read("desk/prompts/clerk.md") != "Sort letters." || !o.gone("desk/new.md") || o.read("desk/old.md") != "Not used." {
			t.Errorf("after %d the bundle is not what it was", after)
		}
		o.write("desk/old.md", "Theirs.")
		if names, err := Restore(o.c.c.Dir, o.c.c.Records); err != nil || len(names) > 0 || o.read("desk/old.md") != "Theirs." {
			t.Errorf("after %d, again: %q, %v", after, names, err)
		}
		o.write("desk/old.md", "Not used.")
		if _, err := o.c.Commit(t.Context(), id, change.Digest); err != nil || o.read("desk/new.md") != "New." {
			t.Errorf("after %d, anew: %v", after, err)
		}
	}
}

// Whoever opens or commits a changeset next finds the bundle whole, too.
func TestTornAndChanged(t *testing.T) {
	o, id, change := torn(t, 2)
	if _, err := o.c.Commit(t.Context(), id, change.Digest); err != nil {
		t.Fatal(err)
	}
	if o.read("desk/prompts/clerk.md") != "Sort letters by date." || o.read("desk/new.md") != "New." || !o.gone("desk/old.md") {
		t.Error("the commit is not whole")
	}
	if names, err := Restore(o.c.c.Dir, o.c.c.Records); err != nil || len(names) > 0 {
		t.Errorf("what was committed is taken back: %q, %v", names, err)
	}
	o, _, _ = torn(t, 2)
	_, in := o.open()
	if !o.gone(in+"new.md") || o.read(in+"old.md") != "Not used." {
		t.Error("the changeset has a part of a commit")
	}
}

// What somebody has changed since a commit was cut short stays, whatever it had done.
func TestTornAndTheirs(t *testing.T) {
	o, _, _ := torn(t, 3)
	o.write("desk/new.md", "Theirs.")
	o.write("desk/old.md", "Theirs, too.")
	names, err := Restore(o.c.c.Dir, o.c.c.Records)
	if err != nil || strings.Join(names, " ") != "prompts/clerk.md" || o.read("desk/new.md") != "Theirs." || o.read("desk/old.md") != "Theirs, too." {
		t.Errorf("%q, %v: %q, %q", names, err, o.read("desk/new.md"), o.read("desk/old.md"))
	}
}

// What is written down cannot be read: nothing is started or committed on a bundle that may
// have a part of a commit.
func TestTornAndDamaged(t *testing.T) {
	o, id, change := torn(t, 1)
	if err := os.WriteFile(filepath.Join(o.c.recordsDir(), undoFile), []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(o.c.c.Dir, o.c.c.Records); err == nil {
		t.Error("it was restored from nothing")
	}
	if _, _, err := o.c.Open(); err == nil {
		t.Error("it was opened")
	}
	if _, err := o.c.Commit(t.Context(), id, change.Digest); err == nil {
		t.Error("it was committed")
	}
}

// Two that commit at a time, in two sessions, leave what one of them has made, and the other
// is told.
func TestRivals(t *testing.T) {
	o := newOffice(t)
	other := New(o.c.c)
	first, in := o.open()
	o.write(in+"prompts/clerk.md", "First.")
	o.write(in+"old.md", "First.")
	second, in := o.open()
	o.write(in+"old.md", "Second.")
	o.write(in+"prompts/clerk.md", "Second.")
	sets, digests := map[string]*Changesets{first: o.c, second: other}, map[string]string{}
	for id, c := range sets { // before the first of them commits
		change, err := c.Look(id)
		if err != nil {
			t.Fatal(err)
		}
		digests[id] = change.Digest
	}
	errs := make(chan error, 2)
	for id, c := range sets {
		go func() {
			_, err := c.Commit(t.Context(), id, digests[id])
			errs <- err
		}()
	}
	lost := <-errs
	if e := <-errs; lost == nil {
		lost = e
	} else if e != nil {
		t.Errorf("both failed: %v, %v", lost, e)
	}
	if te, ok := errors.AsType[*agent.ToolError](lost); !ok || te.Code != ErrConflict {
		t.Errorf("the other was told %v", lost)
	}
	if a, b := o.read("desk/old.md"), o.read("desk/prompts/clerk.md"); a != b || a != "First." && a != "Second." {
		t.Errorf("the bundle has %q and %q", a, b)
	}
}
