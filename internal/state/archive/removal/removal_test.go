//go:build unix

package removal_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/state/archive/removal"
	"dure/internal/state/journal"
)

// rig is a store of sessions, with a folder of their mirrors and one of their snapshots.
type rig struct {
	*removal.Extension
	t                  *testing.T
	store              *journal.Local
	mirrors, snapshots string
}

func newRig(t *testing.T, c removal.Config) *rig {
	t.Helper()
	dir := t.TempDir()
	store, err := journal.NewLocal(journal.LocalOptions{Dir: filepath.Join(dir, "data"), Durability: journal.DurabilityOS})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{t: t, store: store, mirrors: filepath.Join(dir, "projects"), snapshots: filepath.Join(dir, "snapshots")}
	c.Store, c.Mirrors, c.Logger = func() removal.Store { return store }, r.mirrors, slog.New(slog.DiscardHandler)
	c.Checkpoints = func(id string) string { return filepath.Join(r.snapshots, id) }
	r.Extension = removal.New(c)
	return r
}

// add stores a session, with a mirror and a snapshot.
func (r *rig) add(m journal.Meta) {
	r.t.Helper()
	m.Workdir = "/p"
	if err := r.store.Create(r.t.Context(), m); err != nil {
		r.t.Fatal(err)
	}
	lease, err := r.store.Acquire(r.t.Context(), m.ID, journal.Owner{})
	if err != nil {
		r.t.Fatal(err)
	}
	opened := agent.SessionOpened{Session: m.ID, Parent: m.Parent, Workdir: m.Workdir, Lane: m.Lane}
	if _, err := lease.Append(r.t.Context(), journal.Batch{Events: []agent.Event{{Body: opened}}, Seal: true}); err != nil {
		r.t.Fatal(err)
	}
	if err := lease.Release(r.t.Context(), journal.Done, m); err != nil {
		r.t.Fatal(err)
	}
	r.write(filepath.Join(r.snapshots, m.ID, "one"), "kept")
	r.mirror(m.ID)
}

// mirror writes the mirror of a session.
func (r *rig) mirror(id string) {
	r.t.Helper()
	r.write(filepath.Join(r.mirrors, "-p", id+".jsonl"), `{"type":"user","event":"`+id+`:2"}`+"\n")
}

func (r *rig) write(path, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// left are the sessions that have a log, and the files of mirrors and snapshots.
func (r *rig) left() (sessions, files int) {
	r.t.Helper()
	for _, err := range r.store.List(r.t.Context(), journal.Query{}) {
		if err != nil {
			r.t.Fatal(err)
		}
		sessions++
	}
	for _, dir := range []string{r.mirrors, r.snapshots} {
		found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil {
			r.t.Fatal(err)
		}
		files += len(found)
	}
	return sessions, files
}

// ask asks a query.
func ask[R any](r *rig, q agent.Query) (R, error) {
	r.t.Helper()
	for _, a := range r.Answers() {
		if reflect.TypeOf(a.Query) == reflect.TypeOf(q) {
			got, err := a.Do(r.t.Context(), q)
			return got.(R), err
		}
	}
	r.t.Fatalf("nobody answers %T", q)
	panic("unreachable")
}

const (
	one = "6f1c2a52-0a6e-4c39-9c57-0d7d3f5d3a11"
	two = "6f1c2a52-0a6e-4c39-9c57-0d7d3f5d3a12"
)

func session(id, parent string) journal.Meta {
	return journal.Meta{SessionInfo: agent.SessionInfo{ID: id, Parent: parent}}
}

// A session is deleted with its children, and all that is kept of them; one that is pinned or in
// a turn is only deleted by force.
func TestRemove(t *testing.T) {
	t.Parallel()
	r := newRig(t, removal.Config{})
	for status, m := range map[string]agent.SessionInfo{"pinned": {Pinned: true}, "running": {Status: "running"}, "waiting": {Status: "waiting"}} {
		m.ID = one
		r.add(journal.Meta{SessionInfo: m})
		if _, err := ask[query.RemovedSession](r, query.RemoveSession{Session: one}); agent.ProblemOf(err) == nil || agent.ProblemOf(err).Code != agent.ProblemKept {
			t.Errorf("%s: %v", status, err)
		}
		if _, err := ask[query.RemovedSession](r, query.RemoveSession{Session: one, Force: true}); err != nil {
			t.Errorf("%s: %v", status, err)
		}
		if sessions, files := r.left(); sessions+files > 0 {
			t.Errorf("%s: %d sessions and %d files are left", status, sessions, files)
		}
	}
	r.add(session(one, ""))
	child := session(two, one)
	child.Lane = "agent"
	r.add(child)
	got, err := ask[query.RemovedSession](r, query.RemoveSession{Session: one})
	if err != nil || got.Session != one || !slices.Equal(got.Children, []string{two}) || got.Bytes == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if sessions, files := r.left(); sessions+files > 0 {
		t.Errorf("%d sessions and %d files are left", sessions, files)
	}
}

// A session whose log was gone when its deletion was cut short leaves no mirror: who asks again
// hears that there is none, and then there is none of that either.
func TestMirrorGoesAfterItsSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, removal.Config{})
	r.add(session(one, ""))
	if _, err := ask[query.RemovedSession](r, query.RemoveSession{Session: one}); err != nil {
		t.Fatal(err)
	}
	r.mirror(one)
	_, err := ask[query.RemovedSession](r, query.RemoveSession{Session: one})
	if p := agent.ProblemOf(err); p == nil || p.Code != agent.ProblemMissing {
		t.Errorf("%+v", p)
	}
	if sessions, files := r.left(); sessions+files > 0 {
		t.Errorf("%d sessions and %d files are left", sessions, files)
	}
}

