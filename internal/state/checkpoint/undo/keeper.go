package undo

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/state/checkpoint"
)

// keeper keeps what the workspace of a session looks like around the calls that
// change it. It is safe for concurrent use.
type keeper struct {
	*family
	session string
	root    string // of the workspace
	record  func(agent.Body) error
	outcome func(handle string) (agent.Result, bool)
	events  func(ctx context.Context, after int64) iter.Seq2[agent.Event, error]
	log     *slog.Logger

	newest checkpoint.ID // that the log has; "" = not known: a crash may have come between the store and the log
}

// family is a session and its children, which share one store of snapshots: what is
// shown and put back covers them all. Its mutex guards the keepers, too.
type family struct {
	cfg     checkpoint.Config
	session string // the one that the store is named after

	mu      sync.Mutex
	keepers []*keeper          // of those that are open
	store   *checkpoint.Store  // nil until it is needed
	broken  bool               // it cannot be used; the user knows
	walked  time.Time          // when all was looked at last
	turn    string             // of that
	running int                // calls that may be changing files
	jobs    map[string]*keeper // handles of those that go on behind their calls
}

// fresh is how long a look at the workspace holds for the next call: what others
// change in that time counts as changed by the call.
const fresh = 2 * time.Second

// patience bounds how long a call waits for a snapshot. A workspace that takes longer
// to look at is not kept.
const patience = 30 * time.Second

// open returns the store, or nil when there is none to be had. The family's mutex is
// held.
func (k *keeper) open(ctx context.Context) *checkpoint.Store {
	if k.broken {
		return nil
	}
	if k.store != nil {
		return k.store
	}
	store, err := checkpoint.Open(k.cfg)
	if err == nil && store.Pending() != "" {
		_, err = store.Recover(ctx)
	}
	if err != nil {
		k.fail(err)
		return nil
	}
	k.store = store
	return store
}

// fail tells the user that nothing is kept from now on.
func (k *keeper) fail(err error) {
	k.broken = true
	text := "what is done to files from now on cannot be taken back: " + err.Error()
	if err := k.record(agent.Note{Level: "warn", Text: text}); err != nil {
		k.log.Warn(text, "error", err)
	}
}

// wrap takes a snapshot before a call that may change files, and one after it. A
// tool that names what it writes has those looked at alone.
func (k *keeper) wrap(_ agent.Tool, next plug.Run) plug.Run {
	return func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
		env := agent.CallEnvOf(ctx)
		if !changes(env) {
			return next(ctx, tc, c)
		}
		paths := named(env.Effects)
		k.look(ctx, tc, c, paths, "before")
		r, err := next(ctx, tc, c)
		if r.Handle != "" {
			k.mu.Lock()
			k.jobs[r.Handle] = k
			k.mu.Unlock()
		}
		k.look(context.WithoutCancel(ctx), tc, c, paths, "after")
		return r, err
	}
}

// changes reports whether a call may change files.
func changes(env agent.CallEnv) bool {
	e := env.Effects
	switch {
	case env.Class == agent.Read:
		return false
	case len(e.Writes) > 0, e.Unreadable != "", e.Unparsed != "", len(e.Runs) > 0:
		return true
	}
	return slices.ContainsFunc(e.Commands, writes)
}

func writes(c agent.SimpleCommand) bool {
	return c.Kind != agent.CommandReads && !(c.Transparent && len(c.Runs) > 0) || slices.ContainsFunc(c.Runs, writes)
}

// named are the paths that a call writes, when it writes no others.
func named(e agent.Effects) []string {
	if len(e.Commands) > 0 || len(e.Runs) > 0 || e.Unreadable != "" || e.Unparsed != "" {
		return nil
	}
	return e.Writes
}

// byCommand is in front of the tool in the label of what did not say what it writes.
const byCommand = "command:"

// look takes a snapshot and records it if it is a new one.
func (k *keeper) look(ctx context.Context, tc agent.ToolContext, c agent.Call, paths []string, when string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	busy := k.working() > 0 // with this call, when it has ended
	if when == "before" {
		k.running++
	} else {
		k.running--
	}
	store := k.open(ctx)
	if store == nil {
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	label := checkpoint.Label{Session: k.session, Call: c.ID, Text: c.Tool, Ours: busy}
	if len(paths) == 0 {
		label.Text = byCommand + c.Tool
	}
	var snap checkpoint.Snapshot
	var err error
	switch {
	case len(paths) > 0:
		snap, err = store.Touch(ctx, label, paths...)
	case when == "before" && k.turn == tc.TurnID && began.Sub(k.walked) < fresh:
		return
	default:
		if snap, err = store.Take(ctx, label); err == nil {
			k.walked, k.turn = time.Now(), tc.TurnID
		}
	}
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			k.fail(err)
		}
		return
	}
	taken := agent.CheckpointTaken{
		ID: string(snap.ID), Call: c.ID, When: when, Changed: snap.Changed, Files: int(snap.Files), Bytes: snap.Bytes,
		Millis: time.Since(began).Milliseconds(),
	}
	k.enter(snap.ID, taken)
	for _, head := range k.keepers {
		if head.session == k.family.session && head != k {
			taken.Child = k.session
			head.enter(snap.ID, taken)
		}
	}
}

// enter records a snapshot in the log of a session, unless it is there.
func (k *keeper) enter(id checkpoint.ID, taken agent.CheckpointTaken) {
	if id == k.newest {
		return
	}
	k.newest = id
	if err := k.record(taken); err != nil {
		k.log.Warn("recording a checkpoint", "error", err)
	}
}

// working returns how many calls and jobs may be changing files. What has changed
// meanwhile cannot be told from what they do, and counts as theirs. A job counts once
// more when it has ended: nobody has looked since.
func (f *family) working() int {
	n := f.running + len(f.jobs)
	for handle, k := range f.jobs {
		if _, over := k.outcome(handle); over {
			delete(f.jobs, handle)
		}
	}
	return n
}

func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for handle, of := range k.jobs {
		if of == k {
			delete(k.jobs, handle)
		}
	}
	k.keepers = slices.DeleteFunc(k.keepers, func(o *keeper) bool { return o == k })
	if k.store == nil || len(k.keepers) > 0 {
		return
	}
	if err := k.store.Close(); err != nil {
		k.log.Warn("closing the snapshots", "error", err)
	}
	k.store = nil
}

// families are those whose sessions are open.
type families struct {
	mu  sync.Mutex
	all []*family
}

// join puts a keeper into the family of a session, which is made when none of it is
// open.
func (f *families) join(k *keeper, session string, found func(id string) *family) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(one *family) bool {
		one.mu.Lock()
		defer one.mu.Unlock()
		return len(one.keepers) == 0
	})
	i := slices.IndexFunc(f.all, func(one *family) bool { return one.session == session && one.in(k.root) })
	if i < 0 {
		f.all = append(f.all, found(session))
		i = len(f.all) - 1
	}
	k.family = f.all[i]
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keepers = append(k.keepers, k)
}

// in reports whether a family works in a folder.
func (f *family) in(root string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.keepers, func(k *keeper) bool { return k.root == root })
}

// of returns the family of an open session, or nil.
func (f *families) of(id string) *family {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.all {
		one.mu.Lock()
		has := slices.ContainsFunc(one.keepers, func(k *keeper) bool { return k.session == id })
		one.mu.Unlock()
		if has {
			return one
		}
	}
	return nil
}
