// Package removal deletes sessions, with their children, snapshots and mirrors, and finds those
// that are old. It starts no goroutines.
package removal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/state/archive"
	"dure/internal/state/archive/mirror"
	"dure/internal/state/journal"
)

// Store is where sessions are deleted.
type Store interface {
	archive.Logs

	// Discard takes the log of a session away, and Sweep removes what is left of those that
	// are gone; beside is called before the last of it is removed.
	Discard(ctx context.Context, id string) error
	Sweep(ctx context.Context, beside func(id string) error) (int, error)
}

// Config says what is deleted, and when.
type Config struct {
	Store       func() Store
	Checkpoints func(id string) string // where the snapshots of a session are kept
	Mirrors     string                 // the folder with the mirrors of sessions

	Days  int    // after which a session is old; 0 = none ever is
	Auto  bool   // old sessions are deleted daily
	Stamp string // the file that notes the last look; "" = nobody looks daily

	List   func(context.Context, agent.ListSessions) (agent.SessionList, error)
	Logger *slog.Logger
}

// Extension deletes sessions.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(cfg Config) *Extension { return &Extension{cfg: cfg} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "removal" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{
		plug.Answers(x.remove), plug.Answers(x.old),
		plug.Answers(func(ctx context.Context, _ query.SweepSessions) (int, error) {
			return x.cfg.Store().Sweep(ctx, x.forgetFiles)
		}),
	}
}

// remove deletes a session, and the children that served calls of it before
// it. What they held is removed once all of them are gone.
func (x *Extension) remove(ctx context.Context, q query.RemoveSession) (query.RemovedSession, error) {
	gone := query.RemovedSession{Session: q.Session}
	metas, err := archive.All(ctx, x.cfg.Store())
	if err != nil {
		return gone, err
	}
	m, ok := metas[q.Session]
	if !ok {
		// It may have been cut short when the log was gone and the mirror was not.
		if err := mirror.Remove(x.cfg.Mirrors, q.Session); err != nil {
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
		gone.Bytes += metas[id].Bytes + folderSize(x.cfg.Checkpoints(id))
	}
	for _, id := range family {
		if err := x.discard(ctx, id); err != nil {
			return gone, err
		}
	}
	gone.Children = family[:len(family)-1]
	_, err = x.cfg.Store().Sweep(ctx, x.forgetFiles)
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

func (x *Extension) discard(ctx context.Context, id string) error {
	err := x.cfg.Store().Discard(ctx, id)
	return archive.Owned(err)
}

// forgetFiles removes what is kept of the files of a session that is gone, and its mirror.
func (x *Extension) forgetFiles(id string) error {
	return errors.Join(os.RemoveAll(x.cfg.Checkpoints(id)), mirror.Remove(x.cfg.Mirrors, id))
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

// old finds the sessions that are old. A daily look that goes wrong is logged: nothing depends
// on it.
func (x *Extension) old(ctx context.Context, q query.OldSessions) (query.OldReport, error) {
	if !q.Daily {
		return x.find(ctx)
	}
	r, err := x.daily(ctx)
	if err != nil {
		x.cfg.Logger.Warn("looking for old sessions", "error", err)
	}
	return r, nil
}

// find returns the sessions that retention is about: unchanged for so many days, and
// neither pinned nor tagged nor named by a person, with no turn open. One that was
// imported has changed then, too. Children go with their parents.
func (x *Extension) find(ctx context.Context) (query.OldReport, error) {
	r := query.OldReport{Days: x.cfg.Days, Sessions: []agent.SessionInfo{}}
	if r.Days == 0 {
		return r, nil
	}
	before := time.Now().AddDate(0, 0, -r.Days)
	list, err := x.cfg.List(ctx, agent.ListSessions{Archived: true, Before: before})
	for _, s := range list.Sessions {
		if isOld(s, before) {
			r.Sessions = append(r.Sessions, s)
		}
	}
	return r, err
}

func isOld(s agent.SessionInfo, before time.Time) bool {
	changed, err := time.Parse(time.RFC3339Nano, s.Updated)
	if s.Origin != nil && s.Origin.At.After(changed) {
		changed = s.Origin.At // here it is as old as its import
	}
	byHand := s.Pinned || s.Named || slices.ContainsFunc(s.Tags, func(t string) bool { return t != "forked" })
	return err == nil && changed.Before(before) && !byHand && !s.IsChild() && (s.Status == "idle" || s.Status == "interrupted")
}

// daily looks for old sessions if nobody has for a day, and deletes them if the user's
// settings say so.
func (x *Extension) daily(ctx context.Context) (query.OldReport, error) {
	none := query.OldReport{Sessions: []agent.SessionInfo{}}
	if info, err := os.Stat(x.cfg.Stamp); x.cfg.Days == 0 || x.cfg.Stamp == "" || err == nil && time.Since(info.ModTime()) < 24*time.Hour {
		return none, nil
	}
	r, err := x.find(ctx)
	if err == nil {
		err = os.WriteFile(x.cfg.Stamp, nil, 0o600)
	}
	if err == nil {
		now := time.Now()
		err = os.Chtimes(x.cfg.Stamp, now, now)
	}
	if err != nil {
		return none, err
	}
	if !x.cfg.Auto {
		return r, nil
	}
	old := r.Sessions
	r.Sessions = none.Sessions
	for _, s := range old {
		if _, err := x.remove(ctx, query.RemoveSession{Session: s.ID}); err != nil {
			x.cfg.Logger.Warn("deleting an old session", "session", s.ID, "error", err)
			continue
		}
		r.Deleted++
	}
	return r, nil
}

// Forget removes what is there of a session that has not come about, if anything is.
func (x *Extension) Forget(ctx context.Context, id string) error {
	err := x.cfg.Store().Discard(ctx, id)
	if errors.Is(err, journal.ErrMissing) {
		return nil
	}
	if err == nil {
		_, err = x.cfg.Store().Sweep(ctx, func(gone string) error {
			if gone == id { // a file of that name is what it was to be made of
				return os.RemoveAll(x.cfg.Checkpoints(gone))
			}
			return x.forgetFiles(gone)
		})
	}
	return err
}
