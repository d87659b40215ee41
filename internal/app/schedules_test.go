package app_test

import (
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// A schedule runs in a session of its own, in the lane of scheduled runs, and is disabled by
// its third failure.
func TestSchedules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{ByStep: true, Replies: []script.Reply{{Text: "All is well."}}}, script.Options{})
	c := w.program(options(w.work, w.home, w.model.URL(), app.Flags{Settings: once})).Client()
	s, err := client.Query[agent.Schedule](t.Context(), c, query.ChangeSchedule{Do: query.ScheduleAdd, Schedule: agent.Schedule{Cron: "0 9 * * *", Zone: "Asia/Seoul", Prompt: "Say how it is."}})
	if err != nil || s.Workdir != w.work || len(s.Next) != 1 || !s.Next[0].After(time.Now()) {
		t.Fatalf("%+v, %v", s, err)
	}
	n, err := client.Query[agent.ScheduleNote](t.Context(), c, query.RunSchedule{ID: s.ID})
	if err != nil || n.Text != "All is well." || n.Error != "" || n.Session == "" {
		t.Fatalf("%+v, %v", n, err)
	}
	for e, err := range c.Attach(n.Session).Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(agent.SessionOpened); !ok || b.Lane != "cron" || b.Title != "schedule "+s.ID {
			t.Errorf("%+v", e.Body)
		}
		break
	}
	if err := w.model.Close(); err != nil {
		t.Fatal(err)
	}
	list := []agent.Schedule{}
	for i := range 3 {
		if n, err = client.Query[agent.ScheduleNote](t.Context(), c, query.RunSchedule{ID: s.ID}); err != nil || n.Error == "" || n.Disabled != (i == 2) {
			t.Fatalf("run %d without a model: %+v, %v", i, n, err)
		}
		if list, err = client.Query[[]agent.Schedule](t.Context(), c, query.ListSchedules{}); err != nil || len(list) != 1 || list[0].Failures != i+1 {
			t.Fatalf("%+v, %v", list, err)
		}
	}
	if !list[0].Disabled || len(list[0].Next) > 0 {
		t.Errorf("%+v", list[0])
	}
	if _, err := client.Query[agent.Schedule](t.Context(), c, query.ChangeSchedule{Do: query.ScheduleEnable, Schedule: agent.Schedule{ID: s.ID}}); err != nil {
		t.Fatal(err)
	}
	if list, err = client.Query[[]agent.Schedule](t.Context(), c, query.ListSchedules{}); err != nil || list[0].Disabled || len(list[0].Next) != 3 {
		t.Errorf("%+v, %v", list, err)
	}
	other := w.program(options(w.home, w.home, w.model.URL(), app.Flags{})).Client()
	if _, err := client.Query[agent.ScheduleNote](t.Context(), other, query.RunSchedule{ID: s.ID}); err == nil {
		t.Error("it is run from another folder")
	}
}
