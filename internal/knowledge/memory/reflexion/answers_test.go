package reflexion

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/knowledge/memory/lessons"
)

// A user adds lessons, lists them by type, and deletes those of a type, one, or all.
func TestAnswers(t *testing.T) {
	x, ctx := New(Config{Data: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}), t.Context()
	for _, q := range []query.AddLesson{{Type: "cooking", Text: "Salt."}, {Type: "debug", Text: " "}} {
		if _, err := x.add(ctx, q); agent.ProblemOf(err) == nil {
			t.Errorf("%+v is added: %v", q, err)
		}
	}
	var added []query.Lesson
	for _, q := range []query.AddLesson{{Type: "debug", Text: "One."}, {Type: "test", Text: "Two."}, {Type: "test", Text: "Three."}} {
		l, err := x.add(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		added = append([]query.Lesson{l}, added...)
	}
	if list, err := x.list(ctx, query.ListLessons{}); err != nil || !reflect.DeepEqual(list, added) {
		t.Errorf("it lists %+v, %v", list, err)
	}
	for _, tt := range []struct {
		q    query.DeleteLessons
		gone int
		bad  bool
	}{
		{query.DeleteLessons{}, 0, true},
		{query.DeleteLessons{Which: "cooking", All: true}, 0, true},
		{query.DeleteLessons{Which: added[0].ID}, 1, false},
		{query.DeleteLessons{Which: "test"}, 1, false},
		{query.DeleteLessons{All: true}, 1, false},
		{query.DeleteLessons{All: true}, 0, false},
	} {
		if n, err := x.drop(ctx, tt.q); n != tt.gone || (agent.ProblemOf(err) != nil) != tt.bad {
			t.Errorf("%+v deletes %d, %v", tt.q, n, err)
		}
	}
}

// The checklist is made where there is none, and only what the user has added to it is for
// the model.
func TestChecklist(t *testing.T) {
	same := func(_ string, err error) error { return err }
	x := New(Config{Data: filepath.Join(t.TempDir(), "data"), Logger: slog.New(slog.DiscardHandler), Unreadable: same, Unwritable: same})
	c, err := x.checklist(t.Context(), query.ReadChecklist{})
	if err != nil || len(c.Code) == 0 || x.Checks() != "" {
		t.Errorf("it is %+v, %v, and for the model %q", c, err, x.Checks())
	}
	if err := lessons.SaveChecklist(c.Path, lessons.Checklist{Code: append(c.Code, "no names of colours")}); err != nil {
		t.Fatal(err)
	}
	if got := x.Checks(); got != "Files have been changed. The user wants this to be checked before you end:\n- no names of colours\n" {
		t.Errorf("the checks are %q", got)
	}
	x = New(Config{Data: filepath.Join(c.Path, "below"), Logger: slog.New(slog.DiscardHandler), Unreadable: same, Unwritable: same})
	if _, err := x.checklist(t.Context(), query.ReadChecklist{}); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file it is %v", err)
	}
}
