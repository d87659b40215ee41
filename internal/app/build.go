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
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"dure/agent"
	"dure/internal/catalog"
	"dure/internal/config"
	"dure/internal/guard"
	"dure/internal/loop"
	"dure/internal/policy"
	"dure/internal/prompt"
	"dure/internal/sandbox"
	"dure/internal/session"
	"dure/internal/tools"
	"dure/internal/workspace"
)

// build makes the parts of a session.
func (a *App) build(_ context.Context, b session.Build) (session.Parts, error) {
	workdir := b.Open.Workdir
	if workdir == "" {
		workdir = a.opts.Workdir
	}
	ws, err := workspace.New(workspace.Config{Root: workdir, Extra: a.cfg.AddDirs, Git: sandbox.Find("git")})
	if err != nil {
		return session.Parts{}, workdirProblem(workdir, err)
	}
	cat := catalog.New(catalog.Config{Dialect: catalog.Dialect(a.cfg.Dialect)})
	mode := b.Open.Mode
	if mode == "" || b.Child == nil && (a.opts.Flags.Mode != "" || a.opts.Flags.Skip) { // a child has its parent's
		mode = a.cfg.Mode
	}
	rules := a.policyConfig(cat, ws, mode)
	pol, err := policy.New(rules)
	if err != nil {
		return session.Parts{}, settingsProblem("permissions", err)
	}
	box := sandbox.New(sandbox.Config{Temp: a.temp()})
	tracker := ws.NewTracker(b.Files)
	if err := a.register(cat, ws, tracker, box, b); err != nil {
		return session.Parts{}, err
	}
	shown := step(cat, nil).Names
	grd := guard.New(guard.Config{
		PutBlob: func(ctx context.Context, r io.Reader) (string, int64, error) { return b.PutBlob(ctx, r, 0) },
		Read:    presented(shown, readTool), Grep: presented(shown, grepTool),
	})
	name, keep := childOf(cat, b.Child)
	return session.Parts{
		Agent: name, Workdir: workdir, Dialect: a.cfg.Dialect, Config: a.configHash(),
		Model:   a.model,
		Catalog: func() session.Catalog { return step(cat, keep) },
		System:  func(opened time.Time) []agent.Section { return a.system(ws, workdir, b, opened) },
		Gate:    gate(pol),
		Guard:   grd.Check,
		Clean:   guard.Clean,
		Reap:    func(p agent.Process) { sandbox.Reap(p) },
		Retry:   loop.Retry{Attempts: a.cfg.Limits.Retries},
		Limits:  loop.Limits{Steps: a.cfg.MaxSteps, Closing: true},
		SetMode: pol.SetMode,
		Grant:   remember(pol, rules),
		Close: func() {
			if err := box.Close(); err != nil {
				a.opts.Logger.Warn("closing the process box", "session", b.Session, "error", err)
			}
		},
	}, nil
}

// The tools that page and search what the guard has stored, and the one that
// keeps the task list.
const (
	readTool = "file-system__read"
	grepTool = "file-system__grep"
	todoTool = "todo__write"
)

// presented is the name that the model knows a tool by.
func presented(names map[string]string, canonical string) string {
	if n, ok := names[canonical]; ok {
		return n
	}
	return canonical
}

// register fills the catalog with the built-in tools.
func (a *App) register(cat *catalog.Catalog, ws *workspace.Workspace, tracker *workspace.Tracker, box *sandbox.Box, b session.Build) error {
	builtin := tools.Files{
		Workspace: ws, Tracker: tracker, Home: a.opts.UserHome,
		Blob: func(handle string) (string, bool) {
			path := a.store.BlobPath(b.Session, strings.TrimPrefix(handle, "output:"))
			return path, path != ""
		},
	}.Tools()
	builtin = append(builtin, tools.Shell{
		Box: box, Env: sandbox.Scrub(a.opts.Environ, a.cfg.ScrubEnv), Path: shell(),
	}.Tools()...)
	builtin = append(builtin, todos(b).Tool(), tools.Ask())
	for _, t := range builtin {
		if err := cat.Register(t, catalog.BuiltIn, ""); err != nil {
			return err
		}
	}
	return nil
}

// shell is the shell that commands run in; "" = the usual one of the system.
func shell() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return sandbox.Find("bash")
}

// todos is the task list as the session left it.
func todos(b session.Build) *tools.Todos {
	t := new(tools.Todos)
	for _, m := range slices.Backward(b.Past) {
		for _, c := range slices.Backward(m.Calls()) {
			if c.Tool == todoTool {
				t.Restore(b.Session, c.Input)
				return t
			}
		}
	}
	return t
}

