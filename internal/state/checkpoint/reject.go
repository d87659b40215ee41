package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Choice says which changes of a review are to be taken back, and what becomes of
// those that somebody else has changed, too.
type Choice struct {
	All   bool
	Picks []Pick // unless All

	// Seen is the snapshot whose changes the choice is about: what has changed
	// behind it is left, unless its pick has the ID that it has now. "" = all that is
	// there now.
	Seen ID

	// Merge takes only what the session did out of files that somebody else has
	// changed, too. Marks lets it write both sides of what overlaps between marks.
	Merge, Marks bool

	// Force puts such files back to how they were before, and what others did in
	// them is gone.
	Force bool
}

// PlanReject tells what it would take to take changes back. Like Plan, it takes a
// snapshot and changes nothing else. What is chosen and not open any more is a
// conflict.
func (s *Store) PlanReject(ctx context.Context, r Review, c Choice) (Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.begin(ctx, true)
	if err == nil {
		_, err = s.take(ctx, Label{Text: "before a rejection"})
	}
	var f *fold
	if err == nil {
		r.To = ""
		f, err = s.fold(ctx, r)
	}
	var p Plan
	if err == nil {
		p, err = f.reject(ctx, c)
	}
	if err != nil {
		return Plan{}, fmt.Errorf("planning to take changes back: %w", err)
	}
	return p, nil
}

// rejection is a plan in the making.
type rejection struct {
	*fold
	c     Choice
	pl    planner
	seen  int // steps up to the snapshot that the choice is about
	plan  Plan
	index map[string]bool // paths that have an item
}

func (f *fold) reject(ctx context.Context, c Choice) (Plan, error) {
	open, err := f.open(ctx)
	if err != nil {
		return Plan{}, err
	}
	r := &rejection{fold: f, c: c, seen: len(f.steps), index: map[string]bool{}, plan: Plan{To: f.first, Now: f.last}}
	r.pl = planner{s: f.s, now: f.now, then: f.base, show: f.show}
	if c.Seen != "" && c.Seen != f.first {
		if r.seen = slices.Index(f.ids, c.Seen) + 1; r.seen == 0 {
			return Plan{}, fmt.Errorf("%w: %.80q", ErrUnknown, c.Seen)
		}
	} else if c.Seen != "" {
		r.seen = 0
	}
	byPath := map[string]Reviewed{}
	for _, it := range open {
		byPath[f.s.key(it.Path)] = it
		if c.All {
			r.file(it, Pick{Path: it.Path})
		}
	}
	for _, p := range c.Picks {
		if it, ok := byPath[f.s.key(p.Path)]; ok && !c.All {
			r.file(it, p)
		} else if !c.All {
			r.missing(p)
		}
	}
	r.emptied(r.stays())
	if c.All {
		r.rest(r.stays())
	}
	for i := range r.plan.Items {
		if it := &r.plan.Items[i]; it.Conflict == nil || it.Forced {
			if err := r.pl.describe(it); err != nil {
				return Plan{}, err
			}
		}
	}
	return r.plan, r.finish()
}

func (r *rejection) finish() error {
	if err := r.pl.folders(&r.plan); err != nil {
		return err
	}
	var done []Change
	for _, it := range r.plan.Items {
		if it.Conflict == nil || it.Forced {
			done = append(done, it.Change)
		}
	}
	r.plan.Totals = Total(done)
	return nil
}

// missing is a pick of something that is not open.
func (r *rejection) missing(p Pick) {
	path := r.s.key(p.Path)
	it := Item{Path: filepath.FromSlash(path), path: path, have: r.now[path], want: r.now[path], Action: Restore}
	it.conflict(Changed, "it has no changes that could be taken back")
	r.plan.Items = append(r.plan.Items, it)
}

// file plans to take back a file, or hunks of it.
func (r *rejection) file(open Reviewed, p Pick) {
	path := r.s.key(open.Path)
	it := r.item(path)
	it.Change = open.Change
	switch {
	case p.ID != "" && p.ID != open.ID, p.ID == "" && r.later[path] > r.seen:
		it.conflict(Changed, "it has changed since it was looked at")
	case len(p.Hunks) > 0 && open.Status != Added && open.Status != Deleted:
		r.hunks(&it, open, p.Hunks)
	default:
		r.whole(&it, open)
		if open.From != "" && it.Conflict == nil {
			from := r.item(r.s.key(open.From))
			r.want(&from, r.base[from.path])
			r.add(from)
		}
	}
	r.add(it)
}

func (r *rejection) item(path string) Item {
	return Item{Path: filepath.FromSlash(path), path: path, have: r.now[path], want: r.base[path]}
}

// add adds an item that changes something, or says why it does not.
func (r *rejection) add(it Item) {
	if r.index[it.path] || it.Conflict == nil && it.have == it.want {
		return
	}
	r.index[it.path] = true
	it.Action = action(it.have, it.want)
	r.plan.Items = append(r.plan.Items, it)
}

// want says what an item leads to.
func (r *rejection) want(it *Item, e entry) {
	it.want = e
	it.text = r.show.texts[e.hash]
	switch {
	case it.have.kind == Skipped:
		it.conflict(NotKept, "what is there now has not been kept, and would be lost: it is "+it.have.reason.String())
		it.Forced = r.c.Force
	case e.kind == Skipped:
		it.conflict(Lost, "what it was then has not been kept: it was "+e.reason.String())
	}
	if root, inside := r.s.rootOf(it.path); !inside || it.path == root || anyHolds(r.s.leave, it.path) {
		it.conflict(Elsewhere, "its folder is no root of this session any more")
		it.Forced = false
	}
}

