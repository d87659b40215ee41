package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Review is what has been said about the changes of a session: since when they
// count, and what of them was accepted, rejected or taken back. A person's own
// changes are none of them: they move what the session's are compared with.
type Review struct {
	From ID // how it was before
	To   ID // up to where; "" = the newest snapshot

	// Mine reports whether a snapshot shows what the session did. nil = Label.Ours.
	Mine func(Label) bool

	Marks []Mark // in their order
}

// MarkKind says what was done about changes.
type MarkKind uint8

// The kinds of marks.
const (
	Accepted MarkKind = iota // they count as how it was before
	Rejected                 // they were taken back by Apply
	Rewound                  // Apply went back to an earlier snapshot
)

// Mark is one decision. One whose snapshot is gone is passed over.
type Mark struct {
	Kind  MarkKind
	At    ID     // the snapshot whose changes were accepted; behind a rejection or rewind, Result.After
	Since ID     // of a rewind: Result.Before
	To    ID     // of a rewind: where it led
	All   bool   // every change
	Picks []Pick // those that are meant, otherwise
}

// Reviewed is one change of a review that is still open.
type Reviewed struct {
	Change
	ID    string   // of its content
	Hunks []string // the IDs of Change.Hunks
	By    []Label  // the snapshots that show how it came about, at most maxBy

	// Others says that somebody else has changed the file, too. What they did is
	// part of Before, unless the changes overlap: then Tangled is set, and Change
	// shows both.
	Others, Tangled bool
}

// maxBy bounds the snapshots that are named for one file.
const maxBy = 20

// Open returns the changes that are neither accepted nor taken back, sorted by
// path, and the snapshot that they lead to. Folders are not among them.
func (s *Store) Open(ctx context.Context, r Review) ([]Reviewed, ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.begin(ctx, false)
	var f *fold
	if err == nil {
		f, err = s.fold(ctx, r)
	}
	var all []Reviewed
	if err == nil {
		all, err = f.open(ctx)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reviewing changes: %w", err)
	}
	return all, f.last, nil
}

// fold follows a session from snapshot to snapshot: what its changes are compared
// with, and how the roots look.
type fold struct {
	s     *Store
	r     Review
	first ID
	last  ID
	base  tree
	now   tree
	show  comparison
	said  map[ID][]Mark
	files map[string]*file  // whose changes are open
	later map[string]int    // the last step that changed a path
	moves []move            // of base, so that it can go back
	steps []map[string]bool // the paths of each record behind the first
	ids   []ID              // and the snapshots
}

// file is what is known of a path beside its entries.
type file struct {
	by      []Label
	others  bool
	tangled bool
	raw     entry // the base without what others did
	origin  entry // what the session had left when others changed it in the same place
}

// move is one change of the base.
type move struct {
	step int
	path string
	was  entry
}

// fold reads the snapshots of a review. One that begins with a snapshot which has
// been dropped begins with the oldest.
func (s *Store) fold(ctx context.Context, r Review) (*fold, error) {
	f := &fold{s: s, r: r, now: tree{}, files: map[string]*file{}, later: map[string]int{}, said: map[ID][]Mark{}}
	f.show = comparison{s: s, left: maxTexts, bytes: maxShown, texts: map[hash][]byte{}}
	if f.r.Mine == nil {
		f.r.Mine = func(l Label) bool { return l.Ours }
	}
	first, err := s.log.at(r.From)
	if err != nil {
		if first = 0; len(s.log.heads) == 0 {
			return nil, err
		}
	}
	last := len(s.log.heads) - 1
	if r.To != "" {
		if last, err = s.log.at(r.To); err != nil {
			return nil, err
		}
	}
	if last < first {
		return nil, fmt.Errorf("snapshot %s is older than %s", r.To, r.From)
	}
	f.first, f.last = s.log.heads[first].ID, s.log.heads[last].ID
	for _, m := range r.Marks {
		f.said[m.At] = append(f.said[m.At], m)
	}
	for i := range last + 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rec, err := s.log.record(i)
		if err != nil {
			return nil, err
		}
		if i <= first {
			f.now.apply(rec.changes)
		} else {
			f.step(rec)
		}
		if i == first {
			f.base = f.now.clone()
		}
		if i >= first {
			f.marks(rec.id)
		}
	}
	return f, nil
}