// childOf returns the name of the agent that a child session runs, and which
// tools it may have; nil = all.
func childOf(cat *catalog.Catalog, c *agent.Child) (string, func(agent.Spec) bool) {
	if c == nil {
		return "", nil
	}
	if len(c.Tools) == 0 {
		return c.Agent, nil
	}
	wanted := map[string]bool{}
	for _, name := range c.Tools {
		if canonical, ok := cat.Canonical(name); ok {
			wanted[canonical] = true
		}
	}
	return c.Agent, func(s agent.Spec) bool { return wanted[s.Name] || wanted["group:"+s.Group] }
}

func step(cat *catalog.Catalog, keep func(agent.Spec) bool) session.Catalog {
	s := cat.Step(keep)
	return session.Catalog{
		Specs: s.Specs(), Names: s.Names(),
		Tools: loop.Tools{Find: s.Lookup, Check: s.Check},
	}
}

// gate is the ordered list of stages. Hooks and middleware go between the two
// halves of the policy.
func gate(pol *policy.Policy) []loop.Stage {
	return []loop.Stage{
		{Name: "policy.before", Decide: func(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
			return pol.Before(p), nil
		}},
		{Name: "policy.after", Decide: func(_ context.Context, p agent.Proposal, soFar agent.Decision) (agent.Decision, error) {
			return pol.After(p, soFar), nil
		}},
	}
}

func (a *App) policyConfig(cat *catalog.Catalog, ws *workspace.Workspace, mode agent.Mode) policy.Config {
	return policy.Config{
		Mode:  mode,
		Allow: config.Texts(a.cfg.Allow), Deny: config.Texts(a.cfg.Deny), Ask: config.Texts(a.cfg.Ask),
		Canonical: cat.Canonical, Resolve: ws.Resolve, Inside: ws.Inside,
	}
}

// remember makes a yes of the user hold for the session: for the tool as a
// whole.
func remember(pol *policy.Policy, cfg policy.Config) func(agent.Proposal) {
	return func(p agent.Proposal) {
		cfg.Mode = pol.Mode()
		cfg.Allow = append(slices.Clip(cfg.Allow), p.Call.Tool)
		// A rule with the tool's own name can always be read.
		_ = pol.Update(cfg)
	}
}

// system writes the system prompt.
func (a *App) system(ws *workspace.Workspace, workdir string, b session.Build, opened time.Time) []agent.Section {
	if opened.IsZero() {
		opened = time.Now()
	}
	model := b.Open.Model
	if model == "" {
		model = a.cfg.Model
	}
	sh := "sh"
	switch {
	case runtime.GOOS == "windows":
		sh = "PowerShell"
	case shell() != "":
		sh = "bash"
	}
	return prompt.System(prompt.Config{
		Workdir: workdir, Extra: a.cfg.AddDirs, Git: hasGit(ws.Root()), OS: runtime.GOOS, Shell: sh,
		Model: model, Opened: opened, Append: a.opts.Flags.SystemAppend,
	})
}

// hasGit reports whether a folder is in a git repository: a .git folder, or the
// file that worktrees and submodules have, here or above.
func hasGit(dir string) bool {
	for {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
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

// checkRules refuses rules that the policy cannot read before anything runs, and
// notes those that match no tool that is known.
func checkRules(cfg *config.Config) error {
	pol, err := policy.New(policy.Config{
		Mode: cfg.Mode, Allow: config.Texts(cfg.Allow), Deny: config.Texts(cfg.Deny), Ask: config.Texts(cfg.Ask),
		Canonical: catalog.New(catalog.Config{Dialect: catalog.Dialect(cfg.Dialect)}).Canonical,
		Resolve:   func(p string) (string, string, error) { return p, p, nil },
		Inside:    func(string) bool { return false },
	})
	if err != nil {
		return settingsProblem("permissions", err)
	}
	for _, rule := range pol.Unknown() {
		cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Text: fmt.Sprintf("the rule %q matches no tool that is known", rule)})
	}
	return nil
}

func settingsProblem(what string, err error) error {
	return &agent.Problem{
		Code: agent.ProblemSettings, Message: err.Error(), Err: err,
		Fix: "mend " + what + " in the settings or on the command line", Args: map[string]string{"path": what, "error": err.Error()},
	}
}

func workdirProblem(path string, err error) error {
	return &agent.Problem{
		Code: agent.ProblemWorkdir, Message: fmt.Sprintf("cannot work in %s: %v", path, err), Err: err,
		Fix: "name a folder that exists and that you may read", Args: map[string]string{"path": path, "error": err.Error()},
	}
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
