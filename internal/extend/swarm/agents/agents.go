// Package agents has the agents of sessions: as what type a session runs, which tools it
// has as that, and to whom it hands work. It keeps which sessions are open, because a child
// session has no tool that its parent does not have, and no wider mode. It starts no
// goroutines but those of [swarm.Swarm] and [apart.Processes].
package agents

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/swarm"
	"dure/internal/extend/swarm/apart"
	"dure/internal/kernel/plug"
	"dure/internal/tools/catalog"
)

// Config is what agents need of the program. All functions are required.
type Config struct {
	Places func(workdir string) []frontmatter.Place // where types are looked for
	Trust  func() string                            // see [swarm.Types]
	Named  []swarm.Definition                       // of the command line

	Runs       func(*plug.Session) string // the type that a session runs as; "" = none
	Modelled   bool                       // the command line names a model
	Default    string                     // the model of types that name none; "" = that of the session
	Foreground bool                       // agents are always waited for
	Dialect    catalog.Dialect

	// Model returns the ID of a model. With a session it is an error if that may not ask it.
	Model func(name string, of *plug.Session) (string, error)

	// Clamp returns a mode, or that of an open session if it is narrower.
	Clamp func(session string, mode agent.Mode) agent.Mode

	// Lets returns the tools that a parent in another process lets its agents have; nil = all.
	Lets func(parent string) []string

	// Brings reports of tools which an agent of a type has by its bundle, whatever its parent
	// has; nil = none is.
	Brings func(cat *catalog.Catalog, kind string) func(agent.Spec) bool

	Follow func(ctx context.Context, session string) iter.Seq2[agent.Event, error] // its log, with what comes then
	Apart  *apart.Processes
	Redact func(string) string // masks secrets

	Home, Workdir string
	Project       func(workdir string) (root string, trusted bool)
	About         func(name, about string) string // how a type of the program is described to people
}

// Extension has the agents. It is safe for concurrent use.
type Extension struct {
	plug.NoSession // its sessions are made by Session, and attached as what they are
	cfg            Config

	mu   sync.Mutex
	open map[string]*Session // by ID
}

// New returns the extension.
func New(cfg Config) *Extension { return &Extension{cfg: cfg, open: map[string]*Session{}} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "agents" }

// Types are the types of agents that there are for the sessions of a folder.
func (x *Extension) Types(workdir string) *swarm.Types {
	places := x.cfg.Places(workdir)
	return &swarm.Types{Places: func() []frontmatter.Place { return places }, Named: x.cfg.Named, Own: swarm.Presets(), Trust: x.cfg.Trust}
}

func (x *Extension) session(id string) *Session {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.open[id]
}

// chain returns the types that a session and those that it works for are of, from the
// top.
func (x *Extension) chain(id string) (names []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for one := x.open[id]; one != nil; one = x.open[one.b.Parent] {
		names = append(names, cmp.Or(one.Role.Name, "main"))
	}
	slices.Reverse(names)
	return names
}

// errClosed says that a session is not open.
var errClosed = errors.New("the log is closed")

// Tell puts a text of another agent before the model of an open session, as a person would
// be shown it, here or in a process of its own.
func (x *Extension) Tell(ctx context.Context, session, id, text, by string) error {
	if ok, err := x.cfg.Apart.Tell(ctx, session, id, text, by); ok {
		return err
	}
	one := x.session(session)
	if one == nil || one.b.Send == nil {
		return errClosed
	}
	return one.b.Send(ctx, plug.Wake{ID: id, Text: x.cfg.Redact(text), By: by})
}

// follow reads the log of a session that is open.
func (x *Extension) follow(ctx context.Context, session string) iter.Seq2[agent.Event, error] {
	if events, ok := x.cfg.Apart.Events(ctx, session); ok {
		return events
	}
	return x.cfg.Follow(ctx, session)
}

// earlier returns the type of a child that a session has had, and its folder.
func (x *Extension) earlier(ctx context.Context, parent, child string) (kind, dir string, ok bool) {
	if !isChildID(child) {
		return "", "", false
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for e, err := range x.follow(ctx, child) {
		b, opened := e.Body.(agent.SessionOpened)
		return b.Agent, b.Workdir, err == nil && opened && b.Parent == parent
	}
	return "", "", false
}

// isChildID reports whether a text has the form of the ID of a child session.
func isChildID(id string) bool {
	return len(id) == 33 && id[0] == 'c' && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// full returns the child of the session whose ID begins so.
func (s *Session) full(ctx context.Context, short string) (id string, ok bool) {
	for e, err := range s.b.Events(ctx, 0) {
		if err != nil {
			return "", false
		}
		if b, opened := e.Body.(agent.ChildOpened); opened && strings.HasPrefix(b.Child, short) && b.Child != id {
			if ok {
				return "", false // of two
			}
			id, ok = b.Child, true
		}
	}
	return id, ok
}

// Job returns what a process for an agent is told of the parent.
func (x *Extension) Job(j plug.Apart) (apart.Job, error) {
	parent := x.session(j.Parent)
	if parent == nil {
		return apart.Job{}, errClosed
	}
	job := apart.Job{Child: j, Above: parent.Role.Name}
	if parent.Role.Gives != nil {
		job.Tools = []string{}
		for _, e := range parent.cat.List() {
			if parent.Role.Gives(e.Spec) {
				job.Tools = append(job.Tools, e.Spec.Name)
			}
		}
	}
	return job, nil
}

// Decide decides about a call of an agent in a process of its own, as about one of the
// session that it works for: what that may not do, or would have to ask for, holds for the
// agent. soFar is what the process has said, where it asks for more.
func (x *Extension) Decide(parent string, p agent.Proposal, soFar agent.Decision) agent.Decision {
	one := x.session(parent)
	if one == nil {
		return agent.Decision{Verdict: agent.Deny, Reason: "the session that it works for is closed"}
	}
	if gives := one.Role.Gives; gives != nil && !gives(agent.Spec{Name: p.Call.Tool, Group: p.Group, Class: p.Class}) {
		return agent.Decision{Verdict: agent.Deny, Reason: "the session that it works for has no such tool"}
	}
	d := one.pol.Decide(p)
	if d.Verdict == agent.Allow && soFar.Verdict == agent.AskUser {
		d.Verdict, d.Reason, d.By = soFar.Verdict, soFar.Reason, soFar.By
	}
	return d
}
