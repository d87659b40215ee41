//go:build unix

package app_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/safety/workspace"
	"dure/internal/state/transcript"
)

// historyFork is the fork of the session of a history run.
const historyFork = "01900000-0000-7000-8000-000000000002"

// newHistoryRun is a session whose prompts each write a file of their own.
func newHistoryRun(dir string) (*crashRun, error) {
	r := &crashRun{dir: dir, story: &crashScript{}, printed: map[int64]string{}, acked: map[string]bool{}}
	for _, d := range []string{r.work(), r.home()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	r.model, err = script.NewServer(script.Script{}, script.Options{Func: func(req script.Request) script.Reply {
		if name, ok := strings.CutPrefix(strings.TrimSpace(req.Last), "write "); ok {
			long := strings.Repeat("It is as it should be. ", 60)
			return script.Reply{Text: long, Calls: []script.Call{{ID: "w" + name, Tool: "Write", Input: input(fields{"file_path": name, "content": name})}}}
		}
		return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
	}})
	return r, err
}

// nextInHistory is what is to be done next, as the log tells: each thing once.
func nextInHistory(events []agent.Event) agent.Command {
	inputs := map[string]bool{}
	var first int64                // the end of the first turn
	var kept agent.SettingsChanged // what people have said of the session
	for _, e := range events {
		switch b := e.Body.(type) {
		case agent.InputAdded:
			inputs[b.Input] = true
		case agent.SettingsChanged:
			kept.Title = cmp.Or(b.Title, kept.Title)
			kept.Tags, kept.Pinned, kept.Archived = cmp.Or(b.Tags, kept.Tags), cmp.Or(b.Pinned, kept.Pinned), cmp.Or(b.Archived, kept.Archived)
		case agent.TurnEnded:
			if first == 0 {
				first = e.Seq
			}
		}
	}
	yes := true
	for _, step := range []struct {
		done bool
		next agent.Command
	}{
		{inputs["p1"], agent.Prompt{ID: "p1", Text: "write p1"}},
		{inputs["p2"], agent.Prompt{ID: "p2", Text: "write p2"}},
		{inputs["p3"], agent.Prompt{ID: "p3", Text: "write p3"}},
		{kept.Title == "A history", agent.Change{Title: "A history"}},
		{kept.Tags != nil, agent.Change{Tags: &[]string{"a", "b"}}},
		{len(all[agent.ContextCompacted](events)) > 0, agent.Compact{}},
		{kept.Pinned != nil, agent.Change{Pinned: &yes}},
		{inputs["p4"], agent.Prompt{ID: "p4", Text: "write p4"}},
		{len(all[agent.ContextRestored](events)) > 0, agent.Restore{}},
		{len(all[agent.ConversationRewound](events)) > 0, agent.Rewind{To: first, Conversation: true, Files: true}},
		{inputs["p5"], agent.Prompt{ID: "p5", Text: "write p5"}},
		{inputs["p6"], agent.Prompt{ID: "p6", Text: "write p6"}},
		{slices.ContainsFunc(events, isRejection), agent.Reject{Files: []agent.Pick{{Path: "p6"}}}},
		{len(all[agent.ChangesAccepted](events)) > 0, agent.Accept{All: true}},
		{kept.Archived != nil, agent.Change{Archived: &yes}},
	} {
		if !step.done {
			return step.next
		}
	}
	return nil
}

// isRejection reports whether an event puts files back that the user did not go back
// with.
func isRejection(e agent.Event) bool {
	b, ok := e.Body.(agent.FilesRewound)
	return ok && b.Seq == 0
}

// followHistory does what is left to do each time the session rests, and forks it
// where it was shortened.
func (b *boundaries) followHistory(ctx context.Context, c client.Client, s *client.Session) error {
	state := transcript.New()
	var events []agent.Event
	for e, err := range s.Events(ctx, 0) {
		if err != nil {
			return err
		}
		if e.Live() {
			continue
		}
		fmt.Printf("e %d %s %s\n", e.Seq, e.ID, e.Kind())
		events = append(events, e)
		if state.Apply(e); e.Seq < s.Info.Head {
			continue
		}
		switch e.Body.(type) {
		case agent.TurnEnded, agent.ContextCompacted, agent.ContextRestored, agent.ConversationRewound, agent.SettingsChanged, agent.ChangesAccepted:
		default:
			if e.Seq > s.Info.Head && !isRejection(e) {
				continue
			}
		}
		next := nextInHistory(events)
		if state.Turn.Open || state.Unread || state.Waits(true) {
			if e.Seq > s.Info.Head {
				continue
			}
			next = agent.Continue{}
		}
		if next == nil {
			return b.forkHistory(ctx, c, events)
		}
		if err := s.Send(ctx, next); err != nil {
			return err
		}
	}
	return errors.New("the events ended too early")
}

// forkHistory opens the fork, or makes it, and has it answer a prompt.
func (b *boundaries) forkHistory(ctx context.Context, c client.Client, events []agent.Event) error {
	f, err := c.Open(ctx, agent.Open{Session: historyFork})
	if p := agent.ProblemOf(err); p != nil && p.Code == agent.ProblemMissing {
		var at int64
		for _, e := range events {
			if _, ok := e.Body.(agent.ContextCompacted); ok {
				at = e.Seq
			}
		}
		f, err = c.Open(ctx, agent.Open{New: historyFork, Fork: crashID, At: at})
	}
	if err != nil {
		return err
	}
	state := transcript.New()
	for e, err := range f.Events(ctx, 0) {
		if err != nil {
			return err
		}
		if e.Live() {
			continue
		}
		state.Apply(e)
		done := state.Inputs["f1"] && !state.Turn.Open && !state.Unread
		switch {
		case e.Seq >= f.Info.Head && done:
			return nil
		case e.Seq == f.Info.Head && state.Inputs["f1"]:
			err = f.Send(ctx, agent.Continue{})
		case e.Seq == f.Info.Head:
			err = f.Send(ctx, agent.Prompt{ID: "f1", Text: "write f1"})
		}
		if err != nil {
			return err
		}
	}
	return errors.New("the events of the fork ended too early")
}

// checkHistory looks at both logs, what they come to, and the files.
func (r *crashRun) checkHistory(ctx context.Context) (v verdict, err error) {
	a, err := app.New(options(r.work(), r.home(), r.model.URL(), app.Flags{}))
	if err != nil {
		return v, err
	}
	defer a.Close()
	c := a.Client()
	left := 0 // files of which nobody saw who wrote them: the program died before it could look
	for id, want := range map[string]struct{ compactions, turns int }{crashID: {0, 6}, historyFork: {1, 4}} {
		var events []agent.Event
		for e, err := range c.Attach(id).Events(ctx, 0) {
			if err != nil {
				return v, err
			}
			events = append(events, e)
		}
		state := transcript.New()
		state.Reread(func() iter.Seq2[agent.Event, error] {
			return func(yield func(agent.Event, error) bool) {
				for _, e := range events {
					if !yield(e, nil) {
						return
					}
				}
			}
		})
		for _, e := range events {
			state.Apply(e)
		}
		v.events += len(events)
		v.problems = append(v.problems, verified(ctx, c, id)...)
		if id == crashID {
			v.problems = append(v.problems, numbering(events)...)
			for seq, was := range r.printed {
				if seq > int64(len(events)) || events[seq-1].ID+" "+events[seq-1].Kind() != was {
					v.fail("event %d (%s) is lost", seq, was)
				}
			}
			if len(state.Messages) != 12 {
				v.fail("the conversation has %d messages", len(state.Messages))
			}
			if info := state.Info(); info.Title != "A history" || !slices.Equal(info.Tags, []string{"a", "b"}) || !info.Pinned || !info.Archived {
				v.fail("it is kept as %q, %q, pinned %v, archived %v", info.Title, info.Tags, info.Pinned, info.Archived)
			}
		}
		for _, b := range all[agent.FilesRewound](events) {
			left += b.Leaves
		}
		if state.Err() != nil || len(state.Compactions) != want.compactions || state.Turns != want.turns || state.Turn.Open {
			v.fail("%s: %d compactions, %d turns, %v", id, len(state.Compactions), state.Turns, state.Err())
		}
	}
	v.problems = append(v.problems, refusals(r.model)...)
	var names []string
	entries, err := r.settled()
	for _, e := range entries {
		if !workspace.Leftover(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if got := strings.Join(names, " "); got != "f1 p1 p5" && (left == 0 || len(names) != 3+left) {
		v.fail("the workspace has %q, %d files were left", got, left)
	}
	return v, err
}

// historyRun is one session that dies at a boundary and goes on.
func historyRun(ctx context.Context, dir string, p crashPoint) (v verdict, err error) {
	r, err := newHistoryRun(dir)
	if err != nil {
		return v, err
	}
	defer r.close()
	died, _, err := r.child(childTask{History: true, Die: p.n, Torn: p.torn})
	if err != nil {
		return v, err
	}
	if died {
		if again, _, err := r.child(childTask{History: true}); again || err != nil {
			return v, fmt.Errorf("resuming: died %v, %w", again, err)
		}
	}
	v, err = r.checkHistory(ctx)
	v.died = died
	return v, err
}

// TestCrashWithHistory kills a session that is shortened, made whole again, put back
// with its files, reviewed, and forked: at every boundary, or at some in the short form. It goes
// on from there and comes to the same end.
func TestCrashWithHistory(t *testing.T) {
	r, err := newHistoryRun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, lines, err := r.child(childTask{History: true, List: true})
	if err = errors.Join(err, r.close()); err != nil {
		t.Fatal(err)
	}
	killedAt(t, pointsOf(lines), 40, 2, func(dir string, p crashPoint) (verdict, error) { return historyRun(t.Context(), dir, p) })
}
