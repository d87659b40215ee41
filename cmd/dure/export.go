package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// exportFormats are the values of --format.
var exportFormats = []string{"md", "html", "jsonl", "pdf"}

// exporting is what the command line says of an export.
type exporting struct {
	query.ExportSession
	out   string
	force bool
}

func (p *program) exportCommand() *cobra.Command {
	var o exporting
	cmd := p.command("export [ID]", text.HelpExport, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if err := p.exportsTo(&o, asJSON); err != nil {
			return err
		}
		name, workdir := p.session(args)
		info, err := c.Find(ctx, name, workdir)
		if err != nil {
			return err
		}
		return p.export(ctx, c, info, o, asJSON)
	})
	f := cmd.Flags()
	f.StringVar(&o.Format, "format", "", p.text.Say(text.FlagExportFormat))
	f.StringVarP(&o.out, "output", "o", "", p.text.Say(text.FlagOutputFile))
	f.BoolVar(&o.NoResults, "no-results", false, p.text.Say(text.FlagNoResults))
	f.BoolVar(&o.Thinking, "thinking", false, p.text.Say(text.FlagThinking))
	f.BoolVar(&o.Children, "children", false, p.text.Say(text.FlagChildren))
	f.BoolVar(&o.System, "system", false, p.text.Say(text.FlagSystemPrompt))
	f.BoolVar(&o.force, "force", false, p.text.Say(text.FlagOverwrite))
	f.SortFlags = false
	cmd.ValidArgsFunction = p.first(p.sessionNames)
	complete(cmd, "format", values(exportFormats...))
	return cmd
}

// exportsTo settles the format, and where a page to print goes.
func (p *program) exportsTo(o *exporting, asJSON bool) error {
	ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(o.out), "."))
	if ext == "pdf" {
		return p.usage(p.text.Say(text.PDFName, "path", text.OneLine(o.out)), p.text.Say(text.FixPDFName))
	}
	if o.Format == "" {
		o.Format = map[string]string{"html": "html", "htm": "html", "jsonl": "jsonl"}[ext]
	}
	switch {
	case o.Format == "":
		o.Format = "md"
	case !slices.Contains(exportFormats, o.Format):
		return p.badValue("--format", o.Format, text.WantExportFormat)
	}
	if o.Format == "pdf" {
		o.Format, o.Print = "html", true
	}
	if asJSON && o.out == "" && !o.Print {
		return p.usage(p.text.Say(text.JSONNeedsFile), "")
	}
	return nil
}

// export writes the document to standard output, or to a file that is there when it
// is whole.
func (p *program) export(ctx context.Context, c *cli.CLI, info agent.SessionInfo, o exporting, asJSON bool) error {
	if o.out == "" && o.Print {
		o.out = "dure-" + info.ID + ".html"
	}
	if o.out == "" || o.out == "-" {
		return document(ctx, c, p.out, info.ID, o)
	}
	size, err := cli.NewFile(filepath.Dir(o.out), filepath.Base(o.out), o.force, func(w io.Writer) error { return document(ctx, c, w, info.ID, o) })
	if pr := agent.ProblemOf(err); pr != nil && errors.Is(err, fs.ErrExist) {
		pr.Fix = p.text.Say(text.WriteOver)
	}
	if err != nil {
		return err
	}
	return c.Exported(cli.ExportReport{Session: info.ID, Format: o.Format, Path: o.out, Bytes: size, Print: o.Print}, asJSON)
}

// document writes a session as a document.
func document(ctx context.Context, c *cli.CLI, w io.Writer, session string, o exporting) error {
	o.Session = session
	doc, err := client.Query[query.Document](ctx, c.Client, o.ExportSession)
	if err == nil {
		_, err = io.WriteString(w, doc.Text)
	}
	return err
}
