package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"dure/agent"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

const pileSize = 10_000 // sessions

// usual measures a session that was shortened as it grew, as sessions of its length
// are: what a window does not hold any more is on the disk alone.
func usual(b *bench) ([]Figure, error) {
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	work, env := filepath.Join(home, "work"), environ(home, nowhere)
	if _, _, err := child[filled](b.ctx, work, env, "fill", work, strconv.Itoa(usualSize), "shortened"); err != nil {
		return nil, err
	}
	if _, _, err := child[opened](b.ctx, work, env, "open", work); err != nil { // which leaves a snapshot
		return nil, err
	}
	shown, err := repeat(max(3, b.few()), func() (Sample, error) {
		s, _, err := child[opened](b.ctx, work, env, "open", work)
		return s, err
	})
	if err != nil {
		return nil, err
	}
	asked, err := repeat(max(3, b.few()), func() (Sample, error) { return b.resume(home) })
	if err != nil {
		return nil, err
	}
	return []Figure{
		{What: "opened", Unit: "ms", Aim: 150, Spread: spread(shown, wallMS)},
		{What: "peak", Unit: "MB", Aim: 100, Spread: spread(shown, peakMB)},
		{What: "resumed with a prompt and answered", Unit: "ms", Aim: 150, Spread: spread(asked, wallMS)},
		{What: "peak", Unit: "MB", Aim: 100, Spread: spread(asked, peakMB)},
	}, nil
}

// pile measures what it takes to find sessions among many, and to go on with one.
func pile(b *bench) ([]Figure, error) {
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	work, env := filepath.Join(home, "work"), environ(home, nowhere)
	_, made, err := child[piled](b.ctx, work, env, "pile", work, strconv.Itoa(pileSize))
	if err != nil {
		return nil, err
	}
	srv, err := serveAny(reply{text: "Hello again."})
	if err != nil {
		return nil, err
	}
	defer srv.close()
	var figures []Figure
	for _, c := range []struct {
		what string
		once func() (Sample, error)
		aim  float64
	}{
		{"sessions", func() (Sample, error) {
			return measure(b.ctx, run{dir: work, env: env, argv: []string{b.binary, "sessions"}})
		}, 60},
		{"newest resumed with a prompt and answered", func() (Sample, error) {
			return b.print(home, environ(home, srv.url()), "--continue")
		}, 60},
		{"one by its ID resumed with a prompt and answered", func() (Sample, error) {
			return b.print(home, environ(home, srv.url()), "--resume", made.Middle)
		}, 60},
		{"new one with a prompt and answered", func() (Sample, error) {
			return b.print(home, environ(home, srv.url()), "--model", scripted)
		}, 60},
	} {
		if _, err := c.once(); err != nil { // what is kept of it by the system
			return nil, fmt.Errorf("%s: %w", c.what, err)
		}
		s, err := repeat(b.runs, c.once)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.what, err)
		}
		figures = append(figures,
			Figure{What: c.what, Unit: "ms", Aim: c.aim, Spread: spread(s, wallMS)},
			Figure{What: "peak", Unit: "MB", Aim: 100, Spread: spread(s, peakMB)})
	}
	return figures, nil
}

// piled says what a pile of sessions consists of.
type piled struct {
	Middle string `json:"middle"` // the ID of one that is neither old nor new
}

// pileChild writes sessions of one turn each, a minute apart, into the store of the
// program.
func pileChild(args []string) (any, error) {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	dir, err := dataDir(args[0])
	if err != nil {
		return nil, err
	}
	now := time.Now().Add(-time.Duration(n) * time.Minute)
	store, err := journal.NewLocal(journal.LocalOptions{Dir: dir, Durability: journal.DurabilityOS, Now: func() time.Time { return now }})
	if err != nil {
		return nil, err
	}
	var out piled
	for i := range n {
		now = now.Add(time.Minute)
		id := journal.NewID(now)
		if i == n/2 {
			out.Middle = id
		}
		if err := pileOne(store, args[0], id, i); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	return out, store.Close()
}

// pileOne writes a session of one turn.
func pileOne(store journal.Store, work, id string, n int) error {
	w := writer{ctx: context.Background(), state: transcript.New()}
	info := agent.SessionInfo{ID: id, Workdir: work, Model: scripted}
	if err := store.Create(w.ctx, journal.Meta{SessionInfo: info}); err != nil {
		return err
	}
	var err error
	if w.lease, err = store.Acquire(w.ctx, id, journal.Owner{ID: "bench"}); err != nil {
		return err
	}
	last := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: prose(n, answerBytes)}}}
	err = w.store(true,
		agent.SessionOpened{Session: id, Workdir: work, Model: scripted, Dialect: "claude", Lane: "main"},
		agent.InputAdded{Input: "in_" + id, Text: fmt.Sprintf("Task %d of many: ", n) + prose(n, 200)},
		agent.TurnStarted{Turn: "tn_" + id},
		agent.ModelAnswered{Turn: "tn_" + id, Step: 1, Answer: agent.Answer{Message: last, Stop: agent.StopEnd, Usage: agent.Usage{Input: 5000, Output: 300}}},
		agent.TurnEnded{Turn: "tn_" + id, Reason: agent.EndDone, Steps: 1},
	)
	return errors.Join(err, w.lease.Release(w.ctx, journal.Parked, journal.Meta{SessionInfo: w.state.Info()}))
}
