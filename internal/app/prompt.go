package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/compact"
	"dure/internal/knowledge/prompt"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// promptShare is the part of the model's window that the system prompt may have: one
// token in so many.
const promptShare = 8

// work is what holds for a kind of work.
func (a *App) work(name string) (config.Work, error) {
	w, ok := a.cfg.Work(name)
	if ok {
		return w, nil
	}
	list := strings.Join(a.cfg.ProfileNames(), ", ")
	return w, &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("--profile: %q is none of: %s", name, list),
		Fix: "name another one with --profile", Args: map[string]string{"flag": "--profile", "value": name, "wanted": list},
	}
}

// workOf is what holds for the work of a session, with the model and the mode that it
// is opened with. A session that is only edited, or whose tools are lent, needs no model.
func (a *App) workOf(b plug.Session) (config.Work, error) {
	name := cmp.Or(b.Open.Profile, a.cfg.Profile)
	w, err := a.work(name)
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
func (a *App) snapshot(w config.Work, o agent.Open) *agent.Profile {
	if o.Modelless() {
		return nil
	}
	return &w.Profile
}

// prompt returns what writes the system prompt of a session. wanted is which tools a
// child may have, nil = all; it becomes those that its kind of work has too. A
// session that asks no model has no prompt.
func (a *App) prompt(cat *catalog.Catalog, s setting, wanted *func(agent.Spec) bool, o agent.Open) (func(opened time.Time, model string) []agent.Section, error) {
	none := func(time.Time, string) []agent.Section { return nil }
	if o.Edit {
		return none, nil
	}
	has, err := a.offered(cat, s.work)
	if err != nil {
		return nil, err
	}
	if may := *wanted; may != nil && has != nil {
		*wanted = func(s agent.Spec) bool { return may(s) && has(s) }
	} else if has != nil {
		*wanted = has
	}
	if o.Lend {
		return none, nil
	}
	s.tools = cat.Step(*wanted).Specs()
	compose, err := a.composer(s)
	if err != nil {
		return nil, err
	}
	if _, err := compose(time.Now()); err != nil {
		return nil, err
	}
	return func(opened time.Time, model string) []agent.Section {
		if model != s.work.Model { // the session has gone over to it
			other := s
			other.work.Model = model
			if compose, err := a.composer(other); err == nil {
				if p, err := compose(opened); err == nil {
					return p.System()
				}
			} // what does not fit another model is what the first one got
		}
		p, _ := compose(opened) // a date is as long as the other
		return p.System()
	}, nil
}

// readOnly is the word for all tools that change nothing.
const readOnly = "read-only"

// offered returns which tools a kind of work has; nil = all.
func offered(cat *catalog.Catalog, w config.Work) (func(agent.Spec) bool, error) {
	if len(w.Tools) == 0 || slices.Contains(w.Tools, "all") {
		return nil, nil
	}
	names := map[string]bool{}
	for _, name := range w.Tools {
		canonical, ok := cat.Canonical(name)
		switch {
		case ok:
			names[canonical] = true
		case name == readOnly, strings.HasPrefix(name, "mcp__"): // servers come later
			names[name] = true
		default:
			return nil, agent.SettingsProblem("profiles."+w.Name+".tools", fmt.Errorf("there is no tool %q; dure prompt --tools --profile code lists them", name))
		}
	}
	return func(s agent.Spec) bool {
		return names[s.Name] || names["group:"+s.Group] || names[readOnly] && s.Class == agent.Read
	}, nil
}

// setting is what the system prompt of a session depends on beside the settings.
type setting struct {
	work  config.Work // of a model "", none is known
	dir   string      // as the user named it
	ws    *workspace.Workspace
	tools []agent.Spec

	system string // of an agent, in place of what dure says of itself; "" = that
}

// composer reads what the system prompt is made of, and returns what writes it for a
// session that was opened at a time.
func (a *App) composer(s setting) (func(opened time.Time) (prompt.Prompt, error), error) {
	text, replace, err := a.prompts.Text(s.work.Name, a.opts.Flags.System, s.work.Prompt, s.work.Append, a.opts.Flags.SystemAppend)
	if err != nil {
		return nil, err
	}
	if s.system != "" {
		text, replace = s.system, true
	}
	info := agent.ModelInfo{}
	if s.work.Model != "" {
		if info, err = a.models.Info(s.work.Model); err != nil {
			return nil, err
		}
		info.ID = s.work.Model
	}
	c := prompt.Context{
		Kind: s.work.Kind, Verify: s.work.Verify, Model: info,
		User: a.cfg.User.Name, About: a.cfg.User.About, Channel: "terminal", Chat: "direct",
		Custom: text, Replace: replace, Memory: true,
		Workdir: s.dir, Extra: a.cfg.AddDirs, Git: hasGit(s.ws.Root()), OS: runtime.GOOS, Shell: shellName(s.ws),
		Count: compact.NewEstimator(info.Provider).Text,
	}
	if !a.cfg.Origins["language"].BuiltIn() { // that of the locale is not chosen for answers
		c.Language = a.cfg.Language
	}
	if v := a.cfg.Investment; v != nil {
		c.Investment = &prompt.Investment{Risk: v.Risk, Markets: v.Markets, Compliance: v.Compliance}
	}
	for _, t := range s.tools {
		c.Tools = append(c.Tools, t.Name)
	}
	return func(opened time.Time) (prompt.Prompt, error) {
		c.Opened = opened.Local() // a log has it in another zone than the one that began it
		p, err := prompt.Build(c, info.Window/promptShare)
		return p, promptProblem(err, s.work.Name, s.work.Model)
	}, nil
}

// promptProblem says that what a prompt has to have does not fit.
func promptProblem(err error, profile, model string) error {
	long, ok := errors.AsType[*prompt.TooLong](err)
	if !ok {
		return err
	}
	return &agent.Problem{
		Code: agent.ProblemPrompt, Err: err,
		Message: fmt.Sprintf("the system prompt of profile %s has to have about %d tokens, and %s has room for %d", profile, long.Tokens, model, long.Budget),
		Fix:     "shorten your own text, see: dure prompt --profile " + profile + "; or choose a model with a larger window",
		Args:    map[string]string{"profile": profile, "model": model, "tokens": fmt.Sprint(long.Tokens), "budget": fmt.Sprint(long.Budget)},
	}
}

// shellName is what the shell of commands is called.
func shellName(ws *workspace.Workspace) string {
	switch {
	case runtime.GOOS == "windows":
		return "PowerShell"
	case usualShell(finder(ws)) != "":
		return "bash"
	}
	return "sh"
}

// promptReport says what the system prompt of a session would be. Nothing is started
// for it, and no model is needed.
func (a *App) promptReport(q query.PromptPreview) (query.PromptReport, error) {
	w, err := a.work(cmp.Or(q.Profile, a.cfg.Profile))
	if err != nil {
		return query.PromptReport{}, err
	}
	s := setting{work: w, dir: cmp.Or(q.Workdir, a.opts.Workdir)}
	if s.work.Model = q.Model; q.Model == "" {
		s.work.Model, _ = a.models.Usual(w.Name) // without a key there is none
	}
	if s.work.Model != "" {
		info, err := a.models.Info(s.work.Model)
		if err != nil {
			return query.PromptReport{}, err
		}
		s.work.Model = info.ID
	}
	if s.ws, err = workspace.New(workspace.Config{Root: s.dir}); err != nil {
		return query.PromptReport{}, workspace.Problem(s.dir, err)
	}
	cat, has, err := a.offeredTools(s.ws, w)
	if err != nil {
		return query.PromptReport{}, err
	}
	d, err := a.policy.New(a.place(cat, s.ws, s.dir, nil), "", w.Mode)
	if err != nil {
		return query.PromptReport{}, err
	}
	step := cat.Step(catalog.Both(has, d.Gives))
	s.tools = step.Specs()
	compose, err := a.composer(s)
	if err != nil {
		return query.PromptReport{}, err
	}
	opened := q.Opened
	if opened.IsZero() {
		opened = time.Now()
	}
	p, err := compose(opened)
	if err != nil && p.Sections == nil { // what does not fit is shown all the same
		return query.PromptReport{}, err
	}
	r := query.PromptReport{
		Profile: w.Name, Kind: w.Kind, Model: s.work.Model, Path: a.prompts.Path(w.Name),
		Budget: p.Budget, Tokens: p.Tokens, Hash: prompt.Hash(p.System()), Sections: p.Sections,
	}
	if q.Tools {
		r.Tools = a.promptTools(step, s.work.Model)
	}
	return r, nil
}

// offeredTools are the built-in tools, and which of them a kind of work has; nil = all.
func (a *App) offeredTools(ws *workspace.Workspace, w config.Work) (cat *catalog.Catalog, has func(agent.Spec) bool, err error) {
	cat = catalog.New(catalog.Config{Dialect: catalog.Dialect(a.cfg.Dialect)})
	box := sandbox.New(sandbox.Config{})
	defer box.Close()
	build := plug.Session{Reach: agent.Reach{Settle: func(context.Context, agent.Settlement) error { return nil }}} // as sessions have it
	set, err := a.tools(toolConfig{Session: build, cat: cat, ws: ws, tracker: ws.NewTracker(nil), box: box, profile: w.Name, find: sandbox.Find})
	if err != nil {
		return nil, nil, err
	}
	defer set.close()
	has, err = a.offered(cat, w)
	return cat, has, err
}

// promptTools are the tools of a step as the model is told of them.
func (a *App) promptTools(step *catalog.Step, model string) (list []query.PromptTool) {
	info, _ := a.models.Info(model)
	est, names := compact.NewEstimator(info.Provider), step.Names()
	for _, s := range step.Specs() {
		name := cmp.Or(names[s.Name], s.Name)
		list = append(list, query.PromptTool{Name: name, Description: s.Description, Tokens: est.Fixed(nil, []agent.Spec{s})})
	}
	return list
}
