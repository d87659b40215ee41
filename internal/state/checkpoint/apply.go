package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Result is what a rewind has done.
type Result struct {
	To     ID
	Before ID // the roots as they were: a rewind to it takes this one back
	After  ID // the roots as they are

	Done []string // absolute paths, ascending; folders that only had to be opened are not among them
	Left []Item   // with the Conflict for which each was left as it is
}

// Apply does what a plan says, but for the conflicts that are not forced. It first
// takes a snapshot, so that it can be taken back, and checks that every content
// it needs is undamaged; otherwise it changes nothing. Then it writes down what it
// will do, and does it: each file is the old one or the new one at any moment. A
// path that has changed since the plan is left as it is. Once it has begun to
// write it goes to its end, whatever becomes of the context; when the process dies
// before, Recover finishes it.
func (s *Store) Apply(ctx context.Context, p Plan) (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx, true); err != nil {
		return Result{}, fmt.Errorf("rewinding: %w", err)
	}
	before, err := s.take(ctx, Label{Text: "before a rewind to " + string(p.To)})
	if err != nil {
		return Result{}, err
	}
	res := Result{To: p.To, Before: before.ID, After: before.ID}
	var items []Item
	for _, it := range p.Items {
		if it.Conflict != nil && !it.Forced {
			res.Left = append(res.Left, it)
			continue
		}
		if n := s.state[it.path]; n == nil && it.have.kind != None || n != nil && n.entry != it.have {
			it.Conflict, it.Forced = &Conflict{Code: Changed, Message: "it has changed since the rewind was planned"}, false
			res.Left = append(res.Left, it)
			continue
		}
		items = append(items, it)
	}
	if len(items) == 0 {
		return res, nil
	}
	if err := s.ready(items); err != nil {
		return Result{}, fmt.Errorf("rewinding: %w", err)
	}
	res.Before = s.log.heads[len(s.log.heads)-1].ID
	in := &intent{to: p.To, before: res.Before, items: items}
	if err := s.announce(in); err != nil {
		return Result{}, fmt.Errorf("rewinding: %w", err)
	}
	s.pending = in
	return s.carryOut(context.WithoutCancel(ctx), in, res)
}

// ready makes sure that every content which the items need is in the store.
func (s *Store) ready(items []Item) error {
	for _, it := range items {
		if it.want.kind != File || it.Action == Chmod {
			continue
		}
		if it.text == nil {
			if _, err := s.blobs.get(it.want.hash); err != nil {
				return fmt.Errorf("restoring %s: %w", it.Path, err)
			}
			continue
		}
		if err := s.blobs.put(it.want.hash, it.text); err != nil {
			s.blobs.drop()
			return fmt.Errorf("storing what %s becomes: %w", it.Path, err)
		}
	}
	if !s.blobs.staged() {
		return nil
	}
	// A snapshot that differs in nothing names the contents that are new.
	newest, _ := s.log.newest()
	r := &record{time: s.now(), label: newest.Label, roots: s.roots, files: newest.Files, bytes: newest.Bytes}
	if err := s.write(r); err != nil {
		s.blobs.drop()
		return err
	}
	return nil
}

// carryOut does what was announced, takes the snapshot behind it, and closes the
// matter. A part of it may have been done before.
func (s *Store) carryOut(ctx context.Context, in *intent, res Result) (Result, error) {
	r := rewind{s: s, g: &ground{s: s}, dirs: map[string]bool{}, left: map[string]*Conflict{}}
	err := r.run(in.items)
	r.g.close()
	if err != nil {
		return res, fmt.Errorf("rewinding: %w", err)
	}
	var done []change
	for _, it := range in.items {
		if c := r.left[it.path]; c != nil {
			it.Conflict, it.Forced = c, false
			res.Left = append(res.Left, it)
		} else if it.have != it.want {
			res.Done = append(res.Done, it.Path)
			done = append(done, change{path: it.path, entry: it.want})
		}
	}
	label := Label{Text: "rewind to " + string(in.to)}
	if err := s.enter(done, label); err != nil {
		return res, fmt.Errorf("rewinding: %w", err)
	}
	after, err := s.take(ctx, label) // what others did meanwhile is theirs
	if err != nil {
		return res, err
	}
	res.After = after.ID
	if err := os.Remove(filepath.Join(s.dir, "intent")); err != nil {
		return res, fmt.Errorf("ending the rewind: %w", err)
	}
	s.fault("intent.removed")
	s.pending = nil
	if err := syncDir(s.dir); err != nil {
		return res, fmt.Errorf("ending the rewind: %w", err)
	}
	return res, nil
}

