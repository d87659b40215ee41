package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"syscall"
	"time"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/kernel/plug"
	"dure/internal/kernel/session"
	"dure/internal/knowledge/prompt/system"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/builtin"
)

// build makes the parts of a session.
func (a *App) build(ctx context.Context, b plug.Session) (session.Parts, error) {
	s := &assembly{app: a, b: b}
	usual, err := s.begin()
	if err != nil {
		return session.Parts{}, err
	}
	write, err := s.equip()
	if err != nil {
		s.abandon()
		return session.Parts{}, err
	}
	s.deciding.Hold(func(refresh func()) { a.hooks.Of(b.ID).Unheld(refresh) })
	s.typed = s.commands()
	points, err := s.list(ctx)
	if err != nil {
		return session.Parts{}, err
	}
	if see := a.opts.Points; see != nil {
		points = see(s.b, points)
	}
	thinks := thinking[s.work.Effort]
	if n := a.opts.Flags.Thinking; n != nil {
		thinks = *n
	}
	opened := s.b.SessionOpened
	opened.Lane, opened.Mode, opened.Dialect, opened.Config = b.Open.Lane, changed(usual, s.work.Mode), a.cfg.Dialect, a.cfg.Hash()
	opened.Profile, opened.Work = s.work.Name, snapshot(s.work, b.Open)
	return session.Parts{
		SessionOpened: opened,
		Model:         s.models(),
		Fallback:      s.work.Fallback,
		Budget:        plug.Amount{Tokens: s.work.Tokens, Money: agent.Money(s.work.Dollars * 1e9)},
		Params:        agent.Params{Thinking: thinks}, Thinking: thinking,
		Catalog: s.offered.Catalog,
		System:  write,
		Points:  points,
		Retry:   loop.Retry{Attempts: a.cfg.Limits.Retries},
		Limits:  loop.Limits{Steps: s.work.Steps, Closing: true, Grace: a.opts.CallGrace},
	}, nil
}

// begin opens the folder of a session, and makes what decides in it, what the model may use,
// and the tools. It returns the mode of the session's kind of work.
func (s *assembly) begin() (usual agent.Mode, err error) {
	a := s.app
	if err := s.folder(); err != nil {
		return "", err
	}
	if s.work, err = s.workOf(); err != nil {
		return "", err
	}
	s.project, usual = a.house.Project(s.b.Workdir), s.work.Mode
	if s.agents, err = a.agents.Session(s.b, s.project, &s.work.Profile); err != nil {
		return "", err
	}
	cat := a.catalog()
	box, confined := a.boxes.Box(s.ws.Root(), s.b.Workdir, func() ([]string, []string) { return s.deciding.Policy.DeniedPaths() })
	s.box = box
	whose := s.b
	whose.Open.Owned = whose.Open.Owned || a.parent.Works(whose.Parent) && a.inherited.Owned
	if s.deciding, err = a.policy.Open(&whose, a.place(cat, s.ws, s.b.Workdir, confined), s.work.Mode); err != nil {
		return "", err
	}
	s.offered = a.offer.Session(s.b, cat, s.deciding, s.work.Profile)
	s.tracker = s.ws.NewTracker(slices.Collect(maps.Values(s.b.Files)))
	if s.b.Stored.ID != "" { // calls that were decided on before may run without another word
		_ = a.trust.Begin(func(...agent.Body) error { return nil }) // which each file says that has no powers
	}
	s.known = a.skills.Session(s.b, s.project, a.models.For(s.work.Name), s.deciding.Policy)
	return usual, s.tools()
}

// equip connects the servers of a session, says which tools its type has, and returns what
// writes its system prompt.
func (s *assembly) equip() (write func(time.Time, string) []agent.Section, err error) {
	a := s.app
	s.connect()
	s.serve()
	s.agents.Cast(s.servers.Brings())
	if s.b.Child == nil {
		s.plans = builtin.Plans(s.work.Plan, a.cfg.Plan.Retries, s.deciding.Policy.Mode, s.work.Mode, a.cfg.Mode)
	}
	who := &s.agents.Role
	write = func(time.Time, string) []agent.Section { return nil }
	if who.Has, err = s.offered.Keep(who.Has); err == nil && !s.b.Open.Modelless() {
		write, err = a.prompts.Write(system.Session{Work: s.work, Dir: s.b.Workdir, Workspace: s.ws, Tools: s.offered.Step().Specs(), Agent: who.System})
	}
	if err == nil {
		s.bounds, err = s.deciding.Only(who.Parts)
	}
	if err == nil {
		err = s.deciding.Join(s.b.Off)
	}
	return write, err
}

// changed is a mode if it is another one than before, else "".
func changed(before, mode agent.Mode) agent.Mode {
	if before == mode {
		return ""
	}
	return mode
}

// folder opens the folder of a session, and what finds programs outside of it.
func (s *assembly) folder() error {
	a, dir := s.app, cmp.Or(s.b.Open.Workdir, s.app.opts.Workdir)
	ws, err := workspace.New(workspace.Config{Root: dir, Extra: a.cfg.AddDirs})
	if err != nil {
		return workspace.Gone(s.b.Stored.ID, dir, err)
	}
	s.find = sandbox.Outside(ws.Inside)
	s.ws, err = workspace.New(workspace.Config{Root: dir, Extra: a.cfg.AddDirs, Git: s.find("git"), Hidden: func(path string) bool { return s.deciding.Policy.DeniesRead(path) }})
	if err != nil {
		return workspace.Problem(dir, err)
	}
	s.b.Root, s.b.Workdir = s.ws.Root(), dir
	return nil
}

// The tools that page and search what the guard has stored.
const (
	readTool = "file-system__read"
	grepTool = "file-system__grep"

	recallTool = "session__recall" // opens what a compaction has put away
)

// thinking is the budget that stands for an effort, in tokens. Adapters turn it
// into what their provider calls it.
var thinking = map[string]int{"low": 2_048, "medium": 8_192, "high": 24_576}

// storeProblem is a store that cannot be opened.
func storeProblem(err error, dir string) error {
	p := &agent.Problem{
		Code: agent.ProblemHome, Message: fmt.Sprintf("sessions cannot be kept in %s: %v", dir, err), Err: err,
		Fix: "make the folder writable, or name another one in DURE_HOME", Args: map[string]string{"path": dir, "error": err.Error()},
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		p.Args["path"] = pe.Path
	}
	if errors.Is(err, syscall.ENOSPC) {
		p.Code, p.Fix = agent.ProblemDisk, "make room, or name another folder in DURE_HOME"
	}
	return p
}
