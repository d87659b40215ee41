//go:build unix

package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/prooftest"
)

// refusedWithin is how long a refusal may take. The store tries for some
// milliseconds; the rest is for machines that have much else to do.
const refusedWithin = 5 * time.Second

// A fate is what becomes of the first owner of a round, while it holds the session
// or shortly after.
type fate int

const (
	lives fate = iota
	killed
	stopped       // for a while
	stoppedKilled // stopped, and then killed without having gone on
	fates
)

// race is what was seen of many rounds.
type race struct {
	dir      string
	acked    map[int64]string // by number, the ID of the event
	refusals int
	named    int           // refusals that name the owner
	slowest  time.Duration // refusal
	ended    [fates]int
	seen     int // rounds in which the second was refused while the first was stopped
}

// told is a line of one of the two.
type told struct {
	who  int
	line string // "" = it has ended
}

// TestRivals has two processes open one session at the same time, again and again.
// One of them has it, the other is told who, and gets it when the first has left or
// died. A stopped owner keeps it: it is neither robbed while it stands still, nor does
// it write once somebody else may.
func TestRivals(t *testing.T) {
	t.Parallel()
	rounds, each := 30, 30
	if prooftest.Long() {
		rounds, each = 1000, 50
	}
	r := race{}
	begun := time.Now()
	for n := range rounds {
		if n%each == 0 {
			if n > 0 {
				r.check(t)
			}
			r.begin(t)
		}
		r.round(t, fate(n)%fates)
		if t.Failed() {
			t.Fatalf("in round %d", n)
		}
	}
	r.check(t)
	t.Logf("%d rounds in %v: %d refusals, the slowest after %v; fates %v, in %d rounds refused while the owner was stopped",
		rounds, time.Since(begun).Round(time.Millisecond), r.refusals, r.slowest, r.ended, r.seen)
	if r.refusals == 0 || r.named < r.refusals/2 || r.seen == 0 {
		t.Errorf("the two hardly met: %d refusals named the owner", r.named)
	}
}

// begin makes a session.
func (r *race) begin(t *testing.T) {
	r.dir, r.acked = t.TempDir(), map[int64]string{}
	s, err := NewLocal(LocalOptions{Dir: r.dir})
	if err != nil {
		t.Fatal(err)
	}
	var m Meta
	m.ID = "s"
	if err := errors.Join(s.Create(t.Context(), m), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// round races two processes.
func (r *race) round(t *testing.T, f fate) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lines := make(chan told)
	var two [2]*exec.Cmd
	var start [2]io.Writer
	for i := range two {
		two[i], start[i] = r.rival(ctx, t, i, lines)
	}
	first := -1         // who had it first
	var stand bool      // the first is stopped
	var refusals int    // since then
	var state [2]string // the last word of each
	var fated <-chan time.Time
	for ready, running := 0, 2; running > 0; {
		select {
		case l := <-lines:
			word, rest, _ := strings.Cut(l.line, " ")
			if word != "" {
				state[l.who] = word
			}
			switch word {
			case "ready":
				if ready++; ready == 2 {
					order(start, "go")
					if f == lives || f == killed {
						order(start, "leave")
					}
				}
			case "open":
				if first < 0 {
					first = l.who
					fated = time.After(time.Duration(rand.IntN(6000)) * time.Microsecond)
				}
				if stand {
					t.Errorf("process %d was robbed while it was stopped", first)
				}
			case "refused":
				r.refused(t, rest, two[1-l.who].Process.Pid)
				refusals++
			case "ack":
				var seq int64
				var id string
				if n, _ := fmt.Sscanf(rest, "%d %s", &seq, &id); n == 2 && len(id) == 36 { // else it died in the middle
					r.acked[seq] = id
				}
			case "error:":
				t.Errorf("process %d: %s", l.who, l.line)
			case "":
				running--
			}
			if stand && refusals >= 3 {
				r.seen++
				sig := syscall.SIGCONT
				if f == stoppedKilled {
					sig = syscall.SIGKILL
				}
				_ = two[first].Process.Signal(sig)
				order(start, "leave")
				stand = false
			}
		case <-fated:
			fated = nil
			switch f {
			case killed:
				_ = two[first].Process.Kill()
			case stopped, stoppedKilled:
				stand, refusals = two[first].Process.Signal(syscall.SIGSTOP) == nil, 0
			}
			r.ended[f]++
		}
	}
	for i, cmd := range two {
		err := cmd.Wait()
		if mayDie := i == first && (f == killed || f == stoppedKilled); err != nil && !mayDie {
			t.Errorf("process %d: %v", i, err)
		}
		if err == nil && state[i] != "left" {
			t.Errorf("process %d ended after %q", i, state[i])
		}
	}
}

// order tells both something.
func order(both [2]io.Writer, what string) {
	for _, w := range both {
		_, _ = fmt.Fprintln(w, what) // or it is dead
	}
}

// rival starts a process. What it prints goes to lines.
func (r *race) rival(ctx context.Context, t *testing.T, who int, lines chan<- told) (*exec.Cmd, io.Writer) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), "JOURNAL_CHILD=rival", "JOURNAL_DIR="+r.dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process, which round waits for
		for sc := bufio.NewScanner(out); sc.Scan(); {
			lines <- told{who, sc.Text()}
		}
		lines <- told{who, ""}
	}()
	return cmd, in
}

