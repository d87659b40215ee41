package worktree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
)

// bench is a repository with one commit, and a store.
type bench struct {
	*testing.T
	git, home, top, trees string
	s                     *Store
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, git: prooftest.Program(t, "git"), home: filepath.Join(dir, "home"), top: filepath.Join(dir, "repo"), trees: filepath.Join(dir, "trees")}
	b.put(filepath.Join(b.home, ".gitconfig"), "[user]\n\tname = Kim\n\temail = kim@example.org\n[init]\n\tdefaultBranch = main\n")
	b.put("a.txt", "one\ntwo\nthree\n")
	b.put("dir/b.txt", "b\n")
	b.put(".gitignore", ".env\nnode_modules\n*.secret\n")
	b.plain(b.top, "init", "-q")
	b.plain(b.top, "add", ".")
	b.plain(b.top, "commit", "-q", "-m", "First")
	b.s = openStore(t, b.git, b.home, b.trees)
	return b
}

func openStore(t *testing.T, git, home, trees string) *Store {
	box := sandbox.New(sandbox.Config{Temp: t.TempDir()})
	t.Cleanup(func() { box.Close() })
	return New(Config{Home: trees, Git: git, Env: environ(home), Box: box})
}

func environ(home string) []string {
	return append(sandbox.Scrub(os.Environ(), []string{"GIT_*", "HOME", "XDG_CONFIG_HOME"}), "HOME="+home, "USERPROFILE="+home, "GIT_CONFIG_NOSYSTEM=1")
}

// put writes a file of the repository, or of an absolute path.
func (b *bench) put(path, text string) {
	b.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.top, path)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		b.Fatal(err)
	}
}

// plain runs git as a person does.
func (b *bench) plain(dir string, args ...string) string {
	b.Helper()
	cmd := exec.Command(b.git, args...)
	cmd.Dir, cmd.Env = dir, append(environ(b.home), "GIT_PAGER=cat")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) make(r Request) Tree {
	b.Helper()
	r.Dir, r.Owner = b.top, "s1"
	if r.Kind == "" {
		r.Kind = "worker"
	}
	t, notes, err := b.s.Create(b.Context(), r)
	if err != nil || len(notes) > 0 {
		b.Fatal(err, notes)
	}
	return t
}

func (b *bench) commit(t Tree) {
	b.Helper()
	if done, err := b.s.Commit(b.Context(), t, "Work"); err != nil || !done {
		b.Fatal(done, err)
	}
}

func (b *bench) merge(t Tree, into string) (Tree, error) {
	b.Helper()
	p, err := b.s.PlanMerge(b.Context(), t, into)
	if err != nil {
		return t, err
	}
	return b.s.Merge(b.Context(), t, p)
}

