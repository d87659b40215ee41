package app

import (
	"context"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/app/eval"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/extend/skills/use"
	"dure/internal/extend/swarm/agents"
	"dure/internal/kernel/plug"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/sandbox/desktop"
	"dure/internal/safety/workspace"
	"dure/internal/safety/workspace/unsaved"
	"dure/internal/tools/builtin"
	"dure/internal/tools/catalog"
	"dure/internal/tools/code"
	"dure/internal/tools/files"
	"dure/internal/tools/git"
	"dure/internal/tools/lsp"
	"dure/internal/tools/shell"
	"dure/internal/tools/web"
)

// toolConfig is what the built-in tools of a session are made from.
type toolConfig struct {
	plug.Session
	cat     *catalog.Catalog
	ws      *workspace.Workspace
	tracker *workspace.Tracker
	box     *sandbox.Box
	profile string
	find    func(program string) string // of programs that are started without asking
	left    func() []string             // what hooks have left for commands
	agents  *agents.Session             // nil = their tools are only shown
	pol     *policy.Policy
	skills  *use.Skills // nil = their tool is only shown
	step    func() *catalog.Step
}

// toolSet is what comes with the tools of a session.
type toolSet struct {
	tools   plug.Points
	servers plug.Points // language servers
	todos   *builtin.Todos
	agents  *agents.Session
	code    *swarms.Session
}

// tools fills the catalog with the built-in tools.
func (a *App) tools(c toolConfig) (toolSet, error) {
	dialect := catalog.Dialect(a.cfg.Dialect)
	env, reads := a.commandEnv(), reader(a.opts.UserHome, usualShell(c.find))
	team := a.hire(c)
	commands := shell.Config{
		Other: team.Output, StopOther: team.Stop, Others: team.Latest,
		Box: c.box, Env: a.plugins.Programs(env, c.ws.Root()), More: c.left, Path: usualShell(c.find), Reads: reads, Settle: c.Reach.Settle, Past: c.Reach.Outcome,
		OutputTool: dialect.Name("task__output"), StopTool: dialect.Name("task__stop"), Masked: guard.Masked,
	}
	// A front-end's terminal is outside of every box, so that it takes the place of one that
	// confines nothing alone: its user has turned the sandbox off.
	if t := a.opts.Terminal; t != nil && a.cfg.Sandbox.Off && c.Child == nil && unsaved.Own(c.ws, a.opts.Workdir) {
		commands.Terminal = shell.Beside(t, a.opts.Environ)
	}
	sh := shell.New(commands)
	all := files.Files{
		Workspace: c.ws, FS: unsaved.Files(c.ws, a.opts.Editor, a.opts.Workdir), Tracker: c.tracker, Home: a.opts.UserHome, Masked: guard.Masked,
		Blob: func(handle string) (string, bool) {
			path := a.store.BlobPath(c.ID, strings.TrimPrefix(handle, "output:"))
			return path, path != ""
		},
	}.Tools()
	all = append(all, sh.Tools()...)
	list := new(builtin.Todos)
	var events func(context.Context, int64) iter.Seq2[agent.Event, error]
	if c.Log != nil { // the tools are those of a session
		events = c.Events
		restore(list, c.ID, c.Past())
	}
	all = append(all, list.Tool(), builtin.Ask(), builtin.Recall(events), c.skills.Tool(), toolSearch(c))
	if c.pol != nil && c.Child == nil {
		all = append(all, a.planTools(c)...)
	}
	if !a.cfg.NoTaskState {
		all = append(all, builtin.Note())
	}
	check := code.New(code.Config{Workspace: c.ws, Box: c.box, Env: env, Reads: reads, Shell: usualShell(c.find)})
	all = append(all, check.Tools()...)
	all = append(all, git.New(git.Config{Box: c.box, Git: c.find("git"), Env: env, Root: c.ws.Root()}).Tools()...)
	servers := lsp.New(lsp.Config{Trusted: func() bool { return a.cfg.Trusted }, Start: starter(c.box, outsidePath(env, c.ws.Inside)), Find: c.find, Root: c.ws.Root(), FS: c.ws})
	all = append(all, servers.Tools()...)
	all = append(all, a.noteTools(c.ws.Root(), team.Kind())...)
	all = append(all, team.Tools()...)
	all = append(all, a.servers.Tools(c.ID, c.pol)...)
	pages, err := a.web(c)
	if err != nil {
		return toolSet{}, err
	}
	all = append(all, pages.Tools()...)
	if all, err = addForm(all, c.Open.Schema); err != nil {
		return toolSet{}, err
	}
	for _, t := range all {
		if err := c.cat.Register(t, catalog.BuiltIn, ""); err != nil {
			return toolSet{}, err
		}
	}
	code, err := a.bundleCode(c, team.Kind())
	if err != nil {
		return toolSet{}, err
	}
	return toolSet{
		code: code, todos: list, agents: team,
		tools: plug.Points{
			Hooks: plug.Hooks{Spoken: check.Reset, Rewound: func(past []agent.Message) { restore(list, c.ID, past) }},
			Close: sh.Close,
		},
		servers: plug.Points{
			Wrap: []plug.Wrap{func(t agent.Tool, next plug.Run) plug.Run {
				return plug.Run(servers.Wrap(t, lsp.Run(next)))
			}},
			Close: func() { _ = servers.Close() }, // they are ended, whatever they say
		},
	}, nil
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
	return sandbox.Scrub(a.environ(), scrub)
}

