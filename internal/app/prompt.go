package app

import (
	"cmp"
	"path/filepath"
	"runtime"

	"dure/agent"
	"dure/internal/knowledge/compact"
	"dure/internal/knowledge/prompt"
	"dure/internal/knowledge/prompt/system"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/trust"
	"dure/internal/safety/workspace"
)

// newPrompts makes what writes system prompts.
func (a *App) newPrompts() *system.Extension {
	usual := prompt.Context{
		User: a.cfg.User.Name, About: a.cfg.User.About, Channel: "terminal", Chat: "direct",
		Memory: true, Extra: a.cfg.AddDirs, OS: runtime.GOOS, Investment: a.cfg.Investment,
	}
	if !a.cfg.Origins["language"].BuiltIn() { // that of the locale is not chosen for answers
		usual.Language = a.cfg.Language
	}
	return &system.Extension{
		Dir: filepath.Join(a.cfg.Home, "prompts"), Workdir: a.opts.Workdir, Flag: a.opts.Flags.System, Added: a.opts.Flags.SystemAppend, Usual: usual,
		Work:       func(profile string) (prompt.Work, error) { return a.cfg.Work(cmp.Or(profile, a.cfg.Profile)) },
		Model:      a.models.Info,
		UsualModel: func(profile string) string { model, _ := a.models.Usual(profile); return model },
		Place: func(ws *workspace.Workspace) (git bool, shell string) {
			return trust.Repository(ws.Root()) != "", sandbox.ShellName(sandbox.Outside(ws.Inside))
		},
		Tools: func(dir string, work agent.Profile) ([]agent.Spec, map[string]string, error) {
			s, err := a.offer.Begin(dir, work)
			if err != nil {
				return nil, nil, err
			}
			step := s.Step()
			return step.Specs(), step.Names(), nil
		},
		Count: func(provider string) func(string) int { return compact.NewEstimator(provider).Text },
		Fixed: func(model string, tool agent.Spec) int {
			info, _ := a.models.Info(model)
			return compact.NewEstimator(info.Provider).Fixed(nil, []agent.Spec{tool})
		},
	}
}

// workOf is what holds for the work of a session, with the model and the mode that it
// is opened with. A session that is only edited, or whose tools are lent, needs no model.
func (s *assembly) workOf() (prompt.Work, error) {
	a, b := s.app, &s.b
	name := cmp.Or(b.Open.Profile, a.cfg.Profile)
	w, err := a.cfg.Work(name)
	if err != nil {
		if !b.Open.Modelless() {
			return w, err
		}
		w, _ = a.cfg.Work(a.cfg.Profile) // it is not worked with
		w.Name = name
	}
	m, err := a.models.For(name)(b.Open.Model)
	switch {
	case err == nil:
		w.Model = m.Info().ID
	case !b.Open.Modelless():
		return w, err
	}
	if mode := b.Open.Mode; mode != "" && (b.Child != nil || a.opts.Flags.Mode == "" && !a.opts.Flags.Skip) { // a child has its parent's
		w.Mode = mode
	}
	return w, nil
}

// snapshot is what the log keeps of the work of a session; nil when none is done.
func snapshot(w prompt.Work, o agent.Open) *agent.Profile {
	if o.Modelless() {
		return nil
	}
	return &w.Profile
}
