package query

import "time"

// ListLessons asks for []Lesson: what was learnt from past tasks, the newest first.
type ListLessons struct {
	Type  string `json:"type,omitempty"`  // code_generation, file_refactor, document, analysis, search, test, git, debug or general; "" = all
	Limit int    `json:"limit,omitempty"` // of each type; 0 = all
}

// Query returns the name of the query on the wire.
func (ListLessons) Query() string { return "lessons" }

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
