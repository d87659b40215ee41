package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"dure/internal/frontend/text"
)

// ExportReport is a document that was written to a file.
type ExportReport struct {
	Session string `json:"session"`
	Format  string `json:"format"`
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Print   bool   `json:"print,omitempty"` // it is there to be printed
}

// Exported tells of a document that was written.
func (c *CLI) Exported(r ExportReport, asJSON bool) error {
	return c.put(r, asJSON, func(w *bufio.Writer) {
		fmt.Fprintln(w, c.Text.Say(text.Exported, "path", text.OneLine(r.Path), "bytes", r.Bytes))
		if r.Print {
			fmt.Fprintln(w, c.Text.Say(text.PrintPage))
		}
	})
}

// slashExport writes the session to a file. One that is there is replaced only where the
// user says so.
func (ch *chat) slashExport(ctx context.Context, arg string) {
	file, over := strings.CutPrefix(arg+" ", "--force ")
	if file = strings.TrimSpace(file); strings.HasPrefix(file, "-") {
		ch.v.note(yellow, ch.usageOf(ctx, "export"))
		return
	}
	id, dir := ch.sess.Info.ID, ch.v.Workdir
	if file == "" {
		file = "dure-" + id + ".md"
	}
	shown := text.OneLine(bounded(file))
	ch.aside(ctx, ch.Text.Say(text.ExportWriting, "path", shown), func(ctx context.Context) func() {
		r, err := ch.exportTo(ctx, dir, file, over)
		return func() {
			switch {
			case errors.Is(err, context.Canceled):
				ch.v.note(dim, ch.Text.Say(text.CommitNot))
			case errors.Is(err, fs.ErrExist) && !over:
				ch.v.note(yellow, ch.Text.Say(text.ExportForce, "path", shown))
			case err != nil:
				ch.v.fault(explain(ch.Text, err))
			default:
				ch.v.note(plain, ch.Text.Say(text.Exported, "path", text.OneLine(r.Path), "bytes", r.Bytes))
			}
		}
	})
}
