// Package offer says which tools the model of a session has: those of its role and of its kind
// of work. Of the tools that others bring, those that would fill too much of the model's window
// are only named, until the model looks for them. It starts no goroutines.
package offer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/tools/builtin"
	"dure/internal/tools/catalog"
)

// A Policy is what rules say about the tools of a session.
type Policy interface {
	Look() // at settings that changed
	Withholds(agent.Spec) (by agent.Opinion, ok bool)
	Switch(name string, on bool) error
}

// Config configures an [Extension]. Functions are required.
type Config struct {
	Only   *[]string              // the built-in tools that there are, "default" for all; nil = all
	Search int                    // percent of the window that tools of others may fill; negative = all are listed
	Window func(model string) int // in tokens; 0 = not known

	// Work returns a kind of work; "" = the usual one.
	Work func(profile string) (agent.Profile, error)

	// Begin returns the built-in tools of a session that would begin in a folder, "" = the
	// working folder, and Lent those of one whose tools are lent.
	Begin func(dir string, work agent.Profile) (*catalog.Catalog, Policy, error)
	Lent  func(work agent.Profile) (*catalog.Catalog, error)
}

// Extension has the tools of all sessions. It is safe for concurrent use.
type Extension struct {
	plug.NoSession
	cfg Config

	mu   sync.Mutex
	open map[string]*Session
}

// New returns the extension.
func New(c Config) *Extension { return &Extension{cfg: c, open: map[string]*Session{}} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "offer" }

// Session is the tools of one session.
type Session struct {
	Tools  *catalog.Catalog
	Policy Policy // nil = nothing is withheld

	x    *Extension
	b    plug.Session
	work agent.Profile
	has  func(agent.Spec) bool // its role and its kind of work; nil = all
}

// A model whose window is not known has this one, in tokens, and a token has about so many
// bytes.
const (
	usualWindow = 200_000
	tokenBytes  = 3
)

// Session prepares the tools of a session that is being opened.
func (x *Extension) Session(b plug.Session, cat *catalog.Catalog, p Policy, work agent.Profile) *Session {
	room := cmp.Or(x.cfg.Window(work.Model), usualWindow) / 100 * x.cfg.Search * tokenBytes
	cat.Defer(catalog.Deferral{On: x.cfg.Search >= 0, Room: room})
	cat.Choose(b.Selected...)
	return &Session{Tools: cat, Policy: p, x: x, b: b, work: work}
}

// Begin returns the tools of a session that would begin in a folder; "" = the working folder.
func (x *Extension) Begin(dir string, work agent.Profile) (*Session, error) {
	cat, p, err := x.cfg.Begin(dir, work)
	if err != nil {
		return nil, err
	}
	has, err := x.of(cat, work)
	return &Session{Tools: cat, Policy: p, has: has}, err
}

// Of returns the tools of a session that is open.
func (x *Extension) Of(session string) (*Session, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.open[session]; s != nil {
		return s, nil
	}
	return nil, agent.NotOpen(session)
}

// Name returns the name of the extension.
func (s *Session) Name() string { return "tool search" }

// Attach names the tools that are not loaded.
func (s *Session) Attach(context.Context, *plug.Session) (plug.Points, error) {
	x, id := s.x, s.b.ID
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open[id] = s
	return plug.Points{Extra: s.extra, Close: func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.open, id)
	}}, nil
}

// Keep says which tools the role of the session has, nil = all, and returns those of them that
// the session has.
func (s *Session) Keep(role func(agent.Spec) bool) (has func(agent.Spec) bool, err error) {
	if s.has = role; role != nil && len(s.b.Open.Schema) > 0 {
		s.has = func(t agent.Spec) bool { return t.Name == agent.FormTool || role(t) }
	}
	if !s.b.Open.Edit {
		if has, err = s.x.of(s.Tools, s.work); err != nil {
			return nil, err
		}
		s.has = catalog.Both(s.has, has)
	}
	return catalog.Both(s.has, s.gives), nil
}

func (s *Session) gives(t agent.Spec) bool {
	_, withheld := s.withholds(t)
	return !withheld
}

func (s *Session) withholds(t agent.Spec) (by agent.Opinion, ok bool) {
	if s.Policy == nil {
		return by, false
	}
	return s.Policy.Withholds(t)
}

// Step returns the tools of the next step.
func (s *Session) Step() *catalog.Step { return s.Tools.Step(catalog.Both(s.has, s.gives)) }

// Catalog returns the tools of the next step as sessions have them.
func (s *Session) Catalog() plug.Catalog {
	step := s.Step()
	refuse := func(name string) *agent.ToolError {
		e := step.Refuse(name)
		canonical, _ := s.Tools.Canonical(name)
		if tool, ok := s.Tools.Get(canonical); ok && e.Code == agent.ErrNotInCatalog {
			if by, ok := s.withholds(tool.Spec); ok { // a rule, which says why
				e.Message += ": " + by.Reason
			}
		}
		return e
	}
	return plug.Catalog{
		Specs: step.Specs(), Names: step.Names(),
		Tools: plug.Tools{Find: step.Lookup, Refuse: refuse, Check: step.Check},
	}
}

// Search returns the tool that finds those that are only named.
func (s *Session) Search() agent.Tool {
	return builtin.Search(s.Step, func(call string, names []string) error {
		if err := s.b.Record(agent.ToolsSelected{Call: call, Tools: names}); err != nil {
			return err
		}
		s.Tools.Choose(names...)
		return nil
	})
}

// extra puts the names of tools that are not loaded before the model.
func (s *Session) extra(_ context.Context, at plug.Moment) []agent.ContextAdded {
	const source = "tools"
	text := builtin.Named(s.Step())
	if text == "" && at.Has(source, "") {
		text = "There are no further tools to be loaded."
	}
	return []agent.ContextAdded{{Source: source, Title: source, Text: text}}
}

// readOnly names all tools that change nothing.
const readOnly = "read-only"

// of returns which tools a kind of work has, of those that there are; nil = all.
func (x *Extension) of(cat *catalog.Catalog, work agent.Profile) (has func(agent.Spec) bool, err error) {
	if len(work.Tools) > 0 && !slices.Contains(work.Tools, "all") {
		names := map[string]bool{}
		for _, name := range work.Tools {
			canonical, ok := cat.Canonical(name)
			switch {
			case ok:
				names[canonical] = true
			case name == readOnly, strings.HasPrefix(name, "mcp__"): // servers come later
				names[name] = true
			default:
				return nil, agent.SettingsProblem("profiles."+work.Name+".tools", fmt.Errorf("there is no tool %q; dure prompt --tools --profile code lists them", name))
			}
		}
		has = func(s agent.Spec) bool {
			return names[s.Name] || names["group:"+s.Group] || names[readOnly] && s.Class == agent.Read
		}
	}
	only := x.cfg.Only
	if only == nil || slices.Contains(*only, catalog.Default) {
		return has, nil
	}
	names := map[string]bool{agent.FormTool: true} // it is there where it was asked for
	for _, name := range *only {
		if canonical, ok := cat.Canonical(name); ok { // others are not there anyway
			names[canonical] = true
		}
	}
	return catalog.Both(has, func(s agent.Spec) bool {
		return strings.HasPrefix(s.Name, "mcp__") || names[s.Name] || names["group:"+s.Group]
	}), nil
}
