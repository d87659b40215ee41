package cron

import (
	"testing"
	"time"
	_ "time/tzdata"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestNext(t *testing.T) {
	for _, tt := range []struct {
		text, zone, from string
		want             []string
	}{
		{"*/15 * * * *", "UTC", "2026-01-01T00:00:00Z", []string{"2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"}},
		{"0 9 * * mon-fri", "Asia/Seoul", "2026-01-02T10:00:00+09:00", []string{"2026-01-05T09:00:00+09:00", "2026-01-06T09:00:00+09:00"}},
		{"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"0 0 13 * 5", "UTC", "2026-01-01T00:00:00Z", []string{"2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"}},
		{"0 0 * * 7", "UTC", "2026-01-01T00:00:00Z", []string{"2026-01-04T00:00:00Z"}},
		{"@daily", "UTC", "2026-12-31T23:59:59Z", []string{"2027-01-01T00:00:00Z"}},
		{"5,10-12/2 3 1 JAN *", "UTC", "2026-01-01T03:05:00Z", []string{"2026-01-01T03:10:00Z", "2026-01-01T03:12:00Z", "2027-01-01T03:05:00Z"}},

		// Clocks go back: once, and not again and again.
		{"30 1 * * *", "America/New_York", "2026-11-01T00:00:00-04:00", []string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		{"30 * * * *", "America/New_York", "2026-11-01T00:45:00-04:00", []string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:30:00-05:00"}},
		// Clocks go forward: when the gap is over, and not left out.
		{"30 2 * * *", "America/New_York", "2026-03-08T00:00:00-05:00", []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"}},
		{"30 * * * *", "America/New_York", "2026-03-08T01:00:00-05:00", []string{"2026-03-08T01:30:00-05:00", "2026-03-08T03:30:00-04:00"}},
		{"15,45 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00+01:00", []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:15:00+02:00"}},
	} {
		s, err := Parse(tt.text, zone(t, tt.zone))
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		at, err := time.Parse(time.RFC3339, tt.from)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			at = s.Next(at)
			if got := at.In(s.zone).Format(time.RFC3339); got != want {
				t.Errorf("%s in %s: %s, want %s", tt.text, tt.zone, got, want)
				break
			}
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, text := range []string{
		"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "a * * * *",
		"*/0 * * * *", "5-1 * * * *", "1, * * * *", "-1 * * * *", "+1 * * * *", "0 0 31 2 *", "@never", "*/99999999999999999999 * * * *",
	} {
		if _, err := Parse(text, time.UTC); err == nil {
			t.Errorf("%q is a schedule", text)
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add("*/7 1-5 * jan,mar 2", int64(1_700_000_000))
	f.Add("30 2 * * *", int64(1_772_900_000))
	f.Fuzz(func(t *testing.T, text string, from int64) {
		z, err := time.LoadLocation("America/New_York")
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(text, z)
		if err != nil || from < 0 || from > 1<<33 {
			return
		}
		at := time.Unix(from, 0)
		for range 4 {
			next := s.Next(at)
			if !next.After(at) {
				t.Fatalf("%q: %v comes behind %v", text, next, at)
			}
			at = next
		}
	})
}
