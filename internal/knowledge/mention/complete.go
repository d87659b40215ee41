package mention

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"dure/internal/base/near"
)

// Limits of completion.
const (
	maxCompleted  = 200_000 // paths that are looked at
	maxTypos      = 2       // letters that may be wrong in a last element
	maxCandidates = 50
)

// Complete returns the paths that what is typed behind an @ may stand for, the
// likeliest first, at most limit and never more than 50. Files are paths with
// slashes, those of folders with one at the end.
func Complete(typed string, files []string, limit int) []string {
	if limit <= 0 || limit > maxCandidates {
		limit = maxCandidates
	}
	typed = strings.ToLower(strings.TrimPrefix(typed, "./"))
	typed = typed[:min(len(typed), maxName)]
	type candidate struct {
		path string
		rank int
	}
	var all []candidate
	for _, f := range files[:min(len(files), maxCompleted)] {
		if rank, ok := fitness(typed, strings.ToLower(f)); ok {
			all = append(all, candidate{f, rank})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(a.rank-b.rank, strings.Count(a.path, "/")-strings.Count(b.path, "/"), len(a.path)-len(b.path), strings.Compare(a.path, b.path))
	})
	var paths []string
	for _, c := range all[:min(len(all), limit)] {
		paths = append(paths, c.path)
	}
	return paths
}

// fitness says how well a path fits what is typed; less is better.
func fitness(typed, file string) (rank int, ok bool) {
	base := path.Base(file)
	switch {
	case typed == "" || file == typed:
		return 0, true
	case strings.HasPrefix(file, typed) && strings.Contains(typed, "/"):
		return 1, true
	case base == typed:
		return 1, true
	case strings.HasPrefix(base, typed):
		return 2, true
	case strings.Contains(base, typed):
		return 3, true
	case strings.Contains(file, typed):
		return 4, true
	}
	if gaps, ok := subsequence(typed, file); ok {
		return 5 + gaps, true
	}
	stem := strings.TrimSuffix(base, path.Ext(base))
	if len(typed) > 2*maxTypos && !strings.Contains(typed, "/") && min(near.Distance(typed, base, maxTypos+1), near.Distance(typed, stem, maxTypos+1)) <= maxTypos {
		return 1000, true
	}
	return 0, false
}

// subsequence reports whether the letters of typed stand in s in their order, and in
// how many pieces they are parted.
func subsequence(typed, s string) (gaps int, ok bool) {
	at, last := 0, -1
	for i := 0; i < len(s) && at < len(typed); i++ {
		if s[i] == typed[at] {
			if last >= 0 && i != last+1 {
				gaps++
			}
			last = i
			at++
		}
	}
	return min(gaps, 900), at == len(typed)
}
