//go:build unix

package app_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// TestCrashHistory kills a session with plans, agents, jobs, hooks, work trees and processes
// of agents at every boundary of its log and of theirs, or at some in the short form, and has
// it go on. The wire formats take turns: the server of each refuses what the real one would.
func TestCrashHistory(t *testing.T) {
	prooftest.Program(t, "git")
	files := t.TempDir()
	if err := storyFiles(files); err != nil {
		t.Fatal(err)
	}
	crashCase{
		start: func(dir string, n int) (*crashRun, error) {
			return newStoryRun(dir, files, script.Wires[n%len(script.Wires)])
		},
		check: (*crashRun).checkStory,
	}.run(t, 300)
}

// checkStory has the model read what it has not been told yet, and looks at everything
// that the run has left.
func (r *crashRun) checkStory(ctx context.Context) (v verdict, err error) {
	a, err := app.New(options(r.work(), r.home(), r.model.URL(), storyFlags(r.wire, r.model.URL())))
	if err != nil {
		return v, err
	}
	defer a.Close()
	if _, err := a.MendTrees(ctx); err != nil {
		v.fail("looking after what is left: %v", err)
	}
	c := a.Client()
	s, err := c.Open(ctx, agent.Open{Session: crashID})
	if err != nil {
		return v, err
	}
	if err := s.Send(ctx, agent.Prompt{ID: "p4", Text: "Well?"}); err != nil {
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
		if e.Seq >= s.Info.Head && state.Inputs["p4"] && rests(state) && len(state.Pending) == 0 && len(state.Notices) == 0 {
			break
		}
	}
	v.events = len(events)
	v.problems = append(v.problems, slices.Concat(numbering(events), gated(events), verified(ctx, c, crashID), refusals(r.model))...)
	r.checkKept(&v, events, "p1", "p2", "p3", "p4")
	checkPlans(&v, events)
	r.checkHooks(&v, events, state)
	r.checkOutcomes(&v, events, state)
	r.checkTrees(&v)
	return v, checkAgents(ctx, &v, c, events)
}

// checkPlans checks that each plan has one outcome, and that nothing is done before its
// plan is approved.
func checkPlans(v *verdict, events []agent.Event) {
	var did []string // about plans, with the calls that change something
	calls, state := map[string]string{}, transcript.New()
	for _, e := range events {
		state.Apply(e)
		switch b := e.Body.(type) {
		case agent.PlanProposed:
			calls[b.Plan] = b.Call
			did = append(did, b.Call+" proposed")
		case agent.PlanChanged:
			did = append(did, calls[b.Plan]+" "+b.Do)
		case agent.PlanDecided:
			did = append(did, calls[b.Plan]+" "+string(b.Verdict))
		case agent.CallFinished:
			if strings.HasPrefix(b.Result.ID, "w") {
				did = append(did, fmt.Sprintf("%s %s in mode %s, plan %s", b.Result.ID, b.Result.Status, state.Mode, state.Plan.State))
			}
		case agent.InputAdded:
			if b.Text != "" { // it is not only a note of a job
				did = append(did, "> "+strings.SplitN(b.Text, ".", 2)[0])
			}
		}
	}
	want := []string{
		"> Write b", "p1 proposed", "p1 edit", "p1 regenerate", "p2 proposed", "p2 edit", "p2 approved", "wb ok in mode acceptEdits, plan approved",
		"> Do the rest", "p3 proposed", "p3 approved", "> I agree to your plan", "wc ok in mode acceptEdits, plan approved", "> And?", "> Well?",
	}
	if !slices.Equal(did, want) {
		v.fail("the plans: %q", did)
	}
	if state.Turn.Open || state.Turn.Reason != agent.EndDone || state.Plan.State != agent.PlanApproved {
		v.fail("turn open %v, ended %q, plan %q", state.Turn.Open, state.Turn.Reason, state.Plan.State)
	}
}

// checkHooks checks that what a hook denied was not done, that one that runs once is
// recorded once, and that the model read of it once.
func (r *crashRun) checkHooks(v *verdict, events []agent.Event, state *transcript.State) {
	once, denied := 0, 0
	for _, b := range all[agent.HookRan](events) {
		if b.Event == "UserPromptSubmit" {
			once++
		}
	}
	for _, b := range all[agent.CallDecided](events) {
		if b.Proposal.Call.ID == canary.ID && b.Decision.Verdict == agent.Deny && strings.HasPrefix(b.Decision.By, "hook:command case") {
			denied++
		}
	}
	read := 0
	messages, _ := state.Conversation()
	for _, m := range messages {
		for _, b := range m.Blocks {
			read += strings.Count(b.Text, "Mind the dog.")
		}
	}
	if once != 1 || read != 1 || denied != 1 {
		v.fail("the hook that runs once: %d times, read %d times; the call was denied %d times", once, read, denied)
	}
}

