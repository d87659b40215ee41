package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

// Status says what became of a path.
type Status string

// What can become of a path. Type is a file that became a link or a folder, or
// the like.
const (
	Added    Status = "added"
	Modified Status = "modified"
	Deleted  Status = "deleted"
	Renamed  Status = "renamed"
	Mode     Status = "mode"
	Type     Status = "type"
)

// Side is one side of a change.
type Side struct {
	Kind   Kind
	Mode   uint32 // permission bits
	Size   int64
	Target string // of a link
	Reason Reason // why it is not kept
}

// Change is how one path differs between two snapshots.
type Change struct {
	Path   string // absolute
	From   string // of a renamed file: its path before
	Status Status
	Before Side
	After  Side

	Hunks          []Hunk // of texts
	Added, Removed int    // lines

	Binary bool // at least one side is no text
	Cut    bool // too large to be compared line by line
	Unkept bool // one side is not kept: it can neither be shown nor brought back
}

// Totals are the sums of a list of changes.
type Totals struct {
	Files, Added, Removed int
}

// Total sums up changes. Folders are not counted.
func Total(all []Change) (t Totals) {
	for _, c := range all {
		if c.Before.Kind == Dir && c.After.Kind == None || c.Before.Kind == None && c.After.Kind == Dir || c.Before.Kind == Dir && c.After.Kind == Dir {
			continue
		}
		t.Files++
		t.Added += c.Added
		t.Removed += c.Removed
	}
	return t
}

// Limits of a comparison. What is beyond them is listed, and Cut.
const (
	maxText  = 2 << 20  // bytes of one side
	maxTexts = 2_000    // files that are compared line by line
	maxShown = 16 << 20 // bytes of all texts that are compared
	sniff    = 8 << 10  // bytes in which a NUL tells that it is no text
)

// Diff tells two snapshots apart: sorted by path, with the hunks of texts. A file
// that is gone and another one with the same bytes, or with most of its lines, are
// one that was renamed.
func (s *Store) Diff(ctx context.Context, from, to ID) ([]Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx, false); err != nil {
		return nil, err
	}
	a, err := s.log.tree(from)
	if err != nil {
		return nil, fmt.Errorf("comparing snapshots: %w", err)
	}
	b, err := s.log.tree(to)
	if err != nil {
		return nil, fmt.Errorf("comparing snapshots: %w", err)
	}
	c := comparison{s: s, left: maxTexts, bytes: maxShown}
	all, err := c.trees(ctx, a, b)
	if err != nil {
		return nil, fmt.Errorf("comparing snapshots: %w", err)
	}
	return all, nil
}

// differing returns the paths whose entries differ, ascending.
func differing(a, b tree) []string {
	var paths []string
	for p, e := range a {
		if other, ok := b[p]; !ok || other != e {
			paths = append(paths, p)
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// comparison is one answer in the making: it counts what is left of its limits.
type comparison struct {
	s     *Store
	left  int
	bytes int64
	texts map[hash][]byte // of what is stored nowhere
}

func (c *comparison) trees(ctx context.Context, a, b tree) ([]Change, error) {
	paths := differing(a, b)
	from := renames(paths, a, b)
	c.similar(paths, a, b, from)
	old := map[string]bool{}
	for _, p := range from {
		old[p] = true
	}
	var all []Change
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if old[p] {
			continue
		}
		before := a[p]
		was, renamed := from[p]
		if renamed {
			before = a[was]
		}
		if before.kind == None && (b[p].kind == None || b[p].reason == Ignored) {
			continue // a path that was named, and nothing there; what programs leave behind
		}
		ch, err := c.entries(p, before, b[p])
		if err != nil {
			return nil, err
		}
		if renamed {
			ch.Status, ch.From = Renamed, filepath.FromSlash(was)
		}
		all = append(all, ch)
	}
	return all, nil
}

// renames returns the old paths of files that appeared, by their new ones, where
// a file with the same bytes has gone. Empty files are all alike.
func renames(paths []string, a, b tree) map[string]string {
	gone := map[hash][]string{}
	for _, p := range paths {
		if e := a[p]; e.kind == File && e.size > 0 && b[p].kind == None {
			gone[e.hash] = append(gone[e.hash], p)
		}
	}
	from := map[string]string{}
	for _, p := range paths {
		e := b[p]
		if e.kind != File || a[p].kind != None || len(gone[e.hash]) == 0 {
			continue
		}
		old := gone[e.hash]
		i := max(slices.IndexFunc(old, func(o string) bool { return base(o) == base(p) }), 0)
		from[p] = old[i]
		gone[e.hash] = slices.Delete(old, i, i+1)
	}
	return from
}

func side(e entry) Side {
	return Side{e.kind, uint32(e.mode), e.size, e.target, e.reason}
}

func status(a, b entry) Status {
	switch {
	case a.kind == None:
		return Added
	case b.kind == None:
		return Deleted
	case a.kind == Skipped || b.kind == Skipped:
		return Modified
	case a.kind != b.kind:
		return Type
	case a.hash == b.hash && a.target == b.target:
		return Mode
	}
	return Modified
}

// entries compares what two snapshots have at a path.
func (c *comparison) entries(path string, a, b entry) (Change, error) {
	ch := Change{Path: filepath.FromSlash(path), Status: status(a, b), Before: side(a), After: side(b)}
	ch.Unkept = a.kind == Skipped || b.kind == Skipped
	if ch.Unkept || a.kind != File && b.kind != File || a.kind == b.kind && a.hash == b.hash {
		return ch, nil
	}
	before, err := c.text(path, a)
	if err != nil {
		return ch, err
	}
	after, err := c.text(path, b)
	if err != nil {
		return ch, err
	}
	c.lines(&ch, before, after)
	return ch, nil
}

// text returns the bytes of a file, nil when there are none or too many to be
// compared.
func (c *comparison) text(path string, e entry) ([]byte, error) {
	if e.kind != File || e.size > maxText {
		return nil, nil
	}
	if data, ok := c.texts[e.hash]; ok {
		return data, nil
	}
	data, err := c.s.blobs.get(e.hash)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return data, nil
}

// lines compares two texts within the limits.
func (c *comparison) lines(ch *Change, before, after []byte) {
	size := int64(len(before) + len(after))
	ch.Binary = isBinary(before) || isBinary(after)
	ch.Cut = ch.Before.Kind == File && ch.Before.Size > maxText || ch.After.Kind == File && ch.After.Size > maxText
	if ch.Binary || ch.Cut {
		return
	}
	if c.left == 0 || c.bytes < size {
		ch.Cut = true
		return
	}
	c.left--
	c.bytes -= size
	ch.Hunks = hunksOf(before, after)
	ch.Added, ch.Removed = counts(ch.Hunks)
}

// isBinary reports whether a content is no text, as git tells it.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniff)], 0) >= 0
}
