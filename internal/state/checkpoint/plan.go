package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Select says which part of a rewind is wanted. The zero value is all of it.
type Select struct {
	// Since takes back only what happened from the snapshot To up to this one: what
	// came later stays. "" = up to now.
	Since ID

	// Paths are absolute; a folder stands for what is in it. nil = all.
	Paths []string

	// Hunks are the hunks to take back, by absolute path: their places, from 0, in
	// what Diff tells of the file from To to Since, or to now. The other hunks of
	// these files stay.
	Hunks map[string][]int

	// Force are the conflicts that are overwritten all the same, as Paths.
	Force []string

	// Theirs reports whether what a snapshot shows was done by another session that
	// shares the store: then it is somebody else's. nil = none was.
	Theirs func(Label) bool
}

// Action is what a rewind does to a path.
type Action string

// The actions.
const (
	Create  Action = "create"
	Restore Action = "restore"
	Delete  Action = "delete"
	Chmod   Action = "mode"
)

// ConflictCode says why a path is left as it is.
type ConflictCode string

// The conflicts.
const (
	Outside   ConflictCode = "outside"   // somebody else has changed it
	NotKept   ConflictCode = "not-kept"  // what stands there has not been kept, and would be lost
	Lost      ConflictCode = "lost"      // what stood there has not been kept
	HunkMoved ConflictCode = "hunk"      // the lines to take back are not there any more
	Changed   ConflictCode = "changed"   // it changed between the plan and its turn
	InTheWay  ConflictCode = "in-way"    // its folder is a link, or a file, or holds what is not kept
	Refused   ConflictCode = "refused"   // the system does not permit it
	Damaged   ConflictCode = "damaged"   // its stored content is damaged
	Overlap   ConflictCode = "overlap"   // somebody else has changed the same lines: a merge needs marks
	Elsewhere ConflictCode = "elsewhere" // it lies in a folder that is no root any more
)

// Conflict is the reason why a path is left as it is. Message is English.
type Conflict struct {
	Code    ConflictCode
	Message string
	Outside *Change // what became of it since the session last wrote it
}

// Item is one path of a rewind.
type Item struct {
	Path     string // absolute
	Action   Action
	Change   Change    // from now to what the rewind makes
	Conflict *Conflict // nil = it is done
	Forced   bool      // the conflict is overridden

	path string
	have entry // what stands there now
	want entry
	text []byte // the content, when it is stored nowhere yet
}

// Plan is what a rewind would do to the roots as they are now.
type Plan struct {
	To     ID
	Now    ID     // the snapshot of the roots that Plan took
	Items  []Item // sorted by path, conflicts included
	Totals Totals // of the items that would be done
}

// Conflicts returns the items that would be left as they are.
func (p Plan) Conflicts() []Item {
	var all []Item
	for _, it := range p.Items {
		if it.Conflict != nil && !it.Forced {
			all = append(all, it)
		}
	}
	return all
}

// Plan tells what it would take to bring the roots, or a part of them, back to a
// snapshot. It takes a snapshot of what is there now, and changes nothing else. A
// path that somebody else has changed since the snapshot is a conflict, and is
// left as it is unless Select forces it.
func (s *Store) Plan(ctx context.Context, to ID, sel Select) (Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.begin(ctx, true)
	if err == nil {
		_, err = s.log.at(to)
	}
	if err != nil {
		return Plan{}, fmt.Errorf("planning a rewind: %w", err)
	}
	now, err := s.take(ctx, Label{Text: "before a rewind to " + string(to)})
	if err != nil {
		return Plan{}, err
	}
	p, err := s.plan(ctx, to, now.ID, sel)
	if err != nil {
		return Plan{}, fmt.Errorf("planning a rewind to %s: %w", to, err)
	}
	return p, nil
}

// planner holds what the steps of a plan share.
type planner struct {
	s       *Store
	sel     Select
	roots   []string         // those that the snapshots hold
	then    tree             // the snapshot to go back to
	since   tree             // up to where; nil = now
	now     tree             // what is there
	foreign map[string]entry // what somebody else changed, as it was before
	show    comparison
}

func (s *Store) plan(ctx context.Context, to, now ID, sel Select) (Plan, error) {
	pl := planner{s: s, sel: sel, foreign: map[string]entry{}, show: comparison{s: s, left: maxTexts, bytes: maxShown}}
	if err := pl.read(to, now); err != nil {
		return Plan{}, err
	}
	paths := differing(pl.then, pl.now)
	if pl.since != nil {
		paths = differing(pl.then, pl.since)
	}
	plan := Plan{To: to, Now: now}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return Plan{}, err
		}
		if !pl.selected(path) {
			continue
		}
		it, ok, err := pl.item(path)
		if err != nil {
			return Plan{}, err
		}
		if ok {
			plan.Items = append(plan.Items, it)
		}
	}
	if err := pl.folders(&plan); err != nil {
		return Plan{}, err
	}
	var done []Change
	for _, it := range plan.Items {
		if it.Conflict == nil || it.Forced {
			done = append(done, it.Change)
		}
	}
	plan.Totals = Total(done)
	return plan, nil
}

