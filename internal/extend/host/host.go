// Package host is what a program that embeds this one does in its sessions besides what
// front-ends do: it calls tools through the gate, reads files, and says how long models think.
// It also lends the tools of a session to somebody outside of it. It starts no goroutines.
package host

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
	"dure/internal/tools/kit"
)

// origin is the origin of calls that the host makes itself.
const origin = "host"

// Config is what the extension needs of the program. All functions are required.
type Config struct {
	Dirs []string // of the workspace, beside a session's own

	// Denies reports whether rules of now keep a session from reading one of the paths.
	Denies func(session string, paths ...string) bool

	// Reach is what a session offers that is open; the zero one = it is not.
	Reach func(session string) agent.Reach

	// Skills reads the skills of a session again, and Plugins the plugins that are in force.
	Skills  func(session string) error
	Plugins func()

	// Hear takes a message that a server inside of the host sends by itself.
	Hear func(server string, message []byte) error

	// Apply puts settings over those of the command line, for as long as the program runs, or
	// only says whether it would.
	Apply func(settings json.RawMessage, apply bool) error

	// Open opens a session and Close ends it. Text is what a model reads of a command that a
	// person has typed in a session.
	Open  func(context.Context, agent.Open) (agent.SessionInfo, error)
	Close func(ctx context.Context, session string) error
	Text  func(ctx context.Context, session, name, arguments string) (string, error)
}

// Extension is what the host does in sessions. It is safe for concurrent use.
type Extension struct {
	cfg  Config
	open sync.Map // *Place, by the ID of the session
}

// New returns the extension.
func New(c Config) *Extension { return &Extension{cfg: c} }

// Place is where a session works.
type Place struct {
	Workspace *workspace.Workspace
	Tracker   *workspace.Tracker
	Catalog   *catalog.Catalog

	tokens atomic.Pointer[int] // of thinking, as somebody has said for the session; nil = nobody has
}

// placed is the extension in a session.
type placed struct {
	*Extension
	place *Place
}

// In returns the extension in a session that works in a place.
func (x *Extension) In(p *Place) plug.Extension { return placed{x, p} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "host" }

// Attach lets the host act in a session.
func (p placed) Attach(_ context.Context, s *plug.Session) (plug.Points, error) {
	p.open.Store(s.ID, p.place)
	return plug.Points{Thinks: p.place.thinks, Close: func() { p.open.CompareAndDelete(s.ID, p.place) }}, nil
}

// of returns the place of a session that is open.
func (x *Extension) of(session string) (*Place, error) {
	if p, ok := x.open.Load(session); ok {
		return p.(*Place), nil
	}
	return nil, agent.NotOpen(session)
}

// CallTool calls a tool in a session, through its gate. The tool may have any of its names.
func (x *Extension) CallTool(ctx context.Context, session, tool string, input json.RawMessage) (agent.Result, error) {
	p, err := x.of(session)
	if err != nil {
		return agent.Result{}, err
	}
	name, ok := p.Catalog.Canonical(tool)
	if !ok {
		return agent.Result{}, fmt.Errorf("there is no tool %q", kit.Clip(tool))
	}
	reach := x.cfg.Reach(session)
	if reach.Invoke == nil {
		return agent.Result{}, agent.NotOpen(session)
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return reach.Invoke(ctx, agent.Invocation{Origin: origin, Tool: name, Input: input})
}

// SetThinking has a session think for as many tokens from its next request on; nil = as
// the settings say.
func (x *Extension) SetThinking(session string, tokens *int) error {
	p, err := x.of(session)
	if err == nil {
		p.tokens.Store(tokens)
	}
	return err
}

// thinks is how many tokens a session thinks for, if that was said for it.
func (p *Place) thinks() (int, bool) {
	if tokens := p.tokens.Load(); tokens != nil {
		return *tokens, true
	}
	return 0, false
}

// Reload reads the plugins again that are in force, and the skills of a session.
func (x *Extension) Reload(session string, plugins, skills bool) error {
	if plugins {
		x.cfg.Plugins()
	}
	if skills {
		return x.cfg.Skills(session)
	}
	return nil
}

// HearServer takes a message that a server inside of the host sends by itself.
func (x *Extension) HearServer(server string, message []byte) error {
	return x.cfg.Hear(server, message)
}

// ApplySettings puts settings over those of the command line, for as long as the program
// runs. With try it only reports why it would refuse them; nil = it would not.
func (x *Extension) ApplySettings(settings json.RawMessage, try bool) error {
	return x.cfg.Apply(settings, !try)
}