// stand is all that a person sees of the repository's own folder.
func (b *bench) stand() string {
	b.Helper()
	var s strings.Builder
	s.WriteString(b.plain(b.top, "rev-parse", "HEAD") + b.plain(b.top, "status", "--porcelain", "--ignored") + b.plain(b.top, "config", "--local", "--list"))
	for _, f := range strings.Split(b.plain(b.top, "ls-files", "-co"), "\n") {
		data, err := os.ReadFile(filepath.Join(b.top, f))
		fmt.Fprintf(&s, "\n%s %q %v", f, data, err)
	}
	return s.String()
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// left lists what is left of trees: folders, records, branches, what git knows.
func (b *bench) left() (list []string) {
	entries, _ := os.ReadDir(b.trees)
	for _, e := range entries {
		if e.Name() != lockFile && !strings.HasPrefix(e.Name(), goneMark) {
			list = append(list, e.Name())
		}
	}
	for _, line := range strings.Split(b.plain(b.top, "worktree", "list", "--porcelain"), "\n") {
		if path, ok := strings.CutPrefix(line, "worktree "); ok && filepath.FromSlash(path) != b.top {
			list = append(list, line)
		}
	}
	if branches := b.plain(b.top, "branch", "--list", branchPrefix+"*"); branches != "" {
		list = append(list, branches)
	}
	return list
}

func TestATreeIsWorkedInAndMerged(t *testing.T) {
	b := newBench(t)
	before := b.stand()
	tree := b.make(Request{Key: "k", Kind: "my:Worker"})
	if again, _, err := b.s.Create(t.Context(), Request{Dir: b.top, Owner: "s1", Key: "k", Kind: "my:Worker"}); err != nil || again.Path != tree.Path {
		t.Errorf("the same key: %+v, %v", again, err)
	}
	if !strings.HasPrefix(tree.Branch, "dure-my-worker-") || tree.Repo != b.top || tree.State != Ready || b.plain(tree.Path, "branch", "--show-current") != tree.Branch {
		t.Errorf("%+v", tree)
	}
	if found, ok := b.s.In(filepath.Join(tree.Path, "dir")); !ok || found.ID != tree.ID {
		t.Errorf("in it: %+v, %v", found, ok)
	}
	b.put(filepath.Join(tree.Path, "a.txt"), "one\nTWO\nthree\n")
	b.put(filepath.Join(tree.Path, "new file.txt"), "new\n")
	if list, err := b.s.Changes(t.Context(), tree, 0); err != nil || len(list) != 2 {
		t.Errorf("changes %v, %v", list, err)
	}
	if err := b.s.Remove(t.Context(), tree, false, false); !errors.Is(err, ErrChanged) {
		t.Errorf("removing it with changes: %v", err)
	}
	b.commit(tree)
	if again, err := b.s.Commit(t.Context(), tree, "Nothing"); again || err != nil {
		t.Errorf("committing nothing: %v, %v", again, err)
	}
	if now := b.stand(); now != before {
		t.Errorf("the repository's folder has changed to\n%s\nfrom\n%s", now, before)
	}
	if diff, more, err := b.s.Diff(t.Context(), tree); err != nil || more || !strings.Contains(diff, "+TWO") {
		t.Errorf("difference %q, %v, %v", diff, more, err)
	}
	b.put("mine.txt", "not committed\n")
	tree, err := b.merge(tree, "")
	if err != nil || read(t, filepath.Join(b.top, "a.txt")) != "one\nTWO\nthree\n" || read(t, filepath.Join(b.top, "mine.txt")) != "not committed\n" {
		t.Fatalf("%+v, %v", tree, err)
	}
	if said := b.plain(b.top, "status", "--porcelain"); said != "?? mine.txt" {
		t.Errorf("status %q", said)
	}
	if err := b.s.Remove(t.Context(), tree, false, false); err != nil || len(b.left()) > 0 {
		t.Errorf("left: %q, %v", b.left(), err)
	}
	past, ok := b.s.Past(tree.ID)
	if gone := b.s.Gone(); !ok || past.Merge == nil || past.Merge.Into != "main" || len(gone) != 1 || gone[0].ID != tree.ID {
		t.Errorf("remembered: %+v, %v", past, ok)
	}
	b.make(Request{Key: "k", Kind: "my:Worker"})
	if _, ok := b.s.Past(tree.ID); ok {
		t.Error("it is there again, and remembered as gone")
	}
}

// What both sides have changed is named, and nothing is changed by trying; what they
// changed beside each other is merged, into another branch too.
func TestBothSidesHaveChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two, three := b.make(Request{Key: "1"}), b.make(Request{Key: "2"}), b.make(Request{Key: "3"})
	b.put(filepath.Join(one.Path, "a.txt"), "1\ntwo\nthree\n")
	b.put(filepath.Join(two.Path, "a.txt"), "2\ntwo\nthree\n")
	b.put(filepath.Join(three.Path, "dir/b.txt"), "3\n")
	b.commit(one)
	b.commit(two)
	b.commit(three)
	if _, err := b.merge(one, "main"); err != nil {
		t.Fatal(err)
	}
	before := b.stand()
	_, err := b.merge(two, "")
	if c, ok := errors.AsType[*ConflictError](err); !ok || !slices.Equal(c.Files, []string{"a.txt"}) || c.Into != "main" {
		t.Errorf("the conflict is %v", err)
	}
	if now := b.stand(); now != before {
		t.Errorf("a conflict has changed\n%s\nto\n%s", before, now)
	}
	if _, err := b.merge(three, ""); err != nil || read(t, filepath.Join(b.top, "dir/b.txt")) != "3\n" || read(t, filepath.Join(b.top, "a.txt")) != "1\ntwo\nthree\n" {
		t.Errorf("beside each other: %v", err)
	}
	b.plain(b.top, "branch", "other", "HEAD~1")
	before = b.stand()
	if _, err := b.merge(three, "other"); err != nil || b.plain(b.top, "show", "other:dir/b.txt") != "3" || b.stand() != before {
		t.Errorf("into another branch: %v", err)
	}
	for _, into := range []string{"-d", "no such", "nosuch", "@{-1}", one.Branch} {
		if _, err := b.merge(three, into); err == nil {
			t.Errorf("merged into %q", into)
		}
	}
}

