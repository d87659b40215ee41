//go:build unix

package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dure/internal/prooftest"
)

// model is a file as the accepted and rejected hunks should leave it: its lines
// before and now.
type model struct{ before, now []string }

// splice takes the place of lines in a text by the numbers of a hunk.
func splice(lines []string, h Hunk, old bool) []string {
	start, n := h.OldStart, h.OldLines
	if !old {
		start, n = h.NewStart, h.NewLines
	}
	var in []string
	for _, l := range h.Lines {
		if l[0] == ' ' || l[0] == '+' && old || l[0] == '-' && !old {
			in = append(in, l[1:])
		}
	}
	at := max(start-1, 0)
	return append(append(append([]string{}, lines[:at]...), in...), lines[at+n:]...)
}

func joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// Random edits, and random hunks of them accepted and taken back one by one, lead
// to exactly what applying the accepted hunks gives; and all of it can be taken back.
func TestRandomReviews(t *testing.T) {
	runs := 12
	if prooftest.Long() {
		runs = 1000
	}
	first := seed(t)
	for i := range runs {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			randomReview(t, rand.New(rand.NewPCG(first, uint64(i))))
		})
	}
}

func randomReview(t *testing.T, rnd *rand.Rand) {
	r := newRig(t)
	random := func(n int) (all []string) {
		for range n {
			all = append(all, fmt.Sprint("line ", rnd.IntN(20)))
		}
		return all
	}
	files := map[string]*model{}
	for i := range 3 {
		m := &model{before: random(20 + rnd.IntN(60))}
		files[fmt.Sprint("f", i)] = m
		r.write(fmt.Sprint("f", i, "=", joined(m.before)))
	}
	v := Review{From: r.take(false)}
	for name, m := range files {
		m.now = append([]string{}, m.before...)
		for range rnd.IntN(6) {
			at := rnd.IntN(len(m.now) + 1)
			end := min(at+rnd.IntN(3), len(m.now))
			m.now = append(append(append([]string{}, m.now[:at]...), random(rnd.IntN(3))...), m.now[end:]...)
		}
		r.write(name + "=" + joined(m.now))
	}
	r.take(true)
	start := r.picture()
	undo := r.List()[len(r.List())-1].ID
	for range 200 {
		open, _, err := r.Open(t.Context(), v)
		must(t, err)
		if len(open) == 0 {
			break
		}
		it := open[rnd.IntN(len(open))]
		m := files[filepath.Base(it.Path)]
		h := rnd.IntN(len(it.Hunks))
		pick := Pick{Path: it.Path, ID: it.ID, Hunks: it.Hunks[h : h+1]}
		if rnd.IntN(2) == 0 {
			r.accept(&v, pick)
			m.before = splice(m.before, it.Change.Hunks[h], true)
		} else {
			res := r.reject(&v, Choice{Picks: []Pick{pick}})
			equal(t, "left", r.items(res.Left), "")
			m.now = splice(m.now, it.Change.Hunks[h], false)
		}
		equal(t, "the file", r.content(filepath.Base(it.Path)), joined(m.now))
	}
	for name, m := range files {
		equal(t, name, joined(m.now), joined(m.before))
	}
	equal(t, "the review", r.reviewed(v), "")
	r.rewind(undo, Select{})
	equal(t, "all taken back", r.picture(), start)
}
