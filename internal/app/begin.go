package app

import (
	"io/fs"
	"path/filepath"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
	"dure/internal/knowledge/memory"
	"dure/internal/knowledge/memory/instruct"
	"dure/internal/knowledge/mention"
	"dure/internal/knowledge/survey"
	"dure/internal/knowledge/survey/draft"
	"dure/internal/safety/workspace"
)

// newDraft makes what writes the first file of instructions of a project.
func (a *App) newDraft() *draft.Extension {
	t := text.For(a.cfg.Language)
	return &draft.Extension{
		Workspace: a.workspace,
		Hidden: func(ws *workspace.Workspace) (func(string) bool, error) {
			d, err := a.policy.Decider("")
			if err != nil {
				return nil, err
			}
			return unseen(ws, d.Policy.DeniesRead), nil
		},
		Place: func() (query.MemoryPlace, error) { return a.memory.Place("", string(memory.Project)) },
		Word:  func(w survey.Word) string { return t.Say(text.InitOverview + text.Key(w)) },
		There: func(path string) error {
			return &agent.Problem{
				Code: agent.ProblemUsage, Message: t.Say(text.InitThere, "path", text.OneLine(path)), Fix: t.Say(text.FixInitThere), Err: fs.ErrExist,
			}
		},
		Problem: instruct.Problem,
	}
}

// unseen returns which files of a workspace a survey neither reads nor names: secrets, and what
// denied keeps from being read.
func unseen(ws *workspace.Workspace, denied func(path string) bool) func(file string) bool {
	return func(file string) bool {
		return mention.IsSecret(file) || denied(filepath.Join(ws.Root(), filepath.FromSlash(file)))
	}
}
