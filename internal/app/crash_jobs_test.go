//go:build unix

package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
	"dure/internal/state/transcript"
)

// jobFlags are those of a session with background jobs, whose model is asked in a
// wire format.
func jobFlags(wire, url string) app.Flags {
	return app.Flags{
		Allow:    []string{"Bash", "TaskOutput", "TaskStop"},
		Settings: fmt.Sprintf(`{"providers":{"jobs":{"type":%q,"baseUrl":%q}}}`, wire, url),
	}
}

func jobModel(wire string) string {
	if wire == "" {
		return ""
	}
	return "jobs/script"
}

// The calls that begin jobs: one that ends by itself, one that the model stops, and
// one that is left when the session is closed.
const (
	jobQuick = "quick"
	jobStop  = "stop"
	jobLeft  = "left"
)

var handleSaid = regexp.MustCompile(`in the background as (job:[a-z0-9]+)`)

// jobStory is what the model says: it begins jobs, polls one, stops it, and
// acknowledges whatever it is told afterwards.
func jobStory(r script.Request) script.Reply {
	command := func(id, line string, background bool) script.Call {
		return script.Call{ID: id, Tool: "Bash", Input: input(fields{"command": line, "run_in_background": background})}
	}
	task := func(tool string, in fields) script.Reply {
		var calls []script.Call
		if all := handleSaid.FindAllSubmatch(r.Body, -1); all != nil {
			in["task_id"] = string(all[len(all)-1][1])
			calls = append(calls, script.Call{ID: "t" + tool, Tool: tool, Input: input(in)})
		}
		return script.Reply{Text: "I look.", Calls: append(calls, command("line"+tool, "echo line"+tool+" >> ledger", false))}
	}
	switch r.Step {
	case 0:
		return script.Reply{Calls: []script.Call{command(jobLeft, "sleep 60", true), command(jobQuick, "sleep 0.2; echo quick >> ledger", true)}}
	case 1:
		return script.Reply{Calls: []script.Call{command(jobStop, "sleep 60", true)}}
	case 2:
		return task("TaskOutput", fields{"block": false})
	case 3:
		return task("TaskStop", fields{})
	}
	return script.Reply{Text: fmt.Sprintf("Noted %d.", r.Step), Stop: agent.StopEnd}
}

// followJobs has a session go on until nothing is left to do but what outlasts it,
// and the model has answered one more prompt.
func (b *boundaries) followJobs(ctx context.Context, s *client.Session) error {
	state := transcript.New()
	for e, err := range s.Events(ctx, 0) {
		if err != nil {
			return err
		}
		if e.Live() {
			continue
		}
		fmt.Printf("e %d %s %s\n", e.Seq, e.ID, e.Kind())
		state.Apply(e)
		if e.Seq < s.Info.Head {
			continue
		}
		if e.Seq == s.Info.Head {
			if err := s.Send(ctx, agent.Prompt{ID: "p1", Text: "Do it."}); err != nil {
				return err
			}
			fmt.Println("ack p1")
			if err := s.Send(ctx, agent.Continue{}); err != nil && agent.ProblemOf(err) == nil {
				return err
			}
		}
		if !rests(state) {
			continue
		}
		if state.Inputs["p2"] {
			return nil
		}
		if err := s.Send(ctx, agent.Prompt{ID: "p2", Text: "And?"}); err != nil {
			return err
		}
		fmt.Println("ack p2")
	}
	return errors.New("the events ended before the turn")
}

// rests reports whether nothing goes on but the job that is left.
func rests(s *transcript.State) bool {
	for _, p := range s.Pending {
		if p.ID != jobLeft {
			return false
		}
	}
	return s.Turns > 0 && !s.Turn.Open && !s.Unread && !s.Waits(true)
}

// checkJobs has the model read what it has not been told yet, and looks at
// everything that the run has left.
func (r *crashRun) checkJobs(ctx context.Context, wire string) (v verdict, err error) {
	a, err := app.New(options(r.work(), r.home(), r.model.URL(), jobFlags(wire, r.model.URL())))
	if err != nil {
		return v, err
	}
	defer a.Close()
	c := a.Client()
	s, err := c.Open(ctx, agent.Open{Session: crashID})
	if err != nil {
		return v, err
	}
	var events []agent.Event
	state := transcript.New()
	for e, err := range s.Events(ctx, 0) {
		if err != nil {
			return v, err
		}
		if e.Live() {
			continue
		}
		events = append(events, e)
		state.Apply(e)
		if e.Seq == s.Info.Head {
			if err := s.Send(ctx, agent.Prompt{ID: "p3", Text: "Well?"}); err != nil {
				return v, err
			}
		}
		if e.Seq > s.Info.Head && e.Kind() == "turn.ended" {
			break
		}
	}
	v.events = len(events)
	v.problems = slices.Concat(numbering(events), gated(events), verified(ctx, c, crashID), refusals(r.model))
	for seq, id := range r.printed {
		if seq > int64(len(events)) || events[seq-1].ID+" "+events[seq-1].Kind() != id {
			v.fail("event %d (%s) is lost or another one", seq, id)
		}
	}
	entered := map[string]int{}
	for _, b := range all[agent.InputAdded](events) {
		entered[b.Input]++
	}
	for _, p := range []string{"p1", "p2", "p3"} {
		if entered[p] != 1 {
			v.fail("prompt %s was entered %d times", p, entered[p])
		}
	}
	r.checkOutcomes(&v, events, state)
	return v, nil
}

