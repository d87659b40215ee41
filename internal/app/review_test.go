//go:build unix

package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/kernel/plug"
	"dure/internal/models/script"
)

// diff asks what a session changed.
func (k *talk) diff(q query.Diff) query.DiffReport {
	k.t.Helper()
	if q.Session == "" {
		q.Session = k.Info.ID
	}
	report, err := client.Query[query.DiffReport](k.t.Context(), k.Client, q)
	if err != nil {
		k.t.Fatal(err)
	}
	return report
}

// listed is a report as text.
func listed(r query.DiffReport) string {
	var b strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&b, "%s %s", f.Status, f.Path)
		if f.From != "" {
			fmt.Fprintf(&b, " from %s", f.From)
		}
		fmt.Fprintf(&b, " +%d -%d", f.Added, f.Removed)
		for _, what := range []struct {
			name string
			is   bool
		}{{"command", f.Command && len(f.Tools) == 1}, {"others", f.Others}, {"child", len(f.Children) > 0}} {
			if what.is {
				b.WriteString(" " + what.name)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// answer is a model's call with an ID of its own.
func answer(id, tool string, in fields) script.Reply {
	return script.Reply{Calls: []script.Call{{ID: id, Tool: tool, Input: input(in)}}}
}

// What a session changed is seen, by tools and by commands, accepted and taken back;
// the model hears of it, and a person's own changes are none of it.
func TestReviewOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(
		answer("c1", "Write", fields{"file_path": "a.txt", "content": "one\ntwo\n"}),
		answer("c2", "Bash", fields{"command": "echo new > b.txt; printf 'l1\\nl2\\nl3\\nmore\\n' > moved.txt; rm old.txt"}),
		script.Reply{Text: "Done."},
		script.Reply{Text: "So be it."},
	), script.Options{})
	w.write("old.txt", "l1\nl2\nl3\n")
	w.write("mine.txt", "mine\n")
	k := w.talk(app.Flags{Skip: true}, agent.Open{})
	if got := k.diff(query.Diff{}); len(got.Files) != 0 || got.From != "" {
		t.Errorf("at the beginning: %+v", got)
	}
	before := looks(t, w.work)
	k.turn("Change it.")
	w.write("mine.txt", "mine, changed\n")
	report := k.diff(query.Diff{})
	const all = "added a.txt +2 -0\nadded b.txt +1 -0 command\nrenamed moved.txt from old.txt +1 -0 command\n"
	if got := listed(report); got != all || report.Added != 4 {
		t.Errorf("the changes are\n%swant\n%s", got, all)
	}
	if got := listed(k.diff(query.Diff{Paths: []string{"b.txt"}})); got != "added b.txt +1 -0 command\n" {
		t.Errorf("of one file: %s", got)
	}

	k.send(agent.Accept{At: report.To, Files: []agent.Pick{{Path: "a.txt", ID: report.Files[0].ID}}})
	if got := listed(k.diff(query.Diff{})); got != strings.SplitAfterN(all, "\n", 2)[1] {
		t.Errorf("what is left is\n%s", got)
	}
	if got := listed(k.diff(query.Diff{All: true})); got != all {
		t.Errorf("with what was accepted:\n%s", got)
	}
	k.send(agent.Reject{At: report.To, Files: []agent.Pick{{Path: "moved.txt", From: "old.txt", ID: report.Files[2].ID}}})
	if done := body[agent.FilesRewound](k); done.Files != 2 || len(done.Rejected) != 1 || done.Leaves != 0 || w.read("old.txt") != "l1\nl2\nl3\n" || w.read("moved.txt") != "" {
		t.Errorf("rejected: %+v", done)
	}
	w.write("b.txt", "new\nby the user\n")
	k.send(agent.Reject{At: report.To, All: true})
	if done := body[agent.FilesRewound](k); done.Files != 0 || len(done.Left) != 1 || done.Left[0].Path != "b.txt" || w.read("b.txt") != "new\nby the user\n" {
		t.Errorf("what the user has changed: %+v", done)
	}
	err := k.Send(t.Context(), agent.Accept{Files: []agent.Pick{{Path: "nothing.txt"}}})
	if p := agent.ProblemOf(err); p == nil || p.Code != agent.ProblemChange {
		t.Errorf("accepting what is not there: %v", err)
	}
	k.turn("And?")
	asked := w.model.Requests()
	if last := string(asked[len(asked)-1].Body); !strings.Contains(last, `rejected these`) || !strings.Contains(last, `moved.txt`) {
		t.Errorf("the model was asked\n%s", last)
	}

	plan, err := client.Query[query.RewindPlan](t.Context(), k.Client, query.PlanRewind{Session: k.Info.ID, To: 1})
	now := looks(t, w.work)
	if err != nil || len(plan.Files) != 3 || plan.Files[0].Action != "delete" || plan.Files[1].Conflict != "outside" || plan.Leaves != 2 {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	k.send(agent.Rewind{To: 1, Files: true, Force: []string{"b.txt"}})
	body[agent.FilesRewound](k)
	w.write("mine.txt", "mine\n")
	if got := looks(t, w.work); got != before || now == before {
		t.Errorf("at the start the workspace has\n%s\nwant\n%s", got, before)
	}
	if got := listed(k.diff(query.Diff{})); got != "" {
		t.Errorf("what is left at the start:\n%s", got)
	}
	k.sound()
}

// What a session has changed can be seen when it is closed, and while another process
// has it open.
func TestDiffFromOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(answer("c1", "Write", fields{"file_path": "a.txt", "content": "one\n"})), script.Options{})
	k := w.talk(app.Flags{Skip: true}, agent.Open{})
	k.turn("Write.")
	ask := func(when string) {
		t.Helper()
		other := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
		report, err := client.Query[query.DiffReport](t.Context(), other.Client(), query.Diff{Session: k.Info.ID})
		if err != nil || listed(report) != "added a.txt +1 -0\n" {
			t.Errorf("%s: %v\n%s", when, err, listed(report))
		}
	}
	ask("open elsewhere")
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask("closed")
}

