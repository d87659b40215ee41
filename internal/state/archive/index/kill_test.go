package index

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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/prooftest"
	"dure/internal/state/journal"
)

// The tests below run this program again as the process that is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv("INDEX_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	n, err := strconv.Atoi(os.Getenv("INDEX_KILL"))
	if err == nil {
		err = victim(dir, n)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// victim makes an index where something else was, and brings it up to date twice. It
// kills itself at the boundary n, 0 = none.
func victim(dir string, n int) error {
	ctx := context.Background()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	x, err := Open(ctx, Options{Dir: dir, Batch: 4, Fault: func(string) {
		if n--; n == 0 {
			_ = self.Kill()
			select {} // it comes at once
		}
	}})
	if err != nil {
		return err
	}
	for _, stage := range []int{1, 2} {
		if rep, err := x.Update(ctx, history(stage), 0); err != nil || !rep.Done {
			return errors.Join(err, fmt.Errorf("%+v", rep))
		}
	}
	return x.Close()
}

// history is a source at two moments: in between something was said, taken back and
// removed, and a log was replaced.
func history(stage int) *logs {
	l := world()
	var many []agent.Body
	for n := range 12 {
		many = append(many, input(fmt.Sprintf("question %d 질문", n)), answer(strings.Repeat("a long answer ", 900)))
	}
	l.add("d4", many...)
	l.add("e5", many...)
	if stage == 1 {
		return l
	}
	l.add("a1", input("one thing more"), agent.ConversationRewound{To: 3})
	l.ids = append(l.ids[:3:3], l.ids[4:]...) // d4 is gone
	delete(l.all, "e5")
	var m journal.Meta
	m.ID, m.Created = "e5", "2026-02-01T00:00:00Z"
	l.metas["e5"] = m
	l.add("e5", input("another log"))
	return l
}

func run(t *testing.T, dir string, kill int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "INDEX_DIR="+dir, "INDEX_KILL="+strconv.Itoa(kill))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}

// sound checks what a process left that was killed: SQLite finds nothing wrong with it,
// and an update makes of it what there should be.
func sound(t *testing.T, dir, what string, want []string) {
	t.Helper()
	x := open(t, Options{Dir: dir})
	if found := integrity(t, x); found != "ok" {
		t.Fatalf("%s: %s", what, found)
	}
	updated(t, x, history(2))
	if d := cmp.Diff(want, dump(t, x)); d != "" {
		t.Fatalf("%s:\n%s", what, d)
	}
	if err := x.Close(); err != nil {
		t.Fatal(what, err)
	}
}

func integrity(t *testing.T, x *Index) (found string) {
	t.Helper()
	if err := x.conn.QueryRowContext(context.Background(), "PRAGMA integrity_check").Scan(&found); err != nil {
		t.Fatal(err)
	}
	if err := x.exec(context.Background(), "INSERT INTO words (words) VALUES ('integrity-check')"); err != nil {
		t.Fatal(err)
	}
	return found
}

func spoilt(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte(strings.Repeat("something else", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A process that is killed at a boundary of its writes leaves what the next one can go
// on with: at some of them always, at each with DURE_LONG=1.
func TestKilledAtBoundaries(t *testing.T) {
	boundaries := 0
	x, err := Open(context.Background(), Options{Dir: spoilt(t), Batch: 4, Fault: func(string) { boundaries++ }})
	if err != nil {
		t.Fatal(err)
	}
	updated(t, x, history(1))
	updated(t, x, history(2))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	want, step := fresh(t, history(2)), boundaries/12
	if prooftest.Long() {
		step = 1
	}
	t.Logf("%d boundaries", boundaries)
	killed := 0
	for n := 1; n <= boundaries; n += step {
		dir := spoilt(t)
		if err := run(t, dir, n).Run(); err == nil {
			t.Errorf("boundary %d was not reached", n)
		}
		killed++
		sound(t, dir, fmt.Sprint("boundary ", n), want)
	}
	t.Logf("killed at %d", killed)
}

// So does one that is killed at any moment, time and again in the same folder.
func TestKilledAtRandom(t *testing.T) {
	rounds := 8
	if prooftest.Long() {
		rounds = 500
	}
	want := fresh(t, history(2))
	dir := spoilt(t)
	killed := 0
	for round := range rounds {
		cmd := run(t, dir, 0)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(rand.IntN(100_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		if err := cmd.Wait(); err != nil {
			killed++
		}
		timer.Stop()
		if round%4 == 3 { // in between it was killed in what was left by one that was killed
			sound(t, dir, fmt.Sprint("round ", round), want)
			if round%8 == 7 {
				dir = spoilt(t)
			}
		}
	}
	t.Logf("killed %d of %d", killed, rounds)
}
