package use

import (
	"cmp"
	"context"
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
	"dure/internal/kernel/plug"
	"dure/internal/safety/trust"
	"dure/internal/tools/catalog"
)

// Answers returns the queries that the extension answers. They need no session.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(x.list), plug.Storeless(x.show), plug.Storeless(x.add), plug.Storeless(x.export)}
}

// list returns the skills of a folder.
func (x *Extension) list(_ context.Context, q query.ListSkills) ([]query.SkillInfo, error) {
	list := []query.SkillInfo{}
	for _, s := range x.in(cmp.Or(q.Workdir, x.cfg.Workdir), nil).List() {
		list = append(list, x.info(s))
	}
	return list, nil
}

// show returns a skill of a folder with its text, by its name or its folder, or one that
// only is in a folder, without it.
func (x *Extension) show(_ context.Context, q query.ShowSkill) (query.SkillInfo, error) {
	if q.Path != "" {
		return x.kept(q.Path, q.Path, string(frontmatter.Flag))
	}
	set := x.in(cmp.Or(q.Workdir, x.cfg.Workdir), nil)
	s, err := find(set, q.Name)
	if err != nil {
		return query.SkillInfo{}, err
	}
	info := x.info(s)
	if text, err := set.Text(s); err == nil {
		info.Text = text
	}
	return info, nil
}

// add makes a skill of the user or of the project: from a template, or a copy of another one
// with the names of tools that there are, of which it returns those that nobody knows here. A
// folder that is trusted stays so when a skill is made from the template.
func (x *Extension) add(_ context.Context, q query.AddSkill) (made query.SkillAdded, err error) {
	home, file := filepath.Join(x.cfg.Home, "skills"), ""
	if q.Scope != string(frontmatter.User) {
		root, _ := x.cfg.Project(cmp.Or(q.Workdir, x.cfg.Workdir))
		home = filepath.Join(root, trust.Owners[0], "skills")
	}
	if q.From != "" {
		s, err := skills.Read(q.From)
		if err != nil {
			return made, problem(q.From, err)
		}
		if file, made.Unknown, err = shelf.Copy(s, builtin.Files, home, catalog.Renamed()); err != nil {
			return made, problem(s.Name, err)
		}
		made.SkillInfo, err = x.kept(file, file, q.Scope)
		return made, err
	}
	again := x.cfg.Trusted(filepath.Join(home, q.Name, skills.File))
	if file, err = shelf.Create(home, q.Name); err != nil {
		p := problem(q.Name, err)
		if skills.CheckName(q.Name) != nil {
			right := cmp.Or(skills.RightName(q.Name), "my-skill")
			p.Args["right"], p.Fix = right, "dure skills new "+right
		}
		return made, p
	}
	again()
	made.SkillInfo, err = x.kept(file, file, q.Scope)
	return made, err
}

// export copies a skill into a folder.
func (x *Extension) export(_ context.Context, q query.ExportSkill) (query.SkillInfo, error) {
	s, err := find(x.in(cmp.Or(q.Workdir, x.cfg.Workdir), nil), q.Name)
	if err != nil {
		return query.SkillInfo{}, err
	}
	file, _, err := shelf.Copy(s, builtin.Files, q.Into, catalog.Renamed())
	if err != nil {
		return query.SkillInfo{}, problem(q.Name, err)
	}
	return x.kept(file, file, string(frontmatter.Flag))
}

// kept is the skill of a file or a folder, with where it is from.
func (x *Extension) kept(path, name, scope string) (query.SkillInfo, error) {
	s, err := skills.Read(path)
	if err != nil {
		return query.SkillInfo{}, problem(name, err)
	}
	s.Place.Scope = frontmatter.Scope(scope)
	return x.info(s), nil
}

func (x *Extension) info(s skills.Skill) query.SkillInfo {
	if s.Place.Scope == frontmatter.BuiltIn {
		s.Description = x.cfg.About(s.Name, s.Description)
	}
	return query.SkillInfo{
		Name: s.Name, Description: s.Description, Path: s.File, Source: s.Source(), Valid: s.Valid, Warnings: s.Warnings(),
		Usable: s.Off == "", Off: s.Off, Hint: s.Hint, Paths: s.Paths, Fork: s.Fork, Tools: s.Allowed, Typed: !s.NoUser, Called: !s.NoModel,
	}
}

// find returns a skill by its name, or by a folder that it lies in.
func find(set *skills.Set, name string) (skills.Skill, error) {
	if strings.ContainsAny(name, `/\.`) && !strings.HasPrefix(name, "/") || filepath.IsAbs(name) && !strings.Contains(name, ":") {
		s, err := skills.Read(name)
		if err == nil {
			s.Place.Scope = frontmatter.Flag
			return s, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return s, problem(name, err)
		}
	}
	s, like := set.Find(name)
	switch {
	case len(like) > 0:
		return s, problem(name, fmt.Errorf("it may be one of %s", strings.Join(like, ", ")))
	case s.Name == "":
		return s, problem(name, errors.New("there is none of this name"))
	}
	return s, nil
}

func problem(name string, err error) *agent.Problem {
	what := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		what = pe.Err
	}
	return &agent.Problem{
		Code: agent.ProblemSkill, Message: fmt.Sprintf("skill %s: %v", name, what), Fix: "dure skills list shows those that there are",
		Args: map[string]string{"name": name, "error": what.Error()}, Err: err,
	}
}
