package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/hooks/run"
	"dure/internal/extend/swarm"
	"dure/internal/extend/swarm/agents"
	"dure/internal/extend/swarm/apart"
	"dure/internal/kernel/plug"
	"dure/internal/safety/trust/folders"
	"dure/internal/state/archive/mirror"
	"dure/internal/tools/catalog"
)

// newAgents makes the agents, with the types of the command line.
func (a *App) newAgents() error {
	var named []swarm.Definition
	if list := a.opts.Flags.Agents; list != "" {
		var err error
		if named, err = swarm.ParseNamed(list); err != nil {
			return &agent.Problem{
				Code: agent.ProblemUsage, Message: "--agents: " + err.Error(), Err: err, Fix: `give it as {"NAME": {"description": "...", "prompt": "..."}}`,
				Args: map[string]string{"flag": "--agents", "error": err.Error()},
			}
		}
	}
	env := getenv(a.opts.Environ)
	a.processes = apart.New(apart.Config{
		Command: a.opts.Worker, Grace: a.opts.WorkerGrace, Dir: a.opts.Workdir, Env: a.opts.Environ, Temp: a.temp,
		Job: a.jobOf,
		Decide: func(parent string, p agent.Proposal, d agent.Decision) agent.Decision {
			return a.agents.Decide(parent, p, d)
		},
		Mirrored: func(parent, child string, lines []byte, err error) { a.mirror.Apart(parent, child, lines, err) },
		Redact:   a.patterns.Redact,
	})
	a.agents = agents.New(agents.Config{
		Places: func(workdir string) []frontmatter.Place { return a.trust.All(workdir, folders.Agents) }, Trust: a.trust.Mark, Named: named,
		Runs: func(b *plug.Session) string {
			return cmp.Or(a.opts.Flags.Agent, b.Open.Agent, b.Agent, a.cfg.Extend.Agent, a.plugins.Agent(b.Open.Workdir))
		},
		Modelled: a.opts.Flags.Model != "", Default: cmp.Or(env("DURE_SUBAGENT_MODEL"), env("CLAUDE_CODE_SUBAGENT_MODEL")),
		Foreground: !slices.Contains([]string{"", "0", "false"}, strings.ToLower(cmp.Or(env("DURE_DISABLE_BACKGROUND_TASKS"), env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")))),
		Dialect:    catalog.Dialect(a.cfg.Dialect),
		Model:      a.models.Askable,
		Clamp:      a.policy.Clamp,
		Lets:       func(parent string) []string { return a.parent.Lets(parent) },
		Brings:     a.opts.Flags.Code.Has,
		Follow: func(ctx context.Context, id string) iter.Seq2[agent.Event, error] {
			return a.sessions.reg.Events(ctx, id, 0)
		},
		Apart: a.processes, Redact: a.patterns.Redact,
		Home: a.cfg.Home, Workdir: a.opts.Workdir, Project: a.trust.Project,
		About: func(name, about string) string { return ownAbout(a.cfg.Language, name, about) },
	})
	return nil
}

// hire makes the agents of a session, or of none, whose tools are only shown.
func (s *assembly) hire() *agents.Session {
	a, ws := s.app, s.ws
	if s.deciding == nil {
		shown := a.agents.Shown(ws.Root())
		shown.Hire(s.offered.Tools, nil, s.known.Preloaded, swarm.Isolation{})
		return shown
	}
	hooks := func() *run.Session { return a.hooks.Of(s.b.ID) }
	s.agents.Hire(s.offered.Tools, s.deciding.Policy, s.known.Preloaded, swarm.Isolation{
		Trees: a.house.Trees(), Dir: ws.Root(), Session: s.b.ID,
		From: a.cfg.Worktree.From, Links: a.cfg.Worktree.Links, Only: a.cfg.Worktree.Only,
		Make: func(ctx context.Context, name string) (string, bool, error) { return hooks().MakeTree(ctx, name) },
		Gone: func(ctx context.Context, path string) { hooks().TreeGone(ctx, path) },
	})
	return s.agents
}

// models returns the models of a session: the one that is asked where nobody names another
// is that of its type.
func (s *assembly) models() func(string) (agent.Model, error) {
	models := s.app.models.For(s.work.Name)
	if s.agents.As.Name == "" {
		return models
	}
	return func(name string) (agent.Model, error) { return models(cmp.Or(name, s.work.Model)) }
}

// WorkerCommand is the command of the program that is the process of an agent.
const WorkerCommand = apart.Command

// inherited is what the process of an agent takes over from the program that has started it.
type inherited struct {
	Flags    Flags       `json:"flags"`
	Home     string      `json:"userHome"`
	Workdir  string      `json:"workdir"`
	Language string      `json:"language"`
	Version  string      `json:"version"`
	Keychain bool        `json:"keychain,omitempty"`
	Mirror   mirror.Root `json:"mirror,omitzero"` // see mirrors; the zero value = it is not written
	Tells    bool        `json:"tells,omitempty"` // what is written so
	Owned    bool        `json:"owned,omitempty"` // the parent belongs to a user of a server
}

// jobOf says what the process of an agent is to do, or why there can be none.
func (a *App) jobOf(j plug.Apart) (apart.Job, error) {
	job, err := a.agents.Job(j)
	switch {
	case err != nil:
		return job, err
	case a.opts.Flags.Scratch:
		return job, errors.New("agents have no processes of their own where nothing is kept")
	case a.opts.Flags.Code != nil:
		return job, errors.New("agents of a bundle have no processes of their own")
	case a.hooks.Of(j.Parent).Guards():
		return job, errors.New("agents have no processes of their own where hooks of a type of agents hold")
	}
	d := a.policy.Of(j.Parent)
	job.Program, err = json.Marshal(inherited{
		Flags: a.opts.Flags, Home: a.opts.UserHome, Workdir: a.opts.Workdir, Language: a.opts.Language, Version: a.opts.Version,
		Keychain: a.opts.Keychain, Mirror: a.mirror.Root(j.Parent), Tells: a.tells(), Owned: d == nil || d.Owned,
	})
	return job, err
}

// ServeAgent is the life of the process of an agent, see [apart.Serve].
func ServeAgent(ctx context.Context, in io.Reader, out io.Writer) error {
	return apart.Serve(ctx, in, out, func(parent *apart.Parent, program json.RawMessage) (p apart.Program, err error) {
		var from inherited
		if err := json.Unmarshal(program, &from); err != nil {
			return p, err
		}
		a, err := New(Options{
			Flags: from.Flags, Environ: os.Environ(), UserHome: from.Home, Workdir: from.Workdir, Language: from.Language,
			Version: from.Version, Keychain: from.Keychain,
		})
		if err != nil {
			return p, err
		}
		a.parent, a.inherited = parent, from
		return apart.Program{
			Run: func(ctx context.Context, child plug.Apart, opened func(string)) (agent.Outcome, error) {
				reg, err := a.sessions.open()
				if err != nil {
					return agent.Outcome{}, err
				}
				return reg.RunApart(ctx, child, opened)
			},
			Follow: func(ctx context.Context, id string) iter.Seq2[agent.Event, error] {
				return a.sessions.reg.Events(ctx, id, 0)
			},
			Park: func() { a.sessions.reg.Park(func(string) bool { return true }) },
			Tell: a.agents.Tell, Close: a.Close,
		}, nil
	})
}
