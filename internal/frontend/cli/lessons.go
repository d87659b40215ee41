package cli

import (
	"bufio"
	"fmt"

	"dure/agent/query"
	"dure/internal/frontend/text"
)

// Lessons writes what was learnt from past tasks.
func (c *CLI) Lessons(list []query.Lesson, asJSON bool) error {
	return c.put(list, asJSON, func(w *bufio.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, c.Text.Say(text.LessonsNone))
		}
		for _, l := range list {
			how := c.Text.Say(text.LessonBad)
			if l.Success {
				how = c.Text.Say(text.LessonGood)
			}
			fmt.Fprintf(w, "%s  %s  %s  %s %d %%\n  %s\n", text.OneLine(l.ID), l.Created.Local().Format("2006-01-02 15:04"), text.OneLine(l.Type), how, int(l.Score*100+0.5), text.OneLine(l.Summary))
			for _, s := range l.Lessons {
				fmt.Fprintf(w, "  - %s\n", text.OneLine(s))
			}
		}
	})
}
