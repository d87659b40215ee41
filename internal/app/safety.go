package app

import (
	"context"
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/app/config/live"
	"dure/internal/app/eval"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/bundle/inbound/schedules"
	"dure/internal/extend/mcp/servers"
	"dure/internal/frontend/text"
	"dure/internal/kernel/plug"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/safety/policy/enforce"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/sandbox/boxes"
	"dure/internal/safety/shell/local"
	"dure/internal/safety/trust"
	"dure/internal/safety/trust/folders"
	"dure/internal/safety/trust/grants"
	"dure/internal/safety/workspace"
	"dure/internal/state/transcript"
	"dure/internal/tools/builtin"
	"dure/internal/tools/catalog"
	"dure/internal/tools/files"
	"dure/internal/tools/kit"
)

// newTrust makes what knows which folders are trusted.
func (a *App) newTrust() *folders.Extension {
	f := a.opts.Flags
	return folders.New(folders.Config{
		Store: trust.In(a.cfg.Data), Workdir: a.opts.Workdir, Trusted: a.cfg.Trusted, ByFlag: a.cfg.Trusted && f.trusts(), Never: a.cfg.Trust == config.TrustNever,
		Logger: a.opts.Logger, Some: text.Some, Managed: a.cfg.Memory.Managed, Home: a.cfg.Home, UserHome: a.opts.UserHome, Plugins: func(dir, kind string) []frontmatter.Place { return a.plugins.Places(dir, kind) }, WithoutUser: !f.reads(config.User), WithoutProject: !f.reads(config.Project),
		Left: func() (list []string) {
			for _, i := range a.cfg.Inert {
				if i.Why == config.Untrusted && !slices.Contains(list, i.Key) {
					list = append(list, i.Key)
				}
			}
			known, _ := a.servers.Known(a.opts.Workdir)
			if slices.ContainsFunc(known, func(k servers.Known) bool { return k.State == servers.Untrusted }) {
				list = append(list, servers.FileName)
			}
			return list
		},
	})
}

// newBoxes makes what confines commands.
func (a *App) newBoxes() *boxes.Extension {
	return boxes.New(boxes.Config{
		Settings: a.cfg.Sandbox, Extra: a.cfg.AddDirs, Home: a.cfg.Home, Data: a.cfg.Data, UserHome: a.opts.UserHome, Environ: a.opts.Environ,
		Temp: a.temp, Forget: a.opts.Flags.Scratch, Mechanisms: a.opts.Mechanisms, Logger: a.opts.Logger,
		Proxy: a.transport.Proxy, Plugins: func(dir string) (reads, writes []string) { return a.plugins.Folders(dir) },
		Protected: func(root, workdir string, writable []string) []string {
			return a.ownPlaces(slices.Concat([]string{root, workdir, a.house.Home()}, a.cfg.AddDirs, writable))
		},
		Workdir: a.opts.Workdir, Bypass: a.cfg.Mode == agent.ModeBypass, Where: a.cfg.From("sandbox.mode"),
		Here: func() (string, func(string) agent.Effects, error) {
			ws, err := a.workspace()
			if err != nil {
				return "", nil, err
			}
			reads := reader(a.opts.UserHome, sandbox.Shell(sandbox.Outside(ws.Inside)))
			return ws.Root(), func(command string) agent.Effects { return reads(command, a.opts.Workdir) }, nil
		},
		Env:   func() []string { return kit.CallEnv(a.commandEnv(), a.opts.Workdir, "") },
		Grant: kit.Grant, Refused: kit.Refused,
	})
}

// newPolicy makes what decides on calls.
func (a *App) newPolicy() *enforce.Extension {
	allowed := grants.Store{Dir: filepath.Join(a.cfg.Data, "grants")}
	return enforce.New(enforce.Config{
		Settings: a.permissions.Policy, Mode: a.cfg.Mode,
		Inert: func() []query.RuleInfo { cfg, _ := a.permissions.Now(); return live.Inert(cfg) },
		Here: func() (enforce.Place, error) {
			ws, err := a.workspace()
			if err != nil {
				return enforce.Place{}, err
			}
			return a.place(a.catalog(), ws, a.opts.Workdir, nil), nil
		},
		Allowed: func(dir string) (rules []string, err error) {
			list, err := allowed.List(dir)
			for _, g := range list {
				rules = append(rules, g.Rule)
			}
			return rules, err
		},
		Allow: func(dir, session string, rules []string) error {
			more := make([]grants.Grant, len(rules))
			for i, r := range rules {
				more[i] = grants.Grant{Rule: r, Behavior: string(agent.Allow), Session: session}
			}
			return allowed.Add(dir, more...)
		},
		Disallow: func(dir, rule string) (from string, err error) {
			if n, err := allowed.Remove(dir, rule); n == 0 || err != nil {
				return "", err
			}
			return allowed.Dir, nil
		},
		Write: func(ctx context.Context, scope, key, value string, add bool) (string, bool, error) {
			change := a.settings.Unset
			if add {
				change = a.settings.Set
			}
			c, err := change(ctx, scope, key, value)
			return c.Path, !c.Same, err
		},
		Writable: a.settings.Writable,
		Ready:    func(s *plug.Session) error { return a.trust.Begin(s.Record) },
		Parent:   func(s *plug.Session) plug.Stage { return a.parent.Stage(*s) },
		Private:  private(a.cfg, a.opts), Row: a.sessions.row, Owner: transcript.OwnerTag,
		Canonical: catalog.New(catalog.Config{}).Canonical, Mask: guard.MaskValue[query.Simulation], Logger: a.opts.Logger,
		Propose: a.opts.proposer(a.cfg.AddDirs),
		Decisions: func(ctx context.Context, q query.ListDecisions) ([]agent.DecisionRecord, error) {
			return a.audit.Decisions(ctx, q)
		},
	})
}

