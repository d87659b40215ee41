//go:build unix

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"dure/internal/prooftest"
)

// The tests below run this program again as the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CHECKPOINT_DIR"); dir != "" {
		kill, err := strconv.Atoi(os.Getenv("CHECKPOINT_KILL"))
		if err == nil {
			err = rewindAndDie(dir, os.Getenv("CHECKPOINT_DO"), kill)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// rewindAndDie does its work until the boundary with a number.
func rewindAndDie(dir, do string, kill int) error {
	n := 0
	c := Config{Dir: filepath.Join(dir, "store"), Roots: []string{filepath.Join(dir, "ws")}}
	c.Fault = func(boundary string) {
		if n++; n == kill {
			fmt.Println("killed at", boundary)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	s, err := Open(c)
	if err != nil {
		return err
	}
	ctx := context.Background()
	all := s.List()
	switch do {
	case "take":
		_, err = s.Take(ctx, Label{})
	case "keep":
		err = s.Keep(ctx, nil)
	case "recover":
		_, err = s.Recover(ctx)
	case "rewind":
		var p Plan
		if p, err = s.Plan(ctx, all[0].ID, Select{}); err == nil {
			_, err = s.Apply(ctx, p)
		}
	}
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	fmt.Println("done", n)
	return nil
}

func dieAt(t *testing.T, dir, do string, kill int) string {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "CHECKPOINT_DIR="+dir, "CHECKPOINT_DO="+do, "CHECKPOINT_KILL="+strconv.Itoa(kill))
	out, err := cmd.Output()
	if _, killed := strings.CutPrefix(string(out), "killed at "); !killed && err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// killRig is a folder with everything that a rewind can meet, and two snapshots.
func killRig(t *testing.T) (r *rig, dir, first, second string) {
	r = newRig(t, "edit=1\n2\n3\n", "gone/deep/file=old\n", "gone/link->nowhere", "mode=x\n", "turn=file\n", "back/a=1\n", "empty/", "keep=same\n")
	noise := make([]byte, 8<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	r.write("gone/noise=" + string(noise)) // most of the pack, and not needed later
	r.take(false)
	first = r.picture()
	r.write("edit=1\n2\n4\n", "new/deep/file=new\n")
	must(t, os.Chmod(r.path("mode"), 0o755))
	must(t, os.Chmod(r.path("back"), 0o700))
	r.remove("gone", "turn", "empty", "back/a")
	r.write("turn/into/folder=1\n", "back/a->elsewhere")
	r.take(true)
	must(t, r.Close())
	return r, filepath.Dir(r.root), first, r.picture()
}

// boundaries returns how many there are when nothing dies.
func boundaries(t *testing.T, dir, do string) (n int) {
	t.Helper()
	_, err := fmt.Sscanf(dieAt(t, dir, do, -1), "done %d", &n)
	must(t, err)
	t.Logf("%s: %d boundaries", do, n)
	return n
}

// A process that is killed at any write of a rewind leaves each path as it was or
// as it should become, and the next one finishes what it had announced. Killed
// again while it does, the one after that does.
func TestKilledAtEveryWrite(t *testing.T) {
	r, dir, first, _ := killRig(t)
	n := boundaries(t, dir, "rewind")
	equal(t, "the end", r.picture(), first)
	if n < 30 {
		t.Errorf("only %d boundaries", n)
	}
	kills := make([]int, n)
	for i := range kills {
		kills[i] = i + 1
	}
	for _, kill := range prooftest.Sample(t, kills, 3, func(kill int) bool { return kill == n }) {
		t.Run(strconv.Itoa(kill), func(t *testing.T) {
			t.Parallel()
			killRewind(t, kill)
		})
	}
}

func killRewind(t *testing.T, kill int) {
	r, dir, first, second := killRig(t)
	at := dieAt(t, dir, "rewind", kill)
	entries := map[string]bool{}
	for _, line := range strings.Split(first+second, "\n") {
		entries[line] = true
	}
	for _, line := range strings.Split(r.picture(), "\n") {
		if !entries[line] && !strings.Contains(line, ".dure-write-") && !strings.Contains(line, "/ 7") {
			t.Errorf("%s: %q is neither old nor new", at, line)
		}
	}
	again := dieAt(t, dir, "recover", kill%23+1)
	r.open()
	announced := r.Pending() != ""
	res, err := r.Recover(t.Context())
	must(t, err)
	equal(t, at+", "+again+": left", r.items(res.Left), "")
	all := r.List()
	if got := r.picture(); got != first && (announced || got != second) {
		t.Errorf("%s, %s, pending %v:\n%s", at, again, announced, got)
	}
	// Both states are in the store.
	for i, want := range []string{first, second} {
		into := filepath.Join(t.TempDir(), "copy")
		must(t, r.Export(t.Context(), all[i].ID, into))
		equal(t, at+": in the store", picture(t, into), want)
	}
	if kill%5 == 0 {
		r.rewind(all[1].ID, Select{})
		equal(t, at+": forward again", r.picture(), second)
		r.rewind(all[0].ID, Select{})
		equal(t, at+": and back", r.picture(), first)
	}
}

// A process that is killed while it takes or drops snapshots leaves those that
// were there whole, and a store that goes on.
func TestKilledWhileStoring(t *testing.T) {
	for _, do := range []string{"take", "keep"} {
		_, dir, _, _ := killRig(t)
		n := boundaries(t, dir, do)
		kills := make([]int, n+1)
		for i := range kills {
			kills[i] = i
		}
		for _, kill := range prooftest.Sample(t, kills, 3, func(kill int) bool { return kill == n }) {
			t.Run(fmt.Sprint(do, kill), func(t *testing.T) {
				t.Parallel()
				r, dir, _, _ := killRig(t)
				r.write("another=one\n", "more/of/it=two\n")
				last := r.picture()
				at := dieAt(t, dir, do, kill)
				r.open()
				equal(t, "damage", r.Damage(), "")
				r.take(true)
				for i, snap := range r.List() {
					into := filepath.Join(t.TempDir(), "copy")
					must(t, r.Export(t.Context(), snap.ID, into))
					if i == len(r.List())-1 {
						equal(t, do+", "+at, picture(t, into), last)
					}
				}
			})
		}
	}
}

// What was changed between the death of a rewind and its recovery is left.
func TestRecoveryLeavesWhatOthersChanged(t *testing.T) {
	_, dir, _, _ := killRig(t)
	for kill := range boundaries(t, dir, "rewind") {
		r, dir, _, _ := killRig(t)
		if !strings.HasSuffix(dieAt(t, dir, "rewind", kill+1), "intent.named") {
			continue
		}
		r.write("edit=mine\n")
		r.open()
		if _, err := r.Take(t.Context(), Label{}); !errors.Is(err, ErrPending) {
			t.Error(err)
		}
		res, err := r.Recover(t.Context())
		must(t, err)
		equal(t, "left", r.items(res.Left), "restore edit: changed\n")
		data, err := os.ReadFile(r.path("edit"))
		must(t, err)
		equal(t, "the file", string(data), "mine\n")
		equal(t, "whose it is", r.plan(r.List()[0].ID, Select{}), "restore edit: outside\n")
		return
	}
	t.Error("no rewind was announced")
}
