// Package undo keeps what the files of sessions look like around the calls that change
// them, shows what has changed, and puts it back. It is the checkpoints' part in a session:
// the store of snapshots itself is package checkpoint. A session and its children share one
// store. It starts no goroutines.
package undo

import (
	"cmp"
	"context"
	"iter"
	"log/slog"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/state/checkpoint"
)

// Config says what is kept, and where.
type Config struct {
	Off    bool                   // nothing is
	Dir    func(id string) string // of the snapshots of a session
	Roots  []string               // folders that belong to every workspace
	Leave  []string               // what a rewind must not take back, but in work trees: the log, the settings
	NoSync bool
	Logger *slog.Logger
	Fault  func(boundary string) // for crash tests; nil = none

	// Tree reports whether a folder is a work tree that this program has made.
	Tree func(root string) bool

	// Elsewhere reports whether a session that another one works for is open in another
	// process, which has its snapshots.
	Elsewhere func(id string) bool

	// Find returns a session's row in the list, by its ID or a part of it.
	Find func(ctx context.Context, name string) (agent.SessionInfo, error)

	// Row returns the session of an ID as the list has it; ok says whether there is one.
	Row func(ctx context.Context, id string) (row agent.SessionInfo, ok bool, err error)

	// Read yields the events of a session.
	Read func(ctx context.Context, id string) iter.Seq2[agent.Event, error]
}

// Extension keeps the snapshots of all sessions. It is safe for concurrent use.
type Extension struct {
	cfg      Config
	families families // of sessions that are open, by the snapshots that they share
}

// New returns the extension. Nothing is looked at until a session is opened.
func New(cfg Config) *Extension { return &Extension{cfg: cfg} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "checkpoints" }

// Attach has the calls of a session kept.
func (x *Extension) Attach(ctx context.Context, s *plug.Session) (plug.Points, error) {
	if x.cfg.Off {
		return plug.Points{}, nil
	}
	k := &keeper{
		session: s.ID, root: s.Root, record: func(body agent.Body) error { return s.Record(body) }, outcome: s.Reach.Outcome, events: s.Events,
		log: x.cfg.Logger.With("session", s.ID),
	}
	parent := cmp.Or(s.Parent, worksFor(s.Stored))
	if x.cfg.Elsewhere(parent) {
		parent = ""
	}
	x.families.join(k, x.rootOf(ctx, s.ID, parent, s.Root), func(id string) *family {
		return &family{session: id, cfg: x.snapshots(id, s.Root), jobs: map[string]*keeper{}}
	})
	return plug.Points{Wrap: []plug.Wrap{k.wrap}, Undo: plug.Undo{Rewind: k.rewind, Accept: k.accept, Reject: k.reject}, Close: k.close}, nil
}

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Answers(x.diff), plug.Answers(x.plan), plug.Answers(x.export)}
}

// worksFor returns the session that one works for; "" for all others, forks too: they
// have snapshots of their own.
func worksFor(s agent.SessionInfo) string {
	if s.IsChild() {
		return s.Parent
	}
	return ""
}

// generations is how many parents are looked for.
const generations = 16

// rootOf returns the session that the snapshots of a session are named after: its
// first ancestor of those that work in the same folder.
func (x *Extension) rootOf(ctx context.Context, id, parent, root string) string {
	for range generations {
		if parent == "" {
			return id
		}
		if f := x.families.of(parent); f != nil && f.in(root) {
			return f.session
		}
		row, ok, err := x.cfg.Row(ctx, parent)
		if err != nil {
			return id
		}
		if ws, err := workspace.New(workspace.Config{Root: row.Workdir}); ok && (err != nil || ws.Root() != root) {
			return id
		}
		id, parent = parent, worksFor(row)
	}
	return id
}

// snapshots says where those of a session are kept, and what they hold.
func (x *Extension) snapshots(id, root string) checkpoint.Config {
	leave := x.cfg.Leave
	if x.cfg.Tree(root) {
		leave = nil // it lies beside the log, which is not in it
	}
	return checkpoint.Config{
		Dir: x.cfg.Dir(id), Roots: append([]string{root}, x.cfg.Roots...),
		Leave:   leave,
		Passing: sandbox.IsHold,
		NoSync:  x.cfg.NoSync, Fault: x.cfg.Fault,
	}
}
