package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/state/archive"
	"dure/internal/state/archive/mirror"
	"dure/internal/state/journal"
)

// checkpointsOf is where the snapshots of a session are kept.
func (a *App) checkpointsOf(id string) string { return filepath.Join(a.cfg.Data, "checkpoints", id) }

// archive answers what brings sessions, and takes them away.
func (a *App) archive(ctx context.Context, q agent.Query) (any, error) {
	switch q := q.(type) {
	case query.ImportSessions:
		return a.importSessions(ctx, q)
	case query.RemoveSession:
		return a.removeSession(ctx, q)
	case query.SweepSessions:
		return a.store.Sweep(ctx, a.forgetFiles)
	}
	return nil, fmt.Errorf("query %q: nobody answers it", q.Query())
}

// removeSession deletes a session, and the children that served calls of it before
// it. What they held is removed once all of them are gone.
func (a *App) removeSession(ctx context.Context, q query.RemoveSession) (query.RemovedSession, error) {
	gone := query.RemovedSession{Session: q.Session}
	metas := map[string]journal.Meta{}
	for m, err := range a.store.List(ctx, journal.Query{}) {
		if err != nil {
			return gone, err
		}
		metas[m.ID] = m
	}
	m, ok := metas[q.Session]
	dir, _ := a.projects()
	if !ok {
		// It may have been cut short when the log was gone and the mirror was not.
		if err := mirror.Remove(dir, q.Session); err != nil {
			return gone, err
		}
		return gone, archive.Missing(q.Session, journal.ErrMissing)
	}
	if why := keptFor(m); why != "" && !q.Force {
		return gone, &agent.Problem{
			Code: agent.ProblemKept, Message: fmt.Sprintf("%s is not deleted: %s", m.ID, why), Fix: "delete it all the same with --force",
			Args: map[string]string{"session": m.ID, "why": why},
		}
	}
	gone.Title = m.Title
	family := familyOf(metas, m.ID)
	for _, id := range family {
		gone.Bytes += metas[id].Bytes + folderSize(a.checkpointsOf(id))
	}
	for _, id := range family {
		if err := a.discard(ctx, id); err != nil {
			return gone, err
		}
	}
	gone.Children = family[:len(family)-1]
	_, err := a.store.Sweep(ctx, a.forgetFiles)
	return gone, err
}

// keptFor says why a session should not be deleted.
func keptFor(m journal.Meta) string {
	switch {
	case m.Pinned:
		return "it is pinned"
	case m.Status == "running", m.Status == "waiting":
		return "a turn is open in it"
	}
	return ""
}

// familyOf returns a session behind all the children of it and of those.
func familyOf(metas map[string]journal.Meta, id string) (all []string) {
	all = []string{id}
	for i := 0; i < len(all); i++ {
		for _, m := range metas {
			if m.IsChild() && m.Parent == all[i] && !slices.Contains(all, m.ID) {
				all = append(all, m.ID)
			}
		}
	}
	slices.Reverse(all)
	return all
}

func (a *App) discard(ctx context.Context, id string) error {
	err := a.store.Discard(ctx, id)
	if owned, ok := errors.AsType[*journal.OwnedError](err); ok {
		return ownedProblem(owned, err)
	}
	return err
}

// forgetFiles removes what is kept of the files of a session that is gone, and its mirror.
func (a *App) forgetFiles(id string) error {
	dir, _ := a.projects()
	return errors.Join(os.RemoveAll(a.checkpointsOf(id)), mirror.Remove(dir, id))
}

// folderSize adds up what can be read of a folder, in bytes.
func folderSize(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // what cannot be read counts nothing
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // see above
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}

// OldSessions are those that retention is about: unchanged for so many days, and
// neither pinned nor tagged nor named by a person, with no turn open. One that was
// imported has changed then, too. Children go with their parents. days is 0 when none is ever old.
func (a *App) OldSessions(ctx context.Context) (old []agent.SessionInfo, days int, err error) {
	days = a.cfg.Retention.Days
	if days == 0 {
		return nil, 0, nil
	}
	before := time.Now().AddDate(0, 0, -days)
	list, err := client.Query[agent.SessionList](ctx, a.Client(), agent.ListSessions{Archived: true, Before: before})
	if err != nil {
		return nil, days, err
	}
	for _, s := range list.Sessions {
		if isOld(s, before) {
			old = append(old, s)
		}
	}
	return old, days, nil
}

func isOld(s agent.SessionInfo, before time.Time) bool {
	changed, err := time.Parse(time.RFC3339Nano, s.Updated)
	if s.Origin != nil && s.Origin.At.After(changed) {
		changed = s.Origin.At // here it is as old as its import
	}
	byHand := s.Pinned || s.Named || slices.ContainsFunc(s.Tags, func(t string) bool { return t != "forked" })
	return err == nil && changed.Before(before) && !byHand && !s.IsChild() && (s.Status == "idle" || s.Status == "interrupted")
}

// Overdue is what is said, at most once a day, about sessions that are old.
type Overdue struct {
	Old, Deleted, Days int
}

// Overdue looks for old sessions if nobody has for a day, and deletes them if the
// user's settings say so. What goes wrong is logged: nothing depends on it.
func (a *App) Overdue(ctx context.Context) Overdue {
	stamp := filepath.Join(a.cfg.Data, "retention")
	if info, err := os.Stat(stamp); a.cfg.Retention.Days == 0 || a.opts.Flags.Scratch || err == nil && time.Since(info.ModTime()) < 24*time.Hour {
		return Overdue{}
	}
	old, days, err := a.OldSessions(ctx)
	if err == nil {
		err = os.WriteFile(stamp, nil, 0o600)
	}
	if err == nil {
		now := time.Now()
		err = os.Chtimes(stamp, now, now)
	}
	if err != nil {
		a.opts.Logger.Warn("looking for old sessions", "error", err)
		return Overdue{}
	}
	o := Overdue{Days: days}
	if !a.cfg.Retention.Auto {
		o.Old = len(old)
		return o
	}
	for _, s := range old {
		if _, err := a.removeSession(ctx, query.RemoveSession{Session: s.ID}); err != nil {
			a.opts.Logger.Warn("deleting an old session", "session", s.ID, "error", err)
			continue
		}
		o.Deleted++
	}
	return o
}
