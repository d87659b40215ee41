package app

import (
	"cmp"
	"context"
	"path/filepath"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config/live"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/commands"
	"dure/internal/extend/commands/typed"
	"dure/internal/extend/skills"
	"dure/internal/extend/skills/use"
	"dure/internal/extend/swarm/agents"
	"dure/internal/frontend/text"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/memory"
	"dure/internal/knowledge/mention"
	"dure/internal/knowledge/survey"
	"dure/internal/safety/policy"
	"dure/internal/safety/trust"
	"dure/internal/safety/trust/folders"
)

func (a *App) newSkills() *use.Extension {
	ext := a.cfg.Extend
	return use.New(use.Config{
		Workdir: a.opts.Workdir, Home: a.cfg.Home, Project: a.trust.Project, Top: trust.Repository, Places: a.trust.All, Covered: a.trust.Covers, Trusted: a.trust.Keep,
		Also: trust.In(a.cfg.Data).Path, State: ext.Skills, Only: a.opts.Flags.Skills, NoBuiltIn: ext.NoBundledSkills,
		About: func(name, about string) string { return ownAbout(a.cfg.Language, name, about) },
		Command: func(workdir string) func(string) (skills.Skill, bool) {
			find := commands.Lookup(a.commands.Files(workdir))
			return func(name string) (skills.Skill, bool) {
				c, ok := find(name)
				return asSkill(c), ok
			}
		},
		BuiltIn: func(name string) bool { _, ok := commands.Find(name); return ok }, Split: commands.Split,
		Korean: a.cfg.Language == "ko", Effort: a.cfg.Effort, NoShell: ext.NoSkillShell, Budget: ext.SkillBudget, Longest: ext.SkillText, Logger: a.opts.Logger,
		Window: func(model string) int { info, _ := a.models.Info(model); return info.Window }, // without, the usual one
		MayAsk: func(of *plug.Session, model string) error { return a.models.MayAsk(of, model, model) },
		Redact: a.patterns.Redact,
	})
}

// addToSkills gives the skills of a session what is made after them: what reads files that
// texts name, the hooks of the session, which tools it has, and what a
// session of a type of agents is opened with.
func (s *assembly) addToSkills() {
	a, role, tool := s.app, &s.agents.Role, s.known.Tool().Spec()
	late := use.Late{Offered: func() bool { return role.Has == nil || role.Has(tool) }, ChildOf: s.agents.SkillChild, Without: agents.NeverChild}
	if h := a.hooks.Of(s.b.ID); h != nil {
		late.Hooks = h
	}
	late.Named = func(ctx context.Context, text string) string { return a.mentions.Named(ctx, s.b.ID, text) }
	s.known.Add(late)
}

// asSkill is the skill that a command of a file is like.
func asSkill(c commands.Command) skills.Skill {
	return skills.Skill{
		Name: c.Name, Allowed: c.Allowed, Without: c.Forbidden, Model: c.Model, Effort: c.Effort, Agent: c.Agent,
		Fork: c.Fork, Background: c.Background, Hooks: c.Hooks, Place: c.Place, Dir: filepath.Dir(c.Path), File: c.Path,
	}
}

func (a *App) newCommands() *typed.Extension {
	return typed.New(typed.Config{
		Workdir: a.opts.Workdir, Root: func(session, dir string) string { return a.sessions.folder(session, cmp.Or(dir, a.opts.Workdir)) }, Top: trust.Repository, Lender: a.skills.Lender, Skills: a.skills.Typable, Secret: mention.IsSecret, NoAI: a.cfg.NoAI,
		Places: func(workdir string) []frontmatter.Place { return a.trust.All(workdir, folders.Commands) },
		Models: func() (names []string) {
			for _, m := range a.models.Models.All() {
				names = append(names, m.ID)
			}
			return names
		},
		Describe: func(language string) func(string) string { return text.For(language).Command },
		About:    ownAbout,
		Prompts: typed.Prompts{
			List:  func(session string) []query.CommandInfo { return a.servers.Of(session).Prompts() },
			Ready: func(ctx context.Context, session, text string) { a.servers.Of(session).Ready(ctx, text) },
			Later: func(session, dir, text string) bool { return session == "" && a.servers.PromptLater(dir, text) },
		},
		Redact: a.patterns.Redact,
	})
}

// commands returns what the typed commands of a session add to it.
func (s *assembly) commands() plug.Points {
	a, b, known, pol := s.app, s.b, s.known, s.deciding.Policy
	prompts := &served{app: a, session: b.ID, grd: s.grd}
	p := a.commands.Session(b, b.Workdir, typed.Services{
		Workspace: s.ws, Find: s.find, Decide: pol.Decide, Allowing: s.allowing,
		Expanding: func(ctx context.Context, kind, command, arguments, source, typed string) error {
			return a.hooks.Of(b.ID).Expanding(ctx, kind, command, arguments, source, typed)
		},
		Command: func(ctx context.Context, c commands.Command, text, arguments, input string) (string, error) {
			return known.CommandText(ctx, asSkill(c), c.Body, text, arguments, input)
		},
		Skill: known.Typed, Note: known.Note,
		Prompted: prompts.may, Prompt: prompts.prompt,
		Instructions: func() (string, bool, error) {
			place, err := a.memory.Place(b.Workdir, string(memory.Project))
			return place.Path, place.Exists, err
		},
		Survey: func(ctx context.Context) (string, error) {
			found, err := survey.Workspace(ctx, s.ws, unseen(s.ws, pol.DeniesRead))
			if err != nil {
				return "", err
			}
			return found.Text(), nil
		},
	}).Points()
	if p.Close != nil {
		p.Extra = prompts.extra
	}
	return p
}

// allowing returns what decides by the rules of a command alone; nil = they do not count.
func (s *assembly) allowing(rules []string) (func(agent.Proposal) agent.Decision, error) {
	a := s.app
	if a.cfg.ManagedOnly {
		return nil, nil
	}
	cfg := a.place(s.offered.Tools, s.ws, s.b.Workdir, nil).By(live.Policy(a.cfg))
	cfg.Mode, cfg.Rules, cfg.Allow, cfg.Own = agent.ModeDontAsk, nil, rules, nil
	p, err := policy.New(cfg)
	if err != nil {
		return nil, err
	}
	return p.Decide, nil
}
