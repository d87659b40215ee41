package inbound

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/base/cron/tab"
)

// Each time of what is scheduled here is run once, in a session of its own, while a program
// runs; what another folder has is left alone, and what fails three times is disabled.
func TestPlanned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &tab.Tab{Path: filepath.Join(dir, "schedules.json"), Now: time.Now}
		add := func(cron, prompt, workdir string) string {
			e, err := s.Add(t.Context(), agent.Schedule{Cron: cron, Zone: "UTC", Prompt: prompt, Workdir: workdir})
			if err != nil {
				t.Fatal(err)
			}
			return e.ID
		}
		fine := add("*/30 * * * *", "Look around.", "/here")
		add("*/30 * * * *", "Elsewhere.", "/there")
		f := newFake()
		f.answered = func(text string) (string, agent.EndReason) {
			if text == "Fail." {
				return "", agent.EndFailed
			}
			return "heard: " + text, agent.EndDone
		}
		notes := map[string][]agent.ScheduleNote{}
		ctx, cancel := context.WithCancel(t.Context())
		program := func() *Planned {
			return &Planned{
				Tab: s, Client: client.New(f), Now: time.Now,
				Mine: func(e agent.Schedule) bool { return e.Workdir == "/here" },
				Open: func(e agent.Schedule) agent.Open { return agent.Open{New: e.ID + time.Now().Format("1504.000000000")} },
				Note: func(n agent.ScheduleNote) {
					f.mu.Lock()
					defer f.mu.Unlock()
					notes[n.ID] = append(notes[n.ID], n)
				},
			}
		}
		for range 2 { // programs, which take each time once between them
			p := program()
			f.all.Go(func() { _ = p.Run(ctx) })
		}
		time.Sleep(90 * time.Minute)
		bad := add("*/10 * * * *", "Fail.", "/here") // while they run
		time.Sleep(91 * time.Minute)
		cancel()
		f.all.Wait()
		var at []string
		for _, n := range notes[fine] {
			at = append(at, n.Time.Format("15:04"))
			if n.Text != "heard: Look around." || n.Error != "" || n.Session == "" {
				t.Errorf("%+v", n)
			}
		}
		if want := []string{"00:30", "01:00", "01:30", "02:00", "02:30", "03:00"}; !slices.Equal(at, want) {
			t.Error(at)
		}
		failed := notes[bad]
		if len(failed) != 3 || failed[0].Disabled || failed[1].Disabled || !failed[2].Disabled || failed[2].Error == "" {
			t.Errorf("%+v", failed)
		}
		if len(notes) != 2 || len(f.stored) != 9 || len(f.running) != 0 {
			t.Errorf("%d schedules told, %d sessions, %d of them open", len(notes), len(f.stored), len(f.running))
		}
	})
}

// A run that is not over is not begun again, and one that the end of the program cuts short has
// not failed.
func TestPlannedOverlaps(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &tab.Tab{Path: filepath.Join(dir, "schedules.json"), Now: time.Now}
		if _, err := s.Add(t.Context(), agent.Schedule{Cron: "* * * * *", Zone: "UTC", Prompt: "Long.", Workdir: "/here"}); err != nil {
			t.Fatal(err)
		}
		f := newFake()
		f.hold = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var notes []agent.ScheduleNote
		p := &Planned{
			Tab: s, Client: client.New(f), Now: time.Now, Mine: func(agent.Schedule) bool { return true },
			Open: func(agent.Schedule) agent.Open { return agent.Open{New: "one"} },
			Note: func(n agent.ScheduleNote) { notes = append(notes, n) },
		}
		ended := make(chan struct{})
		go func() { _ = p.Run(ctx); close(ended) }()
		time.Sleep(5*time.Minute + time.Second)
		cancel()
		<-ended
		close(f.hold)
		f.all.Wait()
		list, err := s.List()
		if err != nil || len(list) != 1 || list[0].Failures != 0 || len(notes) != 1 || notes[0].Error == "" || f.opened != 1 {
			t.Errorf("%+v, %v, %+v, opened %d times", list, err, notes, f.opened)
		}
	})
}
