package checkpoint

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
)

// Limits of looking for files that were renamed and changed: beyond them they are
// shown as one that is gone and one that is new.
const (
	maxSimilar  = 200       // files on each side
	maxCompared = 256 << 10 // bytes of a file
	leastLines  = 3         // that are not blank, of the smaller file
	leastAlike  = 60        // of a hundred lines of the larger file
)

// lineCounts is how often a text has each line that is not blank.
type lineCounts struct {
	path   string
	counts map[uint64]int
	total  int
}

var lineSeed = maphash.MakeSeed()

func countLines(path string, text []byte) lineCounts {
	c := lineCounts{path: path, counts: map[uint64]int{}}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			c.counts[maphash.Bytes(lineSeed, line)]++
			c.total++
		}
	}
	return c
}

// alike returns how many of a hundred lines of the larger text the other has, too.
func (c lineCounts) alike(o lineCounts) int {
	if min(c.total, o.total) < leastLines || min(c.total, o.total)*100 < max(c.total, o.total)*leastAlike {
		return 0
	}
	same := 0
	for h, n := range c.counts {
		same += min(n, o.counts[h])
	}
	return same * 100 / max(c.total, o.total)
}

// similar adds to from the old paths of files that appeared where a file with
// most of their lines has gone. The most alike belong together.
func (c *comparison) similar(paths []string, a, b tree, from map[string]string) {
	taken := map[string]bool{}
	for _, old := range from {
		taken[old] = true
	}
	var gone, came []lineCounts
	for _, p := range paths {
		switch {
		case a[p].kind == File && b[p].kind == None && !taken[p]:
			gone = c.countable(gone, p, a[p])
		case b[p].kind == File && a[p].kind == None && from[p] == "":
			came = c.countable(came, p, b[p])
		}
	}
	type pair struct{ old, now, alike int }
	var pairs []pair
	for i, o := range gone {
		for j, n := range came {
			if s := o.alike(n); s >= leastAlike {
				pairs = append(pairs, pair{i, j, s})
			}
		}
	}
	slices.SortStableFunc(pairs, func(x, y pair) int { return cmp.Compare(y.alike, x.alike) })
	for _, p := range pairs {
		old, now := gone[p.old].path, came[p.now].path
		if !taken[old] && from[now] == "" {
			from[now], taken[old] = old, true
		}
	}
}

// countable adds the lines of a file to a list, when it is a text within the limits.
func (c *comparison) countable(list []lineCounts, path string, e entry) []lineCounts {
	if len(list) == maxSimilar || e.size == 0 || e.size > maxCompared {
		return list
	}
	text, err := c.text(path, e)
	if err != nil || isBinary(text) {
		return list // shown as what it is, or reported where it is read again
	}
	return append(list, countLines(path, text))
}
