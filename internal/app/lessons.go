package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/knowledge/memory/lessons"
)

// LessonTypes are the kinds of tasks that lessons are kept by.
func LessonTypes() (names []string) {
	for _, t := range lessons.Types {
		names = append(names, string(t))
	}
	return names
}

// Lessons returns what was learnt from past tasks, the newest first.
func (a *App) Lessons(q query.ListLessons) ([]query.Lesson, error) {
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
		all, err := a.lessonStore().Recent(limit, t)
		if err != nil {
			return nil, lessonProblem(q.Type, err)
		}
		for _, e := range all {
			list = append(list, query.Lesson{
				ID: e.ID, Type: string(e.Type), Summary: e.Summary, Success: e.Success, Score: e.Score,
				Weaknesses: e.Weaknesses, Strengths: e.Strengths, Lessons: e.Lessons, Created: e.Created, Session: e.Session,
			})
		}
	}
	slices.SortStableFunc(list, func(a, b query.Lesson) int { return b.Created.Compare(a.Created) })
	return list, nil
}

// AddLesson keeps a lesson that the user has written.
func (a *App) AddLesson(kind, text string) error {
	if strings.TrimSpace(text) == "" {
		return &agent.Problem{Code: agent.ProblemUsage, Message: "a lesson needs a text", Fix: "write it behind the type: dure lessons add test 'Run the tests first.'"}
	}
	if !slices.Contains(lessons.Types, lessons.Type(kind)) { // it would be taken for a general one
		return lessonProblem(kind, lessons.ErrType)
	}
	return lessonProblem(kind, a.lessonStore().Add(lessons.Entry{
		Type: lessons.Type(kind), Summary: "written by the user", Success: true, Score: 1, Lessons: []string{text}, Created: time.Now().UTC(),
	}))
}

// DeleteLessons forgets the lessons of a type, or one by its ID; "" = all of them. It
// returns how many they were.
func (a *App) DeleteLessons(what string) (n int, err error) {
	kind := what
	if !slices.Contains(lessons.Types, lessons.Type(what)) {
		kind = ""
	}
	list, err := a.Lessons(query.ListLessons{Type: kind})
	if err != nil {
		return 0, err
	}
	if what == kind {
		return len(list), lessonProblem(what, a.lessonStore().Clear(lessons.Type(kind)))
	}
	for _, l := range list {
		if l.ID == what {
			_, err := a.lessonStore().Delete(lessons.Type(l.Type), l.ID)
			return 1, lessonProblem(what, err)
		}
	}
	return 0, lessonProblem(what, lessons.ErrType)
}

// lessonProblem is what a person has to mend.
func lessonProblem(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, lessons.ErrType):
		return &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("%q is neither a type of tasks nor the ID of a lesson", what), Err: err,
			Fix:  "the types are " + strings.Join(LessonTypes(), ", ") + "; IDs are listed by: dure lessons",
			Args: map[string]string{"lesson": what},
		}
	}
	return &agent.Problem{Code: agent.ProblemInternal, Message: err.Error(), Err: err, Args: map[string]string{"error": err.Error()}}
}

// Checklist is what the model is asked to verify after a change, and where it stands.
type Checklist struct {
	Path  string   `json:"path"`
	Code  []string `json:"code_checks"`
	Files []string `json:"file_checks"`
}

// Checklist returns the user's checklist, and writes the usual one where there is none.
func (a *App) Checklist() (Checklist, error) {
	path := a.checklist()
	list, err := lessons.LoadChecklist(path)
	if err != nil {
		return Checklist{}, settingsProblem(path, err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(a.cfg.Data, 0o700); err != nil {
			return Checklist{}, storeProblem(err, a.cfg.Data)
		}
		if err := lessons.SaveChecklist(path, list); err != nil {
			return Checklist{}, storeProblem(err, path)
		}
	}
	return Checklist{Path: path, Code: list.Code, Files: list.Files}, nil
}
