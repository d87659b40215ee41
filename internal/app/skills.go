package app

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/commands"
	"dure/internal/extend/skills"
	"dure/internal/extend/skills/builtin"
	"dure/internal/extend/skills/use"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
	"dure/internal/safety/trust"
	"dure/internal/safety/trust/folders"
)

// skillsIn returns the skills of a folder. Nothing is read yet.
func (a *App) skillsIn(workdir string) *skills.Set { return skills.New(a.skillsConfig(workdir)) }

// skillsOf returns the skills of a session. What a host has its models use is about the session
// that it has, and not about its agents.
func (a *App) skillsOf(b plug.Session, workdir string) *skills.Set {
	c := a.skillsConfig(workdir)
	if b.Child == nil {
		c.Only = a.opts.Flags.Skills
	}
	return skills.New(c)
}

func (a *App) skillsConfig(workdir string) skills.Config {
	root, _ := a.trust.Project(workdir)
	if top := gitTop(workdir); top != "" {
		root = top
	}
	c := skills.Config{
		Workdir: workdir, Root: root, BuiltIn: builtin.Files,
		Places: func() []frontmatter.Place { return a.trust.All(workdir, folders.Skills) },
		State:  a.cfg.Extend.Skills,
		Also:   []string{trust.In(a.cfg.Data).Path},
	}
	if a.cfg.Extend.NoBundledSkills {
		c.BuiltIn = nil
	}
	return c
}

// newSkills returns the skills of a session.
func (a *App) newSkills(b plug.Session, workdir, profile string, pol *policy.Policy) *use.Skills {
	if b.Stored.ID != "" { // calls that were decided on before may run without another word
		_ = a.trust.Begin(func(...agent.Body) error { return nil }) // which each file says that has no powers
	}
	root, _ := a.trust.Project(workdir)
	ext := a.cfg.Extend
	return use.New(use.Config{
		Set: a.skillsOf(b, workdir), Workdir: workdir, Root: root, Korean: a.cfg.Language == "ko", Effort: a.cfg.Effort, NoShell: ext.NoSkillShell,
		Budget: ext.SkillBudget, Longest: ext.SkillText, Logger: a.opts.Logger,
		Model:  a.models.For(profile),
		Window: func() int { info, _ := a.models.Info(b.Model()); return info.Window }, // without, the usual one
		MayAsk: func(model string) error {
			if a.mayAsk(toolConfig{Session: b}, model) {
				return nil
			}
			return errElsewhere(model)
		},
		Redact: a.patterns.Redact,
		Command: func(name string) (skills.Skill, bool) {
			c, ok := commands.Lookup(a.customCommands(workdir))(name)
			return asSkill(c), ok
		},
		BuiltIn: func(name string) bool { _, ok := commands.Find(name); return ok }, Split: commands.Split,
		Lender: func(name, file string) (trust.Lender, bool) { return a.lenderOf(workdir, name, file) },
		Lend: func(list []plug.Rule) (said []string, err error) {
			rules := make([]policy.Rule, len(list))
			for i, r := range list {
				rules[i] = policy.Rule{Text: r.Text, Verdict: r.Verdict, Reason: r.Reason}
			}
			warnings, err := pol.Lend(rules)
			for _, w := range warnings {
				said = append(said, w.String())
			}
			return said, err
		},
		Leans: pol.Leans,
	}, b)
}

// addToSkills gives the skills of a session what is made after them: what reads files that
// texts name, the hooks of the session, which tools it has, and what a
// session of a type of agents is opened with.
func (a *App) addToSkills(session string, k *use.Skills, wanted func(agent.Spec) bool, childOf func(string) (agent.Child, error)) {
	tool := k.Tool().Spec()
	late := use.Late{Offered: func() bool { return wanted == nil || wanted(tool) }, ChildOf: childOf, Without: neverChild}
	if h := a.hooks.Of(session); h != nil {
		late.Hooks = h
	}
	late.Named = func(ctx context.Context, text string) string { return a.mentions.Named(ctx, session, text) }
	k.Add(late)
}

// asSkill is the skill that a command of a file is like.
func asSkill(c commands.Command) skills.Skill {
	return skills.Skill{
		Name: c.Name, Allowed: c.Allowed, Without: c.Forbidden, Model: c.Model, Effort: c.Effort, Agent: c.Agent,
		Fork: c.Fork, Background: c.Background, Hooks: c.Hooks, Place: c.Place, Dir: filepath.Dir(c.Path), File: c.Path,
	}
}

// rereadSkills reads the skills of a session again, and those that can be typed.
func (a *App) rereadSkills(k *use.Skills) {
	k.Set.Reload()
	known := &a.skills
	known.mu.Lock()
	defer known.mu.Unlock()
	delete(known.known, filepath.Clean(k.Workdir))
}

// knownSkills are the skills of the folders that commands were asked for in.
type knownSkills struct {
	mu    sync.Mutex
	known map[string]*skillFolder // guarded by mu
}

type skillFolder struct {
	set *skills.Set
	at  time.Time
}

// typableSkills are the skills that can be typed in a folder.
func (a *App) typableSkills(workdir string) (all []query.CommandInfo) {
	command := commands.Lookup(a.customCommands(workdir))
	for _, s := range a.skillFolder(workdir).List() {
		if _, ok := command(s.Name); ok && s.Place.Scope == frontmatter.BuiltIn {
			continue // what somebody has written comes before what the program brings
		}
		if _, taken := commands.Find(s.Name); taken && s.Place.Scope == frontmatter.BuiltIn {
			continue // the command does what the skill says
		}
		if s.NoUser && s.Off == "" {
			s.Off = "it is for the model alone"
		}
		all = append(all, query.CommandInfo{
			Name: s.Name, Description: s.Description, Hint: s.Hint, Kind: query.CommandSkill, Scope: s.Source(), Path: s.File, Off: s.Off,
		})
	}
	return all
}

// skillFolder returns the skills of a folder, as they were at most a moment ago.
func (a *App) skillFolder(workdir string) *skills.Set {
	workdir = filepath.Clean(workdir)
	k := &a.skills
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.known[workdir]
	if f == nil {
		if len(k.known) >= maxCustoms || k.known == nil {
			k.known = map[string]*skillFolder{}
		}
		f = &skillFolder{a.skillsIn(workdir), time.Now()}
		k.known[workdir] = f
	}
	if time.Since(f.at) >= customHolds {
		f.at = time.Now()
		f.set.Refresh()
	}
	return f.set
}
