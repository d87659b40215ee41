// Package enforce decides on the calls of sessions: by the settings that hold now, by what was
// allowed in a folder or a session, and by what holds in the session that one works for. It
// lists and changes rules, and explains decisions. It starts no goroutines.
package enforce

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
)

// Place is where calls are decided on: the functions and folders of a policy, whose rules are
// those of the settings.
type Place struct {
	policy.Config

	// Protected returns the paths for [policy.Config.Settings], with further folders that
	// count as part of the workspace.
	Protected func(extra []string) []string

	// Preview returns what a call would change, in unified form, or "". Sessions have one.
	Preview func(agent.Call) string
}

// By returns the policy of a place by settings.
func (p Place) By(settings policy.Config) policy.Config {
	c := p.Config
	c.Mode, c.Allow, c.Ask, c.Deny, c.Rules = settings.Mode, settings.Allow, settings.Ask, settings.Deny, settings.Rules
	c.SafeVars, c.Groups, c.Extra = settings.SafeVars, settings.Groups, settings.Extra
	c.ManagedOnly, c.DisableBypass = settings.ManagedOnly, settings.DisableBypass
	c.Settings = p.Protected(c.Extra)
	return c
}

// Config is what the extension needs of the program.
type Config struct {
	// Settings returns the rules and limits of the settings and policy files as they are now,
	// and their version. What cannot be read denies every call.
	Settings func() (policy.Config, int)
	Inert    func() []query.RuleInfo // rules in the settings that are not in force
	Mode     agent.Mode              // of the settings
	Here     func() (Place, error)   // a session in the working folder

	// Allowed returns the rules that were allowed for good in a folder. Allow adds some, and
	// Disallow takes one back: from is where it was; "" = nowhere.
	Allowed  func(dir string) ([]string, error)
	Allow    func(dir, session string, rules []string) error
	Disallow func(dir, rule string) (from string, err error)

	// Write adds a value to a list of the settings of a scope, or takes it out, and returns
	// the file. Writable says why a host cannot write the settings of a scope.
	Write    func(ctx context.Context, scope, key, value string, add bool) (path string, changed bool, err error)
	Writable func(scope string) error

	// Ready is called before each decision of a session; an error denies. Parent is the stage
	// of a parent session in another process.
	Ready  func(*plug.Session) error
	Parent func(*plug.Session) plug.Stage

	// Private are files and folders that hold what belongs to all users of a server: sessions
	// of a single user do not read or change them. Row is a session as the list has it.
	Private []string
	Row     func(ctx context.Context, id string) (agent.SessionInfo, bool, error)
	Owner   string // begins the tags of owners

	Canonical func(name string) (string, bool)
	Propose   func(ctx context.Context, tool string, input json.RawMessage) (agent.Proposal, error)
	Decisions func(context.Context, query.ListDecisions) ([]agent.DecisionRecord, error)
	Mask      func(query.Simulation) (query.Simulation, error)
	Logger    *slog.Logger
}

// Extension is the policy of the program.
type Extension struct {
	plug.NoSession
	cfg Config

	mu   sync.Mutex
	open map[string]*Decider // by session, those of children with their parents; guarded by mu
}

// New returns the extension.
func New(c Config) *Extension { return &Extension{cfg: c, open: map[string]*Decider{}} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "policy" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{
		plug.Storeless(x.listRules), plug.Storeless(x.editRule), plug.Storeless(x.changeRules), plug.Storeless(x.folderRule),
		plug.Storeless(x.explain), plug.Answers(x.simulate),
	}
}

// Of returns what decides in an open session; nil = it is not open.
func (x *Extension) Of(session string) *Decider {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.open[session]
}

// Hides reports whether deny rules keep a file from being read in a session.
func (x *Extension) Hides(session, path string) bool {
	d := x.Of(session)
	return d == nil || d.Policy.DeniesRead(path)
}

// Denies reports whether rules of now keep a session from reading one of the paths.
func (x *Extension) Denies(session string, paths ...string) bool {
	d := x.Of(session)
	if d == nil {
		return true
	}
	d.Look()
	return slices.ContainsFunc(paths, d.Policy.DeniesRead)
}

// Decider returns what decides in an open session, with the settings of now, or with "" in one
// that would begin in the working folder.
func (x *Extension) Decider(session string) (*Decider, error) {
	if session == "" {
		place, err := x.cfg.Here()
		if err != nil {
			return nil, err
		}
		return x.New(place, "", x.cfg.Mode)
	}
	d := x.Of(session)
	if d == nil {
		return nil, agent.NotOpen(session)
	}
	d.look()
	return d, nil
}

// Clamp returns a mode, or that of an open session if it is narrower.
func (x *Extension) Clamp(session string, mode agent.Mode) agent.Mode {
	if d := x.Of(session); d != nil && mode.Wider(d.Policy.Mode()) {
		return d.Policy.Mode()
	}
	return mode
}

// below calls f for all that work for a session, each behind the one that it works for.
// mu is held.
func (x *Extension) below(session string, f func(*Decider)) {
	for _, id := range slices.Sorted(maps.Keys(x.open)) {
		if d := x.open[id]; d.parent == session {
			f(d)
			x.below(id, f)
		}
	}
}

// generations is how many parents of a session are looked for.
const generations = 16

// owned reports whether a session belongs to a user of a server, or works for one that does.
// If its family is not known, it does.
func (x *Extension) owned(s *plug.Session) bool {
	tagged := func(row agent.SessionInfo) bool {
		return slices.ContainsFunc(row.Tags, func(tag string) bool { return strings.HasPrefix(tag, x.cfg.Owner) })
	}
	if s.Open.Owned || tagged(s.Stored) {
		return true
	}
	if s.Parent != "" || !s.Stored.IsChild() {
		return false
	}
	up := s.Stored.Parent // it is opened by itself
	for range generations {
		row, ok, err := x.cfg.Row(context.Background(), up)
		if err != nil || !ok || tagged(row) {
			return true
		}
		if !row.IsChild() {
			return false
		}
		up = row.Parent
	}
	return true
}
