package plugins

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
	"dure/internal/safety/sandbox"
)

// repository makes a repository of a folder, and returns its address and its commit.
func repository(t *testing.T, dir string) (address, commit string) {
	t.Helper()
	run := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "--quiet", "--initial-branch=main")
	run("add", "-A")
	run("commit", "--quiet", "-m", "one")
	return "file://" + filepath.ToSlash(dir), run("rev-parse", "HEAD")
}

// withGit is a store that has git, in a box that confines nothing: that confined commands
// write nowhere else is proved elsewhere.
func withGit(t *testing.T) *Store {
	t.Helper()
	git := prooftest.Program(t, "git")
	s := newStore(t)
	s.Git, s.Env = func() string { return git }, []string{"PATH=" + os.Getenv("PATH")}
	s.Box = func(string, []string) (*sandbox.Box, error) { return sandbox.New(sandbox.Config{}), nil }
	return s
}

func TestGit(t *testing.T) {
	t.Parallel()
	s := withGit(t)
	dir := folder(t, first+`-- plugins/x/.claude-plugin/plugin.json --
{"name": "x"}
-- plugins/x/AGENTS.md --
text
-- .gitattributes --
bin/tidy filter=evil
`)
	for link, to := range map[string]string{"CLAUDE.md": "plugins/x/AGENTS.md", "out": "/etc/passwd", "dir": "skills"} {
		prooftest.Link(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	address, commit := repository(t, dir)
	in := install(t, s, Source{Kind: FromGit, URL: address})
	l, err := s.Load(in)
	if err != nil || in.Now.Commit != commit || in.Now.Version != "1.0.0" {
		t.Fatalf("%+v, %v", in, err)
	}
	want := []string{
		".claude-plugin/plugin.json -rw-------", ".gitattributes -rw-------", "CLAUDE.md -rw-------", "bin/tidy -rwx------",
		"plugins/x/.claude-plugin/plugin.json -rw-------", "plugins/x/AGENTS.md -rw-------", "skills/tidy/SKILL.md -rw-------",
	}
	if got := tree(t, l.Root); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	sub := install(t, s, Source{Kind: FromGitSub, URL: address, Path: "plugins/x", SHA: commit})
	if sub.ID != "x@local" || sub.Now.Version != commit[:12] {
		t.Errorf("%+v", sub)
	}
	for _, src := range []Source{
		{Kind: FromGit, URL: address, Ref: "none"},
		{Kind: FromGit, URL: address, SHA: strings.Repeat("0", 40)},
		{Kind: FromGitSub, URL: address, Path: "none"},
		{Kind: FromGit, URL: address + "-none"},
	} {
		if _, err := s.Prepare(t.Context(), src); err == nil {
			t.Errorf("%+v: fetched", src)
		}
	}
}

// Neither hooks nor templates nor the configuration of the machine run anything.
func TestGitRunsNothing(t *testing.T) {
	t.Parallel()
	s := withGit(t)
	canary := filepath.Join(t.TempDir(), "canary")
	evil := filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\ntouch "+canary+"\n"), 0o700); err != nil { //nolint:gosec // it has to be one that would run
		t.Fatal(err)
	}
	dir := folder(t, first+"-- .gitattributes --\n* filter=evil\n-- .gitmodules --\n[submodule \"x\"]\n\tpath = x\n\turl = ext::"+evil+"\n")
	address, _ := repository(t, dir)
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("[core]\n\thooksPath = "+filepath.Dir(evil)+"\n\tfsmonitor = "+evil+"\n[filter \"evil\"]\n\tsmudge = "+evil+"\n[credential]\n\thelper = "+evil+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Env = append(s.Env, "GIT_CONFIG_GLOBAL="+config)
	install(t, s, Source{Kind: FromGit, URL: address})
	if _, err := os.Stat(canary); err == nil {
		t.Error("something of the repository or the machine ran")
	}
}

// What a repository holds in compressed form may be little, and much once it is there.
func TestGitIsBounded(t *testing.T) {
	t.Parallel()
	s := withGit(t)
	s.Limits = Limits{Tree: 64 << 10}
	dir := folder(t, first)
	if err := os.WriteFile(filepath.Join(dir, "zeros"), make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	address, _ := repository(t, dir)
	if _, err := s.Prepare(t.Context(), Source{Kind: FromGit, URL: address}); !errors.Is(err, ErrLarge) || !strings.Contains(err.Error(), "what git has fetched") {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(s.Dir, stageDir)); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// A folder that grows ends what goes on in it.
func TestWatched(t *testing.T) {
	dir := t.TempDir()
	ctx, end := watched(t.Context(), dir, 10)
	defer end()
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, 11), 0o600); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, ErrLarge) {
		t.Error(err)
	}
	quiet, end := watched(t.Context(), t.TempDir(), 10)
	end()
	if err := context.Cause(quiet); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Started by a hook of git, dure has variables that name the repository of that hook.
func TestGitOfTheUserIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := withGit(t)
	address, _ := repository(t, folder(t, first))
	own := folder(t, "-- file --\nmine\n")
	_, before := repository(t, own)
	s.Env = append(s.Env, "GIT_DIR="+filepath.Join(own, ".git"), "GIT_WORK_TREE="+own, "GIT_INDEX_FILE="+filepath.Join(own, ".git", "index"), "GIT_OBJECT_DIRECTORY=/nowhere")
	install(t, s, Source{Kind: FromGit, URL: address})
	if _, err := os.Stat(filepath.Join(own, ".git", "FETCH_HEAD")); err == nil {
		t.Errorf("something was fetched into the repository of %s", before)
	}
}