// checkAgents looks at the logs of the agents, each of which has one, and of which one works
// in a process of its own.
func checkAgents(ctx context.Context, v *verdict, c client.Client, events []agent.Event) error {
	children := map[string]bool{} // and whether they came to an end: one that is lost is left as it was
	for _, b := range all[agent.ChildOpened](events) {
		children[b.Child] = false
	}
	for _, b := range all[agent.ChildEnded](events) {
		children[b.Child] = true
	}
	programs, apart := map[int]bool{}, 0
	for _, b := range all[agent.SessionOpened](events) {
		programs[b.PID] = true
	}
	for id, over := range children {
		own, err := logged(ctx, c, id)
		if err != nil {
			return err
		}
		v.problems = append(v.problems, numbering(own)...)
		if over {
			v.problems = append(v.problems, gated(own)...)
		}
		if slices.ContainsFunc(all[agent.SessionOpened](own), func(b agent.SessionOpened) bool { return !programs[b.PID] }) {
			apart++
		}
	}
	if len(children) != 5 || apart != 1 {
		v.fail("%d children, %d of them in processes of their own\n%s", len(children), apart, names(events))
	}
	return nil
}

// checkOutcomes checks that each call came to what it should, that each job has one outcome,
// that the model read of it once, and that the outcome is true.
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
			checkResult(v, b.Result)
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
		switch id := b.Result.ID; {
		case o.Lost != gone, o.ID != id:
			v.fail("%s: %+v", h, o)
		case id == "three" && (gone || !strings.HasPrefix(o.Result.Text, "three is done.")):
			v.fail("the agent in the background could have gone on: %+v", o)
		case id == jobQuick && !gone && (o.Result.Failed() || !strings.Contains(string(ledger), "quick")):
			v.fail("the job that ends by itself: %+v, ledger %q", o, ledger)
		case (id == jobStop || id == jobLeft) && !gone && !o.Result.Failed():
			v.fail("a job that was stopped: %+v", o)
		}
	}
	if len(outcomes) != begun || len(state.Pending) > 0 || len(state.Notices) > 0 {
		v.fail("%d jobs, %d outcomes, %d pending, %d notices left", begun, len(outcomes), len(state.Pending), len(state.Notices))
	}
}

// checkResult checks what a call of the session came to.
func checkResult(v *verdict, r agent.Result) {
	switch id := r.ID; {
	case id == "one" || id == "two":
		if !strings.HasPrefix(r.Text, id+" is done.") {
			v.fail("%s came to %q", id, r.Text)
		}
	case slices.Contains(colours, id):
		if r.Failed() || !strings.Contains(r.Text, "set up here") || !strings.Contains(r.Text, "A "+id+".txt") {
			v.fail("%s: %s", id, r.Text)
		}
	case strings.HasPrefix(id, "m") && r.Failed():
		v.fail("%s: %s", id, r.Text)
	}
}

// checkTrees checks that what the agents did in their trees is merged, that the folder has
// what it had before beside that, and that no tree and no branch is left.
func (r *crashRun) checkTrees(v *verdict) {
	want := map[string]string{"b": "b", "c": "c", "red.txt": "red\n", "blue.txt": "blue\n", "mine.txt": "not committed\n", "local.conf": "set up here\n"}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(r.work(), name)); err != nil || string(got) != text {
			v.fail("%s has %q: %v", name, got, err)
		}
	}
	entries, err := r.settled()
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".git") })
	if err != nil || len(entries) != len(want)+2 { // with the ledger and .worktreeinclude
		v.fail("the workspace has %v: %v", entries, err)
	}
	for want, args := range map[string][]string{ // files that are committed do not show in the status
		"?? mine.txt": {"status", "--porcelain"}, "": {"branch", "--list", "dure-*"}, r.work(): {"worktree", "list", "--porcelain"},
	} {
		got, err := git(r.work(), args...)
		if path, ok := strings.CutPrefix(got, "worktree "); ok && strings.Count(got, "worktree ") == 1 {
			got, _, _ = strings.Cut(path, "\n")
		}
		if got != want || err != nil {
			v.fail("git %v: %q, %v", args, got, err)
		}
	}
	left, _ := filepath.Glob(filepath.Join(r.home(), "dure", "worktrees", "[^.]*"))
	if len(left) > 0 {
		v.fail("left: %v", left)
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