// step takes in one snapshot.
func (f *fold) step(r *record) {
	paths := map[string]bool{}
	f.steps, f.ids = append(f.steps, paths), append(f.ids, r.id)
	mine := f.r.Mine(r.label)
	for _, c := range r.changes {
		before, after := f.now[c.path], c.entry
		if c.gone {
			after = entry{}
		}
		paths[c.path] = true
		f.later[c.path] = len(f.steps)
		if mine {
			f.note(c.path, r.label)
		} else {
			f.foreign(c.path, before, after)
		}
	}
	f.now.apply(r.changes)
	for path := range paths {
		if f.base[path] == f.now[path] {
			delete(f.files, path)
		}
	}
}

// note remembers who has changed a path.
func (f *fold) note(path string, l Label) {
	w := f.files[path]
	if w == nil {
		w = &file{}
		f.files[path] = w
	}
	if len(w.by) < maxBy && l.Call != "" && !slices.Contains(w.by, l) {
		w.by = append(w.by, l)
	}
}

// set moves the base of a path.
func (f *fold) set(path string, e entry) {
	if f.base[path] == e {
		return
	}
	f.moves = append(f.moves, move{len(f.steps), path, f.base[path]})
	if e == (entry{}) {
		delete(f.base, path)
	} else {
		f.base[path] = e
	}
}

// foreign takes in what somebody else did. Where the session has not changed the
// path, it is how things were before; elsewhere it is merged into that, if it can be.
func (f *fold) foreign(path string, before, after entry) {
	base := f.base[path]
	switch {
	case base == before:
		f.set(path, after)
		return
	case base == after:
		return
	}
	f.note(path, Label{})
	w := f.files[path]
	if !w.others {
		w.others, w.raw = true, base
	}
	merged, ok := f.merge(path, before, after, base)
	if !ok {
		if !w.tangled {
			w.tangled, w.origin = true, before
		}
		return
	}
	f.set(path, merged)
}

// merge makes in base the changes that lead from before to after.
func (f *fold) merge(path string, before, after, base entry) (entry, bool) {
	if before.kind != File || after.kind != File || base.kind != File {
		return base, false
	}
	out := base
	if before.mode != after.mode {
		out.mode = after.mode
	}
	if before.hash == after.hash {
		return out, true
	}
	texts, ok := f.texts(path, before, after, base)
	if !ok {
		return base, false
	}
	merged, clean := merge3(texts[0], texts[1], texts[2], nil)
	if !clean {
		return base, false
	}
	return f.keep(out, merged), true
}

// texts returns the contents of entries, when all are texts within the limits.
func (f *fold) texts(path string, entries ...entry) ([][]byte, bool) {
	var all [][]byte
	for _, e := range entries {
		if e.kind != File || e.size > maxText {
			return nil, false
		}
		data, err := f.show.text(path, e)
		if err != nil || isBinary(data) {
			return nil, false
		}
		all = append(all, data)
	}
	return all, true
}

// keep returns an entry with another content, which is stored nowhere.
func (f *fold) keep(e entry, text []byte) entry {
	e.size, e.hash = int64(len(text)), sha256.Sum256(text)
	f.show.texts[e.hash] = text
	return e
}

// marks does what was decided when a snapshot was the newest.
func (f *fold) marks(id ID) {
	for _, m := range f.said[id] {
		switch {
		case m.Kind == Rewound:
			f.rewound(m)
		case m.All:
			for _, path := range differing(f.base, f.now) {
				f.set(path, f.now[path])
				delete(f.files, path)
			}
		default:
			for _, p := range m.Picks {
				f.pick(m.Kind, p)
			}
		}
	}
}

// close makes what is there now the base of a path. With what was accepted go the
// folders that came for it, and those that are gone with all that was in them.
func (f *fold) close(kind MarkKind, path string) {
	f.set(path, f.now[path])
	delete(f.files, path)
	if kind != Accepted {
		return
	}
	for at := parent(path); (f.now[at].kind == Dir) != (f.base[at].kind == Dir); at = parent(at) {
		if f.base[at].kind == Dir && f.holds(at) {
			return
		}
		f.set(at, f.now[at])
	}
}

