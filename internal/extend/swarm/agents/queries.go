package agents

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
	"dure/internal/base/record"
	"dure/internal/extend/swarm"
	"dure/internal/kernel/plug"
	"dure/internal/safety/workspace"
)

// Answers returns the queries that the extension answers. They need no session.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(x.list), plug.Storeless(x.check), plug.Storeless(x.add)}
}

// list says what types of agents there are.
func (x *Extension) list(_ context.Context, q query.ListAgents) ([]query.AgentInfo, error) {
	list := []query.AgentInfo{}
	for _, d := range x.Types(cmp.Or(q.Workdir, x.cfg.Workdir)).All() {
		if q.Name != "" && !strings.EqualFold(q.Name, d.Name) {
			continue
		}
		one := info(d)
		if d.Place.Scope == frontmatter.BuiltIn {
			one.Description = x.cfg.About(d.Name, d.Description)
		}
		if q.Name == "" {
			one.Prompt = ""
		}
		list = append(list, one)
	}
	return list, nil
}

func info(d swarm.Definition) query.AgentInfo {
	return query.AgentInfo{
		Name: d.Name, Description: d.Description, Path: d.Path, Source: string(d.Place.Scope),
		Valid: len(d.Faults) == 0, State: d.State(), Hidden: d.Hidden,
		Tools: d.Tools, Without: d.Without, Model: d.Model, Mode: d.Mode, Effort: d.Effort, Steps: d.Steps,
		Memory: d.Memory, Background: d.Background, Prompt: d.Prompt,
		Faults: fileFaults(d.Faults), Warnings: fileFaults(d.Warnings),
	}
}

func fileFaults(all []frontmatter.Fault) []query.FileFault {
	out := make([]query.FileFault, len(all))
	for i, f := range all {
		out[i] = query.FileFault(f)
	}
	return out
}

// check reads one file as that of a type of agents.
func (x *Extension) check(_ context.Context, q query.CheckAgent) (query.AgentInfo, error) {
	path := q.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(x.cfg.Workdir, path)
	}
	d, err := swarm.Load(frontmatter.Place{Scope: frontmatter.User, Dir: filepath.Dir(path), Trusted: true}, path)
	if err != nil {
		return query.AgentInfo{}, problem(path, err)
	}
	return info(d), nil
}

// add writes a file for a new type of agents, of the user or of the project. What is there
// is not overwritten.
func (x *Extension) add(_ context.Context, q query.AddAgent) (query.AgentFile, error) {
	dir := filepath.Join(x.cfg.Home, "agents")
	if q.Project {
		root, _ := x.cfg.Project(x.cfg.Workdir)
		dir = filepath.Join(root, ".dure", "agents")
	}
	if why := swarm.BadName(q.Name); why != "" {
		return query.AgentFile{}, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("the name %q %s", q.Name, why), Fix: "use letters, digits and -, at most 64",
			Args: map[string]string{"value": q.Name, "flag": "NAME", "wanted": "a-z 0-9 -"},
		}
	}
	file := query.AgentFile{Path: filepath.Join(dir, strings.ToLower(q.Name)+".md")}
	if err := record.Make(file.Path, swarm.Template(q.Name, q.Description), false); err != nil {
		return file, problem(file.Path, err)
	}
	return file, nil
}

// problem is a file of an agent that cannot be read or written.
func problem(path string, err error) error {
	fix := "name a file that you may read and write"
	if errors.Is(err, fs.ErrExist) {
		fix = "edit it, or choose another name"
	}
	return &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("%s: %v", path, workspace.Cause(err)), Fix: fix, Err: err,
		Args: map[string]string{"path": path, "error": workspace.Cause(err).Error()},
	}
}
