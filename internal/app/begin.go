package app

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/base/record"
	"dure/internal/extend/commands"
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

// begins is the prompt of /init: what a survey has found, and what the model is to write.
// A file that is there is kept from being replaced unasked, as long as the turn goes on.
func (t *typed) begins(ctx context.Context, focus string) (string, error) {
	place, err := t.app.memory.Place(t.workdir, string(memory.Project))
	if err != nil {
		return "", err
	}
	s, err := surveyOf(ctx, t.ws, t.deciding.Policy.DeniesRead)
	if err != nil {
		return "", err
	}
	found := s.Text()
	if hasGit(t.workdir) {
		const newest = "-10"
		if log, err := t.git(ctx, commandOrigin+"init", "log", "--oneline", newest); err == nil {
			found += "Newest commits:\n" + indented(log)
		}
	}
	if place.Exists {
		t.mu.Lock()
		t.kept = place.Path
		t.mu.Unlock()
	}
	return commands.Init(place.Path, place.Exists, focus, found), nil
}

// indented is a text of somebody else, whose lines cannot be taken for ours.
func indented(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString("  " + oneLine(line, 200) + "\n")
	}
	return b.String()
}

// keeps asks about calls that would change the instructions which were there when /init
// was typed.
func (t *typed) keeps(p agent.Proposal) (agent.Decision, bool) {
	t.mu.Lock()
	kept := t.kept
	t.mu.Unlock()
	if kept == "" || p.Origin != "" {
		return agent.Decision{}, false
	}
	same := func(path string) bool {
		_, resolved, err := t.ws.Resolve(path)
		_, own, oerr := t.ws.Resolve(kept)
		return err == nil && oerr == nil && t.ws.Key(resolved) == t.ws.Key(own)
	}
	if !slices.ContainsFunc(p.Effects.Writes, same) {
		return agent.Decision{}, false
	}
	return agent.Decision{Verdict: agent.AskUser, By: commandOrigin + "init", Reason: "/init changes instructions that were there before only when you agree"}, true
}

// over forgets what the turn of /init has kept.
func (t *typed) over() {
	t.mu.Lock()
	t.kept = ""
	t.mu.Unlock()
}