// A merge takes no change away that is not committed, and none that was not agreed.
func TestAMergeTakesNothingAway(t *testing.T) {
	b := newBench(t)
	tree := b.make(Request{Key: "1"})
	b.put(filepath.Join(tree.Path, "a.txt"), "agent\n")
	b.put(filepath.Join(tree.Path, "new.txt"), "agent\n")
	b.commit(tree)
	b.put("a.txt", "person\n")
	before := b.stand()
	_, err := b.merge(tree, "")
	if _, dirty := errors.AsType[*DirtyError](err); !dirty || b.stand() != before {
		t.Errorf("over a change: %v", err)
	}
	b.plain(b.top, "checkout", "-q", "a.txt")
	b.put("new.txt", "person\n")
	before = b.stand()
	_, err = b.merge(tree, "")
	if _, dirty := errors.AsType[*DirtyError](err); !dirty || b.stand() != before {
		t.Errorf("over a new file: %v", err)
	}
	if err := os.Remove(filepath.Join(b.top, "new.txt")); err != nil {
		t.Fatal(err)
	}
	plan, err := b.s.PlanMerge(t.Context(), tree, "")
	if err != nil || len(plan.Changes) != 2 || !plan.Here || plan.Into != "main" {
		t.Fatalf("%+v, %v", plan, err)
	}
	b.put(filepath.Join(tree.Path, "more.txt"), "agent\n")
	b.commit(tree)
	if _, err := b.s.Merge(t.Context(), tree, plan); err == nil || !strings.Contains(err.Error(), "has changed since") {
		t.Errorf("a merge that was not agreed: %v", err)
	}
	b.put(filepath.Join(b.top, ".git", "index.lock"), "")
	if _, err := b.merge(tree, ""); !errors.Is(err, ErrBusy) {
		t.Errorf("beside another git: %v", err)
	}
}

func TestWhatATreeGets(t *testing.T) {
	b := newBench(t)
	b.put(IncludeFile, ".env\n*.secret\ntracked.txt\n!no.secret\n")
	b.put(".env", "KEY=1\n")
	b.put("dir/x.secret", "x\n")
	b.put("no.secret", "no\n")
	b.put("other.txt", "neither ignored nor committed\n")
	b.put("tracked.txt", "not ignored\n")
	b.put("node_modules/p/index.js", "js\n")
	if runtime.GOOS != "windows" {
		prooftest.Link(t, os.Symlink("/etc/passwd", filepath.Join(b.top, "link.secret")))
	}
	tree := b.make(Request{Key: "1", Links: []string{"node_modules", "nothing"}})
	var got []string
	for _, f := range []string{".env", "dir/x.secret", "no.secret", "other.txt", "tracked.txt", "link.secret", "node_modules/p/index.js", "a.txt"} {
		if _, err := os.Stat(filepath.Join(tree.Path, f)); err == nil {
			got = append(got, f)
		}
	}
	if want := []string{".env", "dir/x.secret", "node_modules/p/index.js", "a.txt"}; !slices.Equal(got, want) {
		t.Errorf("it has %v, want %v", got, want)
	}
	b.put(filepath.Join(tree.Path, ".gitignore"), "nothing\n")
	b.commit(tree)
	if list, err := b.s.Changes(t.Context(), tree, 0); err != nil || slices.ContainsFunc(list, func(c Change) bool { return strings.Contains(c.Path, "node_modules") }) {
		t.Errorf("the link was committed: %v, %v", list, err)
	}
	if err := b.s.Remove(t.Context(), tree, false, true); err != nil || read(t, filepath.Join(b.top, "node_modules/p/index.js")) != "js\n" {
		t.Errorf("removing it has followed the link: %v", err)
	}
	part := b.make(Request{Key: "2", Only: []string{"dir"}})
	b.put("far/c.txt", "c\n")
	b.plain(b.top, "add", "far")
	b.plain(b.top, "commit", "-q", "-m", "Second")
	less := b.make(Request{Key: "3", Only: []string{"dir"}})
	if _, err := os.Stat(filepath.Join(less.Path, "far")); err == nil || read(t, filepath.Join(less.Path, "a.txt")) == "" || read(t, filepath.Join(part.Path, "dir/b.txt")) != "b\n" {
		t.Errorf("the parts are wrong: %v", err)
	}
	if list, err := b.s.Changes(t.Context(), less, 0); err != nil || len(list) > 0 {
		t.Errorf("what is left out counts as changed: %v, %v", list, err)
	}
	for _, bad := range []string{"..", "/etc", ".git", "../x"} {
		made, notes := links(b.top, less.Path, []string{bad})
		if len(made) > 0 || len(notes) != 1 {
			t.Errorf("%q was linked: %v, %v", bad, made, notes)
		}
	}
}

