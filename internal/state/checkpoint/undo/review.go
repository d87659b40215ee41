package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/state/checkpoint"
)

// history is what the log of a session says about its files. What it has taken over
// from another session that it was forked from belongs to that.
type history struct {
	events   []agent.Event
	children []string
}

func read(events iter.Seq2[agent.Event, error]) (t history, err error) {
	for e, err := range events {
		if err != nil {
			return t, fmt.Errorf("reading the log: %w", err)
		}
		switch b := e.Body.(type) {
		case agent.SessionOpened:
			if b.ForkOf != "" {
				t = history{}
			}
		case agent.ChildOpened:
			t.children = append(t.children, b.Child)
		case agent.CallStarted, agent.CheckpointTaken, agent.FilesRewound, agent.ChangesAccepted:
			t.events = append(t.events, e)
		}
	}
	return t, nil
}

// SnapshotAt returns the snapshot of how files were after an event: the newest of
// before it, or the one that was taken in front of the first call behind it that may
// have changed something. "" when nothing has ever been changed.
func (t history) SnapshotAt(seq int64) (id checkpoint.ID) {
	first, calls := "", 0 // of those behind the event that are no reading
	for _, e := range t.events {
		switch c := e.Body.(type) {
		case agent.CallStarted:
			if e.Seq > seq && c.Class != agent.Read {
				first = cmp.Or(first, c.ID)
				calls++
			}
		case agent.CheckpointTaken:
			inFront := c.When == "before" && (c.Call == first && c.Child == "" || c.Child != "" && calls <= 1)
			if e.Seq <= seq || inFront || id == "" {
				id = checkpoint.ID(c.ID)
			}
			if e.Seq > seq {
				return id
			}
		case agent.FilesRewound:
			if e.Seq > seq {
				return id
			}
			id = checkpoint.ID(c.After)
		}
	}
	return id
}

// marks are what was said about changes, with paths below root.
func (t history) marks(root string, all bool) (marks []checkpoint.Mark) {
	for _, e := range t.events {
		switch b := e.Body.(type) {
		case agent.ChangesAccepted:
			if !all {
				marks = append(marks, checkpoint.Mark{Kind: checkpoint.Accepted, At: checkpoint.ID(b.At), All: b.All, Picks: picks(root, b.Files)})
			}
		case agent.FilesRewound:
			m := checkpoint.Mark{Kind: checkpoint.Rewound, At: checkpoint.ID(b.After), Since: checkpoint.ID(b.From), To: checkpoint.ID(b.To)}
			if len(b.Rejected) > 0 {
				m = checkpoint.Mark{Kind: checkpoint.Rejected, At: m.At}
				for _, r := range b.Rejected {
					m.Picks = append(m.Picks, picks(root, []agent.Pick{{Path: r.Path, From: r.From, Hunks: r.Hunks}})...)
				}
			}
			marks = append(marks, m)
		}
	}
	return marks
}

func picks(root string, list []agent.Pick) (all []checkpoint.Pick) {
	for _, p := range list {
		pick := checkpoint.Pick{Path: SystemPath(root, p.Path), ID: p.ID, Hunks: p.Hunks}
		if p.From != "" {
			pick.From = SystemPath(root, p.From)
		}
		all = append(all, pick)
	}
	return all
}

// SystemPath returns a path of the wire as one of the system.
func SystemPath(root, path string) string {
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	return filepath.Clean(path)
}

// WirePath returns a path of the system as one of the wire: relative to the workspace
// where it is in it.
func WirePath(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return filepath.ToSlash(path)
}

// theirs tells what other sessions of the family have done from what a child did. It
// is nil for the session that the family is named after: its children work for it.
func (t history) theirs(id, head string) func(checkpoint.Label) bool {
	if id == head {
		return nil
	}
	return func(l checkpoint.Label) bool {
		return l.Session != "" && l.Session != id && !slices.Contains(t.children, l.Session)
	}
}

// review is what there is to see of a session's changes.
func (t history) review(id, head, root string, from, to checkpoint.ID, all bool) checkpoint.Review {
	r := checkpoint.Review{From: from, To: to, Marks: t.marks(root, all)}
	if theirs := t.theirs(id, head); theirs != nil {
		r.Mine = func(l checkpoint.Label) bool { return l.Ours && !theirs(l) }
	}
	return r
}

// opened returns the store and what the log tells, for a command. The mutex is held.
func (k *keeper) opened(ctx context.Context) (*checkpoint.Store, history, error) {
	t, err := read(k.events(ctx, 0))
	if err != nil {
		return nil, t, err
	}
	k.broken = false // what was wrong may have been mended
	store := k.open(ctx)
	if store == nil {
		return nil, t, fmt.Errorf("the snapshots in %s cannot be read: the newest note of the session says why", k.cfg.Dir)
	}
	return store, t, nil
}

