package app

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/skills"
	"dure/internal/extend/skills/builtin"
	"dure/internal/extend/skills/shelf"
	"dure/internal/safety/trust"
	"dure/internal/safety/trust/folders"
	"dure/internal/tools/catalog"
)

// listSkills returns the skills of a folder, "" = the program's.
func (a *App) listSkills(workdir string) []query.SkillInfo {
	list := []query.SkillInfo{}
	for _, s := range a.skillsIn(cmp.Or(workdir, a.opts.Workdir)).List() {
		info := skillInfo(s)
		if s.Place.Scope == frontmatter.BuiltIn {
			info.Description = ownAbout(a.cfg.Language, s.Name, s.Description)
		}
		list = append(list, info)
	}
	return list
}

func skillInfo(s skills.Skill) query.SkillInfo {
	return query.SkillInfo{
		Name: s.Name, Description: s.Description, Path: s.File, Source: s.Source(), Valid: s.Valid, Warnings: s.Warnings(),
		Usable: s.Off == "", Off: s.Off, Hint: s.Hint, Paths: s.Paths, Fork: s.Fork, Tools: s.Allowed, Typed: !s.NoUser, Called: !s.NoModel,
	}
}

// find returns a skill by its name, or by a folder that it lies in.
func (a *App) findSkill(set *skills.Set, name string) (skills.Skill, error) {
	if strings.ContainsAny(name, `/\.`) && !strings.HasPrefix(name, "/") || filepath.IsAbs(name) && !strings.Contains(name, ":") {
		s, err := skills.Read(name)
		if err == nil {
			s.Place.Scope = frontmatter.Flag
			return s, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return s, skillProblem(name, err)
		}
	}
	s, like := set.Find(name)
	switch {
	case len(like) > 0:
		return s, skillProblem(name, fmt.Errorf("it may be one of %s", strings.Join(like, ", ")))
	case s.Name == "":
		return s, skillProblem(name, errors.New("there is none of this name"))
	}
	return s, nil
}

// Skill returns a skill of a folder with its text, by its name or its folder.
func (a *App) Skill(workdir, name string) (query.SkillInfo, error) {
	set := a.skillsIn(cmp.Or(workdir, a.opts.Workdir))
	s, err := a.findSkill(set, name)
	if err != nil {
		return query.SkillInfo{}, err
	}
	info := skillInfo(s)
	if s.Place.Scope == frontmatter.BuiltIn {
		info.Description = ownAbout(a.cfg.Language, s.Name, s.Description)
	}
	if text, err := set.Text(s); err == nil {
		info.Text = text
	}
	return info, nil
}

// CheckSkill reads the skill of a folder.
func (a *App) CheckSkill(path string) (query.SkillInfo, error) {
	s, err := skills.Read(path)
	if err != nil {
		return query.SkillInfo{}, skillProblem(path, err)
	}
	s.Place.Scope = frontmatter.Flag
	return skillInfo(s), nil
}

// skillHome is the folder of skills of a scope: user or project.
func (a *App) skillHome(workdir, scope string) string {
	if scope == string(frontmatter.User) {
		return filepath.Join(a.cfg.Home, folders.Skills)
	}
	root, _ := a.trust.Project(cmp.Or(workdir, a.opts.Workdir))
	return filepath.Join(root, trust.Owners[0], folders.Skills)
}

// NewSkill makes a skill from a template. A folder that is trusted stays so.
func (a *App) NewSkill(workdir, name, scope string) (query.SkillInfo, error) {
	home := a.skillHome(workdir, scope)
	again := a.trustedApart(filepath.Join(home, name, skills.File))
	file, err := shelf.Create(home, name)
	if err != nil {
		problem := skillProblem(name, err)
		if skills.CheckName(name) != nil {
			right := cmp.Or(skills.RightName(name), "my-skill")
			problem.Args["right"], problem.Fix = right, "dure skills new "+right
		}
		return query.SkillInfo{}, problem
	}
	again()
	return a.kept(file, scope)
}

// ImportSkill takes over the skill of a folder: a copy of it, with the names of tools that
// it has. It returns those that nobody knows here.
func (a *App) ImportSkill(workdir, path, scope string) (query.SkillInfo, []string, error) {
	s, err := skills.Read(path)
	if err != nil {
		return query.SkillInfo{}, nil, skillProblem(path, err)
	}
	file, unknown, err := shelf.Copy(s, builtin.Files, a.skillHome(workdir, scope), toolNames())
	if err != nil {
		return query.SkillInfo{}, nil, skillProblem(s.Name, err)
	}
	info, err := a.kept(file, scope)
	return info, unknown, err
}

// ExportSkill copies a skill into a folder.
func (a *App) ExportSkill(workdir, name, into string) (query.SkillInfo, error) {
	set := a.skillsIn(cmp.Or(workdir, a.opts.Workdir))
	s, err := a.findSkill(set, name)
	if err != nil {
		return query.SkillInfo{}, err
	}
	file, _, err := shelf.Copy(s, builtin.Files, into, toolNames())
	if err != nil {
		return query.SkillInfo{}, skillProblem(name, err)
	}
	return a.kept(file, string(frontmatter.Flag))
}

func (a *App) kept(file, scope string) (query.SkillInfo, error) {
	s, err := skills.Read(file)
	if err != nil {
		return query.SkillInfo{}, skillProblem(file, err)
	}
	s.Place.Scope = frontmatter.Scope(scope)
	return skillInfo(s), nil
}

// toolNames returns what writes the name of a tool as other programs know it, too.
func toolNames() func(string) (string, bool) {
	cat := catalog.New(catalog.Config{})
	return func(name string) (string, bool) {
		if strings.HasPrefix(name, "mcp__") {
			return name, true
		}
		canonical, ok := cat.Canonical(name)
		return catalog.Claude.Name(canonical), ok
	}
}

func skillProblem(name string, err error) *agent.Problem {
	what := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		what = pe.Err
	}
	return &agent.Problem{
		Code: agent.ProblemSkill, Message: fmt.Sprintf("skill %s: %v", name, what), Fix: "dure skills list shows those that there are",
		Args: map[string]string{"name": name, "error": what.Error()}, Err: err,
	}
}