func TestWhereATreeBegins(t *testing.T) {
	b := newBench(t)
	first := b.plain(b.top, "rev-parse", "HEAD")
	b.plain(b.top, "update-ref", "refs/remotes/origin/main", first)
	b.put("a.txt", "later\n")
	b.plain(b.top, "commit", "-q", "-am", "Second")
	if fresh := b.make(Request{Key: "1", From: FromFresh}); fresh.Base != first {
		t.Errorf("fresh began at %s", fresh.Base)
	}
	if head := b.make(Request{Key: "2", From: FromHead}); head.Base == first {
		t.Error("head began at origin's")
	}
	empty := filepath.Join(t.TempDir(), "empty")
	b.put(filepath.Join(empty, "x"), "")
	if _, _, err := b.s.Create(t.Context(), Request{Dir: empty, Owner: "s", Key: "k"}); !errors.Is(err, ErrNoRepo) {
		t.Errorf("in no repository: %v", err)
	}
	b.plain(empty, "init", "-q")
	if _, _, err := b.s.Create(t.Context(), Request{Dir: empty, Owner: "s", Key: "k"}); !errors.Is(err, ErrNoRepo) {
		t.Errorf("without a commit: %v", err)
	}
	b.s.Git = ""
	if _, _, err := b.s.Create(t.Context(), Request{Dir: b.top, Owner: "s", Key: "k"}); !errors.Is(err, ErrNoGit) {
		t.Errorf("without git: %v", err)
	}
}

