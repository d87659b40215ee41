package app

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/extend/swarm/agents"
	"dure/internal/kernel/plug"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/sandbox/desktop"
	"dure/internal/safety/workspace"
	"dure/internal/safety/workspace/unsaved"
	"dure/internal/tools/builtin"
	"dure/internal/tools/builtin/offer"
	"dure/internal/tools/catalog"
	"dure/internal/tools/code"
	"dure/internal/tools/files"
	"dure/internal/tools/git"
	"dure/internal/tools/kit"
	"dure/internal/tools/lsp"
	"dure/internal/tools/shell"
	"dure/internal/tools/web"
)

// toolSet is what comes with the tools of a session.
type toolSet struct {
	tools   plug.Points
	servers plug.Points // language servers
	todos   *builtin.Todos
	agents  *agents.Session
	code    *swarms.Session
}

// tools fills the catalog with the built-in tools.
func (s *assembly) tools() error {
	a, b := s.app, &s.b
	env, reads := a.commandEnv(), reader(a.opts.UserHome, sandbox.Shell(s.find))
	team := s.hire()
	notes := a.memory.Notebook(s.ws.Root(), team.Kind())
	var pol *policy.Policy
	if s.deciding != nil {
		pol = s.deciding.Policy
	}
	sh := s.shell(team, env, reads)
	all := files.Files{
		Workspace: s.ws, FS: unsaved.Files(s.ws, a.opts.Editor, a.opts.Workdir), Tracker: s.tracker, Home: a.opts.UserHome, Masked: guard.Masked,
		Blob: func(handle string) (string, bool) {
			path := a.sessions.store.BlobPath(b.ID, strings.TrimPrefix(handle, "output:"))
			return path, path != ""
		},
	}.Tools()
	all = append(all, sh.Tools()...)
	list := new(builtin.Todos)
	var events func(context.Context, int64) iter.Seq2[agent.Event, error]
	if b.Log != nil { // the tools are those of a session
		events = b.Events
		list.Restore(b.Past())
	}
	all = append(all, list.Tool(), builtin.Ask(), builtin.Recall(events), s.known.Tool(), s.offered.Search())
	if pol != nil && b.Child == nil {
		all = append(all, builtin.PlanTools(b, pol.Mode)...)
	}
	if !a.cfg.NoTaskState {
		all = append(all, builtin.Note())
	}
	check := code.New(code.Config{Workspace: s.ws, Box: s.box, Env: env, Reads: reads, Shell: sandbox.Shell(s.find)})
	all = append(all, check.Tools()...)
	all = append(all, git.New(git.Config{Box: s.box, Git: s.find("git"), Env: env, Root: s.ws.Root()}).Tools()...)
	servers := lsp.New(lsp.Config{Trusted: func() bool { return a.cfg.Trusted }, Start: lsp.Starter(s.box, sandbox.PathOutside(env, s.ws.Inside)), Find: s.find, Root: s.ws.Root(), FS: s.ws})
	all = append(all, servers.Tools()...)
	all = append(all, builtin.Memory(builtin.Notebook{Read: notes.Read, Path: notes.Path, Append: notes.Append})...)
	all = append(all, team.Tools()...)
	all = append(all, a.servers.Tools(b.ID, pol)...)
	pages, err := s.web()
	if err != nil {
		return err
	}
	all = append(all, pages.Tools()...)
	if len(b.Open.Schema) > 0 {
		form, err := builtin.Form(b.Open.Schema)
		if err != nil {
			return err
		}
		all = append(all, form)
	}
	for _, t := range all {
		if err := s.offered.Tools.Register(t, catalog.BuiltIn, ""); err != nil {
			return err
		}
	}
	code, err := s.bundleCode(team.Kind())
	if err != nil {
		return err
	}
	s.set = toolSet{
		code: code, todos: list, agents: team,
		tools: plug.Points{
			Hooks: plug.Hooks{Spoken: check.Reset, Rewound: list.Restore},
			Close: sh.Close,
		},
		servers: plug.Points{
			Wrap: []plug.Wrap{func(t agent.Tool, next plug.Run) plug.Run {
				return plug.Run(servers.Wrap(t, lsp.Run(next)))
			}},
			Close: func() { _ = servers.Close() }, // they are ended, whatever they say
		},
	}
	return nil
}

// shell makes the tools that run commands.
func (s *assembly) shell(team *agents.Session, env []string, reads kit.Reader) *shell.Shell {
	a, b, dialect := s.app, &s.b, catalog.Dialect(s.app.cfg.Dialect)
	commands := shell.Config{
		Other: team.Output, StopOther: team.Stop, Others: team.Latest,
		Box: s.box, Env: a.plugins.Programs(env, s.ws.Root()), Path: sandbox.Shell(s.find), Reads: reads, Settle: b.Reach.Settle, Past: b.Reach.Outcome,
		OutputTool: dialect.Name("task__output"), StopTool: dialect.Name("task__stop"), Masked: guard.Masked,
	}
	if s.deciding != nil {
		commands.More = func() []string { return a.hooks.Of(b.ID).Left() } // for commands
	}
	// A front-end's terminal is outside of every box, so that it takes the place of one that
	// confines nothing alone: its user has turned the sandbox off.
	if t := a.opts.Terminal; t != nil && a.cfg.Sandbox.Off && b.Child == nil && unsaved.Own(s.ws, a.opts.Workdir) {
		commands.Terminal = shell.Beside(t, a.opts.Environ)
	}
	return shell.New(commands)
}

