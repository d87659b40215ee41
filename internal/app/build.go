package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"syscall"
	"time"

	"dure/agent"
	"dure/internal/extend/mcp/connections"
	"dure/internal/kernel/loop"
	"dure/internal/kernel/plug"
	"dure/internal/kernel/session"
	"dure/internal/knowledge/prompt/system"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy/enforce"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/builtin"
	"dure/internal/tools/catalog"
)

// build makes the parts of a session.
func (a *App) build(ctx context.Context, b plug.Session) (session.Parts, error) {
	var deciding *enforce.Decider // nothing is listed before it is there
	ws, workdir, find, err := a.folder(b, func(path string) bool { return deciding.Policy.DeniesRead(path) })
	if err != nil {
		return session.Parts{}, err
	}
	b.Root, b.Workdir = ws.Root(), workdir
	work, err := a.workOf(b)
	if err != nil {
		return session.Parts{}, err
	}
	project, usualMode := a.house.Project(workdir), work.Mode
	team, err := a.agents.Session(b, project, &work.Profile)
	if err != nil {
		return session.Parts{}, err
	}
	cat := a.catalog()
	box, confined := a.boxes.Box(ws.Root(), workdir, func() ([]string, []string) { return deciding.Policy.DeniedPaths() })
	deciding, err = a.decider(b, a.place(cat, ws, workdir, confined), work.Mode)
	if err != nil {
		return session.Parts{}, err
	}
	offered := a.offer.Session(b, cat, deciding, work.Profile)
	tracker, known := ws.NewTracker(slices.Collect(maps.Values(b.Files))), a.skillsOf(b, project, work.Name, deciding.Policy)
	set, err := a.tools(toolConfig{Session: b, cat: cat, ws: ws, tracker: tracker, box: box, profile: work.Name, find: find, agents: team, pol: deciding.Policy, skills: known, offered: offered, left: func() []string { return a.hooks.Of(b.ID).Left() }})
	if err != nil {
		return session.Parts{}, err
	}
	served := a.connect(b, team.As, connections.Place{Box: box, Workspace: ws, Catalog: cat, Policy: deciding.Policy})
	grd := a.serve(&b, work.Profile, team.As.Name)
	all := &assembly{
		app: a, b: b, agents: team, project: project, ws: ws, box: box, set: set, servers: served,
		known: known, deciding: deciding, tracker: tracker, grd: grd, offered: offered,
	}
	if b.Child == nil {
		all.plans = builtin.Plans(work.Plan, a.cfg.Plan.Retries, deciding.Policy.Mode, work.Mode, a.cfg.Mode)
	}
	team.Cast(served.Brings())
	who := &team.Role
	write := func(time.Time, string) []agent.Section { return nil }
	if who.Has, err = offered.Keep(who.Has); err == nil && !b.Open.Modelless() {
		write, err = a.prompts.Write(system.Session{Work: work, Dir: workdir, Workspace: ws, Tools: offered.Step().Specs(), Agent: who.System})
	}
	if err == nil {
		all.bounds, err = deciding.Only(who.Parts)
	}
	if err == nil {
		err = deciding.Join(b.Off)
	}
	if err != nil {
		all.abandon()
		return session.Parts{}, err
	}
	deciding.Hold(func(refresh func()) { a.hooks.Of(b.ID).Unheld(refresh) })
	all.typed = all.commands(find)
	points, err := all.list(ctx)
	if err != nil {
		return session.Parts{}, err
	}
	if see := a.opts.Points; see != nil {
		points = see(b, points)
	}
	opened := b.SessionOpened
	opened.Lane, opened.Mode, opened.Dialect, opened.Config = b.Open.Lane, changed(usualMode, work.Mode), a.cfg.Dialect, a.configHash()
	opened.Profile, opened.Work = work.Name, snapshot(work, b.Open)
	return session.Parts{
		SessionOpened: opened,
		Model:         a.modelFor(work, team.As),
		Fallback:      work.Fallback,
		Budget:        plug.Amount{Tokens: work.Tokens, Money: agent.Money(work.Dollars * 1e9)},
		Params:        agent.Params{Thinking: a.thinks(work.Effort)}, Thinking: thinking,
		Catalog: offered.Catalog,
		System:  write,
		Points:  points,
		Retry:   loop.Retry{Attempts: a.cfg.Limits.Retries},
		Limits:  loop.Limits{Steps: work.Steps, Closing: true, Grace: a.opts.CallGrace},
	}, nil
}

// changed is a mode if it is another one than before, else "".
func changed(before, mode agent.Mode) agent.Mode {
	if before == mode {
		return ""
	}
	return mode
}

// folder opens the folder of a session, and what finds programs outside of it.
func (a *App) folder(b plug.Session, hidden func(path string) bool) (ws *workspace.Workspace, dir string, find func(string) string, err error) {
	if dir = b.Open.Workdir; dir == "" {
		dir = a.opts.Workdir
	}
	if ws, err = workspace.New(workspace.Config{Root: dir, Extra: a.cfg.AddDirs}); err != nil {
		return nil, dir, nil, workspace.Gone(b.Stored.ID, dir, err)
	}
	find = sandbox.Outside(ws.Inside)
	ws, err = workspace.New(workspace.Config{Root: dir, Extra: a.cfg.AddDirs, Git: find("git"), Hidden: hidden})
	if err != nil {
		return nil, dir, nil, workspace.Problem(dir, err)
	}
	return ws, dir, find, nil
}

// guard decides what the results of a session may carry back.
func (a *App) guard(b plug.Session) *guard.Guard {
	dialect := catalog.Dialect(a.cfg.Dialect)
	return guard.New(guard.Config{
		Patterns: a.patterns,
		PutBlob:  func(ctx context.Context, r io.Reader) (string, int64, error) { return b.PutBlob(ctx, r, 0) },
		Read:     dialect.Name(readTool), Grep: dialect.Name(grepTool),
	})
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

// thinks is how many tokens an answer may think for.
func (a *App) thinks(effort string) int {
	if n := a.opts.Flags.Thinking; n != nil {
		return *n
	}
	return thinking[effort]
}

// configHash names the settings that a session was opened with. Secrets hide
// themselves from it.
func (a *App) configHash() string {
	data, err := json.Marshal(a.cfg)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

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
