//go:build unix

package app_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/prooftest"
)

// crashPoint is a place to die at.
type crashPoint struct {
	n    int64
	name string
	torn bool
}

// A crashCase kills sessions at each boundary of an undisturbed run, each in a folder of
// its own, and at those behind a write to the log once more with the write torn. Each goes
// on then.
type crashCase struct {
	start  func(dir string, n int) (*crashRun, error) // n counts the runs; the undisturbed one is 0
	resume func(r *crashRun)                          // before it goes on; may be nil
	check  func(r *crashRun, ctx context.Context) (verdict, error)
}

// beside is how many sessions are killed beside each other: they wait much of the time.
const beside = 3

// run visits every so many of the places, and the first at which a write is torn, or all in
// the long form. It reports what is wrong with the sessions afterwards.
func (c crashCase) run(t *testing.T, every int) {
	t.Helper()
	dir, begun, next := t.TempDir(), time.Now(), make(chan int)
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	places := c.places(t, filepath.Join(dir, "0"))
	torn := false
	points := prooftest.Sample(t, places, every, func(p crashPoint) bool {
		first := p.torn && !torn
		torn = torn || first
		return first
	})
	var mu sync.Mutex // guards sum
	var sum crashSum
	var workers sync.WaitGroup
	for range beside {
		workers.Go(func() {
			for i := range next {
				v, err := c.dieAt(t.Context(), filepath.Join(dir, strconv.Itoa(i+1)), i+1, points[i])
				if err != nil {
					v.fail("%v", err)
				}
				for _, problem := range v.problems {
					t.Errorf("killed at boundary %+v: %s", points[i], problem)
				}
				mu.Lock()
				if sum.add(v); sum.runs()%200 == 0 {
					t.Logf("%v: %d of %d places: %+v", time.Since(begun).Round(time.Second), sum.runs(), len(points), sum)
				}
				mu.Unlock()
			}
		})
	}
	for i := range points {
		next <- i
	}
	close(next)
	workers.Wait()
	t.Logf("%v: %d places, %d visited: %+v", time.Since(begun).Round(time.Second), len(places), sum.runs(), sum)
	if sum.Killed == 0 {
		t.Error("nothing was killed")
	}
	if left := family.orphans(); len(left) > 0 {
		t.Errorf("processes are left behind: %v", left)
	}
}

// crashSum counts what became of many runs.
type crashSum struct {
	Killed, Untouched, Bad                 int // runs
	Events, Unknown, Again, Repaired, Lost int
}

func (s *crashSum) runs() int { return s.Killed + s.Untouched }

func (s *crashSum) add(v verdict) {
	if v.died {
		s.Killed++
	} else {
		s.Untouched++
	}
	if len(v.problems) > 0 {
		s.Bad++
	}
	s.Events += v.events
	s.Lost += v.lost
	s.Unknown += v.unknown
	s.Again += v.again
	s.Repaired += v.repaired
}

// places lists the boundaries of an undisturbed run, with which all has to be well too.
func (c crashCase) places(t *testing.T, dir string) []crashPoint {
	t.Helper()
	r, err := c.start(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	died, lines, err := r.child(childTask{List: true})
	if died || err != nil {
		t.Fatalf("the undisturbed run: died %v, %v", died, err)
	}
	if v, err := c.check(r, t.Context()); err != nil || len(v.problems) > 0 {
		t.Fatalf("the undisturbed run: %v, %q", err, v.problems)
	}
	return pointsOf(lines)
}

// pointsOf reads the list of boundaries that a child has printed.
func pointsOf(lines []string) []crashPoint {
	var points []crashPoint
	for _, line := range lines {
		var p crashPoint
		if n, _ := fmt.Sscanf(line, "b %d %s", &p.n, &p.name); n != 2 {
			continue
		}
		points = append(points, p)
		if p.name == "append.written" {
			p.torn = true
			points = append(points, p)
		}
	}
	return points
}

// dieAt is one run that dies at p and goes on.
func (c crashCase) dieAt(ctx context.Context, dir string, n int, p crashPoint) (v verdict, err error) {
	r, err := c.start(dir, n)
	if err != nil {
		return v, err
	}
	defer r.close()
	died, _, err := r.child(childTask{Die: p.n, Torn: p.torn})
	if err != nil {
		return v, err
	}
	var problems []string
	if died {
		problems = r.remains("outlive the program")
		if c.resume != nil {
			c.resume(r)
		}
		if again, _, err := r.child(childTask{}); again || err != nil {
			return v, fmt.Errorf("resuming: died %v, %w", again, err)
		}
	}
	v, err = c.check(r, ctx)
	v.died = died
	v.problems = slices.Concat(problems, v.problems, r.remains("are left behind"))
	return v, err
}

// remains tells of processes that the run has left.
func (r *crashRun) remains(how string) []string {
	if left := carrying(r.home()); len(left) > 0 {
		return []string{fmt.Sprintf("processes %s: %v", how, left)}
	}
	return nil
}

// crashSteps kills sessions of so many steps, which go on for three steps then.
func crashSteps(steps int, ask, more bool) crashCase {
	story := newCrashScript(steps)
	return crashCase{
		start: func(dir string, _ int) (*crashRun, error) {
			r, err := newCrashRun(dir, story, steps)
			if err == nil {
				r.ask, r.more = ask, more
			}
			return r, err
		},
		resume: func(r *crashRun) { r.limit.Store(min(int64(steps), r.asked.Load()+3)) },
		check:  (*crashRun).check,
	}
}

// TestCrashWhileAsking kills a session in which every call waits for the user: a
// question is asked once, its answer is kept, and a yes is good for one run.
func TestCrashWhileAsking(t *testing.T) {
	crashSteps(3, true, false).run(t, 40)
}

// TestCrashWhileQueueing kills a session that is given more prompts than one:
// each of them is served, and entered once.
func TestCrashWhileQueueing(t *testing.T) {
	crashSteps(3, false, true).run(t, 40)
}

// trigger kills a process a moment after it has printed so many lines about
// events of its own.
type trigger struct {
	out   bytes.Buffer
	cmd   *exec.Cmd
	lines int
	after time.Duration
	acked bool
	timer *time.Timer
}

func (g *trigger) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		g.acked = g.acked || bytes.HasPrefix(line, []byte("ack"))
		if g.acked && bytes.HasPrefix(line, []byte("e ")) {
			g.lines--
		}
	}
	if g.lines <= 0 && g.timer == nil {
		g.timer = time.AfterFunc(g.after, func() { _ = g.cmd.Process.Kill() })
	}
	return g.out.Write(p)
}