// A mirror that cannot be removed with its session is tried again with what is swept next.
func TestMirrorIsSweptLater(t *testing.T) {
	t.Parallel()
	r := newRig(t, removal.Config{})
	r.add(session(one, ""))
	if err := os.Rename(r.mirrors, r.mirrors+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(r.mirrors, r.mirrors); err != nil { // which leads nowhere
		t.Fatal(err)
	}
	if _, err := ask[query.RemovedSession](r, query.RemoveSession{Session: one}); err == nil {
		t.Error("nobody is told")
	}
	if err := os.Remove(r.mirrors); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.mirrors+".away", r.mirrors); err != nil {
		t.Fatal(err)
	}
	if n, err := ask[int](r, query.SweepSessions{}); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if sessions, files := r.left(); sessions+files > 0 {
		t.Errorf("%d sessions and %d files are left", sessions, files)
	}
}

// Sessions that nobody has touched for long are old, but for those that a person has kept.
func TestOldSessions(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	long, short := now.AddDate(0, 0, -40).Format(time.RFC3339Nano), now.AddDate(0, 0, -20).Format(time.RFC3339Nano)
	all := []agent.SessionInfo{
		{ID: "old", Status: "idle", Updated: long},
		{ID: "interrupted", Status: "interrupted", Updated: long},
		{ID: "forked", Status: "idle", Updated: long, Tags: []string{"forked"}},
		{ID: "changed", Status: "idle", Updated: short},
		{ID: "imported", Status: "idle", Updated: long, Origin: &agent.Origin{At: now}},
		{ID: "pinned", Status: "idle", Updated: long, Pinned: true},
		{ID: "named", Status: "idle", Updated: long, Named: true},
		{ID: "tagged", Status: "idle", Updated: long, Tags: []string{"forked", "mine"}},
		{ID: "running", Status: "running", Updated: long},
		{ID: "no time", Status: "idle"},
	}
	r := newRig(t, removal.Config{Days: 30, List: func(_ context.Context, q agent.ListSessions) (agent.SessionList, error) {
		if !q.Archived || now.Sub(q.Before) < 29*24*time.Hour {
			t.Errorf("%+v", q)
		}
		return agent.SessionList{Sessions: all}, nil
	}})
	got, err := ask[query.OldReport](r, query.OldSessions{})
	var names []string
	for _, s := range got.Sessions {
		names = append(names, s.ID)
	}
	if err != nil || got.Days != 30 || !slices.Equal(names, []string{"old", "interrupted", "forked"}) {
		t.Errorf("%v: %v", names, err)
	}
}

// Old sessions are looked for once a day, and deleted if the settings say so.
func TestOldSessionsAreLookedForDaily(t *testing.T) {
	t.Parallel()
	for _, auto := range []bool{false, true} {
		looks := 0
		stamp := filepath.Join(t.TempDir(), "stamp")
		r := newRig(t, removal.Config{Days: 1, Auto: auto, Stamp: stamp, List: func(context.Context, agent.ListSessions) (agent.SessionList, error) {
			looks++
			updated := time.Now().AddDate(0, 0, -2).Format(time.RFC3339Nano)
			return agent.SessionList{Sessions: []agent.SessionInfo{{ID: one, Status: "idle", Updated: updated}}}, nil
		}})
		r.add(session(one, ""))
		for n := range 2 {
			got, err := ask[query.OldReport](r, query.OldSessions{Daily: true})
			if err != nil || auto && len(got.Sessions) > 0 || len(got.Sessions)+got.Deleted != 1-n || looks != 1 {
				t.Errorf("auto %v, %d: %+v, %v; looked %d times", auto, n, got, err, looks)
			}
		}
		if sessions, _ := r.left(); (sessions == 0) != auto {
			t.Errorf("auto %v: %d sessions are left", auto, sessions)
		}
		before := time.Now().Add(-25 * time.Hour)
		if err := os.Chtimes(stamp, before, before); err != nil {
			t.Fatal(err)
		}
		if _, err := ask[query.OldReport](r, query.OldSessions{Daily: true}); err != nil || looks != 2 {
			t.Errorf("auto %v: looked %d times, %v", auto, looks, err)
		}
	}
}
