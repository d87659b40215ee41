package app

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config/change"
	"dure/internal/extend/host"
	"dure/internal/extend/mcp/connections"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/extend/skills/use"
	"dure/internal/extend/swarm/agents"
	"dure/internal/extend/swarm/house"
	"dure/internal/frontend/auth"
	"dure/internal/frontend/doctor"
	"dure/internal/frontend/text"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/memory/instruct"
	"dure/internal/knowledge/memory/reflexion"
	"dure/internal/knowledge/prompt"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy/enforce"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/sandbox/machine"
	"dure/internal/safety/trust"
	"dure/internal/safety/workspace"
	"dure/internal/state/checkpoint/undo"
	"dure/internal/tools/builtin/offer"
	"dure/internal/tools/lsp"
	"dure/internal/tools/verify"
)

// extend makes the extensions. Each query is answered by one of them.
func (a *App) extend() error {
	a.trust = a.newTrust()
	a.settings = change.New(change.Config{Live: a.permissions, Started: a.cfg, Version: a.opts.Version, Mask: a.patterns.Redact, Keep: a.trust.Keep})
	a.boxes, a.policy = a.newBoxes(), a.newPolicy()
	if err := a.newAgents(); err != nil {
		return err
	}
	a.house = house.New(house.Config{
		Off: a.opts.Flags.Scratch, Data: a.cfg.Data, Temp: a.temp, Git: func() string { return a.outside("git") }, Env: a.commandEnv,
		Open:    func(session string) bool { return a.sessions.store.Owned(session) },
		Workdir: func(session string) string { return a.sessions.reg.Workdir(session) },
		Top:     trust.Repository, Dirs: a.cfg.AddDirs, Logger: a.opts.Logger,
	})
	a.undo = undo.New(undo.Config{
		Off: a.cfg.NoCheckpoints || a.opts.Flags.Scratch, Dir: a.cfg.Checkpoints, Roots: a.cfg.AddDirs, Leave: []string{a.cfg.Data, a.cfg.Home},
		NoSync: a.cfg.Durability == "os", Logger: a.opts.Logger, Fault: a.opts.Fault,
		Tree: func(root string) bool { return root != a.house.Project(root) }, Elsewhere: func(id string) bool { return a.parent.Works(id) },
		Find: a.sessions.find, Row: a.sessions.row,
		Read: func(ctx context.Context, id string) iter.Seq2[agent.Event, error] {
			return a.sessions.store.Read(ctx, id, 0)
		},
	})
	a.lessons = reflexion.New(reflexion.Config{
		Off: !a.cfg.Reflexion.Enabled, Data: a.cfg.Data, Forget: a.opts.Flags.Scratch, Tasks: a.cfg.Reflexion.MaxEntries, Failed: !a.cfg.Reflexion.EvaluateOnSuccess,
		Parting: a.opts.Parting, Logger: a.opts.Logger, Unreadable: agent.SettingsProblem, Unwritable: func(path string, err error) error { return storeProblem(err, path) },
	})
	a.compact = a.compactions()
	a.offer, a.prompts = a.newOffer(), a.newPrompts()
	a.memory = instruct.New(instruct.Config{
		Files: a.opts.memoryFiles(a.cfg.Memory, a.cfg.Home), Off: a.cfg.Memory.Off, Where: a.cfg.From("memory.enabled"), Home: a.cfg.Home, Workdir: a.opts.Workdir,
		Main: a.house.Project, Hidden: a.policy.Hides, Project: a.trust.Project, Top: trust.Repository, Redact: a.patterns.Redact, Clean: guard.Clean,
		Explain: func(f query.Finding) (detail, fix string) {
			_, detail, fix = text.For("en").Finding(f)
			return detail, fix
		},
		Draft: a.draft, There: func(path string) error { return drafted(text.For(a.cfg.Language), path) },
	})
	a.verify = verify.New(verify.Options{Roots: a.cfg.AddDirs, Checklist: reflexion.Checklist, Checks: a.lessons.Checks})
	a.mirror, a.Telemetry = a.newMirror(), a.newTelemetry()
	a.hooks, a.mentions = a.newHooks(), a.newMentions()
	a.Schedules, a.plugins, a.Bundles, a.servers = a.newSchedules(), a.newPlugins(), a.newBundles(), a.newServers()
	a.skills = a.newSkills()
	a.commands = a.newCommands() // which has functions of the skills
	a.Embedding = a.newHost()    // likewise, and of the commands
	all := slices.Concat([]plug.Extension{
		a.trust,
		a.settings,
		a.boxes,
		a.policy,
		a.mirror,
		a.agents,
		a.skills,
		a.commands,
		a.undo,
		a.lessons,
		a.memory,
		a.Schedules,
		a.hooks,
		a.mentions,
		a.models,
		a.plugins,
		a.Bundles,
		a.prompts,
		a.newLauncher(),
		a.offer,
		&machine.Extension{
			Data: a.cfg.Data, Home: a.cfg.Home, Workdir: a.opts.Workdir, Version: a.opts.Version, Language: a.cfg.Language, Servers: lsp.Installed(),
		},
		a.servers,
		a.newUpdates(),
		auth.OpenUsers(filepath.Join(a.cfg.Home, auth.UsersFile)),
	}, a.archives(), a.opts.More)
	var err error
	a.answers, err = answersOf(append(all, doctor.New(all)))
	return err
}

