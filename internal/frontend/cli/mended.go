package cli

import (
	"bufio"
	"encoding/json"
	"fmt"

	"dure/agent/query"
	"dure/internal/frontend/text"
)

// Mended prints what was found in the log of a session, and what was done. One that
// is damaged and stays so is an error for scripts.
func (c *CLI) Mended(m query.LogReport, changed, asJSON bool) error {
	err := c.buffered(func(w *bufio.Writer) error {
		if asJSON {
			return json.NewEncoder(w).Encode(m)
		}
		if m.OK {
			fmt.Fprintln(w, c.Text.Say(text.LogWhole, "session", m.Session, "events", m.Events))
			return nil
		}
		for _, p := range m.Problems {
			fmt.Fprintln(w, "  "+text.OneLine(bounded(p)))
		}
		if m.Hidden > 0 {
			fmt.Fprintln(w, "  "+c.Text.Say(text.MoreLines, "n", m.Hidden))
		}
		k := text.LogDamaged
		if changed {
			k = text.LogMended
		}
		fmt.Fprintln(w, c.Text.Say(k, "session", m.Session, "events", m.Events, "lost", m.Lost, "path", text.OneLine(m.Kept)))
		return nil
	})
	if err == nil && !m.OK && !changed {
		return &Exited{Code: ExitSession, Err: fmt.Errorf("session %s is damaged", m.Session)}
	}
	return err
}

// KeptAs says where a file is kept as it was.
func (c *CLI) KeptAs(path string) error { return c.say(text.KeptAs, "path", text.OneLine(path)) }
