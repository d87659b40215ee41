package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// nowhere is an endpoint that is never asked.
const nowhere = "http://127.0.0.1:9"

// long measures a session of 100 MB: how soon it is there for a person, and what
// the commands that read all of it take.
func long(b *bench) ([]Figure, error) {
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	work, env := filepath.Join(home, "work"), environ(home, nowhere)
	if _, _, err := child[filled](b.ctx, work, env, "fill", work, strconv.Itoa(longSize)); err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob(filepath.Join(home, "dure", "sessions", "*", longID))
	if err != nil || len(dirs) != 1 {
		return nil, errNoSession(dirs, err)
	}
	reference, _, err := b.reference(max(3, b.few()), work, env, "hash", filepath.Join(dirs[0], "*.jsonl"), filepath.Join(dirs[0], "blobs", "*"))
	if err != nil {
		return nil, err
	}
	opening := func() (Sample, error) {
		s, _, err := child[opened](b.ctx, work, env, "open", work)
		return s, err
	}
	bare, err := repeat(max(3, b.few()), func() (Sample, error) {
		if err := os.RemoveAll(filepath.Join(dirs[0], "snap")); err != nil {
			return Sample{}, err
		}
		return opening()
	})
	if err != nil {
		return nil, err
	}
	snap, err := repeat(max(3, b.few()), opening)
	if err != nil {
		return nil, err
	}
	figures := []Figure{
		{What: "opened", Unit: "ms", Aim: 1000, Spread: spread(snap, wallMS)},
		{What: "peak", Unit: "MB", Aim: 150, Spread: spread(snap, peakMB)},
		{What: "opened without a snapshot", Unit: "ms", Aim: 1000, Spread: spread(bare, wallMS)},
		{What: "peak", Unit: "MB", Aim: 150, Spread: spread(bare, peakMB)},
	}
	asked, err := repeat(max(3, b.few()), func() (Sample, error) { return b.resume(home) })
	if err != nil {
		return nil, err
	}
	figures = append(figures,
		Figure{What: "resumed with a prompt, shortened and answered", Unit: "ms", Spread: spread(asked[:1], wallMS)},
		Figure{What: "peak", Unit: "MB", Aim: 150, Spread: spread(asked[:1], peakMB)},
	)
	for _, c := range []struct {
		what string
		args []string
		aim  float64 // times the reference
	}{
		{"show", []string{"show", longID}, 0},
		{"verify", []string{"verify", longID}, verifyRatio},
		{"replay --verify", []string{"replay", "--verify", longID}, replayRatio},
	} {
		s, err := repeat(max(3, b.few()), func() (Sample, error) {
			return measure(b.ctx, run{dir: work, env: env, argv: slices.Concat([]string{b.binary}, c.args)})
		})
		if err != nil {
			return nil, err
		}
		figures = append(figures,
			Figure{What: c.what, Unit: "ms", Spread: spread(s, wallMS)},
			Figure{What: c.what + ", peak", Unit: "MB", Aim: 150, Spread: spread(s, peakMB)})
		if c.aim > 0 {
			figures = append(figures, Figure{What: c.what + ", to sha256 of the same files", Unit: "×", Aim: c.aim, Spread: ratio(spread(s, wallMS), reference)})
		}
	}
	return figures, nil
}