// Nothing that the repository names is run, whatever is done with its trees.
func TestARepositoryRunsNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		prooftest.Lacking(t, "sh", "the traps are shell scripts")
	}
	b := newBench(t)
	sprung := filepath.Join(b.home, "sprung")
	trap := func(name string) string {
		path := filepath.Join(b.home, "traps", name)
		b.put(path, "#!/bin/sh\necho "+name+" >> '"+sprung+"'\ncat\n")
		return path
	}
	for _, hook := range []string{"post-checkout", "pre-commit", "commit-msg", "post-commit", "post-merge", "reference-transaction", "post-index-change", "pre-merge-commit", "prepare-commit-msg"} {
		b.put(".git/hooks/"+hook, read(t, trap(hook)))
	}
	tree := b.make(Request{Key: "0"})
	for key, name := range map[string]string{
		"core.fsmonitor": "monitor", "filter.x.clean": "clean", "filter.x.smudge": "smudge", "filter.x.process": "process", "merge.x.driver": "driver",
		"diff.x.command": "diff", "diff.x.textconv": "textconv", "diff.external": "external", "core.sshCommand": "ssh", "gpg.program": "gpg", "core.editor": "editor", "core.pager": "pager",
	} {
		b.plain(b.top, "config", key, trap(name))
	}
	b.plain(b.top, "config", "commit.gpgSign", "true")
	b.put(".git/info/attributes", "*.m merge=x diff=x\n*.f filter=x\n")
	b.put("c.m", "one\n")
	b.plain(b.top, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false", "add", "c.m")
	b.plain(b.top, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false", "commit", "-q", "-m", "m")
	if err := os.Remove(sprung); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	one, two := b.make(Request{Key: "1"}), b.make(Request{Key: "2"})
	b.put(filepath.Join(one.Path, "c.m"), "1\n")
	b.put(filepath.Join(two.Path, "c.m"), "2\n")
	b.put(filepath.Join(tree.Path, "y.f"), "filtered\n")
	b.commit(one)
	b.commit(two)
	if _, err := b.s.Commit(t.Context(), tree, "Work"); !errors.Is(err, ErrFilter) {
		t.Errorf("a file with a filter: %v", err)
	}
	if _, _, err := b.s.Diff(t.Context(), one); err != nil {
		t.Error(err)
	}
	if _, err := b.merge(one, ""); err != nil {
		t.Error(err)
	}
	_, err := b.merge(two, "")
	if _, conflict := errors.AsType[*ConflictError](err); !conflict {
		t.Errorf("with a merge driver: %v", err)
	}
	for _, x := range []Tree{tree, one, two} {
		if err := b.s.Remove(t.Context(), x, false, true); err != nil {
			t.Error(err)
		}
	}
	if data, err := os.ReadFile(sprung); err == nil {
		t.Errorf("these ran:\n%s", data)
	}
}

// A tree that leads elsewhere than it was made to is not touched.
func TestASpoiltTree(t *testing.T) {
	b := newBench(t)
	other := newBench(t)
	tree := b.make(Request{Key: "1"})
	b.put(filepath.Join(tree.Path, "a.txt"), "x\n")
	b.put(filepath.Join(tree.Path, ".git"), "gitdir: "+filepath.ToSlash(filepath.Join(other.top, ".git"))+"\n")
	before := other.stand()
	if _, err := b.s.Commit(t.Context(), tree, "x"); !errors.Is(err, ErrSpoilt) {
		t.Errorf("committing: %v", err)
	}
	if _, err := b.s.PlanMerge(t.Context(), tree, ""); !errors.Is(err, ErrSpoilt) {
		t.Errorf("merging: %v", err)
	}
	if err := b.s.Remove(t.Context(), tree, false, false); !errors.Is(err, ErrSpoilt) {
		t.Errorf("removing: %v", err)
	}
	if m := b.s.Mend(t.Context(), func(string) bool { return false }); len(m) != 1 || m[0].What != Kept || !errors.Is(m[0].Err, ErrSpoilt) {
		t.Errorf("mending: %+v", m)
	}
	if err := b.s.Remove(t.Context(), tree, false, true); err != nil || len(b.left()) > 0 || other.stand() != before {
		t.Errorf("by force: %v, %q", err, b.left())
	}
	b.put(b.s.record(tree.ID), `{"id":"`+tree.ID+`","path":"/etc","repoRoot":"/","branch":"dure-x"}`)
	if _, err := b.s.Find(tree.ID); !errors.Is(err, ErrSpoilt) {
		t.Errorf("a record that names another folder: %v", err)
	}
	if _, err := b.s.Find("../x"); !errors.Is(err, ErrUnknown) {
		t.Errorf("another name: %v", err)
	}
}

// Trees of one repository are made, committed and merged beside each other, by two
// stores as by two programs.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stores := []*Store{b.s, openStore(t, b.git, b.home, filepath.Join(b.home, "trees2"))}
	var all sync.WaitGroup
	trees := make([]Tree, 6)
	for i := range trees {
		all.Go(func() {
			s := stores[i%2]
			tree, _, err := s.Create(t.Context(), Request{Dir: b.top, Owner: "s", Key: fmt.Sprint(i), Kind: "w"})
			if err == nil {
				err = os.WriteFile(filepath.Join(tree.Path, fmt.Sprintf("f%d", i)), []byte("x"), 0o600)
			}
			if err == nil {
				_, err = s.Commit(t.Context(), tree, "Work")
			}
			if trees[i] = tree; err != nil {
				t.Error(i, err)
			}
		})
	}
	all.Wait()
	for i, tree := range trees {
		s := stores[i%2]
		p, err := s.PlanMerge(t.Context(), tree, "")
		if err == nil {
			tree, err = s.Merge(t.Context(), tree, p)
		}
		if err == nil {
			err = s.Remove(t.Context(), tree, false, false)
		}
		if err != nil {
			t.Error(i, err)
		}
	}
	for i := range trees {
		if read(t, filepath.Join(b.top, fmt.Sprintf("f%d", i))) != "x" {
			t.Errorf("f%d is not there", i)
		}
	}
	if left := b.left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// To look at a tree writes nothing, so that a kill in the middle of it leaves no lock.
func TestLookingTakesNoLock(t *testing.T) {
	b := newBench(t)
	tree := b.make(Request{Key: "k"})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(tree.Path, "a.txt"), old, old); err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(tree.Git, "index")
	before, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := b.s.Changes(t.Context(), tree, 0); err != nil || len(list) > 0 {
		t.Fatalf("%v, %v", list, err)
	}
	if after, err := os.ReadFile(index); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the index was written anew: %v", err)
	}
}
