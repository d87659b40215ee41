package reflexion

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/memory/lessons"
)

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(x.list), plug.Storeless(x.add), plug.Storeless(x.drop), plug.Storeless(x.checklist)}
}

// list returns what was learnt from past tasks, the newest first.
func (x *Extension) list(_ context.Context, q query.ListLessons) ([]query.Lesson, error) {
	types := lessons.Types
	if q.Type != "" {
		types = []lessons.Type{lessons.Type(q.Type)}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = lessons.MaxEntries
	}
	list := []query.Lesson{}
	for _, t := range types {
		all, err := x.store.Recent(limit, t)
		if err != nil {
			return nil, problem(q.Type, err)
		}
		for _, e := range all {
			list = append(list, lessonOf(e))
		}
	}
	slices.SortStableFunc(list, func(a, b query.Lesson) int { return b.Created.Compare(a.Created) })
	return list, nil
}

func lessonOf(e lessons.Entry) query.Lesson {
	return query.Lesson{
		ID: e.ID, Type: string(e.Type), Summary: e.Summary, Success: e.Success, Score: e.Score,
		Weaknesses: e.Weaknesses, Strengths: e.Strengths, Lessons: e.Lessons, Created: e.Created, Session: e.Session,
	}
}

// add keeps a lesson that the user has written.
func (x *Extension) add(_ context.Context, q query.AddLesson) (query.Lesson, error) {
	if strings.TrimSpace(q.Text) == "" {
		return query.Lesson{}, &agent.Problem{Code: agent.ProblemUsage, Message: "a lesson needs a text", Fix: "write it behind the type: dure lessons add test 'Run the tests first.'"}
	}
	if !slices.Contains(lessons.Types, lessons.Type(q.Type)) { // it would be taken for a general one
		return query.Lesson{}, problem(q.Type, lessons.ErrType)
	}
	e, err := x.store.Add(lessons.Entry{
		Type: lessons.Type(q.Type), Summary: "written by the user", Success: true, Score: 1, Lessons: []string{q.Text}, Created: time.Now().UTC(),
	})
	return lessonOf(e), problem(q.Type, err)
}

// drop forgets the lessons of a type, one by its ID, or all of them. It returns how many
// they were.
func (x *Extension) drop(ctx context.Context, q query.DeleteLessons) (n int, err error) {
	kind := q.Which
	if !slices.Contains(lessons.Types, lessons.Type(kind)) {
		kind = ""
	}
	list, err := x.list(ctx, query.ListLessons{Type: kind})
	if err != nil {
		return 0, err
	}
	if kind != "" || q.Which == "" && q.All {
		return len(list), problem(kind, x.store.Clear(lessons.Type(kind)))
	}
	for _, l := range list {
		if l.ID == q.Which {
			_, err := x.store.Delete(lessons.Type(l.Type), l.ID)
			return 1, problem(q.Which, err)
		}
	}
	return 0, problem(q.Which, lessons.ErrType)
}

// problem is what a person has to fix.
func problem(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, lessons.ErrType):
		return &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("%q is neither a type of tasks nor the ID of a lesson", what), Err: err,
			Fix:  "the types are " + strings.Join(lessons.Names(), ", ") + "; IDs are listed by: dure lessons",
			Args: map[string]string{"lesson": what},
		}
	}
	return &agent.Problem{Code: agent.ProblemInternal, Message: err.Error(), Err: err, Args: map[string]string{"error": err.Error()}}
}

// Checklist is the name of the file with the user's checklist, in the data folder.
const Checklist = "verification_checklist.json"

// Checks returns the checks that the user has written, for the model; "" = none.
func (x *Extension) Checks() string {
	text, err := lessons.OwnChecks(filepath.Join(x.cfg.Data, Checklist))
	if err != nil {
		x.cfg.Logger.Warn("reading the checklist", "error", err)
	}
	return text
}

// checklist returns the user's checklist, and writes the usual one where there is none.
func (x *Extension) checklist(context.Context, query.ReadChecklist) (query.Checklist, error) {
	path := filepath.Join(x.cfg.Data, Checklist)
	list, err := lessons.LoadChecklist(path)
	if err != nil {
		return query.Checklist{}, x.cfg.Unreadable(path, err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(x.cfg.Data, 0o700); err != nil {
			return query.Checklist{}, x.cfg.Unwritable(x.cfg.Data, err)
		}
		if err := lessons.SaveChecklist(path, list); err != nil {
			return query.Checklist{}, x.cfg.Unwritable(path, err)
		}
	}
	return query.Checklist{Path: path, Code: list.Code, Files: list.Files}, nil
}