// What a child changed is seen, and put back, with what its parent did: they share
// their snapshots. Of what the child did by itself its own session tells.
func TestChildrenShareSnapshots(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(
		answer("p1", "Write", fields{"file_path": "parent.txt", "content": "one\n"}),
		answer("p2", "Bash", fields{"command": "echo by the child > child.txt; rm -f gone.txt; echo two >> parent.txt"}),
		script.Reply{Text: "Done."},
	), script.Options{})
	w.write("gone.txt", "gone\n")
	var built []plug.Session
	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{Skip: true}))
	a.Watch(func(b plug.Session) { built = append(built, b) })
	k := w.talkTo(a, agent.Open{})
	before := looks(t, w.work)
	out, err := built[0].Reach.Spawn(t.Context(), agent.Child{Prompt: "Do it.", Key: "k"})
	if err != nil || out.Reason != agent.EndDone {
		t.Fatalf("the child came to %+v, %v", out, err)
	}
	const all = "added child.txt +1 -0 command child\ndeleted gone.txt +0 -1 command child\nadded parent.txt +2 -0 child\n"
	for _, id := range []string{k.Info.ID, out.Session} {
		want := all
		if id != k.Info.ID {
			want = strings.ReplaceAll(all, " child\n", "\n")
		}
		if got := listed(k.diff(query.Diff{Session: id})); got != want {
			t.Errorf("the changes of %s are\n%swant\n%s", id, got, want)
		}
	}
	if dirs, _ := os.ReadDir(filepath.Join(w.home, "dure", "checkpoints")); len(dirs) != 1 {
		t.Errorf("there are %d stores", len(dirs))
	}
	k.send(agent.Rewind{To: 1, Files: true})
	if done := body[agent.FilesRewound](k); done.Files != 3 || looks(t, w.work) != before {
		t.Errorf("%+v, the workspace has\n%s\nwant\n%s", done, looks(t, w.work), before)
	}
}
