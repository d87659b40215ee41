package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Take walks the roots and keeps what they look like. When nothing has changed
// since the newest snapshot it returns that one, with its label, and writes
// nothing.
func (s *Store) Take(ctx context.Context, l Label) (Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx, true); err != nil {
		return Snapshot{}, fmt.Errorf("taking a snapshot: %w", err)
	}
	snap, err := s.take(ctx, l)
	if err != nil {
		return snap, err
	}
	return snap, s.makeRoom()
}

// Touch is Take for who knows what will change, or has: it looks at these paths
// alone, absolute ones, and at what is in those that are folders. They are kept
// from now on even where they are ignored. A link is looked at, and what it leads
// to; what is in no root is left out. Before the first snapshot, all is walked.
func (s *Store) Touch(ctx context.Context, l Label, paths ...string) (Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx, true); err != nil {
		return Snapshot{}, fmt.Errorf("taking a snapshot: %w", err)
	}
	if h, ok := s.log.newest(); !ok || !slices.Equal(h.roots, s.roots) {
		if snap, err := s.take(ctx, l); err != nil {
			return snap, err
		}
	}
	w := s.newWalk(ctx)
	places := s.places(paths)
	for _, p := range places {
		if err := w.named(p, true); err != nil {
			s.blobs.drop()
			return Snapshot{}, fmt.Errorf("taking a snapshot: %w", err)
		}
	}
	snap, err := s.settle(w, l, places, places)
	if err != nil {
		return snap, err
	}
	return snap, s.makeRoom()
}

// places returns the paths of a tree at which a call that names paths may write.
func (s *Store) places(paths []string) []string {
	set := map[string]bool{}
	for _, p := range paths {
		if !filepath.IsAbs(p) || strings.Contains(p, "\x00") {
			continue
		}
		p = filepath.Clean(p)
		if dir, ok := resolve(filepath.Dir(p)); ok {
			set[filepath.ToSlash(filepath.Join(dir, filepath.Base(p)))] = true
		}
		if target, ok := resolve(p); ok {
			set[filepath.ToSlash(target)] = true
		}
	}
	maps.DeleteFunc(set, func(p string, _ bool) bool {
		_, ok := s.rootOf(p)
		return !ok
	})
	return slices.Sorted(maps.Keys(set))
}

