//go:build unix

package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// A refusal comes after a second, in which the owner could have left; the rest is
// for machines that have much else to do.
const (
	refusedAfter  = 900 * time.Millisecond
	refusedWithin = 6 * time.Second
)

// rivals is what was seen of many rounds in which two processes open one session.
type rivals struct {
	crashRun
	kept     map[int64]string // events that somebody was told of
	rounds   int
	refusals int
	named    int // of them, with the process that has the session
	slowest  time.Duration
	killed   int
}

// A rivalFate is what becomes of the first owner of a round.
type rivalFate int

const (
	rivalLives rivalFate = iota
	rivalKilled
	rivalStopped
)

// TestRivals has two programs open one session at the same time. One has it; the
// other one waits for a second and says who has it, or gets it when the first has
// left or died. A program that stands still keeps its session, and goes on when it is
// woken up. Nothing is lost that anybody was told of.
func TestRivals(t *testing.T) {
	t.Parallel()
	rounds, stops := 12, 12
	if prooftest.Long() {
		rounds, stops = 1000, 20
	}
	r := newRivals(t)
	begun := time.Now()
	for n := range rounds {
		f := rivalFate(n % 2)
		if n%stops == stops/2 {
			f = rivalStopped
		}
		r.round(t, f)
		if t.Failed() {
			t.Fatalf("in round %d", n)
		}
	}
	r.check(t)
	t.Logf("%d rounds in %v: %d killed, %d refusals, %d with a name, the slowest after %v",
		rounds, time.Since(begun).Round(time.Millisecond), r.killed, r.refusals, r.named, r.slowest)
	if r.killed == 0 || r.named == 0 {
		t.Error("the two never met")
	}
}

func newRivals(t *testing.T) *rivals {
	r := &rivals{kept: map[int64]string{}}
	r.dir, r.acked = t.TempDir(), map[string]bool{}
	for _, d := range []string{r.work(), r.home()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if r.model, err = script.NewServer(script.Script{}, script.Options{Func: func(script.Request) script.Reply {
		return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
	}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.model.Close() })
	a, err := app.New(options(r.work(), r.home(), r.model.URL(), app.Flags{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Client().Open(t.Context(), agent.Open{New: crashID, Workdir: r.work()}); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

// heard is a line of one of the two.
type heard struct {
	who  int
	line string // "" = it has ended
}

// round races two programs until both have left or died.
func (r *rivals) round(t *testing.T, f rivalFate) {
	ctx, cancel := context.WithTimeout(t.Context(), childLimit)
	defer cancel()
	r.rounds++
	lines := make(chan heard)
	var two [2]*exec.Cmd
	var start [2]io.Writer
	for i := range two {
		two[i], start[i] = r.rival(ctx, t, i, lines)
	}
	first, ready, running := -1, 0, 2
	var last [2]string
	var fated <-chan time.Time
	for running > 0 {
		select {
		case h := <-lines:
			word, rest, _ := strings.Cut(h.line, " ")
			if word == "" {
				running--
				continue
			}
			last[h.who] = word
			switch word {
			case "ready":
				if ready++; ready == 2 {
					order(start, "go")
					if f != rivalStopped {
						order(start, "leave")
					}
				}
			case "open":
				if first < 0 {
					first, fated = h.who, time.After(time.Duration(rand.IntN(15_000))*time.Microsecond)
				}
			case "refused":
				r.refused(t, rest, two[1-h.who].Process.Pid)
				if f == rivalStopped && fated == nil && h.who != first {
					_ = two[first].Process.Signal(syscall.SIGCONT)
					order(start, "leave")
				}
			case "ack":
				r.acked[rest] = true
			case "e":
				number, id, _ := strings.Cut(rest, " ")
				if seq, err := strconv.ParseInt(number, 10, 64); err == nil && len(id) == 36 { // else it died in the middle
					r.kept[seq] = id
				}
			}
		case <-fated:
			fated = nil
			switch f {
			case rivalKilled:
				if two[first].Process.Kill() == nil {
					r.killed++
				}
			case rivalStopped:
				_ = two[first].Process.Signal(syscall.SIGSTOP)
			}
		}
	}
	for i, cmd := range two {
		err := cmd.Wait()
		if err != nil && (i != first || f != rivalKilled) || err == nil && last[i] != "left" {
			t.Errorf("process %d ended after %q: %v", i, last[i], err)
		}
	}
}

// order tells both something.
func order(both [2]io.Writer, what string) {
	for _, w := range both {
		_, _ = fmt.Fprintln(w, what) // or it is dead
	}
}

// rival starts a program. What it prints goes to lines.
func (r *rivals) rival(ctx context.Context, t *testing.T, who int, lines chan<- heard) (*exec.Cmd, io.Writer) {
	task := childTask{Work: r.work(), Home: r.home(), URL: r.model.URL(), Rival: fmt.Sprintf("r%d.%d", r.rounds, who)}
	data, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), childVar+"="+string(data)), os.Stderr
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
			lines <- heard{who, sc.Text()}
		}
		lines <- heard{who, ""}
	}()
	return cmd, in
}

// refused notes a refusal, which has to come in time.
func (r *rivals) refused(t *testing.T, rest string, other int) {
	var ms int64
	var pid int
	if _, err := fmt.Sscanf(rest, "%d %d", &ms, &pid); err != nil {
		t.Errorf("refused %q", rest)
	}
	took := time.Duration(ms) * time.Millisecond
	if took < refusedAfter || took > refusedWithin {
		t.Errorf("refused after %v", took)
	}
	r.refusals, r.slowest = r.refusals+1, max(r.slowest, took)
	if pid == other {
		r.named++
	}
}

// check reads what the rounds have left.
func (r *rivals) check(t *testing.T) {
	a, err := app.New(options(r.work(), r.home(), r.model.URL(), app.Flags{}))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	c := a.Client()
	var events []agent.Event
	entered, owners := map[string]int{}, map[int64]int{}
	for e, err := range c.Attach(crashID).Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
		switch b := e.Body.(type) {
		case agent.InputAdded:
			entered[b.Input]++
		case agent.SessionOpened:
			owners[e.Epoch]++
		}
		if id, ok := r.kept[e.Seq]; ok && id != e.ID {
			t.Errorf("event %d was %s and is %s", e.Seq, id, e.ID)
		}
		delete(r.kept, e.Seq)
	}
	for _, problem := range append(numbering(events), verified(t.Context(), c, crashID)...) {
		t.Error(problem)
	}
	for epoch, n := range owners {
		if n != 1 {
			t.Errorf("epoch %d has %d owners", epoch, n)
		}
	}
	for prompt := range r.acked {
		if entered[prompt] != 1 {
			t.Errorf("prompt %s was accepted, and entered %d times", prompt, entered[prompt])
		}
	}
	if len(r.kept) > 0 {
		t.Errorf("%d events are lost that somebody was told of", len(r.kept))
	}
}