// holds reports whether the base has something in a folder.
func (f *fold) holds(dir string) bool {
	for p := range f.base {
		if p != dir && below(p, dir) {
			return true
		}
	}
	return false
}

// pick does what was decided about one file.
func (f *fold) pick(kind MarkKind, p Pick) {
	path, from := f.s.key(p.Path), ""
	if p.From != "" {
		from = f.s.key(p.From)
	}
	if len(p.Hunks) == 0 {
		f.close(kind, path)
		if from != "" {
			f.close(kind, from)
		}
		return
	}
	if kind == Rejected {
		return // the snapshot shows it
	}
	before := f.base[path]
	if from != "" {
		before = f.base[from]
	}
	text, err := f.accept(path, before, f.now[path], p.Hunks)
	if err != nil {
		return // it was checked before it was written down
	}
	if from != "" {
		f.close(kind, from)
	}
	f.set(path, f.keep(before, text))
	if f.base[path] == f.now[path] {
		delete(f.files, path)
	}
}

// accept returns the base of a file with some of its hunks.
func (f *fold) accept(path string, before, after entry, ids []string) ([]byte, error) {
	texts, ok := f.texts(path, before, after)
	if !ok {
		return nil, fmt.Errorf("it has no lines that could be taken one by one: %w", errHunk)
	}
	picked, err := choose(path, hunksOf(texts[0], texts[1]), ids)
	if err != nil {
		return nil, err
	}
	return unapply(texts[0], inverted(picked))
}

// rewound gives the paths that a rewind has changed the base that they had then.
func (f *fold) rewound(m Mark) {
	since, to := slices.Index(f.ids, m.Since), slices.Index(f.ids, m.To)
	changed := map[string]bool{}
	for _, paths := range f.steps[since+1:] {
		for p := range paths {
			changed[p] = true
		}
	}
	for i := len(f.moves) - 1; i >= 0 && f.moves[i].step > to+1; i-- {
		if mv := f.moves[i]; changed[mv.path] {
			f.set(mv.path, mv.was)
		}
	}
	for p := range changed {
		if f.base[p] == f.now[p] {
			delete(f.files, p)
		}
	}
}

// open returns what is open.
func (f *fold) open(ctx context.Context) ([]Reviewed, error) {
	paths := differing(f.base, f.now)
	from := renames(paths, f.base, f.now)
	f.show.similar(paths, f.base, f.now, from)
	old := map[string]bool{}
	for _, p := range from {
		old[p] = true
	}
	var all []Reviewed
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if old[p] || f.silent(p) {
			continue
		}
		it, err := f.reviewed(p, from[p])
		if err != nil {
			return nil, err
		}
		all = append(all, it)
	}
	return all, nil
}

// silent reports whether a difference is nothing that is shown: folders, and what
// programs leave behind.
func (f *fold) silent(path string) bool {
	a, b := f.base[path], f.now[path]
	if a.kind == None && (b.kind == None || b.reason == Ignored) {
		return true
	}
	return (a.kind == Dir || a.kind == None) && (b.kind == Dir || b.kind == None)
}

func (f *fold) reviewed(path, from string) (Reviewed, error) {
	before, after := f.base[path], f.now[path]
	if from != "" {
		before = f.base[from]
	}
	ch, err := f.show.entries(path, before, after)
	if errors.Is(err, ErrDamaged) {
		ch.Unkept = true
	} else if err != nil {
		return Reviewed{}, err
	}
	if from != "" {
		ch.Status, ch.From = Renamed, filepath.FromSlash(from)
	}
	it := Reviewed{Change: ch, ID: changeID(path, from, before, after), Hunks: hunkIDs(path, ch.Hunks)}
	for _, p := range []string{path, from} {
		if w := f.files[p]; w != nil {
			it.Others, it.Tangled = it.Others || w.others, it.Tangled || w.tangled
			it.By = append(it.By, w.by...)
		}
	}
	return it, nil
}