func (r *rejection) whole(it *Item, open Reviewed) {
	w := r.files[it.path]
	switch {
	case !open.Others:
		r.want(it, r.base[it.path])
	case r.c.Force:
		raw := r.base[it.path]
		if w != nil && w.others {
			raw = w.raw
		}
		r.want(it, raw)
	case !r.c.Merge:
		it.conflict(Outside, "somebody else has changed it, too")
	case !open.Tangled:
		r.want(it, r.base[it.path])
	case !r.c.Marks:
		it.conflict(Overlap, "somebody else has changed the same lines")
	default:
		r.marked(it, w)
	}
}

// marked plans a file in which both sides stand of what overlaps.
func (r *rejection) marked(it *Item, w *file) {
	if w == nil {
		it.conflict(Overlap, "somebody else has changed the same lines")
		return
	}
	texts, ok := r.texts(it.path, w.origin, it.have, r.base[it.path])
	if !ok {
		it.conflict(Overlap, "somebody else has changed it, and it cannot be merged line by line")
		return
	}
	merged, _ := merge3(texts[0], texts[1], texts[2], &sides{"as it is now", "without the rejected changes"})
	r.want(it, r.keep(it.have, merged))
}

// hunks plans to take some hunks of a file back.
func (r *rejection) hunks(it *Item, open Reviewed, ids []string) {
	if open.Tangled {
		it.conflict(Overlap, "somebody else has changed the same lines")
		return
	}
	before := r.base[it.path]
	if open.From != "" {
		before = r.base[r.s.key(open.From)]
	}
	texts, ok := r.texts(it.path, before, it.have)
	if !ok {
		it.conflict(HunkMoved, "it has no lines that could be taken back one by one")
		return
	}
	picked, err := choose(it.path, hunksOf(texts[0], texts[1]), ids)
	var out []byte
	if err == nil {
		out, err = unapply(texts[1], picked)
	}
	if err != nil {
		it.conflict(HunkMoved, err.Error())
		return
	}
	r.want(it, r.keep(it.have, out))
}

// stays returns the folders in which something stays that is there now, and is no
// folder that came with the changes.
func (r *rejection) stays() map[string]bool {
	goes := map[string]bool{}
	for _, it := range r.plan.Items {
		goes[it.path] = it.want.kind == None && it.Conflict == nil
	}
	stays := map[string]bool{}
	for path, e := range r.now {
		if goes[path] || e.kind == None || e.kind == Dir && r.base[path].kind == None {
			continue
		}
		for at := parent(path); !stays[at] && at != "/"; at = parent(at) {
			stays[at] = true
		}
	}
	return stays
}

// rest plans what is no file of its own: folders.
func (r *rejection) rest(stays map[string]bool) {
	for _, path := range differing(r.base, r.now) {
		if r.index[path] || !r.silent(path) || r.now[path].reason == Ignored || r.later[path] > r.seen {
			continue
		}
		if r.base[path].kind == None && stays[path] {
			continue
		}
		it := r.item(path)
		r.want(&it, r.base[path])
		r.add(it)
	}
	r.sort()
}

// emptied plans to remove the folders that came with files which go again, when
// nothing else is in them.
func (r *rejection) emptied(stays map[string]bool) {
	for _, gone := range slices.Clone(r.plan.Items) {
		if gone.want.kind != None || gone.Conflict != nil {
			continue
		}
		for at := parent(gone.path); r.now[at].kind == Dir && r.base[at].kind == None && !stays[at]; at = parent(at) {
			it := r.item(at)
			r.want(&it, entry{})
			r.add(it)
		}
	}
	r.sort()
}

func (r *rejection) sort() {
	slices.SortFunc(r.plan.Items, func(a, b Item) int { return cmp.Compare(a.path, b.path) })
}

// Pickable reports whether the choice of changes to accept is one that can be: each
// is open, and has the hunks that are named.
func (s *Store) Pickable(ctx context.Context, r Review, picks []Pick) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx, false); err != nil {
		return fmt.Errorf("accepting changes: %w", err)
	}
	f, err := s.fold(ctx, r)
	var open []Reviewed
	if err == nil {
		open, err = f.open(ctx)
	}
	if err != nil {
		return fmt.Errorf("accepting changes: %w", err)
	}
	var bad []error
	for _, p := range picks {
		i := slices.IndexFunc(open, func(o Reviewed) bool { return s.key(o.Path) == s.key(p.Path) })
		switch {
		case i < 0:
			bad = append(bad, fmt.Errorf("%s has no changes that could be accepted", p.Path))
		case p.ID != "" && p.ID != open[i].ID:
			bad = append(bad, fmt.Errorf("%s has changed since it was looked at", p.Path))
		default:
			for _, h := range p.Hunks {
				if !slices.Contains(open[i].Hunks, h) {
					bad = append(bad, fmt.Errorf("%s has no hunk %.20q", p.Path, h))
				}
			}
		}
	}
	return errors.Join(bad...)
}
