package files

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/base/near"
	"dure/internal/tools/kit"
)

// How far the search for the file that was meant goes.
const (
	maxNearest  = 3
	maxSiblings = 5_000 // names that are compared
	nearestTime = 500 * time.Millisecond
)

// missing returns the error for a file that is not there, with the names that
// may have been meant.
func (f *files) missing(tc agent.ToolContext, path string) error {
	message := kit.Name(path) + " does not exist"
	if dir := filepath.Dir(path); !f.exists(dir) {
		message += ", nor does the folder " + kit.Name(dir)
	}
	suggestion := "Look for it with the glob or list tool."
	if near := f.nearest(tc, path); len(near) > 0 {
		suggestion = "Did you mean " + strings.Join(near, ", ") + "?"
	}
	return kit.Refuse(ErrFileMissing, message, suggestion)
}

func (f *files) exists(path string) bool {
	_, err := f.FS.Stat(path)
	return err == nil
}

// nearest returns files like path: names like it in its folder, and files of
// the workspace that have its name.
func (f *files) nearest(tc agent.ToolContext, path string) []string {
	dir, base := filepath.Dir(path), filepath.Base(path)
	type guess struct {
		path  string
		score int // lower is nearer
	}
	var guesses []guess
	if entries, err := f.FS.ReadDir(dir); err == nil {
		for _, e := range entries[:min(len(entries), maxSiblings)] {
			if score, ok := likeness(base, e.Name()); ok {
				guesses = append(guesses, guess{filepath.Join(dir, e.Name()), score})
			}
		}
	}
	if f.Workspace.Inside(path) {
		// A hint is not worth a wait, and no part of the call that may be cancelled.
		ctx, cancel := context.WithTimeout(context.Background(), nearestTime)
		defer cancel()
		if l, err := f.Workspace.List(ctx, f.Workspace.Root()); err == nil {
			for _, p := range l.Paths {
				if strings.EqualFold(p[strings.LastIndexByte(p, '/')+1:], base) {
					guesses = append(guesses, guess{filepath.Join(f.Workspace.Root(), filepath.FromSlash(p)), 1})
				}
			}
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int { return a.score - b.score })
	var near []string
	for _, g := range guesses {
		if p := shown(tc, g.path); !slices.Contains(near, p) && len(near) < maxNearest {
			near = append(near, p)
		}
	}
	return near
}

// likeness says how near a name is to the one that was asked for.
func likeness(want, have string) (score int, ok bool) {
	w, h := strings.ToLower(want), strings.ToLower(have)
	if w == h {
		return 0, true
	}
	stem := strings.TrimSuffix(w, filepath.Ext(w))
	if stem != "" && stem == strings.TrimSuffix(h, filepath.Ext(h)) {
		return 1, true
	}
	far := min(3, len(w)/3) + 1
	d := near.Distance(w, h, far)
	return 1 + d, d < far
}
