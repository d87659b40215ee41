package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"dure/agent"
	"dure/internal/frontend/export"
	"dure/internal/frontend/text"
)

// ExportOptions say what of a session goes into a document, and in which form.
type ExportOptions struct {
	Format string // md, html or jsonl

	NoResults, Thinking, Children, System bool

	Print bool // the page says how it is printed
}

// Export writes a session as a document, with its secrets masked.
func (a *App) Export(ctx context.Context, w io.Writer, id string, o ExportOptions) error {
	if _, err := a.open(); err != nil {
		return err
	}
	doc, err := export.Read(a.exported(ctx, id, o))
	if err != nil {
		return fmt.Errorf("exporting session %s: %w", id, err)
	}
	words := wordsOf(text.For(a.cfg.Language))
	if !o.Print {
		words.Print = ""
	}
	switch o.Format {
	case "jsonl":
		return export.JSONL(w, doc)
	case "html":
		return export.HTML(w, doc, words)
	}
	return export.Markdown(w, doc, words)
}

// exported says how a session is read for a document.
func (a *App) exported(ctx context.Context, id string, o ExportOptions) export.Config {
	c := export.Config{
		Events: a.store.Read(ctx, id, 0), Redact: a.patterns.Redact,
		NoResults: o.NoResults, Thinking: o.Thinking, System: o.System,
		Blob: func(sha string) ([]byte, error) { return a.blob(ctx, id, sha) },
	}
	if o.Children {
		c.Child = func(child string) (export.Config, bool) { return a.exported(ctx, child, o), true }
	}
	return c
}

// blob reads a blob of at most 4 MiB.
func (a *App) blob(ctx context.Context, id, sha string) (data []byte, err error) {
	const most = 4 << 20
	r, err := a.store.Blob(ctx, id, sha)
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(io.LimitReader(r, most+1))
	if closed := r.Close(); err == nil {
		err = closed
	}
	if err == nil && len(data) > most {
		err = fmt.Errorf("reading blob %.16s: it has more than %d bytes", sha, most)
	}
	return data, err
}

func wordsOf(t text.Catalog) export.Words {
	return export.Words{
		Session: t.Say(text.DocSession), Folder: t.Say(text.DocFolder), Model: t.Say(text.DocModel), Created: t.Say(text.DocCreated),
		Updated: t.Say(text.DocUpdated), Tags: t.Say(text.DocTags), Origin: t.Say(text.DocOrigin), Cost: t.Say(text.DocCost),
		You: t.Say(text.DocYou), Assistant: t.Say(text.DocAssistant), Thinking: t.Say(text.DocThinking), Arguments: t.Say(text.DocArguments),
		Result: t.Say(text.DocResult), Failed: t.Say(text.DocFailed), NoResult: t.Say(text.DocNoResult), Change: t.Say(text.DocChange),
		System: t.Say(text.DocSystem), Child: t.Say(text.DocChild), Compacted: t.Say(text.DocCompacted), TurnFailed: t.Say(text.DocTurnFailed),
		Plan: t.Say(text.PlanDoc), PlanChanged: t.Say(text.PlanDocChanged), PlanApproved: t.Say(text.PlanIsApproved), PlanRejected: t.Say(text.PlanIsRejected),
		PlanAnother: t.Say(text.PlanIsAnother),
		Settled:     t.Say(text.DocSettled), Note: t.Say(text.DocNote), Good: t.Say(text.DocGood), Bad: t.Say(text.DocBad),
		Cut: t.Say(text.DocCut), More: t.Say(text.DocMore), Image: t.Say(text.DocImage), Print: t.Say(text.DocPrint),
	}
}

// ExportFormat is the format that the name of a file asks for; "" = it cannot be told.
func ExportFormat(file string) string {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".md", ".markdown":
		return "md"
	case ".html", ".htm":
		return "html"
	case ".jsonl":
		return "jsonl"
	}
	return ""
}

