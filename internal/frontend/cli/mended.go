package cli

import (
	"bufio"
	"encoding/json"
	"fmt"

	"dure/internal/frontend/text"
)

// Mended prints what was found in the log of a session, and what was done. One that
// is damaged and stays so is an error for scripts.
func (c *CLI) Mended(report json.RawMessage, changed, asJSON bool) error {
	var m struct {
		Session  string   `json:"session"`
		OK       bool     `json:"ok"`
		Events   int64    `json:"events"`
		Lost     int64    `json:"lost"`
		Seals    int      `json:"seals"`
		Kept     string   `json:"kept"`
		Problems []string `json:"problems"`
		Hidden   int      `json:"hidden"`
	}
	if err := json.Unmarshal(report, &m); err != nil {
		return fmt.Errorf("reading the report: %w", err)
	}
	err := c.buffered(func(w *bufio.Writer) error {
		if asJSON {
			w.Write(report)
			return w.WriteByte('\n')
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
