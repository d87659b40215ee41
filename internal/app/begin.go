package app

import (
	"context"
	"io/fs"
	"path/filepath"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
	"dure/internal/knowledge/mention"
	"dure/internal/knowledge/survey"
	"dure/internal/safety/workspace"
)

// draft surveys the working folder and returns what first instructions of it would be.
func (a *App) draft(ctx context.Context) (p query.ProjectInit, err error) {
	ws, err := a.workspace()
	if err != nil {
		return p, err
	}
	d, err := a.policy.Decider("")
	if err != nil {
		return p, err
	}
	found, err := survey.Workspace(ctx, ws, unseen(ws, d.Policy.DeniesRead))
	if err != nil {
		return p, err
	}
	t := text.For(a.cfg.Language)
	draft := found.Draft(filepath.Base(ws.Root()), func(name string) string { return t.Named("init." + name) })
	return query.ProjectInit{Text: draft, Survey: found.Survey, Suggest: found.Suggest()}, nil
}

// drafted says that a file has instructions.
func drafted(t text.Catalog, path string) error {
	return &agent.Problem{
		Code: agent.ProblemUsage, Message: t.Say(text.InitThere, "path", text.OneLine(path)), Fix: t.Say(text.FixInitThere), Err: fs.ErrExist,
	}
}

// unseen returns which files of a workspace a survey neither reads nor names: secrets, and what
// denied keeps from being read.
func unseen(ws *workspace.Workspace, denied func(path string) bool) func(file string) bool {
	return func(file string) bool {
		return mention.IsSecret(file) || denied(filepath.Join(ws.Root(), filepath.FromSlash(file)))
	}
}
