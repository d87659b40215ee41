package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/replay"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/safety/workspace"
	"dure/internal/state/archive"
	"dure/internal/state/checkpoint/undo"
)

// verifyReplay executes a session again from its log. What is stored now is read; the
// session may go on.
func (a *App) verifyReplay(ctx context.Context, id string) (agent.ReplayReport, error) {
	snaps, err := a.store.Snapshots(ctx, id)
	if err != nil {
		return agent.ReplayReport{Session: id}, archive.Missing(id, err)
	}
	again := redecider{app: a}
	return replay.Verify(ctx, replay.Config{
		Session: id, Events: a.events(ctx, id), Blob: a.blobOf(id), Decide: again.decide, Snapshots: snaps,
	})
}

// events are those of a session, from the beginning; of one that is not there, why.
func (a *App) events(ctx context.Context, id string) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for e, err := range a.store.Read(ctx, id, 0) {
			if !yield(e, archive.Missing(id, err)) {
				return
			}
		}
	}
}

// blobOf returns what opens the blobs of a session.
func (a *App) blobOf(id string) func(context.Context, string) (io.ReadCloser, error) {
	return func(ctx context.Context, sha string) (io.ReadCloser, error) { return a.store.Blob(ctx, id, sha) }
}

// A redecider makes the decisions of a log again. It keeps the policy from one to the
// next as long as folder and grants are the same.
type redecider struct {
	app     *App
	pol     *policy.Policy
	err     error
	workdir string
	granted []string
}

func (d *redecider) decide(ctx context.Context, r agent.DecisionRecord, granted []string) (replay.Second, error) {
	if d.pol == nil && d.err == nil || r.Workdir != d.workdir || !slices.Equal(granted, d.granted) {
		d.workdir, d.granted = r.Workdir, slices.Clone(granted)
		d.pol, d.err = d.app.policyWith(r, granted)
	}
	if d.err != nil { // settings that cannot be read now say nothing about then
		return replay.Second{Lost: d.err.Error()}, ctx.Err()
	}
	flip, err := d.pol.Again(r.CallDecided)
	if err != nil {
		return replay.Second{Lost: err.Error()}, ctx.Err()
	}
	s := replay.Second{Was: flip.Was, Now: flip.Now}
	if b := flip.Now.Basis; s.Was != s.Now.Verdict && (b == nil || b.Policy != r.Decision.Basis.Policy) {
		s.Lost = "the rules are others now"
	}
	return s, ctx.Err()
}

// sessionAt returns how a session stood at an event of it.
func (a *App) sessionAt(ctx context.Context, q query.SessionAt) (agent.SessionStand, error) {
	stand, ok, err := replay.At(ctx, replay.Config{Session: q.Session, Events: a.events(ctx, q.Session)}, q.Seq)
	if err == nil && !ok {
		seq, head := fmt.Sprint(q.Seq), fmt.Sprint(stand.Head)
		err = &agent.Problem{
			Code: agent.ProblemEvent, Message: fmt.Sprintf("%s has no event %s to go back to; its newest is %s", q.Session, seq, head),
			Fix:  "see its events with: dure show " + q.Session,
			Args: map[string]string{"session": q.Session, "seq": seq, "head": head},
		}
	}
	if err != nil {
		return stand, err
	}
	return guard.MaskValue(stand)
}

// ExportFiles writes the files of a session as they were after an event into a folder
// that does not exist yet, and returns the workspace in it.
func (a *App) ExportFiles(ctx context.Context, session string, seq int64, dir string) (string, error) {
	if _, err := a.open(); err != nil {
		return "", err
	}
	root, found := dir, false
	err := a.undo.Look(ctx, session, false, func(g undo.Target) error {
		id := g.SnapshotAt(seq)
		if found = id != ""; !found {
			return nil
		}
		if err := g.Store.Export(ctx, id, dir); err != nil {
			return err
		}
		if sub := filepath.Join(dir, filepath.Base(g.Root)); len(a.cfg.AddDirs) > 0 && isDir(sub) {
			root = sub // each root has a folder of its own
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return "", workspace.Problem(dir, err)
	case err == nil && !found:
		return "", &agent.Problem{
			Code: agent.ProblemUndo, Message: "there is no snapshot of the files of session " + session,
			Fix: "go on over the files as they are: --files keep", Args: map[string]string{"session": session},
		}
	}
	return root, err
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