// refused notes a refusal, which has to come in time. It names the other one unless
// that is just about to write its name down.
func (r *race) refused(t *testing.T, rest string, other int) {
	var pid int
	var micros int64
	if _, err := fmt.Sscanf(rest, "%d %d", &pid, &micros); err != nil {
		t.Errorf("refused %q", rest)
		return
	}
	took := time.Duration(micros) * time.Microsecond
	r.refusals++
	r.slowest = max(r.slowest, took)
	if took > refusedWithin {
		t.Errorf("refused after %v", took)
	}
	if pid == other {
		r.named++
	}
}

// check reads the log: every acknowledged event is in it, each epoch has one writer,
// and none comes back after the next.
func (r *race) check(t *testing.T) {
	s, err := NewLocal(LocalOptions{Dir: r.dir})
	if err != nil {
		t.Fatal(err)
	}
	writers := map[int64]string{}
	var epoch, seq int64
	var pids []string
	for e, err := range s.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		pid := e.Body.(agent.Note).Text
		if e.Seq != seq+1 || e.Epoch < epoch || e.Epoch > epoch+1 {
			t.Errorf("event %d of epoch %d follows event %d of epoch %d", e.Seq, e.Epoch, seq, epoch)
		}
		if w := writers[e.Epoch]; w != "" && w != pid {
			t.Errorf("event %d: epoch %d has two writers: %s and %s", e.Seq, e.Epoch, w, pid)
		} else if w == "" && slices.Contains(pids, pid) {
			t.Errorf("event %d: %s writes again after others have", e.Seq, pid)
		} else if w == "" {
			writers[e.Epoch], pids = pid, append(pids, pid)
		}
		if id, ok := r.acked[e.Seq]; ok && id != e.ID {
			t.Errorf("event %d was acknowledged as %s and is %s", e.Seq, id, e.ID)
		}
		delete(r.acked, e.Seq)
		seq, epoch = e.Seq, e.Epoch
	}
	if len(r.acked) > 0 {
		t.Errorf("%d acknowledged events are lost", len(r.acked))
	}
	l, err := s.Acquire(t.Context(), "s", Owner{}) // cuts off what the last one that died has left
	if err != nil {
		t.Fatal(err)
	}
	if rep, err := s.Verify(t.Context(), "s"); err != nil || !rep.OK || rep.Events != l.Head() {
		t.Errorf("%+v, %v", rep, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
