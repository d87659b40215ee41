package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Content returns what a file held in a snapshot: its path is absolute. It is
// [fs.ErrNotExist] when the snapshot keeps no file there.
func (s *Store) Content(ctx context.Context, id ID, path string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.begin(ctx, false)
	var t tree
	if err == nil {
		t, err = s.log.tree(id)
	}
	var data []byte
	if err == nil {
		if e := t[s.key(path)]; e.kind == File {
			data, err = s.blobs.get(e.hash)
		} else {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of snapshot %s: %w", path, id, err)
	}
	return data, nil
}

// Export writes a snapshot to a folder that does not exist yet: with one root that
// is its copy, with several each is one in it, named after its last name, and its
// place among the roots when two have the same. Nothing is brought to the disk: a
// copy that was cut short can be made again.
func (s *Store) Export(ctx context.Context, id ID, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx, false); err != nil {
		return fmt.Errorf("exporting snapshot %s: %w", id, err)
	}
	if err := s.export(ctx, id, to); err != nil {
		return fmt.Errorf("exporting snapshot %s: %w", id, err)
	}
	return nil
}

func (s *Store) export(ctx context.Context, id ID, to string) error {
	i, err := s.log.at(id)
	if err != nil {
		return err
	}
	t, err := s.log.tree(id)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	top, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer top.Close()
	places := exportPlaces(s.log.heads[i].roots)
	var dirs []string
	modes := map[string]os.FileMode{}
	for _, path := range t.paths() {
		if err := ctx.Err(); err != nil {
			return err
		}
		root, ok := covered(path, s.log.heads[i].roots)
		if !ok {
			continue
		}
		rel := filepath.FromSlash(places[root] + path[len(root):])
		e := t[path]
		if err := s.exportEntry(top, rel, e); err != nil {
			return fmt.Errorf("writing %s: %w", rel, err)
		}
		if e.kind == Dir {
			dirs = append(dirs, rel)
			modes[rel] = e.mode
		}
	}
	for _, dir := range slices.Backward(dirs) {
		if err := top.Chmod(dir, modes[dir]); err != nil {
			return err
		}
	}
	return nil
}

func exportPlaces(roots []string) map[string]string {
	places := map[string]string{}
	if len(roots) == 1 {
		places[roots[0]] = "."
		return places
	}
	taken := map[string]bool{}
	for i, r := range roots {
		name := base(r)
		if taken[name] {
			name = fmt.Sprintf("%s-%d", name, i+1)
		}
		taken[name] = true
		places[r] = name
	}
	return places
}

// exportEntry writes one entry. Folders come before what is in them; no link is
// ever on the way, for a path of a snapshot leads through folders alone.
func (s *Store) exportEntry(top *os.Root, rel string, e entry) error {
	if e.kind == File || e.kind == Link {
		if err := top.MkdirAll(filepath.Dir(rel), 0o700); err != nil {
			return err // of a file that was named in an ignored folder
		}
	}
	switch e.kind {
	case Dir:
		return top.MkdirAll(rel, 0o700)
	case Link:
		return top.Symlink(e.target, rel)
	case File:
		data, err := s.blobs.get(e.hash)
		if err != nil {
			return err
		}
		f, err := top.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.Write(data); err != nil {
			return err
		}
		return f.Chmod(e.mode)
	}
	return nil
}