// enter makes a snapshot of what the session itself has brought about, without a
// look at it: the next walk takes that.
func (s *Store) enter(done []change, l Label) error {
	var changes []change
	for _, c := range done {
		c.gone = c.entry.kind == None && !s.hidden(c.path, nil)
		if n := s.state[c.path]; n == nil && c.entry.kind == None || n != nil && n.entry == c.entry {
			continue
		}
		changes = append(changes, c)
	}
	if len(changes) == 0 {
		return nil
	}
	l.Ours = true
	newest, _ := s.log.newest()
	r := &record{time: s.now(), label: l.cut(), roots: s.roots, changes: changes}
	r.files, r.bytes = s.count(newest, changes)
	if err := s.write(r); err != nil {
		s.blobs.drop()
		return err
	}
	for _, c := range changes {
		if c.gone {
			delete(s.state, c.path)
		} else {
			s.state[c.path] = &node{entry: c.entry}
		}
	}
	return nil
}

// rewind is one under way.
type rewind struct {
	s    *Store
	g    *ground
	dirs map[string]bool // folders whose names have changed
	left map[string]*Conflict

	staged []staged // files that are written, and do not have their names yet
	bytes  int64
}

type staged struct {
	it  Item
	f   *os.File
	err error
}

// Files get their names in batches: to bring many to the disk at once takes little
// longer than one.
const (
	batchFiles = 64
	batchBytes = 32 << 20
	syncers    = 16 // goroutines
)

// flush brings the staged files to the disk and gives them their names.
func (r *rewind) flush() {
	var wg sync.WaitGroup
	spare := make(chan struct{}, syncers)
	for i := range r.staged {
		st := &r.staged[i]
		spare <- struct{}{}
		wg.Go(func() {
			defer func() { <-spare }()
			st.err = st.f.Sync()
			if err := st.f.Close(); st.err == nil {
				st.err = err
			}
		})
	}
	wg.Wait()
	for _, st := range r.staged {
		_, err := r.check(st.it) // it was long ago
		if st.err != nil {
			err = st.err
		}
		if err := r.g.place(st.it.path, err); err != nil {
			r.left[st.it.path] = because(err)
		}
	}
	r.staged, r.bytes = nil, 0
}

// run takes the items in the order in which they can be done: folders are opened,
// what is in the way goes, from the innermost out; folders come, from the
// outermost in; then files and links; at last the modes of folders.
func (r *rewind) run(items []Item) error {
	backwards := slices.Clone(items)
	slices.Reverse(backwards)
	steps := []struct {
		items []Item
		when  func(Item) bool
		do    func(Item) error
	}{
		{items, func(it Item) bool { return sealed(it.have) }, r.unseal},
		{backwards, clears, r.remove},
		{items, func(it Item) bool { return it.want.kind == Dir }, r.make},
		{items, func(it Item) bool { return it.want.kind == File || it.want.kind == Link }, r.write},
		{backwards, func(it Item) bool { return it.want.kind == Dir }, r.seal},
	}
	for _, step := range steps {
		r.g.close() // what it has open may have been replaced
		for _, it := range step.items {
			if r.left[it.path] != nil || !step.when(it) {
				continue
			}
			if err := step.do(it); err != nil {
				r.left[it.path] = because(err)
			}
		}
		r.flush()
	}
	for _, it := range backwards {
		if r.left[it.path] != nil && sealed(it.have) {
			_ = r.g.chmod(it.path, it.have.mode) // that it was left is reported
		}
	}
	return r.sync()
}

// sealed reports whether nothing in a folder can be changed without changing its
// mode first.
func sealed(e entry) bool { return e.kind == Dir && e.mode&0o300 != 0o300 }

// clears reports whether what stands at a path has to go before what comes: a
// name can be taken over from a file or a link, and not from a folder.
func clears(it Item) bool {
	return it.have.kind != None && (it.want.kind == None || it.have.kind != it.want.kind && (it.have.kind == Dir || it.want.kind == Dir))
}

var errChanged = errors.New("it has changed since the rewind was planned")

// because says for people why an item was left.
func because(err error) *Conflict {
	c := &Conflict{Code: Refused, Message: err.Error()}
	switch {
	case errors.Is(err, errChanged):
		c.Code = Changed
	case errors.Is(err, errInWay):
		c.Code = InTheWay
	case errors.Is(err, ErrDamaged):
		c.Code = Damaged
	case errors.Is(err, fs.ErrExist), notEmpty(err):
		c.Code, c.Message = InTheWay, "something that is not kept is in the way"
	}
	return c
}

// check looks at what stands at a path right before it is changed. It reports
// true when it is there already what is wanted.
func (r *rewind) check(it Item) (done bool, err error) {
	now, err := r.g.look(it.path, it.have.size, it.want.size)
	if err != nil {
		return false, err
	}
	switch {
	case same(now, it.want):
		return true, nil
	case same(now, it.have), now.kind == None && clears(it): // it may be gone already
		return false, nil
	case it.have.kind == Skipped:
		return false, nil // it was forced, and nobody knows what it is
	}
	return false, errChanged
}

// same compares what stands at a path with an entry. The modes of folders change
// in the course of a rewind.
func same(now, e entry) bool {
	if now.kind == Dir && e.kind == Dir {
		return true
	}
	return now == e
}