// checkOutcomes checks that each job has one outcome, that the model read of it
// once, and that the outcome is true.
func (r *crashRun) checkOutcomes(v *verdict, events []agent.Event, state *transcript.State) {
	outcomes := map[string][]agent.CallSettled{}
	for _, b := range all[agent.CallSettled](events) {
		outcomes[b.Handle] = append(outcomes[b.Handle], b)
	}
	told := map[string]int{}
	messages, _ := state.Conversation()
	for _, m := range messages {
		for _, b := range m.Blocks {
			if rest, ok := strings.CutPrefix(b.Text, "[Task "); ok && m.Role == agent.User {
				handle, _, _ := strings.Cut(rest, " ")
				told[handle]++
			}
		}
	}
	ledger, err := os.ReadFile(filepath.Join(r.work(), "ledger"))
	if err != nil {
		v.fail("%v", err)
	}
	for line, n := range count(string(ledger)) {
		if n > 1 {
			v.fail("%q was written %d times", line, n)
		}
	}
	begun := 0
	for _, b := range all[agent.CallFinished](events) {
		if b.Result.Status != agent.StatusPending {
			continue
		}
		begun++
		h := b.Result.Handle
		if len(outcomes[h]) != 1 || told[h] != 1 {
			v.fail("%s (%s) has %d outcomes, of which the model was told %d times", h, b.Result.ID, len(outcomes[h]), told[h])
			continue
		}
		o := outcomes[h][0]
		gone := o.Result.Error != nil && o.Result.Error.Code == agent.ErrLost
		if gone {
			v.lost++
		}
		switch {
		case o.Lost != gone, o.ID != b.Result.ID:
			v.fail("%s: %+v", h, o)
		case b.Result.ID == jobQuick && !gone && (o.Result.Failed() || !strings.Contains(string(ledger), "quick")):
			v.fail("the job that ends by itself: %+v, ledger %q", o, ledger)
		case b.Result.ID != jobQuick && !gone && !o.Result.Failed():
			v.fail("a job that was stopped: %+v", o)
		}
	}
	if len(outcomes) != begun || len(state.Pending) > 0 || len(state.Notices) > 0 {
		v.fail("%d jobs, %d outcomes, %d pending, %d notices left", begun, len(outcomes), len(state.Pending), len(state.Notices))
	}
}

// count counts the lines of a text.
func count(text string) map[string]int {
	n := map[string]int{}
	for line := range strings.Lines(text) {
		n[strings.TrimSpace(line)]++
	}
	return n
}

// newJobRun returns a run of the story of jobs.
func newJobRun(dir string) (*crashRun, error) {
	r, err := newCrashRun(dir, newCrashScript(0), 0)
	if err != nil {
		return nil, err
	}
	_ = r.model.Close() // it tells another story
	r.model, err = script.NewServer(script.Script{}, script.Options{Func: jobStory})
	return r, err
}

// jobBoundaries lists the boundaries of an undisturbed run.
func jobBoundaries(dir, wire string) ([]crashPoint, error) {
	r, err := newJobRun(dir)
	if err != nil {
		return nil, err
	}
	defer r.close()
	_, lines, err := r.child(childTask{Jobs: wire, List: true})
	return pointsOf(lines), err
}

// jobRun is one session with jobs that is killed at a boundary and goes on.
func jobRun(ctx context.Context, dir, wire string, p crashPoint) (v verdict, err error) {
	r, err := newJobRun(dir)
	if err != nil {
		return v, err
	}
	defer r.close()
	died, _, err := r.child(childTask{Jobs: wire, Die: p.n, Torn: p.torn})
	if err != nil {
		return v, err
	}
	if died {
		if left := carrying(r.home()); len(left) > 0 {
			v.fail("processes outlive the program: %v", left)
		}
		if again, _, err := r.child(childTask{Jobs: wire}); again || err != nil {
			return v, fmt.Errorf("resuming: died %v, %w", again, err)
		}
	}
	problems := v.problems
	v, err = r.checkJobs(ctx, wire)
	v.died = died
	v.problems = append(problems, v.problems...)
	if left := carrying(r.home()); len(left) > 0 {
		v.fail("processes are left behind: %v", left)
	}
	return v, err
}

// TestCrashWithJobs kills a session whose jobs run in the background at every
// boundary, or at some in the short form, and has it go on: every outcome is
// stored once, as it was or as lost, the model reads of it once, and no process is
// left. Every wire format takes part: its server refuses what the real one would.
func TestCrashWithJobs(t *testing.T) {
	for _, wire := range prooftest.Sample(t, app.Wires, len(app.Wires), nil) {
		t.Run(wire, func(t *testing.T) {
			places, err := jobBoundaries(t.TempDir(), wire)
			if err != nil {
				t.Fatal(err)
			}
			killedAt(t, places, 32, 3, func(dir string, p crashPoint) (verdict, error) { return jobRun(t.Context(), dir, wire, p) })
		})
	}
}