// ExportTo writes a session to a file, and returns its path. What is relative is below
// dir, and reached through no links: a repository may have laid them.
func (a *App) ExportTo(ctx context.Context, id, dir, file string, over bool) (path string, size int64, err error) {
	t, shown := text.For(a.cfg.Language), text.OneLine(file)
	o := ExportOptions{Format: ExportFormat(file)}
	switch {
	case strings.EqualFold(filepath.Ext(file), ".pdf"):
		return "", 0, &agent.Problem{Code: agent.ProblemUsage, Message: t.Say(text.PDFName, "path", shown), Fix: t.Say(text.FixPDFName)}
	case o.Format == "":
		return "", 0, &agent.Problem{Code: agent.ProblemUsage, Message: t.Say(text.ExportForm, "path", shown), Fix: t.Say(text.FixExportForm)}
	}
	if rest, ok := strings.CutPrefix(file, "~/"); ok && a.opts.UserHome != "" {
		file = filepath.Join(a.opts.UserHome, rest)
	}
	top, rel := dir, file
	if filepath.IsAbs(file) {
		path, top, rel = file, filepath.Dir(file), filepath.Base(file)
		if below, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(below) {
			top, rel = dir, below
		}
	}
	path = cmp.Or(path, filepath.Join(dir, file))
	if !filepath.IsLocal(rel) { // ../x: its user says where
		top, rel = filepath.Dir(path), filepath.Base(path)
	}
	if link := linkedBelow(top, filepath.Dir(rel)); link != "" {
		return "", 0, &agent.Problem{Code: agent.ProblemUsage, Message: t.Say(text.ExportLink, "path", shown, "link", text.OneLine(link)), Fix: "name another file"}
	}
	size, err = NewFile(top, rel, over, func(w io.Writer) error { return a.Export(ctx, w, id, o) })
	return path, size, err
}

// linkedBelow returns the first folder on the way to rel that is a link; "" = there is
// none.
func linkedBelow(top, rel string) string {
	at := ""
	for name := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(rel)), "/") {
		at = filepath.Join(at, name)
		if info, err := os.Lstat(filepath.Join(top, at)); err == nil && info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
			return at
		}
	}
	return ""
}

// NewFile writes a file below a folder, of mode 0600, all or nothing. One that is there
// already, or a link of its name, is left alone unless over is set; then it is replaced,
// and what a link leads to is not.
func NewFile(dir, rel string, over bool, write func(io.Writer) error) (size int64, err error) {
	shown := rel
	if dir != "." {
		shown = filepath.Join(dir, rel)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, fileProblem(shown, err)
	}
	defer root.Close()
	if info, err := root.Lstat(rel); err == nil && info.IsDir() {
		return 0, fileProblem(shown, syscall.EISDIR)
	} else if err == nil && !over {
		return 0, fileProblem(shown, fs.ErrExist)
	}
	temp := filepath.Join(filepath.Dir(rel), ".dure-"+rand.Text())
	f, err := root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, fileProblem(shown, err)
	}
	if err = write(f); err == nil {
		size, err = f.Seek(0, io.SeekEnd)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = placed(root, temp, rel, over)
	}
	if err != nil {
		_ = root.Remove(temp) // what matters is the first error
		return 0, fileProblem(shown, err)
	}
	return size, nil
}

// placed gives a file its name. Without over, one that came to be there meanwhile stays.
func placed(root *os.Root, temp, rel string, over bool) error {
	if over {
		return root.Rename(temp, rel)
	}
	switch err := root.Link(temp, rel); {
	case err == nil:
		return root.Remove(temp)
	case errors.Is(err, fs.ErrExist):
		return fs.ErrExist
	}
	if _, err := root.Lstat(rel); err == nil { // a file system without further names
		return fs.ErrExist
	}
	return root.Rename(temp, rel)
}

func fileProblem(path string, err error) error {
	if agent.ProblemOf(err) != nil {
		return err
	}
	why := unwrapPath(err)
	return &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("%s: %v", path, why), Fix: "name another file", Err: err}
}