// TestCrashAnytime kills a session from outside, at moments that nobody has
// chosen: in the middle of writes, of tools and of starting them.
func TestCrashAnytime(t *testing.T) {
	kills := 5
	if prooftest.Long() {
		kills = 12
	}
	r, err := newCrashRun(t.TempDir(), newCrashScript(manySteps), manySteps)
	if err != nil {
		t.Fatal(err)
	}
	defer r.model.Close()
	for r.kills < kills {
		// At least one whole step lies before each death, or a turn that gets
		// nowhere would be given up.
		g := &trigger{lines: 10 + rand.IntN(60), after: rand.N(8 * time.Millisecond)}
		died, _, err := r.start(childTask{}, g)
		if err != nil {
			t.Fatal(err)
		}
		if !died {
			break
		}
	}
	steps := min(manySteps, r.asked.Load()+3)
	r.limit.Store(steps)
	if died, _, err := r.child(childTask{}); died || err != nil {
		t.Fatalf("the last child: died %v, %v", died, err)
	}
	v, err := r.check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range v.problems {
		t.Error(p)
	}
	if left := family.orphans(); len(left) > 0 {
		t.Errorf("processes that outlived the program: %v", left)
	}
	t.Logf("%d kills in %d steps: %d events, %d repairs, %d calls run again, %d outcomes unknown, %d files left over",
		r.kills, steps, v.events, v.repaired, v.again, v.unknown, v.leftover)
}

// A turn that dies at the same place again and again is given up, and the
// session goes on with the next prompt.
func TestCrashLoop(t *testing.T) {
	r, err := newCrashRun(t.TempDir(), newCrashScript(1), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.model.Close()
	r.mute.Store(true)
	for i := range 5 {
		if died, _, err := r.child(childTask{At: "model.requested"}); !died || err != nil {
			t.Fatalf("child %d: died %v, %v", i, died, err)
		}
	}
	r.mute.Store(false)
	for _, text := range []string{"", "Go on."} {
		if died, _, err := r.child(childTask{At: "nothing", Text: text}); died || err != nil {
			t.Fatalf("died %v, %v", died, err)
		}
	}
	a, err := app.New(options(r.work(), r.home(), r.model.URL(), app.Flags{}))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var events []agent.Event
	for e, err := range a.Client().Attach(crashID).Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	var reasons []agent.EndReason
	for _, b := range all[agent.TurnEnded](events) {
		reasons = append(reasons, b.Reason)
	}
	if !slices.Equal(reasons, []agent.EndReason{agent.EndFailed, agent.EndDone}) {
		t.Errorf("the turns ended as %v:\n%s", reasons, names(events))
	}
	if e := all[agent.TurnEnded](events)[0].Error; !strings.Contains(e, "started 5 times") {
		t.Errorf("the turn was given up with %q", e)
	}
	problems := slices.Concat(numbering(events), gated(events), verified(t.Context(), a.Client(), crashID), refusals(r.model))
	for _, p := range problems {
		t.Error(p)
	}
	if left := family.orphans(); len(left) > 0 {
		t.Errorf("processes are left behind: %v", left)
	}
}
