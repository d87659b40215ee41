// Package draft writes the first file of instructions of a project, from a survey of it. It
// replaces no file, asks no model and starts no goroutines.
package draft

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"dure/agent/query"
	"dure/internal/base/record"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/survey"
	"dure/internal/safety/workspace"
)

// Extension writes the file. All fields are required.
type Extension struct {
	plug.NoSession

	// Workspace opens the working folder, and Hidden returns what is neither read nor named
	// there.
	Workspace func() (*workspace.Workspace, error)
	Hidden    func(*workspace.Workspace) (func(file string) bool, error)

	Place   func() (query.MemoryPlace, error) // of the file
	Word    func(survey.Word) string
	There   func(path string) error            // says that there is a file
	Problem func(path string, err error) error // says why it cannot be written
}

// Name returns the name of the extension.
func (*Extension) Name() string { return "init" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer { return []plug.Answer{plug.Storeless(x.write)} }

func (x *Extension) write(ctx context.Context, q query.InitProject) (query.ProjectInit, error) {
	ws, err := x.Workspace()
	if err != nil {
		return query.ProjectInit{}, err
	}
	hidden, err := x.Hidden(ws)
	if err != nil {
		return query.ProjectInit{}, err
	}
	place, err := x.Place()
	if err != nil {
		return query.ProjectInit{}, err
	}
	found, err := survey.Workspace(ctx, ws, hidden)
	if err != nil {
		return query.ProjectInit{}, err
	}
	p := query.ProjectInit{
		Path: place.Path, Text: found.Draft(filepath.Base(ws.Root()), x.Word), Survey: found.Survey, Suggest: found.Suggest(),
	}
	if q.Dry {
		return p, ctx.Err()
	}
	err = fs.ErrExist
	if !place.Exists {
		err = record.Make(p.Path, p.Text, false)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return p, x.There(p.Path)
	case err != nil:
		return p, x.Problem(p.Path, err)
	}
	p.Made = true
	return p, nil
}