// reader reads command lines as the shell will that runs them; "" = the usual one.
func reader(home, sh string) kit.Reader { return local.Reader(home, sh, workspace.RunsPrograms) }

// workspace opens the working folder.
func (a *App) workspace() (*workspace.Workspace, error) {
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir, Extra: a.cfg.AddDirs})
	if err != nil {
		return nil, workspace.Problem(a.opts.Workdir, err)
	}
	return ws, nil
}

// catalog returns a catalog without tools.
func (a *App) catalog() *catalog.Catalog {
	return catalog.New(catalog.Config{Dialect: catalog.Dialect(a.cfg.Dialect)})
}

// place is where the calls of a session are decided on. confine says how far commands are
// confined; nil = fully.
func (a *App) place(cat *catalog.Catalog, ws *workspace.Workspace, workdir string, confine func() string) enforce.Place {
	own := a.memory.OwnNotes(workdir)
	return enforce.Place{
		Config: policy.Config{
			Canonical: cat.Canonical, Shown: catalog.Claude.Name, Resolve: ws.Resolve, Inside: ws.Inside, Key: ws.Key,
			Dir: workdir, Home: a.opts.UserHome, PowerShell: runtime.GOOS == "windows", Confined: confine, Own: func(tool, path string) bool { return tool == builtin.MemoryAppend && own(path) },
		},
		Preview: func(c agent.Call) string {
			e, _ := cat.Get(c.Tool)
			return files.Preview(e.Tool, ws, c)
		},
		Protected: func(extra []string) []string { return a.ownPlaces(slices.Concat([]string{ws.Root(), workdir}, extra)) },
	}
}

// ownNames is what settings, programs and knowledge of the user are called in a folder that
// they share with a project: the project's own files are nobody's settings.
var ownNames = []string{
	"settings.json", "settings.local.json", "policy.jsonc", "credentials.json", "trust.json", "grants", "mcp", "links.json", schedules.File,
	"hooks", "plugins", "prompts", folders.Skills, folders.Commands, folders.Agents,
}

// ownPlaces are the paths at which settings of the user stand in folders where others write,
// wherever the environment has put them.
func (a *App) ownPlaces(spaces []string) []string {
	return trust.OwnPlaces(append(a.cfg.OwnFolders(a.permissions.Source()), a.cfg.Data), ownNames, spaces)
}

// private are the files and folders in which the program keeps sessions, and what they and the
// user have said and shown. The work trees of agents lie beside them.
func private(cfg config.Config, o Options) (paths []string) {
	add := func(dir string, names ...string) {
		if !filepath.IsAbs(dir) {
			return
		}
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	add(cfg.Data, "sessions", "trash", "queue", "outbox", "index", "checkpoints", "changesets", "grants", "mcp", "history", "trust.json")
	add(cfg.Home, "credentials.json", "serve-users.json")
	dir, _ := o.projects()
	add(filepath.Dir(dir), filepath.Base(dir))
	return paths
}

// trusts reports whether the flags say that the folder is trusted.
func (f Flags) trusts() bool {
	return !f.Elsewhere && (f.Trust || f.Skip || f.Mode == string(agent.ModeBypass))
}

// proposer returns what plans calls that nobody makes, in the working folder.
func (o Options) proposer(dirs []string) func(ctx context.Context, tool string, input json.RawMessage) (agent.Proposal, error) {
	v := eval.Evaluator{Dir: o.Workdir, Home: o.UserHome}
	return func(ctx context.Context, tool string, input json.RawMessage) (agent.Proposal, error) {
		return v.Propose(ctx, dirs, tool, input)
	}
}
