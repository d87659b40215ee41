//go:build unix

package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
)

// inChild has this test binary live a life of trees, until it is killed: the
// repository's folder, that of the trees, the home and git.
const inChild = "DURE_WORKTREE_CHILD"

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(inChild), "\n"); len(args) == 4 {
		if err := live(args[0], args[1], args[2], args[3]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(prooftest.Many{M: m}.Run())
}

// live makes trees, works in them, merges and removes them.
func live(top, trees, home, git string) error {
	box := sandbox.New(sandbox.Config{})
	defer box.Close()
	s, ctx := New(Config{Home: trees, Git: git, Env: environ(home), Box: box}), context.Background()
	for i := 0; ; i++ {
		fmt.Println("round", i)
		t, _, err := s.Create(ctx, Request{Dir: top, Owner: "dead", Key: fmt.Sprint(os.Getpid(), i), Kind: "w"})
		if err != nil {
			return err
		}
		for n := range 20 {
			if err := os.WriteFile(filepath.Join(t.Path, fmt.Sprintf("f%d", n)), []byte(fmt.Sprint(os.Getpid(), i)), 0o600); err != nil {
				return err
			}
		}
		if _, err := s.Commit(ctx, t, "Work"); err != nil {
			return err
		}
		p, err := s.PlanMerge(ctx, t, "")
		if err != nil {
			return err
		}
		if t, err = s.Merge(ctx, t, p); err != nil {
			return err
		}
		if err := s.Remove(ctx, t, false, false); err != nil {
			return err
		}
	}
}

// mended waits for what a killed process has left to run, and mends.
func (b *bench) mended() (list []Mended) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		list = b.s.Mend(ctx, func(string) bool { return false })
		busy := false
		for _, m := range list {
			busy = busy || m.Err != nil
		}
		if !busy && ctx.Err() == nil {
			return list
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			b.Fatalf("it is not mended: %+v", list)
		}
	}
}

// A process that is killed at any point leaves nothing that the next one does not
// mend: no folder, no branch, no lock, and a folder of the repository's own that is as
// it was committed.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel() // it mostly waits
	b := newBench(t)
	points := make([]int, 200)
	for n := range points {
		points[n] = n
	}
	b.put("mine.txt", "not committed\n")
	b.s.Now = func() time.Time { return time.Now().Add(2 * unfinishedFor) }
	// Every 45th: that long after the beginning, from early to late.
	for _, n := range prooftest.Sample(t, points, 45, nil) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), inChild+"="+strings.Join([]string{b.top, b.trees, b.home, b.git}, "\n"))
		out := &strings.Builder{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait := time.NewTimer(time.Duration(100+n*83%1100) * time.Millisecond)
		<-wait.C
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() >= 0 {
			t.Fatalf("it has ended by itself: %v\n%s", err, out)
		}
		b.mended()
		for _, m := range b.mended() { // what is kept has changes; a second look changes nothing
			if m.What != Kept || m.State != Ready {
				t.Errorf("kept after all: %+v", m)
			}
			if err := b.s.Remove(t.Context(), m.Tree, false, true); err != nil {
				t.Error(err)
			}
		}
		if left := b.left(); len(left) > 0 {
			t.Fatalf("left: %q\n%s", left, out)
		}
		if said := b.plain(b.top, "status", "--porcelain"); said != "?? mine.txt" {
			t.Fatalf("the repository's folder: %q\n%s", said, out)
		}
		if _, err := os.Lstat(filepath.Join(b.top, ".git", "index.lock")); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the index is locked: %v", err)
		}
	}
	b.plain(b.top, "fsck", "--strict", "--no-dangling")
}

// What Mend does with a tree depends on how far it had come, and it leaves those alone
// whose sessions are open.
func TestMend(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	change := func(tree Tree) Tree {
		b.put(filepath.Join(tree.Path, tree.ID), "x\n")
		b.commit(tree)
		return tree
	}
	in := func(tree Tree, s State) Tree {
		tree.State = s
		if err := b.s.write(tree); err != nil {
			t.Fatal(err)
		}
		return tree
	}
	clean, changed := b.make(Request{Key: "1"}), change(b.make(Request{Key: "2"}))
	making, removing := in(b.make(Request{Key: "3"}), Making), in(change(b.make(Request{Key: "4"})), Removing)
	merging := func(key string, done bool) Tree {
		tree := change(b.make(Request{Key: key}))
		p, err := b.s.PlanMerge(t.Context(), tree, "")
		if err != nil {
			t.Fatal(err)
		}
		if done {
			if tree, err = b.s.Merge(t.Context(), tree, p); err != nil {
				t.Fatal(err)
			}
		}
		tree.Merge = &p.merge
		return in(tree, Merging)
	}
	done := merging("5", true)
	undone := merging("6", false)
	if list := b.s.Mend(t.Context(), func(owner string) bool { return owner == "s1" }); len(list) > 0 {
		t.Errorf("mended an open session's: %+v", list)
	}
	got := map[string]string{}
	for _, m := range b.mended() {
		got[m.ID] = m.What
	}
	for _, c := range []struct {
		Tree
		what string
	}{{clean, Removed}, {changed, Kept}, {making, Removed}, {removing, Removed}, {done, Merged}, {undone, Undone}} {
		if got[c.ID] != c.what {
			t.Errorf("%s: %q, want %q", c.State, got[c.ID], c.what)
		}
	}
	list := b.mended()
	if len(list) != 2 {
		t.Errorf("the second time: %+v", list)
	}
	if err := os.RemoveAll(changed.Path); err != nil {
		t.Fatal(err)
	}
	if m := b.s.Mend(t.Context(), func(string) bool { return false }); m[0].What != Kept || !errors.Is(m[0].Err, ErrSpoilt) {
		t.Errorf("without its folder: %+v", m[0])
	}
	if err := os.RemoveAll(b.top); err != nil {
		t.Fatal(err)
	}
	if err := b.s.Remove(t.Context(), undone, false, true); err != nil {
		t.Errorf("without its repository: %v", err)
	}
}
