package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Keep drops the snapshots that are not among live, but for the newest, and gives
// back the space of contents that no other needs. A pack is written anew when more
// than an eighth of it is not needed. Names of snapshots that do not exist are passed over.
func (s *Store) Keep(ctx context.Context, live []ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx, true); err != nil {
		return fmt.Errorf("dropping snapshots: %w", err)
	}
	var keep []int
	for i, h := range s.log.heads {
		if i == len(s.log.heads)-1 || slices.Contains(live, h.ID) {
			keep = append(keep, i)
		}
	}
	if len(keep) == len(s.log.heads) {
		return nil
	}
	if err := s.retain(keep); err != nil {
		return fmt.Errorf("dropping snapshots: %w", err)
	}
	return nil
}

// Space is made when the packs have reached 7/8 of what they may have: the oldest
// snapshots go until what the others need is no more than 3/4.
func (s *Store) makeRoom() error {
	if s.blobs.total() <= s.maxBytes/8*7 || len(s.log.heads) < 2 {
		return nil
	}
	first, err := s.firstWithin(s.maxBytes / 4 * 3)
	if err == nil && first > 0 {
		var keep []int
		for i := first; i < len(s.log.heads); i++ {
			keep = append(keep, i)
		}
		err = s.retain(keep)
	}
	if err != nil {
		return fmt.Errorf("dropping old snapshots: %w", err)
	}
	return nil
}

// firstWithin returns the oldest snapshot that can stay when what it and all later
// ones need may take so many bytes. The newest stays always.
func (s *Store) firstWithin(most int64) (int, error) {
	refs := map[hash]int{}
	var need int64
	records := make([][]change, len(s.log.heads))
	for i := range records {
		r, err := s.log.record(i)
		if err != nil {
			return 0, err
		}
		records[i] = r.changes
		for _, c := range r.changes {
			if !c.gone && c.entry.kind == File {
				if refs[c.entry.hash]++; refs[c.entry.hash] == 1 {
					need += s.blobs.known[c.entry.hash].stored
				}
			}
		}
	}
	t := tree{}
	t.apply(records[0])
	first := 0
	for ; first < len(records)-1 && need > most; first++ {
		for _, c := range records[first+1] {
			if old := t[c.path]; old.kind == File {
				if refs[old.hash]--; refs[old.hash] == 0 {
					need -= s.blobs.known[old.hash].stored
				}
			}
		}
		t.apply(records[first+1])
	}
	return first, nil
}

// retain writes the log anew with some of its snapshots, and the packs of which
// little is needed. The new log comes into force at once, with its name; what a
// crash leaves beside it is removed by the next Open.
func (s *Store) retain(keep []int) error {
	records, err := s.merged(keep)
	if err != nil {
		return err
	}
	live := map[hash]place{}
	for _, r := range records {
		for _, c := range r.changes {
			if p, ok := s.blobs.known[c.entry.hash]; ok && !c.gone && c.entry.kind == File {
				live[c.entry.hash] = p
			}
		}
	}
	if err := s.blobs.gather(live); err != nil {
		s.blobs.drop()
		return err
	}
	for h, p := range live {
		records[0].blobs = append(records[0].blobs, placed{h, p})
	}
	if err := s.log.replace(records); err != nil {
		s.blobs.drop()
		return err
	}
	return s.blobs.become(records[0].blobs)
}

// merged returns the records of some snapshots, each as its difference from the
// one before among them. What led from one to the next was done by the session
// only when every step of it was.
func (s *Store) merged(keep []int) ([]*record, error) {
	var out []*record
	t, last := tree{}, tree{}
	ours := true
	for i := range s.log.heads {
		r, err := s.log.record(i)
		if err != nil {
			return nil, err
		}
		t.apply(r.changes)
		ours = ours && (r.label.Ours || len(r.changes) == 0)
		if !slices.Contains(keep, i) {
			continue
		}
		r.blobs, r.changes = nil, nil
		for _, path := range differing(last, t) {
			e, there := t[path]
			r.changes = append(r.changes, change{path: path, gone: !there, entry: e})
		}
		r.label.Ours = ours && len(out) > 0
		out = append(out, r)
		last, ours = t.clone(), true
	}
	return out, nil
}

// replace gives the log other records.
func (l *log) replace(records []*record) error {
	name := filepath.Join(l.dir, "log")
	l.fault("log.write")
	f, err := openOwn(name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	next := &log{dir: l.dir, sync: l.sync, fault: l.fault, f: f, damage: l.damage}
	for _, r := range records {
		var b []byte
		if b, err = frame(r); err != nil {
			break
		}
		if _, err = f.WriteAt(b, next.size); err != nil {
			break
		}
		next.add(r, int64(len(b)))
	}
	l.fault("log.written")
	if err == nil && l.sync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return errors.Join(err, os.Remove(name+".new"))
	}
	// No system objects to giving a name to what is closed.
	err = errors.Join(l.f.Close(), os.Rename(name+".new", name))
	l.fault("log.named")
	var again error
	if l.f, again = openOwn(name, os.O_RDWR); err != nil || again != nil {
		return errors.Join(err, again)
	}
	next.f = l.f
	*l = *next
	return syncDir(l.dir)
}

// gather moves contents that are needed out of packs that hold little else, and
// notes their new places.
func (b *blobs) gather(live map[hash]place) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	need := map[uint32]int64{}
	for _, p := range live {
		need[p.pack] += p.stored
	}
	if b.open != nil { // what is moved goes to a pack of its own
		if err := b.open.Close(); err != nil {
			return err
		}
		b.open = nil
	}
	last := b.pack
	for h, p := range live {
		if p.pack > last || need[p.pack] >= b.sizes[p.pack]/8*7 {
			continue
		}
		raw, err := b.raw(p)
		if errors.Is(err, ErrDamaged) {
			delete(live, h) // what is lost cannot be moved
			continue
		}
		if err != nil {
			return err
		}
		if err := b.fill(last, int64(len(raw))); err != nil {
			return err
		}
		b.fault("pack.write")
		if _, err := b.open.WriteAt(raw, b.end); err != nil {
			return err
		}
		b.fault("pack.written")
		p.pack, p.offset = b.pack, b.end
		live[h] = p
		b.end += p.stored
	}
	if b.open == nil || !b.sync {
		return nil
	}
	for _, f := range append(slices.Clip(b.full), b.open) {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return syncDir(b.dir)
}

// fill opens a pack behind the last one that was there, with room for n bytes.
func (b *blobs) fill(last uint32, n int64) error {
	if b.open != nil && b.end+n <= packSize {
		return nil
	}
	if b.open != nil {
		b.full = append(b.full, b.open)
		b.open = nil
	}
	b.pack = max(b.pack, last) + 1
	f, err := openOwn(b.path(b.pack), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	b.open, b.end = f, 0
	if err != nil {
		b.open = nil
	}
	return err
}

// become makes these all the contents that there are.
func (b *blobs) become(all []placed) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	if b.open != nil {
		if err := b.open.Close(); err != nil {
			return err
		}
		b.open = nil
	}
	clear(b.known)
	clear(b.sizes)
	b.learn(all)
	return b.trim()
}
