package tab_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/base/cron/tab"
)

func newTab(t *testing.T) *tab.Tab {
	t.Helper()
	return &tab.Tab{Path: filepath.Join(t.TempDir(), "deep", "schedules.json"), Now: time.Now}
}

func add(t *testing.T, s *tab.Tab) agent.Schedule {
	t.Helper()
	e, err := s.Add(t.Context(), agent.Schedule{Cron: "*/5 * * * *", Zone: "UTC", Prompt: "Look around.", Workdir: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func only(t *testing.T, s *tab.Tab) agent.Schedule {
	t.Helper()
	list, err := s.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}

// What fails three times in a row is disabled, and runs again when somebody says so.
func TestThreeFailuresDisable(t *testing.T) {
	s := newTab(t)
	e := add(t, s)
	if len(e.ID) != 8 || e.Created.IsZero() {
		t.Errorf("%+v", e)
	}
	broken := errors.New(strings.Repeat("한", 400))
	for i, failure := range []error{broken, broken, nil, broken, broken, broken} {
		got, err := s.Ended(t.Context(), e.ID, fmt.Sprint("s", i), failure)
		if err != nil || got.Disabled != (i == 5) || (got.Error == "") != (failure == nil) || len(got.Error) > 500 {
			t.Errorf("run %d: %+v, %v", i, got, err)
		}
	}
	if got := only(t, s); !got.Disabled || got.Failures != 3 || got.Session != "s5" {
		t.Errorf("%+v", got)
	}
	if ok, err := s.Claim(t.Context(), e.ID, time.Now()); ok || err != nil {
		t.Errorf("a disabled one is run: %v", err)
	}
	if err := s.Enable(t.Context(), e.ID); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.Claim(t.Context(), e.ID, time.Now()); !ok || err != nil {
		t.Errorf("it does not run again: %v", err)
	}
	if err := s.Remove(t.Context(), e.ID); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.Claim(t.Context(), e.ID, time.Now().Add(time.Hour)); ok || err != nil {
		t.Errorf("a removed one is run: %v", err)
	}
	for _, err := range []error{s.Remove(t.Context(), e.ID), s.Enable(t.Context(), e.ID)} {
		if !errors.Is(err, tab.ErrUnknown) {
			t.Error(err)
		}
	}
}

// A time is taken once, by one of those who want it, and never after a later one.
func TestATimeIsTakenOnce(t *testing.T) {
	s := newTab(t)
	e := add(t, s)
	at := time.Date(2030, 1, 1, 0, 5, 0, 0, time.UTC)
	var taken atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			ok, err := (&tab.Tab{Path: s.Path, Now: time.Now}).Claim(t.Context(), e.ID, at)
			if err != nil {
				t.Error(err)
			}
			if ok {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if taken.Load() != 1 {
		t.Errorf("it is taken %d times", taken.Load())
	}
	if ok, err := s.Claim(t.Context(), e.ID, at.Add(-time.Minute)); ok || err != nil {
		t.Errorf("an earlier time is taken: %v", err)
	}
}

// What cannot be run is refused, and a file that cannot be read is not written over.
func TestSchedulesAreChecked(t *testing.T) {
	s := newTab(t)
	for _, e := range []agent.Schedule{
		{Cron: "* * * *", Zone: "UTC", Prompt: "x"},
		{Cron: "* * * * *", Zone: "No/Where", Prompt: "x"},
		{Cron: "* * * * *", Zone: "UTC", Prompt: " "},
		{Cron: "* * * * *", Zone: "UTC", Prompt: strings.Repeat("x", 65<<10)},
	} {
		if _, err := s.Add(t.Context(), e); err == nil {
			t.Errorf("taken: %.40q %q", e.Cron, e.Zone)
		}
	}
	for range 100 {
		add(t, s)
	}
	if _, err := s.Add(t.Context(), agent.Schedule{Cron: "@daily", Zone: "UTC", Prompt: "x"}); err == nil {
		t.Error("more than 100 are taken")
	}
	if err := os.WriteFile(s.Path, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(t.Context(), agent.Schedule{Cron: "@daily", Zone: "UTC", Prompt: "x"}); err == nil {
		t.Error("a file that cannot be read is written over")
	}
	if data, err := os.ReadFile(s.Path); err != nil || string(data) != "[{" {
		t.Errorf("%q, %v", data, err)
	}
}
