package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/internal/prooftest"
)

// gitPath returns the git program, which CI requires with DURE_REQUIRE=git.
func gitPath(t *testing.T) string {
	t.Helper()
	return prooftest.Program(t, "git")
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(gitPath(t), args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "PATH=" + os.Getenv("PATH"),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func fill(t *testing.T, dir string, paths ...string) {
	t.Helper()
	for _, p := range paths {
		put(t, filepath.Join(dir, p), p)
	}
}

func list(t *testing.T, w *Workspace, dir string) (string, bool) {
	t.Helper()
	l, err := w.List(t.Context(), dir)
	must(t, err)
	if !slices.IsSorted(l.Paths) {
		t.Error("not sorted")
	}
	return strings.Join(l.Paths, " "), l.Git
}

func TestListWalks(t *testing.T) {
	w, ws, out := open(t)
	fill(t, ws, "a.go", "sub/b.go", ".github/c.yml", "node_modules/x/y.js", ".git/config", tempPrefix+"0")
	fill(t, out, "secret")
	link(t, out, filepath.Join(ws, "away"))
	got, byGit := list(t, w, ws)
	if want := ".github/c.yml a.go away sub/b.go"; got != want || byGit {
		t.Errorf("%s (git %v)", got, byGit)
	}
	if got, _ := list(t, w, filepath.Join(ws, "node_modules")); got != "x/y.js" {
		t.Errorf("a skipped folder that is named: %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.List(ctx, ws); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestListAsksGit(t *testing.T) {
	w, ws, _ := open(t)
	w.git = gitPath(t)
	git(t, ws, "init", "-q")
	fill(t, ws, ".gitignore", "tracked.log", "new file.go", "old.go", "build/out.bin", "sub/keep.txt", "nested/n.go", "nested/n.log", "한글.txt")
	put(t, filepath.Join(ws, ".gitignore"), "*.log\nbuild/\n")
	git(t, ws, "add", "-f", "tracked.log", "old.go")
	git(t, ws, "commit", "-q", "-m", "x")
	must(t, os.Remove(filepath.Join(ws, "old.go")))
	git(t, filepath.Join(ws, "nested"), "init", "-q")
	put(t, filepath.Join(ws, "nested/.gitignore"), "*.log\n")

	got, byGit := list(t, w, ws)
	if want := ".gitignore nested/.gitignore nested/n.go new file.go sub/keep.txt tracked.log 한글.txt"; got != want || !byGit {
		t.Errorf("%s (git %v)", got, byGit)
	}
	if got, _ := list(t, w, filepath.Join(ws, "sub")); got != "keep.txt" {
		t.Error(got)
	}
	if got, byGit := list(t, w, filepath.Join(ws, "build")); got != "out.bin" || byGit {
		t.Errorf("an ignored folder that is named: %s (git %v)", got, byGit)
	}
	w.git = filepath.Join(ws, "no-such-git")
	if got, byGit := list(t, w, filepath.Join(ws, "sub")); got != "keep.txt" || byGit {
		t.Errorf("without git: %s (git %v)", got, byGit)
	}
}

// A repository must not be able to run programs through its configuration.
func TestListRunsNothingOfTheRepository(t *testing.T) {
	w, ws, out := open(t)
	w.git = gitPath(t)
	git(t, ws, "init", "-q")
	fill(t, ws, "a")
	proof, script := filepath.Join(out, "ran"), filepath.Join(out, "evil")
	put(t, script, "#!/bin/sh\ntouch "+proof+"\n")
	must(t, os.Chmod(script, 0o755))
	for _, key := range []string{"core.fsmonitor", "core.pager", "core.sshCommand", "core.hooksPath", "alias.ls-files", "core.editor"} {
		value := script
		if key == "alias.ls-files" {
			value = "!" + script
		}
		git(t, ws, "config", key, value)
	}
	if got, byGit := list(t, w, ws); got != "a" || !byGit {
		t.Errorf("%s (git %v)", got, byGit)
	}
	if _, err := os.Stat(proof); err == nil {
		t.Error("a program of the repository was run")
	}
}

func TestReadNames(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "",
		"a\x00b/c\x00":                     "a|b/c",
		"../x\x00/abs\x00ok\x00a/../b\x00": "ok",
		"dir/\x00":                         "dir/",
	} {
		got, err := readNames(strings.NewReader(in))
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if _, err := readNames(strings.NewReader("cut")); err == nil {
		t.Error("a name without end was taken")
	}
	if got, err := readNames(strings.NewReader(strings.Repeat("a\x00", MaxFiles+5))); len(got) != MaxFiles+1 || !errors.Is(err, errEnough) {
		t.Error(len(got), err)
	}
}
