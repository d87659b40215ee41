package cli

import (
	"bufio"
	"context"
	"fmt"

	"dure/agent/query"
	"dure/internal/frontend/text"
)

// Import lists sessions of other products, or imports them. One that cannot be read
// is an error for scripts when nothing else came of it.
func (c *CLI) Import(ctx context.Context, q query.ImportSessions, asJSON bool) error {
	r, err := wait[query.ImportReport](ctx, c, text.BusyImport, q)
	if err != nil {
		return err
	}
	done, there, failed := 0, 0, 0
	touched := false
	for _, s := range r.Found {
		switch s.State {
		case "imported", "readable":
			done++
		case "exists":
			there++
		case "failed":
			failed++
		}
		touched = touched || s.State == "imported" || s.State == "readable" || s.State == "failed" || s.Messages > 0
	}
	err = c.put(r, asJSON, func(w *bufio.Writer) {
		if touched {
			c.imported(w, r, q.Dry, done, there, failed)
		} else {
			c.importable(w, r)
		}
	})
	if err == nil && failed > 0 && done+there == 0 {
		return &Exited{Code: ExitFailed, Err: fmt.Errorf("%d sessions could not be read", failed)}
	}
	return err
}

// importable lists what there is to import.
func (c *CLI) importable(w *bufio.Writer, r query.ImportReport) {
	if len(r.Found) == 0 {
		fmt.Fprintln(w, c.Text.Say(text.ImportNone))
		return
	}
	rows := [][]string{c.heads(text.ColID, text.ColUpdated, text.ColSource, text.ColStatus, text.ColTitle)}
	for _, s := range r.Found {
		const title = 60
		rows = append(rows, []string{text.OneLine(bounded(s.ID)), c.ago(s.Updated), s.Source, c.Text.Word("import." + s.State), text.Cut(text.OneLine(bounded(s.Title)), title)})
	}
	const least = 10
	rows = fit(rows, len(rows[0])-1, c.columns(), least, 3, 2, 1)
	table(w, rows)
	if r.Left > 0 {
		fmt.Fprintln(w, c.Text.Say(text.ImportMore, "n", r.Left))
	}
	fmt.Fprintln(w, c.Text.Say(text.ImportHow))
}

// imported tells what came of each session.
func (c *CLI) imported(w *bufio.Writer, r query.ImportReport, dry bool, done, there, failed int) {
	for _, s := range r.Found {
		title := text.Cut(text.OneLine(bounded(s.Title)), 60)
		switch s.State {
		case "imported":
			fmt.Fprintln(w, c.Text.Say(text.ImportDone, "session", s.Session, "n", s.Messages, "title", title))
		case "readable":
			fmt.Fprintln(w, c.Text.Say(text.ImportReadable, "id", text.OneLine(s.ID), "n", s.Messages, "title", title))
		case "exists":
			fmt.Fprintln(w, c.Text.Say(text.ImportThere, "session", s.Session, "title", title))
		case "failed":
			fmt.Fprintln(w, c.Text.Say(text.ImportFailed, "path", text.OneLine(bounded(s.Path)), "error", c.Text.Phrase(text.OneLine(bounded(s.Error)))))
		}
		if n := len(s.Warnings) + s.Hidden; n > 0 && s.State != "exists" {
			k := text.ImportLeft
			if dry {
				k = text.ImportLeftDry
			}
			fmt.Fprintln(w, c.Text.Say(k, "n", n, "session", s.Session))
		}
	}
	if len(r.Found) > 1 && !dry {
		fmt.Fprintln(w, c.Text.Say(text.ImportSum, "done", done, "there", there, "failed", failed))
	}
}
