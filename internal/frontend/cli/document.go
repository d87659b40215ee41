package cli

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
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// ExportFormat returns the format that the name of a file asks for; "" = it cannot be told.
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

// exportTo writes the session to a file, as the ending of its name says. What is relative is
// below dir, and reached through no links: a repository may have laid them.
func (ch *chat) exportTo(ctx context.Context, dir, file string, over bool) (r ExportReport, err error) {
	t, shown := ch.Text, text.OneLine(file)
	r = ExportReport{Session: ch.sess.Info.ID, Format: ExportFormat(file)}
	switch {
	case strings.EqualFold(filepath.Ext(file), ".pdf"):
		return r, &agent.Problem{Code: agent.ProblemUsage, Message: t.Say(text.PDFName, "path", shown), Fix: t.Say(text.FixPDFName)}
	case r.Format == "":
		return r, &agent.Problem{Code: agent.ProblemUsage, Message: t.Say(text.ExportForm, "path", shown), Fix: t.Say(text.FixExportForm)}
	}
	if rest, ok := strings.CutPrefix(file, "~/"); ok && ch.o.Home != "" {
		file = filepath.Join(ch.o.Home, rest)
	}
	top, rel := dir, file
	if filepath.IsAbs(file) {
		r.Path, top, rel = file, filepath.Dir(file), filepath.Base(file)
		if below, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(below) {
			top, rel = dir, below
		}
	}
	r.Path = cmp.Or(r.Path, filepath.Join(dir, file))
	if !filepath.IsLocal(rel) { // ../x: its user says where
		top, rel = filepath.Dir(r.Path), filepath.Base(r.Path)
	}
	if link := linkedBelow(top, filepath.Dir(rel)); link != "" {
		return r, &agent.Problem{Code: agent.ProblemUsage, Message: t.Say(text.ExportLink, "path", shown, "link", text.OneLine(link)), Fix: "name another file"}
	}
	r.Bytes, err = NewFile(top, rel, over, func(w io.Writer) error {
		doc, err := client.Query[query.Document](ctx, ch.Client, query.ExportSession{Session: r.Session, Format: r.Format})
		if err == nil {
			_, err = io.WriteString(w, doc.Text)
		}
		return err
	})
	return r, err
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
	why := err
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		why = pe.Err
	}
	return &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("%s: %v", path, why), Fix: "name another file", Err: err}
}
