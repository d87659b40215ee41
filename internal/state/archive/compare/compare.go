// Package compare puts sessions side by side, shows how one stood at an event, and has one
// replayed. The replays themselves are another package's. It starts no goroutines.
package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/rogpeppe/go-internal/diff"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/state/checkpoint"
	"dure/internal/state/checkpoint/undo"
)

// What a comparison shows of files at most.
const (
	maxCompared = 200 // files
	maxFileDiff = 1 << 20
	maxDiff     = 64 << 10 // of a difference
)

// Config says how sessions are replayed and shown.
type Config struct {
	// Compare compares the logs of two sessions, and returns what the calls of each say that
	// they wrote.
	Compare func(ctx context.Context, a, b string) (agent.Comparison, [2]map[string]agent.FileState, error)

	// At returns how a session stood at an event; ok says that it has that event.
	At func(ctx context.Context, session string, seq int64) (stand agent.SessionStand, ok bool, err error)

	// Verify executes a session again from its log.
	Verify func(ctx context.Context, session string) (agent.ReplayReport, error)

	// Look calls f with the snapshots of a session, if there are any.
	Look func(ctx context.Context, session string, look bool, f func(undo.Target) error) error

	// MaskComparison and MaskStand hide the secrets in what is shown.
	MaskComparison func(agent.Comparison) (agent.Comparison, error)
	MaskStand      func(agent.SessionStand) (agent.SessionStand, error)
}

// Extension compares and replays sessions.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(cfg Config) *Extension { return &Extension{cfg: cfg} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "replays" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{
		plug.Answers(x.compare), plug.Answers(x.at),
		plug.Answers(func(ctx context.Context, q query.VerifyReplay) (agent.ReplayReport, error) {
			return x.cfg.Verify(ctx, q.Session)
		}),
	}
}

// at returns how a session stood at an event of it.
func (x *Extension) at(ctx context.Context, q query.SessionAt) (agent.SessionStand, error) {
	stand, ok, err := x.cfg.At(ctx, q.Session, q.Seq)
	if err == nil && !ok {
		seq, head := fmt.Sprint(q.Seq), fmt.Sprint(stand.Head)
		err = &agent.Problem{
			Code: agent.ProblemEvent, Message: fmt.Sprintf("%s has no event %s to go back to; its newest is %s", q.Session, seq, head),
			Fix:  "see its events with: dure show " + q.Session,
			Args: map[string]string{"session": q.Session, "seq": seq, "head": head},
		}
	}
	if err != nil {
		return stand, err
	}
	return x.cfg.MaskStand(stand)
}

// compare puts two sessions side by side.
func (x *Extension) compare(ctx context.Context, q query.CompareSessions) (agent.Comparison, error) {
	out, wrote, err := x.cfg.Compare(ctx, q.A, q.B)
	if err != nil {
		return out, err
	}
	sides := [2]*ending{{wrote: wrote[0]}, {wrote: wrote[1]}}
	for i, s := range []agent.ComparedSession{out.A, out.B} {
		if err := x.end(ctx, s, out.Shared, sides[i]); err != nil {
			return out, err
		}
	}
	paths := maps.Clone(sides[0].changed)
	for path := range sides[1].changed {
		paths[path] = true
	}
	list := slices.Sorted(maps.Keys(paths))
	if len(list) > maxCompared {
		list, out.Cut = list[:maxCompared], true
	}
	for i, s := range []agent.ComparedSession{out.A, out.B} {
		if err := x.contents(ctx, s, list, sides[i]); err != nil {
			return out, err
		}
	}
	for _, path := range list {
		if f, differs := comparedFile(path, sides[0], sides[1]); differs {
			out.Files = append(out.Files, f)
		}
	}
	return x.cfg.MaskComparison(out)
}

// An ending is how a session left its files. Paths are those of the wire.
type ending struct {
	root    string
	wrote   map[string]agent.FileState // what its calls said, by path of the system
	own     map[string]agent.FileState // the same, by path
	changed map[string]bool            // what it changed
	gone    map[string]bool            // of it, what is not there any more
	texts   map[string][]byte          // contents that are known
	empty   map[string]bool            // nothing is there, and that is known
}

// end finds what a session changed: by its snapshots, and what its calls said.
func (x *Extension) end(ctx context.Context, s agent.ComparedSession, shared int64, e *ending) error {
	e.changed, e.gone, e.own = map[string]bool{}, map[string]bool{}, map[string]agent.FileState{}
	e.texts, e.empty = map[string][]byte{}, map[string]bool{}
	stand, err := x.at(ctx, query.SessionAt{Session: s.Session, Seq: 1})
	if err != nil {
		return err
	}
	e.root = stand.Workdir
	err = x.cfg.Look(ctx, s.Session, false, func(g undo.Target) error {
		e.root = g.Root
		from, to := g.SnapshotAt(max(shared, 1)), g.SnapshotAt(s.Events)
		if from == "" || to == "" || from == to {
			return nil
		}
		all, err := g.Store.Diff(ctx, from, to)
		if err != nil {
			return nil // it was dropped; what the calls said is left
		}
		for _, c := range all {
			if c.Before.Kind == checkpoint.File || c.After.Kind == checkpoint.File {
				path := undo.WirePath(g.Root, c.Path)
				e.changed[path], e.gone[path] = true, c.After.Kind == checkpoint.None
			}
			if c.From != "" {
				path := undo.WirePath(g.Root, c.From)
				e.changed[path], e.gone[path] = true, true
			}
		}
		return nil
	})
	for path, f := range e.wrote {
		path = undo.WirePath(e.root, path)
		e.own[path] = f
		if !e.changed[path] {
			e.changed[path], e.gone[path] = true, f.Gone
		}
	}
	return unkept(err)
}

// contents reads what files held in the end.
func (x *Extension) contents(ctx context.Context, s agent.ComparedSession, paths []string, e *ending) error {
	return unkept(x.cfg.Look(ctx, s.Session, false, func(g undo.Target) error {
		to := g.SnapshotAt(s.Events)
		if to == "" {
			return nil
		}
		for _, path := range paths {
			data, err := g.Store.Content(ctx, to, undo.SystemPath(g.Root, path))
			switch {
			case err == nil:
				e.texts[path] = data
			case errors.Is(err, fs.ErrNotExist):
				e.empty[path] = true
			case ctx.Err() != nil:
				return ctx.Err()
			}
		}
		return nil
	}))
}

// unkept is what is wrong with snapshots that a comparison can do without: their
// folder is gone, or they cannot be read.
func unkept(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func (e *ending) state(path string) string {
	switch {
	case !e.changed[path]:
		return "untouched"
	case e.gone[path]:
		return "deleted"
	}
	return "changed"
}

// comparedFile tells the ends of a file apart.
func comparedFile(path string, a, b *ending) (agent.ComparedFile, bool) {
	f := agent.ComparedFile{Path: path, A: a.state(path), B: b.state(path)}
	x, okX := a.texts[path]
	y, okY := b.texts[path]
	switch knownX, knownY := okX || a.empty[path], okY || b.empty[path]; {
	case knownX && knownY:
		if okX == okY && bytes.Equal(x, y) {
			return f, false
		}
		if !isBinary(x) && !isBinary(y) && len(x)+len(y) <= maxFileDiff {
			if d := diff.Diff(path, x, path, y); len(d) <= maxDiff {
				f.Diff = string(d)
			}
		}
	case f.A == "deleted" && f.B == "deleted":
		return f, false
	case a.own[path].SHA256 != "" && a.own[path].SHA256 == b.own[path].SHA256:
		return f, false
	}
	return f, true
}

func isBinary(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 }
