// Package cron reads when something is to happen again and again, as cron has it, and says
// when it does next.
//
// It owns the five fields and what they mean in a time zone that changes its clocks. It knows
// no clock, starts no goroutines, and holds no state.
package cron

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Schedule is minute, hour, day, month and weekday.
type Schedule struct {
	minutes, hours, days, months, weekdays uint64 // a bit for each value
	anyDay, anyWeekday                     bool
	anyHour                                bool // every hour, or every nth: by the clock that runs on
	zone                                   *time.Location
}

var shortcuts = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

var (
	monthNames = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	dayNames   = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// Parse reads five fields with lists, ranges, steps and English names, or a word such as
// @daily. Times are those of zone. Where both the day and the weekday are given, one of them
// has to fit.
func Parse(text string, zone *time.Location) (Schedule, error) {
	s := Schedule{zone: zone}
	if long, ok := shortcuts[strings.ToLower(strings.TrimSpace(text))]; ok {
		text = long
	}
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return s, fmt.Errorf("%q has %d fields, and five are needed: minute, hour, day, month, weekday", text, len(fields))
	}
	for i, f := range []struct {
		to          *uint64
		what        string
		least, most int
		names       []string
	}{
		{&s.minutes, "minute", 0, 59, nil},
		{&s.hours, "hour", 0, 23, nil},
		{&s.days, "day", 1, 31, nil},
		{&s.months, "month", 1, 12, monthNames},
		{&s.weekdays, "weekday", 0, 7, dayNames},
	} {
		bits, err := field(fields[i], f.least, f.most, f.names)
		if err != nil {
			return s, fmt.Errorf("the %s %q: %w", f.what, fields[i], err)
		}
		*f.to = bits
	}
	if s.weekdays&(1<<7) != 0 {
		s.weekdays |= 1
	}
	s.anyHour = strings.HasPrefix(fields[1], "*")
	s.anyDay, s.anyWeekday = strings.HasPrefix(fields[2], "*"), strings.HasPrefix(fields[4], "*")
	if s.Next(time.Unix(0, 0)).IsZero() {
		return s, fmt.Errorf("%q never comes", text)
	}
	return s, nil
}

// field reads one field into bits.
func field(text string, least, most int, names []string) (bits uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		span, by, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(by); err != nil || step < 1 || step > most {
				return 0, fmt.Errorf("%q is no step from 1 to %d", by, most)
			}
		}
		from, to := least, most
		if most == 7 {
			to = 6 // 7 is another name of 0
		}
		if span != "*" {
			a, b, ranged := strings.Cut(span, "-")
			if from, err = number(a, least, most, names); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if to, err = number(b, least, most, names); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
			if to < from {
				return 0, fmt.Errorf("%q ends before it begins", span)
			}
		}
		for v := from; v <= to; v += step {
			bits |= 1 << v
		}
	}
	return bits, nil
}

func number(text string, least, most int, names []string) (int, error) {
	if i := slices.Index(names, strings.ToLower(text)); i >= 0 {
		return i + least, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most || text[0] == '+' || text[0] == '-' {
		return 0, fmt.Errorf("%q is no number from %d to %d", text, least, most)
	}
	return n, nil
}

func has(bits uint64, v int) bool { return bits&(1<<v) != 0 }

// onDay reports whether something happens on a day.
func (s Schedule) onDay(t time.Time) bool {
	if !has(s.months, int(t.Month())) {
		return false
	}
	day, weekday := has(s.days, t.Day()), has(s.weekdays, int(t.Weekday()))
	if s.anyDay || s.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// Next returns the first time behind t; the zero one = there is none within eight years.
//
// When the clocks go forward, what would fall into the hour that is left out happens when it
// is over, once. When they go back, what happens at a certain hour happens once; what happens
// every hour, or every nth, goes on by the time that passes.
func (s Schedule) Next(t time.Time) time.Time {
	const days = 8*366 + 2 // 29 February comes once in eight years at the least
	local := t.In(s.zone)
	first := time.Date(local.Year(), local.Month(), local.Day(), 12, 0, 0, 0, time.UTC)
	for i := range days {
		day := first.AddDate(0, 0, i)
		if !s.onDay(day) {
			continue
		}
		if next := s.within(day, t); !next.IsZero() {
			return next
		}
	}
	return time.Time{}
}

// within returns the first time of a day that is behind t.
func (s Schedule) within(day, t time.Time) time.Time {
	var best time.Time
	take := func(at time.Time) {
		if at.After(t) && (best.IsZero() || at.Before(best)) {
			best = at
		}
	}
	for hour := range 24 {
		if !has(s.hours, hour) {
			continue
		}
		for minute := range 60 {
			if !has(s.minutes, minute) {
				continue
			}
			for _, at := range s.instants(day, hour, minute) {
				take(at)
			}
			if !best.IsZero() && !s.anyHour {
				return best
			}
		}
	}
	return best
}

// instants are the moments at which clocks show a time: one, or two where they go back, and
// the end of the gap where they go forward over it.
func (s Schedule) instants(day time.Time, hour, minute int) []time.Time {
	year, month, d := day.Date()
	at := time.Date(year, month, d, hour, minute, 0, 0, s.zone)
	_, before := at.Add(-24 * time.Hour).Zone()
	_, after := at.Add(24 * time.Hour).Zone()
	wall := time.Date(year, month, d, hour, minute, 0, 0, time.UTC)
	one, two := wall.Add(-time.Duration(before)*time.Second).In(s.zone), wall.Add(-time.Duration(after)*time.Second).In(s.zone)
	shows := func(t time.Time) bool { return t.Hour() == hour && t.Minute() == minute && t.Day() == d }
	switch {
	case before == after:
		return []time.Time{at}
	case shows(one) && shows(two) && !one.Equal(two):
		if s.anyHour {
			return []time.Time{one, two}
		}
		return []time.Time{one}
	case shows(one):
		return []time.Time{one}
	case shows(two):
		return []time.Time{two}
	case s.anyHour:
		return nil
	}
	return []time.Time{gapEnd(two, one)}
}

// gapEnd finds when the clocks go forward, between two moments.
func gapEnd(from, to time.Time) time.Time {
	_, before := from.Zone()
	for to.Sub(from) > time.Second {
		mid := from.Add(to.Sub(from) / 2).Truncate(time.Second)
		if !mid.After(from) {
			break
		}
		if _, o := mid.Zone(); o == before {
			from = mid
		} else {
			to = mid
		}
	}
	return to
}