// answersOf returns what extensions answer, by the name of the query.
func answersOf(all []plug.Extension) (map[string]plug.Answer, error) {
	answers := map[string]plug.Answer{}
	for _, x := range all {
		answerer, ok := x.(plug.Answerer)
		if !ok {
			continue
		}
		for _, one := range answerer.Answers() {
			name := one.Query.Query()
			if _, ok := answers[name]; ok {
				return nil, fmt.Errorf("the query %s is answered by %s, and by another extension before it", name, x.Name())
			}
			answers[name] = one
		}
	}
	return answers, nil
}

// assembly is what the capabilities of a session are, while it is opened. One without deciding
// is that of no session: its tools are only shown.
type assembly struct {
	app     *App
	b       plug.Session
	work    prompt.Work
	agents  *agents.Session
	project string
	ws      *workspace.Workspace
	box     *sandbox.Box
	find    func(program string) string // of programs that are started without asking

	set      toolSet
	servers  *connections.Session
	known    *use.Skills
	tracker  *workspace.Tracker
	grd      *guard.Guard
	typed    plug.Points // commands
	plans    plug.Plans
	deciding *enforce.Decider
	bounds   []plug.Stage // of its type
	offered  *offer.Session
}

// list is the one list of capabilities, whose order is the order of everything: of the
// stages of the gate, of the moments, of middleware and of what is said to the model.
func (s *assembly) list(ctx context.Context) (list []plug.Attached, err error) {
	a, b := s.app, s.b
	attach := func(x plug.Extension) plug.Attached {
		if err != nil {
			return plug.Attached{}
		}
		p, failed := x.Attach(ctx, &b)
		if failed != nil {
			err = fmt.Errorf("%s: %w", x.Name(), failed)
		}
		return plug.Attached{Name: x.Name(), Points: p}
	}
	hooks := attach(a.hooks.In(s.forHooks())) // before the skills, which have theirs run
	s.addToSkills()
	list = []plug.Attached{
		{Name: "session", Points: plug.Points{Close: s.close}},
		attach(a.Embedding.In(&host.Place{Workspace: s.ws, Tracker: s.tracker, Catalog: s.offered.Tools})),
		{Name: "guard", Points: s.grd.Points()},
		{Name: "compaction", Points: a.compact.Points(&b, s.set.todos.Open)},
		{Name: "plans", Points: plug.Points{Plans: s.plans}},
		{Name: "sign-in", Points: plug.Points{Awaits: oauth.Awaits(a.desk, b.Reach.Settle)}},
		attach(a.mirror),
		{Name: "extensions", Points: s.set.code.Points(s.offered.Catalog)},
		{Name: "language servers", Points: s.set.servers},
		attach(a.undo),
		attach(a.Telemetry),
		{Name: "tools", Points: s.set.tools},
		attach(a.memory),
		attach(a.lessons),
		attach(a.mentions.In(s.forMentions())),
		attach(a.verify),
		{Name: "agents", Points: s.agents.Points(s.bounds)},
		attach(a.house),
		{Name: "skills", Points: s.known.Points()},
		{Name: "servers", Points: s.servers.Points()},
		attach(s.offered),
		hooks,
		{Name: "bundle", Points: s.set.code.Inner()},
		{Name: "commands", Points: s.typed},
		attach(s.deciding),
	}
	for _, x := range a.opts.More {
		list = append(list, attach(x))
	}
	if err == nil {
		return list, nil
	}
	for _, p := range slices.Backward(list) {
		if p.Close != nil {
			p.Close()
		}
	}
	return nil, err
}

// close gives back what no capability has.
func (s *assembly) close() {
	s.servers.Close()
	s.deciding.Leave()
	if err := s.box.Close(); err != nil {
		s.app.opts.Logger.Warn("closing the process box", "session", s.b.ID, "error", err)
	}
}

// abandon gives back what a session has that does not come about.
func (s *assembly) abandon() {
	s.set.close()
	s.close()
}