// read collects the trees, and what others have changed between them.
func (p *planner) read(to, now ID) error {
	last, err := p.s.log.at(now)
	if err != nil {
		return err
	}
	first, err := p.s.log.at(to)
	if err != nil {
		return err
	}
	upto := last
	if p.sel.Since != "" {
		if upto, err = p.s.log.at(p.sel.Since); err != nil {
			return err
		}
		if upto < first {
			return fmt.Errorf("snapshot %s is older than %s", p.sel.Since, to)
		}
	}
	p.roots = p.s.log.heads[first].roots
	t := tree{}
	for i := range last + 1 {
		r, err := p.s.log.record(i)
		if err != nil {
			return err
		}
		if i > first && (!r.label.Ours || p.sel.Theirs != nil && p.sel.Theirs(r.label)) {
			for _, c := range r.changes {
				if _, known := p.foreign[c.path]; !known {
					p.foreign[c.path] = t[c.path]
				}
			}
		}
		t.apply(r.changes)
		if i == first {
			p.then = t.clone()
		}
		if i == upto && upto != last {
			p.since = t.clone()
		}
	}
	p.now = t
	return nil
}

func (t tree) clone() tree {
	c := make(tree, len(t))
	for p, e := range t {
		c[p] = e
	}
	return c
}

// among reports whether path is one of dirs, or in one.
func (p *planner) among(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return below(path, p.s.key(d)) })
}

// chosen returns the hunks that are wanted of a file, when it is not all of them.
func (p *planner) chosen(path string) ([]int, bool) {
	for name, hunks := range p.sel.Hunks {
		if p.s.key(name) == path {
			return hunks, true
		}
	}
	return nil, false
}

func (p *planner) selected(path string) bool {
	if p.sel.Paths == nil && p.sel.Hunks == nil {
		return true
	}
	_, some := p.chosen(path)
	return some || p.among(path, p.sel.Paths)
}

// item plans one path. It reports false when nothing is to be done.
func (p *planner) item(path string) (Item, bool, error) {
	it := Item{Path: filepath.FromSlash(path), path: path, have: p.now[path], want: p.then[path]}
	root, known := covered(path, p.roots)
	if !known || anyHolds(p.s.leave, path) {
		return it, false, nil // it was not looked at then, or must not be now
	}
	if _, inside := p.s.rootOf(path); !inside {
		it.conflict(Elsewhere, "its folder is no root of this session any more")
	}
	if reason, unkept := p.then.unkept(path, root); unkept && it.Conflict == nil {
		if reason == Ignored || it.have == it.want {
			return it, false, nil // nothing was promised
		}
		it.conflict(Lost, "what it was then has not been kept: it was "+reason.String())
	} else if it.have.reason == Ignored && it.want.kind == None {
		return it, false, nil // what programs leave behind
	} else if it.have.kind == Skipped && it.Conflict == nil {
		it.conflict(NotKept, "what is there now has not been kept, and would be lost: it is "+it.have.reason.String())
	}
	done, err := p.hunks(&it)
	if err != nil || done {
		return it, !done, err
	}
	if it.have == it.want || it.have.kind == None && it.want.kind == None {
		return it, false, nil
	}
	it.Action = action(it.have, it.want)
	if err := p.describe(&it); err != nil {
		return it, false, err
	}
	it.Forced = it.Conflict != nil && p.among(path, p.sel.Force) && it.Conflict.forcible()
	return it, true, nil
}

// forcible reports whether it is in the caller's power to override a conflict.
func (c *Conflict) forcible() bool {
	return c.Code == Outside || c.Code == NotKept
}

func anyHolds(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return below(path, d) })
}

func covered(path string, roots []string) (string, bool) {
	for _, r := range roots {
		if below(path, r) {
			return r, true
		}
	}
	return "", false
}

func (it *Item) conflict(code ConflictCode, message string) {
	if it.Conflict == nil {
		it.Conflict = &Conflict{Code: code, Message: message}
	}
}

func action(have, want entry) Action {
	switch {
	case have.kind == None:
		return Create
	case want.kind == None:
		return Delete
	case have.kind == want.kind && have.hash == want.hash && have.target == want.target && have.kind != Skipped:
		return Chmod
	}
	return Restore
}

