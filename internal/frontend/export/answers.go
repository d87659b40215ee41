package export

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
	"dure/internal/kernel/plug"
)

// Logs are where sessions are read.
type Logs interface {
	Read(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error]
	Blob(ctx context.Context, id, sha256 string) (io.ReadCloser, error)
}

// Source says where sessions come from, and how they are shown.
type Source struct {
	Logs   func() Logs
	Find   func(ctx context.Context, name string) (agent.SessionInfo, error)
	Redact func(string) string
	Text   text.Catalog
}

// Extension answers with sessions as documents.
type Extension struct {
	plug.NoSession
	cfg Source
}

// New returns the extension.
func New(s Source) *Extension { return &Extension{cfg: s} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "export" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer { return []plug.Answer{plug.Answers(x.export)} }

func (x *Extension) export(ctx context.Context, q query.ExportSession) (query.Document, error) {
	switch q.Format {
	case "", "md", "html", "jsonl":
	default:
		return query.Document{}, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("there is no format %q", q.Format), Fix: "use md, html or jsonl",
		}
	}
	row, err := x.cfg.Find(ctx, q.Session)
	if err != nil {
		return query.Document{}, err
	}
	doc, err := Read(x.config(ctx, row.ID, q))
	if err != nil {
		return query.Document{}, fmt.Errorf("exporting session %s: %w", row.ID, err)
	}
	words := WordsOf(x.cfg.Text)
	if !q.Print {
		words.Print = ""
	}
	var b strings.Builder
	switch q.Format {
	case "jsonl":
		err = JSONL(&b, doc)
	case "html":
		err = HTML(&b, doc, words)
	default:
		err = Markdown(&b, doc, words)
	}
	return query.Document{Text: b.String()}, err
}

// config says how a session is read for a document.
func (x *Extension) config(ctx context.Context, id string, q query.ExportSession) Config {
	c := Config{
		Events: x.cfg.Logs().Read(ctx, id, 0), Redact: x.cfg.Redact,
		NoResults: q.NoResults, Thinking: q.Thinking, System: q.System,
		Blob: func(sha string) ([]byte, error) { return x.blob(ctx, id, sha) },
	}
	if q.Children {
		c.Child = func(child string) (Config, bool) { return x.config(ctx, child, q), true }
	}
	return c
}

// blob reads a blob of at most 4 MiB.
func (x *Extension) blob(ctx context.Context, id, sha string) (data []byte, err error) {
	const most = 4 << 20
	r, err := x.cfg.Logs().Blob(ctx, id, sha)
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