// environ is the environment with what the settings add; of two of a name, the last counts.
func (a *App) environ() []string {
	env := slices.Clone(a.opts.Environ)
	for _, name := range slices.Sorted(maps.Keys(a.cfg.Env)) {
		env = append(env, name+"="+string(a.cfg.Env[name]))
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
	return finder(ws)(program)
}

// web makes the tools that speak HTTP.
func (a *App) web(c toolConfig) (*web.Web, error) {
	cfg := web.Config{
		Transport: a.transport, UserAgent: "dure/" + a.opts.Version,
		Mode: web.Mode(a.cfg.Network.Mode), AllowHosts: a.cfg.Network.AllowHosts,
	}
	if s := a.cfg.Search; s.Kind != "" {
		cfg.Search = web.SearchConfig{Kind: s.Kind, URL: s.URL, Key: strings.TrimSpace(getenv(a.opts.Environ)(s.KeyEnv))}
	}
	if !a.cfg.NoAI {
		cfg.Ask = func(ctx context.Context, q agent.Question) (agent.Answer, error) {
			q.Model = a.models.SmallFor(c.Model()) // a page is for nobody but the session's provider
			return c.Reach.Ask(ctx, q)
		}
	}
	if err := cfg.Check(); err != nil {
		return nil, agent.SettingsProblem("network", err)
	}
	return web.New(cfg), nil
}

// quietly keeps a language server from reaching out for what a repository names:
// other toolchains, modules, crates.
var quietly = []string{"GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOVCS=*:off", "CARGO_NET_OFFLINE=true"}

// outsidePath returns an environment whose PATH has no folders inside, and no
// relative ones: a language server starts what it finds there unasked, as gopls
// does go.
func outsidePath(env []string, inside func(path string) bool) []string {
	env = slices.Clone(env)
	for i, entry := range env {
		name, list, ok := strings.Cut(entry, "=")
		if !ok || !strings.EqualFold(name, "PATH") {
			continue
		}
		kept := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool {
			real, err := filepath.EvalSymlinks(dir)
			return err != nil || !filepath.IsAbs(dir) || inside(dir) || inside(real)
		})
		env[i] = name + "=" + strings.Join(kept, string(filepath.ListSeparator))
	}
	return env
}

// starter starts language servers in the box.
func starter(box *sandbox.Box, env []string) func(context.Context, []string, string) (io.ReadWriteCloser, error) {
	env = append(slices.Clone(env), quietly...)
	return func(ctx context.Context, argv []string, dir string) (io.ReadWriteCloser, error) {
		p, err := box.Start(ctx, sandbox.Cmd{Argv: argv, Dir: dir, Env: env, PipeIn: true, PipeOut: true})
		if err != nil {
			return nil, err
		}
		return p.Pipes(), nil
	}
}

// finder returns what finds programs, and none in a workspace: PATH may have its
// folders, and a repository may have brought a git of its own.
func finder(ws *workspace.Workspace) func(program string) string {
	return func(program string) string { return sandbox.FindOutside(program, ws.Inside) }
}

// usualShell is the shell that commands run in; "" = the usual one of the system.
func usualShell(find func(program string) string) string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return find("bash")
}

// NewEvaluator returns what decides on calls that nobody makes.
func NewEvaluator(dir, home string) *eval.Evaluator {
	return &eval.Evaluator{Dir: dir, Home: home, Tools: planners}
}

// planners returns the built-in tools, of which nothing but their plans is used.
func planners(ws *workspace.Workspace, home string) []agent.Tool {
	box := sandbox.New(sandbox.Config{})
	reads := reader(home, "")
	list := files.Files{Workspace: ws, Home: home}.Tools()
	list = append(list, shell.New(shell.Config{Box: box, Reads: reads}).Tools()...)
	list = append(list, code.New(code.Config{Workspace: ws, Box: box, Reads: reads}).Tools()...)
	list = append(list, git.New(git.Config{Box: box, Root: ws.Root()}).Tools()...)
	list = append(list, web.New(web.Config{}).Tools()...)
	return append(list, new(builtin.Todos).Tool(), builtin.Ask())
}