// hunks plans a file of which only some hunks are taken back, or that has changed
// since. It reports true when there is nothing to do.
func (p *planner) hunks(it *Item) (done bool, err error) {
	chosen, some := p.chosen(it.path)
	upto := it.have
	if p.since != nil {
		upto = p.since[it.path]
	}
	if !some && upto == it.have || it.Conflict != nil {
		return false, nil
	}
	if it.want.kind != File || upto.kind != File || it.have.kind != File {
		if some {
			it.conflict(HunkMoved, "it has no lines that could be taken back one by one")
			return false, nil
		}
		if upto != it.have {
			it.conflict(Changed, "it was changed later on")
		}
		return false, nil
	}
	out, err := p.reverse(it, upto, chosen, some)
	if errors.Is(err, errHunk) {
		it.conflict(HunkMoved, err.Error())
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mode := it.want.mode
	if some || upto.mode == it.want.mode {
		mode = it.have.mode
	}
	it.text = out
	it.want = entry{kind: File, mode: mode, size: int64(len(out)), hash: sha256.Sum256(out)}
	return it.want == it.have, nil
}

// reverse takes hunks back from what a file is now.
func (p *planner) reverse(it *Item, upto entry, chosen []int, some bool) ([]byte, error) {
	var texts [3][]byte
	for i, e := range []entry{it.want, upto, it.have} {
		if e.size > maxText {
			return nil, fmt.Errorf("it is too large: %w", errHunk)
		}
		data, err := p.s.blobs.get(e.hash)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", it.Path, err)
		}
		if isBinary(data) {
			return nil, fmt.Errorf("it is no text: %w", errHunk)
		}
		texts[i] = data
	}
	hunks := hunksOf(texts[0], texts[1])
	if some {
		sorted := slices.Compact(slices.Sorted(slices.Values(chosen)))
		var picked []Hunk
		for _, i := range sorted {
			if i < 0 || i >= len(hunks) {
				return nil, fmt.Errorf("%s has no hunk %d: there are %d", it.Path, i, len(hunks))
			}
			picked = append(picked, hunks[i])
		}
		hunks = picked
	}
	return unapply(texts[2], hunks)
}

// describe shows what the item changes, and what others have done to the path.
func (p *planner) describe(it *Item) error {
	var err error
	if it.text != nil {
		it.Change = Change{Path: it.Path, Status: status(it.have, it.want), Before: side(it.have), After: side(it.want)}
		before, err := p.show.text(it.path, it.have)
		if err != nil {
			return err
		}
		p.show.lines(&it.Change, before, it.text)
	} else if it.Change, err = p.show.entries(it.path, it.have, it.want); errors.Is(err, ErrDamaged) {
		it.conflict(Damaged, err.Error())
	} else if err != nil {
		return err
	}
	was, foreign := p.foreign[it.path]
	if !foreign || was == it.have || it.text != nil || it.have.kind == Dir && it.want.kind == None {
		return nil // a folder goes only when it is empty
	}
	it.conflict(Outside, "somebody else has changed it since")
	out, err := p.show.entries(it.path, was, it.have)
	if err != nil {
		return nil // shown without what cannot be read
	}
	it.Conflict.Outside = &out
	return nil
}

// folders adds the folders that the items need: those that files are created in,
// and those that have to be opened for writing while it is done.
func (p *planner) folders(plan *Plan) error {
	have := map[string]bool{}
	for _, it := range plan.Items {
		have[it.path] = true
	}
	var more []Item
	for _, it := range plan.Items {
		if it.Conflict != nil && !it.Forced {
			continue
		}
		root, _ := p.s.rootOf(it.path)
		for at := parent(it.path); below(at, root); at = parent(at) {
			e := p.now[at]
			missing := e.kind == None && it.want.kind != None
			if have[at] || !sealed(e) && !missing {
				continue
			}
			have[at] = true
			add := Item{Path: filepath.FromSlash(at), path: at, have: e, want: e, Action: Chmod}
			if missing {
				add.want, add.Action = entry{kind: Dir, mode: 0o777}, Create
				if then := p.then[at]; then.kind == Dir {
					add.want = then
				}
			}
			add.Change = Change{Path: add.Path, Status: status(add.have, add.want), Before: side(add.have), After: side(add.want)}
			more = append(more, add)
		}
	}
	plan.Items = append(plan.Items, more...)
	slices.SortFunc(plan.Items, func(a, b Item) int { return cmp.Compare(a.path, b.path) })
	return nil
}
