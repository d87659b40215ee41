package app

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"dure/agent"
	"dure/internal/base/record"
	"dure/internal/frontend/text"
	"dure/internal/knowledge/memory"
	"dure/internal/knowledge/memory/instruct"
	"dure/internal/knowledge/mention"
	"dure/internal/knowledge/survey"
	"dure/internal/safety/workspace"
)

// surveyTime bounds how long a project is looked at.
const surveyTime = 10 * time.Second

// surveyOf surveys the folder of a workspace. Secrets, and what denied keeps from being read,
// are neither read nor named.
func surveyOf(ctx context.Context, ws *workspace.Workspace, denied func(path string) bool) (survey.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	list, err := ws.List(ctx, ws.Root())
	if err != nil {
		return survey.Report{}, workspace.Problem(ws.Root(), err)
	}
	var files []string
	for i, f := range list.Paths {
		if list.Regular[i] { // a link leads to what is listed as itself, or out of here
			files = append(files, f)
		}
	}
	full := func(f string) string { return filepath.Join(ws.Root(), filepath.FromSlash(f)) }
	return survey.Look(ctx, survey.Config{
		Files: files, More: list.More,
		Hidden: func(f string) bool { return mention.IsSecret(f) || denied(full(f)) },
		Read: func(f string, limit int) ([]byte, error) {
			r, err := ws.Open(full(f))
			if err != nil {
				return nil, err
			}
			defer func() { _ = r.Close() }() // only read
			return io.ReadAll(io.LimitReader(r, int64(limit)))
		},
	}), nil
}

// Begun is what was made of a project that is begun with.
type Begun struct {
	Path    string              `json:"path"`
	Made    bool                `json:"made"` // the file was written
	Text    string              `json:"text"` // of the file
	Survey  survey.Report       `json:"survey"`
	Suggest []survey.Suggestion `json:"suggestions,omitempty"`
}

// Begin surveys the working folder and writes a file of instructions to go on from, or
// with dry only says what would stand in it. No model is asked, and no file is replaced.
func (a *App) Begin(ctx context.Context, dry bool) (Begun, error) {
	ws, err := a.workspace()
	if err != nil {
		return Begun{}, err
	}
	d, err := a.policy.Decider("")
	if err != nil {
		return Begun{}, err
	}
	place, err := a.memory.Place("", string(memory.Project))
	if err != nil {
		return Begun{}, err
	}
	b := Begun{Path: place.Path}
	if b.Survey, err = surveyOf(ctx, ws, d.Policy.DeniesRead); err != nil {
		return b, err
	}
	t := text.For(a.cfg.Language)
	b.Text, b.Suggest = b.Survey.Draft(filepath.Base(ws.Root()), wordsToBegin(t)), b.Survey.Suggest()
	if dry {
		return b, ctx.Err()
	}
	err = fs.ErrExist
	if !place.Exists {
		err = record.Make(b.Path, b.Text, false)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return b, &agent.Problem{
			Code: agent.ProblemUsage, Message: t.Say(text.InitThere, "path", text.OneLine(b.Path)), Fix: t.Say(text.FixInitThere), Err: fs.ErrExist,
		}
	case err != nil:
		return b, instruct.Problem(b.Path, err)
	}
	b.Made = true
	return b, nil
}

func wordsToBegin(t text.Catalog) survey.Words {
	return survey.Words{
		Overview: t.Say(text.InitOverview), Conventions: t.Say(text.InitConventions), Commands: t.Say(text.InitCommands),
		Work: t.Say(text.InitWork), Cautions: t.Say(text.InitCautions),
		Languages: t.Say(text.InitLanguages), Frameworks: t.Say(text.InitFrameworks), Folders: t.Say(text.InitFolders), Others: t.Say(text.InitOthers),
		Say: t.Say(text.InitSay),
		Kinds: map[string]string{
			"build": t.Say(text.InitBuild), "test": t.Say(text.InitTest), "lint": t.Say(text.InitLint), "format": t.Say(text.InitFormat),
			"run": t.Say(text.InitRun), "ci": t.Say(text.InitCI),
		},
	}
}
