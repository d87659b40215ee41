package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"

	"dure/internal/frontend/text"
)

// Checked prints what was found in a transcript. One that cannot be taken, or is no
// conversation even then, is an error for scripts.
func (c *CLI) Checked(report json.RawMessage, asJSON bool) error {
	var r struct {
		Load      string            `json:"load"`
		Recovered []string          `json:"recovered_ids"`
		Repairs   []string          `json:"repairs"`
		Warnings  []string          `json:"warnings"`
		Entries   []json.RawMessage `json:"entries"`
		Reason    string            `json:"reason"`
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return fmt.Errorf("reading the report: %w", err)
	}
	err := c.buffered(func(w *bufio.Writer) error {
		if asJSON {
			w.Write(report)
			return w.WriteByte('\n')
		}
		fmt.Fprintln(w, c.Text.Say(text.CheckedAs, "state", c.Text.Word("load."+r.Load), "records", len(r.Recovered), "messages", len(r.Entries)))
		for _, l := range r.Warnings { // what was wrong is among them
			fmt.Fprintf(w, "  %s\n", c.warning(l))
		}
		for _, l := range r.Repairs {
			fmt.Fprintf(w, "  %s\n", text.OneLine(bounded(l)))
		}
		return nil
	})
	if err == nil && r.Load == "refused" {
		return &Exited{Code: ExitSession, Err: fmt.Errorf("the transcript is refused: %s", r.Reason)}
	}
	return err
}

// warning is a line about a transcript in the user's language. It may begin with the
// line of the file that it is about.
func (c *CLI) warning(s string) string {
	s = text.OneLine(bounded(s))
	var line int
	if n, err := fmt.Sscanf(s, "line %d: ", &line); n != 1 || err != nil {
		return c.Text.Phrase(s)
	}
	_, rest, _ := strings.Cut(s, ": ")
	return c.Text.Say(text.AtLine, "line", line) + ": " + c.Text.Phrase(rest)
}
