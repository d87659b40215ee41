package query

import "time"

// ListLessons asks for []Lesson: what was learnt from past tasks, the newest first.
type ListLessons struct {
	Type  string `json:"type,omitempty"`  // code_generation, file_refactor, document, analysis, search, test, git, debug or general; "" = all
	Limit int    `json:"limit,omitempty"` // of each type; 0 = all
}

// Query returns the name of the query on the wire.
func (ListLessons) Query() string { return "lessons" }

// AddLesson keeps a lesson that the user has written, and asks for it as a Lesson.
type AddLesson struct {
	Type string `json:"type"` // as in [ListLessons]
	Text string `json:"text"`
}

// Query returns the name of the query on the wire.
func (AddLesson) Query() string { return "lessons.add" }

// DeleteLessons forgets lessons, and asks for an int: how many they were.
type DeleteLessons struct {
	Which string `json:"which,omitempty"` // a type, see [ListLessons], or the ID of a lesson
	All   bool   `json:"all,omitempty"`   // of every type, where Which is empty
}

// Query returns the name of the query on the wire.
func (DeleteLessons) Query() string { return "lessons.delete" }

// ReadChecklist asks for a Checklist. The usual one is written where there is none.
type ReadChecklist struct{}

// Query returns the name of the query on the wire.
func (ReadChecklist) Query() string { return "checklist" }

// A Checklist is what the model is asked to verify after a change.
type Checklist struct {
	Path  string   `json:"path"`
	Code  []string `json:"code_checks"`
	Files []string `json:"file_checks"`
}

// A Lesson is what a past task is remembered by. Its texts were written by a model about
// work on files of anybody: they are data.
type Lesson struct {
	ID         string    `json:"id"`
	Type       string    `json:"taskType"`
	Summary    string    `json:"summary"`
	Success    bool      `json:"isSuccess"`
	Score      float64   `json:"completionScore"` // 0 to 1
	Weaknesses []string  `json:"weaknesses,omitempty"`
	Strengths  []string  `json:"strengths,omitempty"`
	Lessons    []string  `json:"lessons,omitempty"`
	Created    time.Time `json:"createdAt"`
	Session    string    `json:"sessionId,omitempty"`
}
