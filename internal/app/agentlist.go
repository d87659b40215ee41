package app

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/swarm"
	"dure/internal/safety/trust/folders"
	"dure/internal/safety/workspace"
)

// listAgents says what types of agents there are.
func (a *App) listAgents(q query.ListAgents) []query.AgentInfo {
	list := []query.AgentInfo{}
	for _, d := range a.types(cmp.Or(q.Workdir, a.opts.Workdir)).All() {
		if q.Name != "" && !strings.EqualFold(q.Name, d.Name) {
			continue
		}
		info := agentInfo(d)
		if d.Place.Scope == frontmatter.BuiltIn {
			info.Description = ownAbout(a.cfg.Language, d.Name, d.Description)
		}
		if q.Name == "" {
			info.Prompt = ""
		}
		list = append(list, info)
	}
	return list
}

func agentInfo(d swarm.Definition) query.AgentInfo {
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

// CheckAgent reads one file as that of an agent.
func (a *App) CheckAgent(path string) (query.AgentInfo, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.opts.Workdir, path)
	}
	d, err := swarm.Load(frontmatter.Place{Scope: frontmatter.User, Dir: filepath.Dir(path), Trusted: true}, path)
	if err != nil {
		return query.AgentInfo{}, agentProblem(path, err)
	}
	return agentInfo(d), nil
}

// NewAgent writes a file for a new type of agents, of the user or of the project. What
// is there is not overwritten.
func (a *App) NewAgent(name, description string, ofProject bool) (path string, err error) {
	dir := filepath.Join(a.cfg.Home, folders.Agents)
	if ofProject {
		root, _ := a.trust.Project(a.opts.Workdir)
		dir = filepath.Join(root, ".dure", folders.Agents)
	}
	if why := swarm.BadName(name); why != "" {
		return "", &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("the name %q %s", name, why), Fix: "use letters, digits and -, at most 64",
			Args: map[string]string{"value": name, "flag": "NAME", "wanted": "a-z 0-9 -"},
		}
	}
	path = filepath.Join(dir, strings.ToLower(name)+".md")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return path, agentProblem(path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return path, agentProblem(path, err)
	}
	_, err = f.WriteString(swarm.Template(name, description))
	if err = errors.Join(err, f.Close()); err != nil {
		return path, agentProblem(path, err)
	}
	return path, nil
}

// agentProblem is a file of an agent that cannot be read or written.
func agentProblem(path string, err error) error {
	fix := "name a file that you may read and write"
	if errors.Is(err, fs.ErrExist) {
		fix = "edit it, or choose another name"
	}
	return &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("%s: %v", path, workspace.Cause(err)), Fix: fix, Err: err,
		Args: map[string]string{"path": path, "error": workspace.Cause(err).Error()},
	}
}
