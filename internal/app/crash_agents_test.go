//go:build unix

package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/state/transcript"
)

// agentStory is what the models of a session and of its agents say: two agents work
// beside each other, one in the background, and each writes a line.
func agentStory(r script.Request) script.Reply { return isolatedStory("none", r) }

// processStory is the same with agents in processes of their own.
func processStory(r script.Request) script.Reply { return isolatedStory("process", r) }

func isolatedStory(how string, r script.Request) script.Reply {
	if strings.Contains(string(r.Body), "Do all the steps.") {
		switch r.Step {
		case 0:
			return script.Reply{Calls: []script.Call{hand("one", fields{"prompt": "Part one.", "isolation": how}), hand("two", fields{"prompt": "Part two.", "isolation": how})}}
		case 1:
			return script.Reply{Calls: []script.Call{hand("three", fields{"prompt": "Part three.", "run_in_background": true, "isolation": how})}}
		}
		return script.Reply{Text: "Noted.", Stop: agent.StopEnd}
	}
	for _, part := range []string{"one", "two", "three"} {
		if !strings.Contains(string(r.Body), "Part "+part+".") {
			continue
		}
		if r.Step == 0 {
			return script.Reply{Calls: []script.Call{{ID: "w", Tool: "Bash", Input: input(fields{"command": "echo " + part + " >> ledger"})}}}
		}
		return script.Reply{Text: part + " is done.", Stop: agent.StopEnd}
	}
	return script.Reply{Text: "What?", Stop: agent.StopEnd}
}

func newAgentRun(dir string, story func(script.Request) script.Reply) (*crashRun, error) {
	r, err := newCrashRun(dir, newCrashScript(0), 0)
	if err != nil {
		return nil, err
	}
	_ = r.model.Close() // it tells another story
	r.model, err = script.NewServer(script.Script{}, script.Options{Func: story})
	return r, err
}

// checkAgents looks at the logs of the session and of its agents, and at what these did.
func (r *crashRun) checkAgents(ctx context.Context) (v verdict, err error) {
	a, err := app.New(options(r.work(), r.home(), r.model.URL(), app.Flags{}))
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
		events = append(events, e)
		if state.Apply(e); e.Seq >= s.Info.Head && len(state.Pending) == 0 { // what is pending goes on
			break
		}
	}
	v.events = len(events)
	v.problems = slices.Concat(numbering(events), gated(events), verified(ctx, c, crashID), refusals(r.model))
	children := map[string]bool{} // and whether they came to an end: one that is lost is left as it was
	for _, b := range all[agent.ChildOpened](events) {
		children[b.Child] = false
	}
	for _, b := range all[agent.ChildEnded](events) {
		children[b.Child] = true
	}
	for id, over := range children {
		var own []agent.Event
		for e, err := range c.Attach(id).Events(ctx, 0) {
			if err != nil {
				return v, fmt.Errorf("reading the log of an agent: %w", err)
			}
			own = append(own, e)
		}
		v.problems = append(v.problems, numbering(own)...)
		if over {
			v.problems = append(v.problems, gated(own)...)
		}
	}
	if len(children) != 3 || state.Turn.Open || len(state.Pending) > 0 || len(all[agent.CallSettled](events)) != 1 {
		v.fail("%d children, turn open %v, %d pending\n%s", len(children), state.Turn.Open, len(state.Pending), names(events))
	}
	for _, b := range all[agent.CallSettled](events) {
		if b.Lost {
			v.fail("%s was lost, and could have gone on", b.Handle)
		}
	}
	for _, b := range all[agent.CallFinished](events) {
		want := b.Result.ID + " is done."
		if b.Result.Status != agent.StatusPending && !strings.HasPrefix(b.Result.Text, want) {
			v.fail("%s came to %q", b.Result.ID, b.Result.Text)
		}
	}
	ledger, err := os.ReadFile(filepath.Join(r.work(), "ledger"))
	for line, n := range count(string(ledger)) {
		if n > 1 {
			v.fail("%q was written %d times", line, n)
		}
	}
	return v, err
}

// agentRun is one session with agents that is killed at a boundary and goes on.
func agentRun(ctx context.Context, dir string, story func(script.Request) script.Reply, p crashPoint) (v verdict, err error) {
	r, err := newAgentRun(dir, story)
	if err != nil {
		return v, err
	}
	defer r.close()
	return r.killed(p, func() (verdict, error) { return r.checkAgents(ctx) })
}

// killed has the session die at a boundary and go on, and looks at what has come of it.
func (r *crashRun) killed(p crashPoint, check func() (verdict, error)) (v verdict, err error) {
	died, _, err := r.child(childTask{Die: p.n, Torn: p.torn})
	if err != nil {
		return v, err
	}
	if died {
		if again, _, err := r.child(childTask{}); again || err != nil {
			return v, fmt.Errorf("resuming: died %v, %w", again, err)
		}
	}
	v, err = check()
	v.died = died
	return v, err
}

// TestCrashWithAgents kills a session whose agents work at every boundary of its log and
// of theirs, or at some in the short form, and has it go on: each agent is found again,
// does nothing twice, and has one outcome; one in the background goes on, and is settled
// once.
func TestCrashWithAgents(t *testing.T) {
	crashAgents(t, agentStory)
}

// TestCrashWithProcesses does the same to a session whose agents have processes of their
// own: these die with it, and nothing of them stays.
func TestCrashWithProcesses(t *testing.T) {
	crashAgents(t, processStory)
	if left := family.orphans(); len(left) > 0 {
		t.Errorf("processes are left behind: %v", left)
	}
}

func crashAgents(t *testing.T, story func(script.Request) script.Reply) {
	t.Helper()
	r, err := newAgentRun(t.TempDir(), story)
	if err != nil {
		t.Fatal(err)
	}
	_, lines, err := r.child(childTask{List: true})
	if err = errors.Join(err, r.close()); err != nil {
		t.Fatal(err)
	}
	killedAt(t, pointsOf(lines), 40, 2, func(dir string, p crashPoint) (verdict, error) { return agentRun(t.Context(), dir, story, p) })
}
