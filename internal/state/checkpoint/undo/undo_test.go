package undo_test

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/state/checkpoint/undo"
)

// rig is a session with snapshots, and its log.
type rig struct {
	plug.Log
	t         *testing.T
	root, dir string // of the workspace, and of the snapshots
	seq       int64
	events    []agent.Event
	points    plug.Points
	calls     int
}

func newRig(t *testing.T, c undo.Config, unreadable bool) *rig {
	t.Helper()
	r := &rig{t: t, root: t.TempDir(), dir: filepath.Join(t.TempDir(), "checkpoints")}
	if unreadable {
		if err := os.WriteFile(r.dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.Dir, c.NoSync, c.Logger = func(id string) string { return filepath.Join(r.dir, id) }, true, slog.New(slog.DiscardHandler)
	c.Tree, c.Elsewhere = func(string) bool { return false }, func(string) bool { return false }
	s := &plug.Session{SessionOpened: agent.SessionOpened{Workdir: r.root}, ID: "s1", Root: r.root, Log: r, Reach: agent.Reach{
		Outcome: func(string) (agent.Result, bool) { return agent.Result{}, false },
	}}
	var err error
	if r.points, err = undo.New(c).Attach(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if r.points.Close != nil {
		t.Cleanup(r.points.Close)
	}
	return r
}

// Record adds to the log.
func (r *rig) Record(list ...agent.Body) error {
	for _, b := range list {
		r.seq++
		r.events = append(r.events, agent.Event{Seq: r.seq, Body: b})
	}
	return nil
}

// Events reads the log.
func (r *rig) Events(context.Context, int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for _, e := range slices.Clone(r.events) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// recorded are the events of a type.
func recorded[B agent.Body](r *rig) (all []B) {
	for _, e := range r.events {
		if b, ok := e.Body.(B); ok {
			all = append(all, b)
		}
	}
	return all
}

// call makes a call that touches something, and has the files changed by do.
func (r *rig) call(class agent.Class, e agent.Effects, do func() error) {
	r.t.Helper()
	r.calls++
	c := agent.Call{ID: "c" + string(rune('0'+r.calls)), Tool: "tool"}
	if err := r.Record(agent.CallStarted{ID: c.ID, Class: class}); err != nil {
		r.t.Fatal(err)
	}
	run := func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error) {
		return agent.OK("done"), do()
	}
	for _, w := range slices.Backward(r.points.Wrap) {
		run = w(nil, run)
	}
	ctx := agent.WithCallEnv(r.t.Context(), agent.CallEnv{Class: class, Effects: e})
	if _, err := run(ctx, agent.ToolContext{TurnID: c.ID}, c); err != nil { // each in a turn of its own
		r.t.Fatal(err)
	}
}

// write writes a file, with what names it.
func (r *rig) write(name, text string) (agent.Effects, func() error) {
	path := filepath.Join(r.root, filepath.FromSlash(name))
	return agent.Effects{Writes: []string{path}}, func() error {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o600)
	}
}

// now is what the workspace holds, by path.
func (r *rig) now() string {
	r.t.Helper()
	var all []string
	err := filepath.WalkDir(r.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(r.root, path)
		all = append(all, filepath.ToSlash(rel)+"="+string(data))
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// rewind puts files back to how they were after an event.
func (r *rig) rewind(to int64, force ...string) agent.FilesRewound {
	r.t.Helper()
	done, err := r.points.Undo.Rewind(r.t.Context(), agent.Rewind{To: to, Files: true, Force: force})
	if err == nil {
		err = r.Record(done)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return done
}

// What calls have done to files is put back, whether they name what they write or not, and again
// brought forward. What the user has changed since stays, but by force.
func TestRewind(t *testing.T) {
	t.Parallel()
	r := newRig(t, undo.Config{}, false)
	for _, name := range []string{"old", "gone"} {
		if _, do := r.write(name, name); do() != nil {
			t.Fatal("writing " + name)
		}
	}
	before, start := r.now(), r.seq
	e, do := r.write("a", "one")
	r.call(agent.Checkable, e, do)
	r.call(agent.Unsafe, agent.Effects{Unreadable: "it is a command"}, func() error {
		_, b := r.write("a", "two")
		return errors.Join(b(), os.Remove(filepath.Join(r.root, "gone")), os.Rename(filepath.Join(r.root, "old"), filepath.Join(r.root, "new")))
	})
	middle, between := r.now(), r.seq
	e, do = r.write("d/c", "three")
	r.call(agent.Checkable, e, do)
	if middle != "a=two new=old" || r.now() != "a=two d/c=three new=old" {
		t.Fatalf("%s; %s", middle, r.now())
	}
	for _, step := range []struct {
		to   int64
		want string
	}{{between, middle}, {start, before}, {between, middle}} {
		if done := r.rewind(step.to); r.now() != step.want || done.Leaves != 0 {
			t.Errorf("%d: %s, want %s; %+v", step.to, r.now(), step.want, done)
		}
	}
	if _, do := r.write("a", "mine"); do() != nil {
		t.Fatal("writing a")
	}
	if done := r.rewind(start); done.Leaves != 1 || len(done.Left) != 1 || done.Left[0].Path != "a" || r.now() != "a=mine "+before {
		t.Errorf("the user's change: %+v, %s", done, r.now())
	}
	if done := r.rewind(start, "a"); done.Leaves != 0 || r.now() != before {
		t.Errorf("by force: %+v, %s", done, r.now())
	}
}

// Calls that change nothing cost nothing, and without checkpoints nothing is kept.
func TestNothingIsKept(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]bool{"only read": false, "switched off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, undo.Config{Off: off}, false)
			e, do := r.write("x", "x")
			if !off {
				e, do = agent.Effects{Reads: e.Writes}, func() error { return nil }
				r.call(agent.Read, agent.Effects{Unreadable: "it only reads all the same"}, do)
			}
			r.call(agent.Unsafe, e, do)
			if taken := recorded[agent.CheckpointTaken](r); len(taken) != 0 {
				t.Errorf("the log has %+v", taken)
			}
			if _, err := os.Stat(r.dir); err == nil {
				t.Error("a store was made")
			}
			if (r.points.Undo.Rewind == nil) != off {
				t.Error("files can be put back only where they are kept")
			}
		})
	}
}

// Whoever cannot have files put back hears of it, once, in the session.
func TestNoUndoIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, undo.Config{}, true)
	for _, name := range []string{"a", "b"} {
		e, do := r.write(name, "one")
		r.call(agent.Checkable, e, do)
	}
	if notes := recorded[agent.Note](r); r.now() != "a=one b=one" || len(notes) != 1 || !strings.Contains(notes[0].Text, "cannot be taken back") {
		t.Errorf("%s, and the notes are %+v", r.now(), notes)
	}
}
