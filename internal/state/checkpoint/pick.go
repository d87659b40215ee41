package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Pick names a file of a review, or some of its hunks.
type Pick struct {
	Path string // absolute
	From string // of a renamed file: its path before

	// ID is that of the change as it was seen. When it is another one by now, the
	// pick is void. "" = whatever it is.
	ID string

	// Hunks are the IDs of those that are meant; none = the whole file. A file that
	// was added or deleted is always meant as a whole.
	Hunks []string
}

// hunkIDs returns a name for each hunk of a file, made of its lines. Hunks with
// the same lines are numbered.
func hunkIDs(path string, hunks []Hunk) []string {
	var ids []string
	seen := map[string]int{}
	for _, h := range hunks {
		sum := sha256.Sum256([]byte(path + "\x00" + strings.Join(h.Lines, "\n")))
		id := hex.EncodeToString(sum[:6])
		if seen[id]++; seen[id] > 1 {
			id = fmt.Sprintf("%s-%d", id, seen[id])
		}
		ids = append(ids, id)
	}
	return ids
}

// changeID returns a name for what became of a file.
func changeID(path, from string, before, after entry) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %o %x %q %d %o %x %q", path, from,
		before.kind, before.mode, before.hash, before.target, after.kind, after.mode, after.hash, after.target))
	return hex.EncodeToString(sum[:8])
}

// choose returns the hunks with these IDs.
func choose(path string, hunks []Hunk, ids []string) ([]Hunk, error) {
	var picked []Hunk
	all := hunkIDs(path, hunks)
	for i, id := range all {
		if slices.Contains(ids, id) {
			picked = append(picked, hunks[i])
		}
	}
	for _, id := range ids {
		if !slices.Contains(all, id) {
			return nil, fmt.Errorf("hunk %.20q: %w", id, errHunk)
		}
	}
	return picked, nil
}

// inverted returns hunks that lead back.
func inverted(hunks []Hunk) []Hunk {
	var all []Hunk
	for _, h := range hunks {
		back := Hunk{OldStart: h.NewStart, OldLines: h.NewLines, NewStart: h.OldStart, NewLines: h.OldLines}
		for _, l := range h.Lines {
			switch l[0] {
			case '+':
				l = "-" + l[1:]
			case '-':
				l = "+" + l[1:]
			}
			back.Lines = append(back.Lines, l)
		}
		all = append(all, back)
	}
	return all
}
