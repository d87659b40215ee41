package cli

import (
	"bufio"
	"fmt"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
)

// scheduleTime is how times of schedules are shown: with their zone, which may be another one
// than that of the machine.
const scheduleTime = "2006-01-02 15:04 MST"

// Schedules writes what is scheduled.
func (c *CLI) Schedules(list []agent.Schedule, asJSON bool) error {
	return c.put(append([]agent.Schedule{}, list...), asJSON, func(w *bufio.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, c.Text.Say(text.ScheduleNone))
		}
		const prompt = 60
		for _, s := range list {
			fmt.Fprintf(w, "%s  %s  %s  %s\n", text.OneLine(s.ID), text.OneLine(s.Cron), text.OneLine(s.Workdir), text.Cut(text.OneLine(s.Prompt), prompt))
			var times []string
			for _, at := range s.Next {
				times = append(times, at.Format(scheduleTime))
			}
			if len(times) > 0 {
				fmt.Fprintln(w, "  "+c.Text.Say(text.ScheduleNext, "times", strings.Join(times, ", ")))
			}
			if s.Session != "" {
				fmt.Fprintln(w, "  "+c.Text.Say(text.ScheduleLast, "time", s.Last.Local().Format(scheduleTime), "session", text.OneLine(s.Session)))
			}
			if s.Error != "" {
				fmt.Fprintln(w, "  "+c.Text.Say(text.ScheduleFails, "n", s.Failures, "error", text.OneLine(s.Error)))
			}
			if s.Disabled {
				fmt.Fprintln(w, "  "+c.Text.Say(text.ScheduleOff, "n", s.Failures, "id", text.OneLine(s.ID)))
			}
		}
	})
}

// ScheduleLine says in a line or two how a run of a schedule ended.
func (c *CLI) ScheduleLine(n agent.ScheduleNote) string {
	line := c.Text.Say(text.ScheduleRan, "id", text.OneLine(n.ID), "session", text.OneLine(n.Session))
	switch {
	case n.ID == "": // it is about all of them
		return c.Text.Say(text.SchedulesUnread, "error", text.OneLine(n.Error))
	case n.Error != "":
		line = c.Text.Say(text.ScheduleFailed, "id", text.OneLine(n.ID), "error", text.OneLine(n.Error))
	}
	if n.Disabled {
		line += "\n" + c.Text.Say(text.ScheduleDisabled, "id", text.OneLine(n.ID))
	}
	return line
}

// ScheduleTime shows a time of a schedule.
func ScheduleTime(at time.Time) string { return at.Format(scheduleTime) }
