//go:build unix

package app_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
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

// rewindFork is the fork of the session of a run with rewinds.
const rewindFork = "01900000-0000-7000-8000-000000000002"

// newRewindRun is a session whose prompts each write a file of their own.
func newRewindRun(dir string) (*crashRun, error) {
	r, err := newModelRun(dir, func(req script.Request) script.Reply {
		if name, ok := strings.CutPrefix(strings.TrimSpace(req.Last), "write "); ok {
			long := strings.Repeat("It is as it should be. ", 60)
			return script.Reply{Text: long, Calls: []script.Call{numbered("w"+name, "Write", fields{"file_path": name, "content": name})}}
		}
		return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
	})
	if err == nil {
		r.rewinds = true
	}
	return r, err
}

// nextInRewinds is what is to be done next, as the log tells: each thing once.
func nextInRewinds(events []agent.Event) agent.Command {
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

// followRewinds does what is left to do each time the session rests, and forks it
// where it was shortened.
func (b *boundaries) followRewinds(ctx context.Context, c client.Client, s *client.Session) error {
	state := transcript.New()
	var events []agent.Event
	return b.each(ctx, s, func(e agent.Event) (over bool, err error) {
		events = append(events, e)
		if state.Apply(e); e.Seq < s.Info.Head {
			return false, nil
		}
		switch e.Body.(type) {
		case agent.TurnEnded, agent.ContextCompacted, agent.ContextRestored, agent.ConversationRewound, agent.SettingsChanged, agent.ChangesAccepted:
		default:
			if e.Seq > s.Info.Head && !isRejection(e) {
				return false, nil
			}
		}
		next := nextInRewinds(events)
		if state.Turn.Open || state.Unread || state.Waits(true) {
			if e.Seq > s.Info.Head {
				return false, nil
			}
			next = agent.Continue{}
		}
		if next == nil {
			return true, b.forkRewinds(ctx, c, events)
		}
		return false, send(ctx, s, next)
	})
}

// forkRewinds opens the fork, or makes it, and has it answer a prompt.
func (b *boundaries) forkRewinds(ctx context.Context, c client.Client, events []agent.Event) error {
	f, err := c.Open(ctx, agent.Open{Session: rewindFork})
	if p := agent.ProblemOf(err); p != nil && p.Code == agent.ProblemMissing {
		var at int64
		for _, e := range events {
			if _, ok := e.Body.(agent.ContextCompacted); ok {
				at = e.Seq
			}
		}
		f, err = c.Open(ctx, agent.Open{New: rewindFork, Fork: crashID, At: at})
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

// checkRewinds looks at both logs, what they come to, and the files.
func (r *crashRun) checkRewinds(ctx context.Context) (v verdict, err error) {
	a, err := app.New(options(r.work(), r.home(), r.model.URL(), app.Flags{}))
	if err != nil {
		return v, err
	}
	defer a.Close()
	c := a.Client()
	left := 0 // files of which nobody saw who wrote them: the program died before it could look
	for id, want := range map[string]struct{ compactions, turns int }{crashID: {0, 6}, rewindFork: {1, 4}} {
		events, err := logged(ctx, c, id)
		if err != nil {
			return v, err
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
			r.checkKept(&v, events, "p1", "p2", "p3", "p4", "p5", "p6")
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

// TestCrashWithRewinds kills a session that is shortened, made whole again, put back
// with its files, reviewed, and forked: at every boundary, or at some in the short form. It goes
// on from there and comes to the same end.
func TestCrashWithRewinds(t *testing.T) {
	crashCase{
		start: func(dir string, _ int) (*crashRun, error) { return newRewindRun(dir) },
		check: (*crashRun).checkRewinds,
	}.run(t, 100)
}