// resolve follows the links of a path, as far as it exists.
func resolve(p string) (string, bool) {
	rest := ""
	for at := p; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest), true
		}
		if filepath.Dir(at) == at {
			return "", false
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

func (s *Store) take(ctx context.Context, l Label) (Snapshot, error) {
	w := s.newWalk(ctx)
	if err := w.roots(); err != nil {
		s.blobs.drop()
		return Snapshot{}, fmt.Errorf("taking a snapshot: %w", err)
	}
	return s.settle(w, l, s.roots, nil)
}

// settle makes a snapshot of what a walk has found. Scope is where it has looked,
// and named is what was named.
func (s *Store) settle(w *walk, l Label, scope, named []string) (Snapshot, error) {
	snap, err := s.store(w, l, scope, named)
	if err != nil {
		s.blobs.drop()
		return Snapshot{}, fmt.Errorf("taking a snapshot: %w", err)
	}
	return snap, nil
}

func (s *Store) store(w *walk, l Label, scope, named []string) (Snapshot, error) {
	gone, err := s.unseen(w, scope)
	if err != nil {
		return Snapshot{}, err
	}
	changes := s.changes(w.found, gone, named)
	newest, ok := s.log.newest()
	if !ok || len(changes) > 0 || !slices.Equal(newest.roots, s.roots) {
		r := &record{time: s.now(), label: l.cut(), roots: s.roots, changes: changes}
		r.files, r.bytes = s.count(newest, changes)
		if err := s.write(r); err != nil {
			return Snapshot{}, err
		}
		newest, _ = s.log.newest()
	} else {
		s.blobs.drop()
	}
	s.adopt(w, changes)
	return newest.Snapshot, nil
}

// write brings the contents of a record to the disk, and then the record.
func (s *Store) write(r *record) (err error) {
	if r.blobs, err = s.blobs.commit(); err != nil {
		return err
	}
	if err := s.log.append(r); err != nil {
		return err
	}
	s.blobs.keep()
	return nil
}

// unseen returns the entries of the state that the walk should have come to and
// has not. What lies in ignored folders, but is kept, is looked at by itself.
func (s *Store) unseen(w *walk, scope []string) (gone []string, err error) {
	now := tree{}
	for _, f := range w.found {
		now[f.path] = f.entry
	}
	var apart []string
	for path, n := range s.state {
		if n.seen == w.gen || !anyHolds(scope, path) {
			continue
		}
		if _, again := now[path]; again {
			continue
		}
		if s.hidden(path, now) {
			apart = append(apart, path)
		} else {
			gone = append(gone, path)
		}
	}
	slices.Sort(apart)
	for _, path := range apart {
		n := s.state[path]
		if n.seen == w.gen {
			continue
		}
		before := len(w.found)
		if err := w.named(path, true); err != nil {
			return nil, err
		}
		if n.seen != w.gen && !slices.ContainsFunc(w.found[before:], func(f found) bool { return f.path == path }) {
			gone = append(gone, path)
		}
	}
	return gone, nil
}

// hidden reports whether a folder above path is left out now.
func (s *Store) hidden(path string, now tree) bool {
	root, ok := s.rootOf(path)
	for at := path; ok && at != root; {
		at = parent(at)
		e, again := now[at]
		if n := s.state[at]; !again && n != nil {
			e = n.entry
		}
		if e.kind == Skipped {
			return true
		}
	}
	return false
}

// changes compares what was found with the state.
func (s *Store) changes(all []found, gone, named []string) []change {
	now := tree{}
	var out []change
	for _, f := range all {
		if _, twice := now[f.path]; twice {
			continue
		}
		now[f.path] = f.entry
		if n := s.state[f.path]; n == nil || n.entry != f.entry {
			out = append(out, change{path: f.path, entry: f.entry})
		}
	}
	for _, path := range gone {
		switch {
		case !s.hidden(path, now):
			out = append(out, change{path: path, gone: true})
		case s.state[path].kind != None:
			out = append(out, change{path: path, entry: entry{kind: None}})
		}
	}
	for _, path := range named { // what is not there, where nobody would look for it
		for ; s.hidden(path, now); path = parent(path) {
			if _, known := now[path]; known || s.state[path] != nil {
				break
			}
			now[path] = entry{}
			out = append(out, change{path: path, entry: entry{}})
		}
	}
	sortChanges(out)
	return out
}

// count returns the number and the size of the kept files after changes.
func (s *Store) count(newest head, changes []change) (files, bytes int64) {
	files, bytes = newest.Files, newest.Bytes
	for _, c := range changes {
		if n := s.state[c.path]; n != nil && n.kind == File {
			files--
			bytes -= n.size
		}
		if !c.gone && c.entry.kind == File {
			files++
			bytes += c.entry.size
		}
	}
	return files, bytes
}

// adopt makes what the walk found, and the snapshot holds, the state.
func (s *Store) adopt(w *walk, changes []change) {
	for _, c := range changes {
		if c.gone {
			delete(s.state, c.path)
		} else {
			s.state[c.path] = &node{entry: c.entry, seen: w.gen}
		}
	}
	for _, f := range w.found {
		if n := s.state[f.path]; n != nil && n.entry == f.entry {
			n.st, n.sure = f.st, f.sure
		}
	}
	s.stale += len(w.found)
	if s.stale > indexEvery {
		_ = s.saveIndex() // only saves work
	}
}

func (l Label) cut() Label {
	cut := func(t string) string { return t[:min(len(t), maxLabel)] }
	return Label{Session: cut(l.Session), Call: cut(l.Call), Text: cut(l.Text), Ours: l.Ours}
}