func (r *rewind) unseal(it Item) error {
	if _, err := r.check(it); err != nil {
		return err
	}
	return r.g.chmod(it.path, it.have.mode|0o700)
}

func (r *rewind) remove(it Item) error {
	now, err := r.g.look(it.path, it.have.size, it.want.size)
	if errors.Is(err, errInWay) || err == nil && now.kind == None {
		return nil // gone with its folder, or before
	}
	if done, err := r.check(it); done || err != nil {
		return err
	}
	r.g.close() // it may be this one
	r.dirs[parent(it.path)] = true
	return r.g.remove(it.path)
}

func (r *rewind) make(it Item) error {
	done, err := r.check(it)
	if done || err != nil {
		return err
	}
	r.dirs[parent(it.path)] = true
	return r.g.make(it.path, it.want)
}

func (r *rewind) write(it Item) error {
	done, err := r.check(it)
	if done || err != nil {
		return err
	}
	if it.Action == Chmod && !r.g.linked(it.path) {
		return r.g.chmod(it.path, it.want.mode)
	}
	r.dirs[parent(it.path)] = true
	if it.want.kind == Link {
		return r.g.link(it.path, it.want)
	}
	data, err := r.s.blobs.get(it.want.hash)
	if err != nil {
		return err
	}
	f, err := r.g.stage(it.path, it.want, data)
	if err != nil {
		return err
	}
	r.staged = append(r.staged, staged{it: it, f: f})
	if r.bytes += it.want.size; len(r.staged) == batchFiles || r.bytes >= batchBytes {
		r.flush()
	}
	return nil
}

func (r *rewind) seal(it Item) error {
	now, err := r.g.look(it.path)
	if err != nil || now.mode == it.want.mode {
		return err
	}
	return r.g.chmod(it.path, it.want.mode)
}

// sync brings the names in all folders that were written to to the disk.
func (r *rewind) sync() error {
	for dir := range r.dirs {
		if err := r.g.sync(dir); err != nil && !errors.Is(err, errInWay) && !absent(err) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// intent is a rewind that was announced: what it will change from what to what.
// It is on the disk until the snapshot behind it is.
type intent struct {
	to, before ID
	items      []Item
}

// announce writes the intent down: as two records, of what is there and of what
// will be.
func (s *Store) announce(in *intent) error {
	have := &record{id: in.before, label: Label{Text: string(in.to)}}
	want := &record{id: in.before}
	for _, it := range in.items {
		have.changes = append(have.changes, change{path: it.path, entry: it.have})
		want.changes = append(want.changes, change{path: it.path, entry: it.want})
	}
	a, err := frame(have)
	if err != nil {
		return err
	}
	b, err := frame(want)
	if err != nil {
		return err
	}
	return s.replaceFile("intent", append(a, b...), true)
}

// readIntent reads what announce wrote; nil = nothing is pending. One that cannot
// be read is kept under another name: what it would have done can be done again
// by hand, from the snapshots.
func readIntent(dir string) (*intent, error) {
	name := filepath.Join(dir, "intent")
	b, err := readOwn(name)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	in, ok := parseIntent(b)
	if !ok {
		return nil, os.Rename(name, name+".damaged")
	}
	return in, nil
}

func parseIntent(b []byte) (*intent, bool) {
	have, b, ok := unframe(b)
	if !ok {
		return nil, false
	}
	want, b, ok := unframe(b)
	if !ok || len(b) > 0 || len(have.changes) != len(want.changes) {
		return nil, false
	}
	in := &intent{to: ID(have.label.Text), before: have.id}
	for i, c := range have.changes {
		w := want.changes[i]
		if c.path != w.path || c.gone || w.gone {
			return nil, false
		}
		in.items = append(in.items, Item{
			Path: filepath.FromSlash(c.path), Action: action(c.entry, w.entry), path: c.path, have: c.entry, want: w.entry,
			Change: Change{Path: filepath.FromSlash(c.path), Status: status(c.entry, w.entry), Before: side(c.entry), After: side(w.entry)},
		})
	}
	return in, true
}

// Pending returns the snapshot that a rewind which was cut short leads to, or "".
func (s *Store) Pending() ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		return ""
	}
	return s.pending.to
}

// Recover finishes a rewind that was cut short by the death of its process. A
// path that is neither as it was before nor as it should become was changed since:
// it is left as it is, and reported. Without a rewind it does nothing.
func (s *Store) Recover(ctx context.Context) (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx, false); err != nil || s.pending == nil {
		return Result{}, err
	}
	g := &ground{s: s}
	for _, it := range s.pending.items {
		if dir, err := g.folder(parent(it.path)); err == nil {
			_ = dir.Remove(tempName(it.path)) // most often there is none
		}
	}
	g.close()
	res := Result{To: s.pending.to, Before: s.pending.before}
	return s.carryOut(context.WithoutCancel(ctx), s.pending, res)
}