// shown returns the built-in tools that a session in a folder would have, and the folder.
func (a *App) shown(dir, profile string, settle agent.Settle) (*catalog.Catalog, *workspace.Workspace, error) {
	ws, err := workspace.New(workspace.Config{Root: dir, Extra: a.cfg.AddDirs})
	if err != nil {
		return nil, nil, workspace.Problem(dir, err)
	}
	cat, box := a.catalog(), sandbox.New(sandbox.Config{})
	of := assembly{
		app: a, b: plug.Session{Reach: agent.Reach{Settle: settle}}, ws: ws, tracker: ws.NewTracker(nil), box: box,
		find: sandbox.Outside(ws.Inside), offered: &offer.Session{Tools: cat},
	}
	of.work.Name = profile
	if err = of.tools(); err == nil {
		of.set.close()
	}
	return cat, ws, errors.Join(err, box.Close())
}

// newOffer makes what has the tools of sessions.
func (a *App) newOffer() *offer.Extension {
	return offer.New(offer.Config{
		Only: a.opts.Flags.Tools, Search: a.cfg.ToolSearch,
		Window: func(model string) int { info, _ := a.models.Info(model); return info.Window },
		Work: func(profile string) (agent.Profile, error) {
			w, err := a.cfg.Work(cmp.Or(profile, a.cfg.Profile))
			return w.Profile, err
		},
		Begin: func(dir string, work agent.Profile) (*catalog.Catalog, offer.Policy, error) {
			dir = cmp.Or(dir, a.opts.Workdir)
			settle := func(context.Context, agent.Settlement) error { return nil } // as sessions have it
			cat, ws, err := a.shown(dir, work.Name, settle)
			if err != nil {
				return nil, nil, err
			}
			d, err := a.policy.New(a.place(cat, ws, dir, nil), "", work.Mode)
			return cat, d, err
		},
		Lent: func(work agent.Profile) (*catalog.Catalog, error) {
			cat, _, err := a.shown(a.opts.Workdir, work.Name, nil)
			return cat, err
		},
	})
}

// close gives back what the tools of no session have taken.
func (s toolSet) close() {
	s.code.Close()
	s.agents.Close()
	s.tools.Close()
	s.servers.Close()
}

// commandEnv is the environment of what tools start: with the variables of the
// settings, and without the keys of all providers and what settings name.
func (a *App) commandEnv() []string {
	scrub := append(slices.Clone(a.cfg.ScrubEnv), "OTEL_*") // where we report to is nobody else's, and may hold keys
	for _, p := range a.models.All() {
		scrub = append(scrub, p.Keys...)
	}
	return sandbox.Scrub(environ(a.opts, a.cfg), scrub)
}

// environ is the environment with what the settings add; of two of a name, the last counts.
func environ(o Options, cfg config.Config) []string {
	env := slices.Clone(o.Environ)
	for _, name := range slices.Sorted(maps.Keys(cfg.Env)) {
		env = append(env, name+"="+string(cfg.Env[name]))
	}
	return env
}

// Desktop starts what the user has asked for beside the program.
func (a *App) Desktop() desktop.Desktop {
	return desktop.Desktop{Dir: a.opts.Workdir, Environ: a.opts.Environ, Getenv: getenv(a.opts.Environ), Env: a.commandEnv, Find: a.outside}
}

// outside finds a program that is none of the folder's own.
func (a *App) outside(program string) string {
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir})
	if err != nil {
		return ""
	}
	return sandbox.Outside(ws.Inside)(program)
}

// web makes the tools that speak HTTP.
func (s *assembly) web() (*web.Web, error) {
	a, b := s.app, &s.b
	cfg := web.Config{
		Transport: a.transport, UserAgent: "dure/" + a.opts.Version,
		Mode: web.Mode(a.cfg.Network.Mode), AllowHosts: a.cfg.Network.AllowHosts,
	}
	if e := a.cfg.Search; e.Kind != "" {
		cfg.Search = web.SearchConfig{Kind: e.Kind, URL: e.URL, Key: strings.TrimSpace(getenv(a.opts.Environ)(e.KeyEnv))}
	}
	if !a.cfg.NoAI {
		cfg.Ask = func(ctx context.Context, q agent.Question) (agent.Answer, error) {
			q.Model = a.models.SmallFor(b.Model()) // a page is for nobody but the session's provider
			return b.Reach.Ask(ctx, q)
		}
	}
	if err := cfg.Check(); err != nil {
		return nil, agent.SettingsProblem("network", err)
	}
	return web.New(cfg), nil
}
