//go:build unix

package app_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/state/transcript"
)

// crashRun is one session that is killed and resumed until it ends.
type crashRun struct {
	dir     string
	story   *crashScript
	model   *script.Server
	limit   atomic.Int64 // steps until the model ends the story
	asked   atomic.Int64 // steps that the model was asked for
	mute    atomic.Bool  // the model does not begin to answer
	ask     bool         // the user is asked about every call
	more    bool         // there are three prompts
	rewinds bool         // the conversation is shortened, put back and forked
	wire    string       // the wire format of the session of the crash history; "" = it is another one
	printed map[int64]string
	acked   map[string]bool // prompts that were accepted
	torn    int
	kills   int
}

// newModelRun makes a run in a folder, with what its models say.
func newModelRun(dir string, says func(script.Request) script.Reply) (*crashRun, error) {
	r := &crashRun{dir: dir, printed: map[int64]string{}, acked: map[string]bool{}}
	for _, d := range []string{r.work(), r.home()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	r.model, err = script.NewServer(script.Script{}, script.Options{Func: says})
	return r, err
}

// newCrashRun makes a run of a story that has so many steps.
func newCrashRun(dir string, story *crashScript, steps int) (r *crashRun, err error) {
	r, err = newModelRun(dir, func(req script.Request) script.Reply {
		r.asked.Store(max(r.asked.Load(), int64(req.Step)+1))
		reply := story.tell(req.Step, int(r.limit.Load()))
		if r.mute.Load() {
			reply.Faults = slices.Repeat([]script.Fault{{Kind: script.Slow}}, 100)
		}
		return reply
	})
	if err != nil {
		return nil, err
	}
	r.story = story
	r.limit.Store(int64(steps))
	start := maps.Clone(story.files[0])
	start["ledger"] = ""
	for name, content := range start {
		if err := os.WriteFile(filepath.Join(r.work(), name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *crashRun) work() string { return filepath.Join(r.dir, "work") }
func (r *crashRun) home() string { return filepath.Join(r.dir, "home") }

// close stops the model and removes everything.
func (r *crashRun) close() error {
	return errors.Join(r.model.Close(), os.RemoveAll(r.dir))
}

// childLimit is how long one child may take.
const childLimit = time.Minute

// child runs a child until it ends or dies. It returns the lines that are not
// about events.
func (r *crashRun) child(task childTask) (died bool, lines []string, err error) {
	return r.start(task, &trigger{lines: math.MaxInt})
}

// start is child with something that may kill it.
func (r *crashRun) start(task childTask, out *trigger) (died bool, lines []string, err error) {
	task.Work, task.Home, task.URL, task.Ask, task.More = r.work(), r.home(), r.model.URL(), r.ask, r.more
	task.Story, task.Rewinds = r.wire, r.rewinds
	data, err := json.Marshal(task)
	if err != nil {
		return false, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), childLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+string(data), "GOGC=off") // it does not live long
	var complaints bytes.Buffer
	out.cmd, cmd.Stdout, cmd.Stderr = cmd, out, &complaints
	err = family.run(cmd)
	if ctx.Err() != nil {
		return false, nil, fmt.Errorf("a child hangs: %+v\n%s%s", task, out.out.String(), complaints.String())
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		died, err = true, nil
		r.kills++
	}
	if err != nil {
		return died, nil, fmt.Errorf("a child failed: %+v: %w\n%s", task, err, complaints.String())
	}
	lines, err = r.read(out.out.Bytes())
	return died, lines, err
}

// read takes what a child printed. The same event always has the same number.
func (r *crashRun) read(out []byte) (lines []string, err error) {
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		word, rest, _ := strings.Cut(s.Text(), " ")
		switch word {
		case "e":
			number, id, _ := strings.Cut(rest, " ")
			seq, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("a child printed %q", s.Text())
			}
			if was, ok := r.printed[seq]; ok && was != id {
				return nil, fmt.Errorf("event %d was %q and is %q", seq, was, id)
			}
			r.printed[seq] = id
		case "ack":
			r.acked[rest] = true
		case "torn":
			r.torn++
		default:
			lines = append(lines, s.Text())
		}
	}
	return lines, nil
}

// verdict is what the checks found: problems, and figures for the log.
type verdict struct {
	problems []string
	events   int
	epochs   int64
	unknown  int // commands whose outcome is not known
	again    int // calls that were started more than once
	repaired int // times that a torn end was cut off
	leftover int // files that were being written when the program died
	lost     int // jobs whose outcome nobody knows
	died     bool
}

func (v *verdict) fail(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// check looks at everything that the run has left, when its turn has ended.
func (r *crashRun) check(ctx context.Context) (v verdict, err error) {
	a, err := app.New(options(r.work(), r.home(), r.model.URL(), app.Flags{}))
	if err != nil {
		return v, err
	}
	defer a.Close()
	c := a.Client()
	events, err := logged(ctx, c, crashID)
	if err != nil {
		return v, err
	}
	v.events, v.epochs = len(events), events[len(events)-1].Epoch
	v.problems = append(v.problems, numbering(events)...)
	v.problems = append(v.problems, gated(events)...)
	v.problems = append(v.problems, verified(ctx, c, crashID)...)
	v.problems = append(v.problems, refusals(r.model)...)
	prompts := []string{"p1"}
	if r.more {
		prompts = []string{"p1", "p2", "p3"}
	}
	if entered := all[agent.InputAdded](events); len(entered) != len(prompts) {
		v.fail("these were entered: %+v", entered)
	}
	r.checkKept(&v, events, prompts...)
	r.checkTurn(&v, events)
	r.checkEffects(&v, events)
	return v, nil
}

// logged reads the log of a session.
func logged(ctx context.Context, c client.Client, id string) (events []agent.Event, err error) {
	for e, err := range c.Attach(id).Events(ctx, 0) {
		if err != nil {
			return nil, fmt.Errorf("reading the log of %s: %w", id, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// checkKept checks that nothing which anybody was told of is lost, and that each of
// the prompts, and each that was accepted, was entered once.
func (r *crashRun) checkKept(v *verdict, events []agent.Event, prompts ...string) {
	for seq, id := range r.printed {
		if seq > int64(len(events)) {
			v.fail("event %d (%s) is lost", seq, id)
			continue
		}
		if e := events[seq-1]; e.ID+" "+e.Kind() != id {
			v.fail("event %d was %q and is %s %s", seq, id, e.ID, e.Kind())
		}
	}
	entered := map[string]int{}
	for _, b := range all[agent.InputAdded](events) {
		entered[b.Input]++
	}
	for p := range r.acked {
		prompts = append(prompts, p)
	}
	for _, p := range prompts {
		if entered[p] != 1 {
			v.fail("prompt %s was entered %d times", p, entered[p])
		}
	}
	v.repaired = len(all[agent.LogRepaired](events))
}

// checkTurn checks that there was one turn, or a few for several prompts, and
// that each came to its end.
func (r *crashRun) checkTurn(v *verdict, events []agent.Event) {
	turns := map[string]bool{}
	for _, b := range all[agent.TurnStarted](events) {
		turns[b.Turn] = true
	}
	ends := all[agent.TurnEnded](events)
	if len(ends) != len(turns) || slices.ContainsFunc(ends, func(b agent.TurnEnded) bool { return b.Reason != agent.EndDone }) {
		v.fail("turns %v ended as %+v", turns, ends)
	}
	if most := len(r.acked); len(turns) > most {
		v.fail("%d turns for %d prompts", len(turns), most)
	}
	if r.more {
		return
	}
	steps := int(r.limit.Load())
	answers := said(events)
	if len(answers) != steps+1 || answers[len(answers)-1] != crashEnd(steps) {
		v.fail("%d answers to %d steps, the last one: %q", len(answers), steps, answers[len(answers)-1])
	}
	state := transcript.New()
	for _, e := range events {
		state.Apply(e)
	}
	if messages, _ := state.Conversation(); len(messages) != 2*steps+2 {
		v.fail("the conversation has %d messages after %d steps", len(messages), steps)
	}
}

// checkEffects checks the results of all calls, the ledger and the files.
func (r *crashRun) checkEffects(v *verdict, events []agent.Event) {
	starts := map[string]int{}
	for _, b := range all[agent.CallStarted](events) {
		if starts[b.ID]++; starts[b.ID] > 1 {
			v.again++
			if b.Class == agent.Unsafe {
				v.fail("call %s of class unsafe was started again", b.ID)
			}
		}
	}
	unknown := map[string]bool{}
	for _, b := range all[agent.CallFinished](events) {
		_, command := r.story.lines[b.Result.ID]
		switch {
		case command && b.Result.Error != nil && b.Result.Error.Code == agent.ErrOutcomeUnknown:
			unknown[b.Result.ID] = true
		case b.Result.Status != agent.StatusOK:
			v.fail("call %s: %s", b.Result.ID, b.Result.Text)
		}
	}
	v.unknown = len(unknown)
	r.checkLedger(v, unknown)
	steps := r.limit.Load()
	for name, want := range r.story.files[steps] {
		got, err := os.ReadFile(filepath.Join(r.work(), name))
		if err != nil || string(got) != want {
			v.fail("%s has %q instead of %q (%v)", name, got, want, err)
		}
	}
	entries, err := r.settled()
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		left := workspace.Leftover(e.Name())
		if left {
			v.leftover++
		}
		return left
	})
	if want := len(r.story.files[steps]) + 1; err != nil || len(entries) != want {
		v.fail("the workspace has %d files instead of %d: %v, %v", len(entries), want, entries, err)
	}
}

// checkLedger checks that each command wrote its line once, or at most once
// when its outcome is not known.
func (r *crashRun) checkLedger(v *verdict, unknown map[string]bool) {
	data, err := os.ReadFile(filepath.Join(r.work(), "ledger"))
	if err != nil {
		v.fail("%v", err)
	}
	written := map[string]int{}
	for line := range strings.Lines(string(data)) {
		written[strings.TrimSpace(line)]++
	}
	for id, line := range r.story.lines {
		n := written[line]
		delete(written, line)
		switch due := r.story.at[id] < int(r.limit.Load()); {
		case n > 1, n > 0 && !due, n == 0 && due && !unknown[id]:
			v.fail("command %s wrote its line %d times (unknown: %v)", id, n, unknown[id])
		}
	}
	for line := range written {
		v.fail("the ledger has a line that nobody wrote: %q", line)
	}
}

// manySteps is how many steps a long session has.
const manySteps = 200

// TestCrashEverywhere kills a session of 200 steps at every boundary there is, each time
// another one.
func TestCrashEverywhere(t *testing.T) {
	if !prooftest.Long() {
		t.Skip("takes an hour: DURE_LONG=1 runs it")
	}
	crashSteps(manySteps, false, false).run(t, 1)
}

// TestCrashMatrix kills one session of up to 200 steps at 8 boundaries that a seed chooses,
// or at 60 in the long form, and half of the time leaves a torn log. It goes on for 40 steps then.
func TestCrashMatrix(t *testing.T) {
	crashKills := 8
	if prooftest.Long() {
		crashKills = 60
	}
	luck := luckOf(t)
	r, err := newCrashRun(t.TempDir(), newCrashScript(manySteps), manySteps)
	if err != nil {
		t.Fatal(err)
	}
	defer r.model.Close()
	begun := time.Now()
	for small := 0; r.kills < crashKills; {
		task := childTask{Die: 40 + luck.Int64N(55), Torn: luck.IntN(2) == 0}
		// A turn that makes no progress five times in a row is given up, so
		// that early deaths must not be too many.
		if small++; small <= 2 && luck.IntN(3) == 0 {
			task.Die = 1 + luck.Int64N(40)
		} else {
			small = 0
		}
		died, _, err := r.child(task)
		if err != nil {
			t.Fatal(err)
		}
		if !died {
			t.Fatalf("the session was over after %d kills", r.kills)
		}
	}
	reached := r.asked.Load()
	r.limit.Store(min(manySteps, reached+40))
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
		t.Errorf("processes are left behind: %v", left)
	}
	t.Logf("%d kills in %d steps, %d torn, in %v: %d events, %d of them seen by a child, %d epochs, %d repairs, %d calls run again, %d outcomes unknown",
		r.kills, reached, r.torn, time.Since(begun).Round(time.Millisecond), v.events, len(r.printed), v.epochs, v.repaired, v.again, v.unknown)
}

// luckOf makes a source of numbers from the seed that the log of the test names.
func luckOf(t *testing.T) *rand.Rand {
	t.Helper()
	seed := time.Now().UnixNano()
	if s := os.Getenv("DURE_CRASH_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseInt(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("DURE_CRASH_SEED=%d", seed)
	return rand.New(rand.NewPCG(uint64(seed), 0))
}

// settled lists the workspace once what a dead process had there to confine its
// commands is gone: empty folders, which its watchdog takes away.
func (r *crashRun) settled() ([]os.DirEntry, error) {
	const patience = 60 * time.Second
	for deadline := time.Now().Add(patience); ; {
		entries, err := os.ReadDir(r.work())
		left := slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			info, err := e.Info()
			return err == nil && sandbox.IsHold(info.Mode())
		})
		if err != nil || !left || time.Now().After(deadline) {
			return entries, err
		}
		<-time.After(10 * time.Millisecond)
	}
}