// rewind puts files back to how they were after an event of a session.
func (k *keeper) rewind(ctx context.Context, r agent.Rewind) (agent.FilesRewound, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.kept() {
		return agent.FilesRewound{}, nil
	}
	store, t, err := k.opened(ctx)
	if err != nil {
		return agent.FilesRewound{}, err
	}
	id := t.SnapshotAt(r.To)
	if id == "" {
		return agent.FilesRewound{}, nil
	}
	plan, err := store.Plan(ctx, id, t.selection(k.session, k.family.session, k.root, r.Only, r.Force))
	if err != nil {
		return agent.FilesRewound{}, err
	}
	done, err := store.Apply(ctx, plan)
	if err != nil {
		return agent.FilesRewound{}, err
	}
	k.newest = done.After
	return agent.FilesRewound{To: string(id), From: string(done.Before), After: string(done.After), Files: len(done.Done), Leaves: len(done.Left), Left: k.left(done.Left)}, nil
}

func (t history) selection(id, head, root string, only, force []string) checkpoint.Select {
	sel := checkpoint.Select{Theirs: t.theirs(id, head)}
	for _, p := range only {
		sel.Paths = append(sel.Paths, SystemPath(root, p))
	}
	for _, p := range force {
		sel.Force = append(sel.Force, SystemPath(root, p))
	}
	return sel
}

// maxLeft is how many of the files that were left alone are named in the log.
const maxLeft = 50

func (k *keeper) left(items []checkpoint.Item) (all []agent.Left) {
	for _, it := range items[:min(len(items), maxLeft)] {
		all = append(all, agent.Left{Path: WirePath(k.root, it.Path), Code: string(it.Conflict.Code), Why: it.Conflict.Message})
	}
	return all
}

// accept checks what a person accepts.
func (k *keeper) accept(ctx context.Context, c agent.Accept) (done agent.ChangesAccepted, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.kept() {
		return done, k.noChange(errors.New("nothing has been changed"))
	}
	store, t, err := k.opened(ctx)
	if err != nil {
		return done, err
	}
	at := checkpoint.ID(c.At)
	if all := store.List(); at == "" && len(all) > 0 {
		at = all[len(all)-1].ID
	}
	err = store.Pickable(ctx, t.review(k.session, k.family.session, k.root, t.SnapshotAt(0), at, false), picks(k.root, c.Files))
	if err != nil {
		return done, k.noChange(err)
	}
	return agent.ChangesAccepted{At: string(at), All: c.All, Files: c.Files}, nil
}

// reject puts back what a person does not want.
func (k *keeper) reject(ctx context.Context, c agent.Reject) (agent.FilesRewound, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.kept() {
		return agent.FilesRewound{}, k.noChange(errors.New("nothing has been changed"))
	}
	store, t, err := k.opened(ctx)
	if err != nil {
		return agent.FilesRewound{}, err
	}
	rv := t.review(k.session, k.family.session, k.root, t.SnapshotAt(0), "", false)
	plan, err := store.PlanReject(ctx, rv, checkpoint.Choice{
		All: c.All, Picks: picks(k.root, c.Files), Seen: checkpoint.ID(c.At), Merge: c.Merge, Marks: c.Marks, Force: c.Force,
	})
	if errors.Is(err, checkpoint.ErrUnknown) {
		err = k.noChange(err)
	}
	var open []checkpoint.Reviewed
	if err == nil {
		open, _, err = store.Open(ctx, rv)
	}
	var done checkpoint.Result
	if err == nil {
		done, err = store.Apply(ctx, plan)
	}
	if err != nil {
		return agent.FilesRewound{}, err
	}
	k.newest = done.After
	return agent.FilesRewound{
		To: string(plan.To), From: string(done.Before), After: string(done.After), Files: len(done.Done), Leaves: len(done.Left),
		Left: k.left(done.Left), Rejected: k.rejected(c, open, done),
	}, nil
}

// rejected tells of which files changes were taken back.
func (k *keeper) rejected(c agent.Reject, open []checkpoint.Reviewed, done checkpoint.Result) (all []agent.Rejected) {
	for _, it := range open {
		if len(all) == agent.MaxPicks || !slices.Contains(done.Done, it.Path) {
			continue
		}
		r := agent.Rejected{Path: WirePath(k.root, it.Path)}
		if it.From != "" {
			r.From = WirePath(k.root, it.From)
		}
		i := slices.IndexFunc(c.Files, func(p agent.Pick) bool { return SystemPath(k.root, p.Path) == it.Path })
		if i >= 0 && len(c.Files[i].Hunks) > 0 && it.Status != checkpoint.Added && it.Status != checkpoint.Deleted {
			r.Hunks, r.Of = c.Files[i].Hunks, len(it.Hunks)
		}
		all = append(all, r)
	}
	return all
}

func (k *keeper) noChange(err error) error {
	return &agent.Problem{
		Code: agent.ProblemChange, Message: err.Error(), Err: err, Fix: "see what there is with: dure diff " + k.session,
		Args: map[string]string{"session": k.session, "error": strings.ReplaceAll(err.Error(), "\n", "; ")},
	}
}
