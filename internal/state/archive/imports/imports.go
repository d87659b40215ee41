// Package imports stores sessions of other products as sessions of ours. Package foreign reads
// them. It starts no goroutines.
package imports

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/safety/workspace"
	"dure/internal/state/archive"
	others "dure/internal/state/archive/foreign"
	"dure/internal/state/journal"
)

// Store is where sessions are stored.
type Store interface {
	archive.Logs
	Create(ctx context.Context, m journal.Meta) error
	Acquire(ctx context.Context, id string, who journal.Owner) (journal.Lease, error)
}

// Config says where sessions come from, and how they are stored.
type Config struct {
	Store   func() Store
	Getenv  func(string) string // names the folders of other products
	Home    string              // of the user
	Workdir string              // of sessions whose own folder is not here
	Logger  *slog.Logger

	// Opened returns what the first event of a session says of this program and its settings.
	Opened func() agent.SessionOpened

	// Canonical returns the name of a tool by another name of it.
	Canonical func(name string) (tool string, ok bool)

	// Known reports whether a model can be asked.
	Known func(model string) bool

	Redact func(string) string // hides the secrets in a text
	Mask   func(json.RawMessage) (json.RawMessage, error)

	// Forget removes what is there of a session that has not come about.
	Forget func(ctx context.Context, id string) error
}

// Extension imports sessions.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(cfg Config) *Extension { return &Extension{cfg: cfg} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "imports" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer { return []plug.Answer{plug.Answers(x.importAll)} }

// What an import is bounded by, besides what its readers are.
const (
	maxImported = 1000    // sessions of one query
	maxRemarks  = 20      // warnings that are kept of a session
	headBytes   = 1 << 20 // of a file, to tell whose it is
	importBatch = 60_000  // events of one append
)

// sources are the products by the names that people give them.
var sourceNames = map[string]others.Source{
	"claude": others.ClaudeCode, "claude-code": others.ClaudeCode, "codex": others.Codex, "opencode": others.OpenCode, "jsonl": others.Neutral,
}

// A place is a folder of a product, or one file.
type place struct {
	others.Config
	dir  string // as people know it
	root *os.Root
	file string // within dir; "" = the whole folder

	as string // what its session is called here; "" = as importedID has it

	// usual says that the product keeps its sessions here, so that a session keeps the
	// folder that it was held in. A file may come from anybody.
	usual bool
}

// importAll looks for sessions and imports those that are asked for.
func (x *Extension) importAll(ctx context.Context, q query.ImportSessions) (query.ImportReport, error) {
	report := query.ImportReport{Found: []query.ImportedSession{}}
	if name := q.Path; name != "" && !filepath.IsAbs(name) {
		q.Path = filepath.Join(x.cfg.Workdir, name)
		if _, err := os.Stat(q.Path); err != nil && !strings.ContainsAny(name, `/\.`) {
			q.Path, q.Only = "", name // no file is called so: an ID of the list
		}
	}
	places, err := x.places(q)
	defer func() {
		for _, p := range places {
			_ = p.root.Close() // only read
		}
	}()
	if err != nil {
		return report, err
	}
	have, err := archive.All(ctx, x.cfg.Store())
	if err != nil {
		return report, err
	}
	for _, p := range places {
		rows, err := x.importFrom(ctx, p, q, have)
		report.Found = append(report.Found, rows...)
		if err != nil {
			return report, err
		}
	}
	slices.SortStableFunc(report.Found, func(r, s query.ImportedSession) int { return cmp.Compare(s.Updated, r.Updated) })
	if n := len(report.Found) - maxImported; n > 0 {
		report.Found, report.Left = report.Found[:maxImported], n
	}
	if q.Only != "" && len(report.Found) == 0 {
		return report, problem(q.Only, errors.New("no session of another product has this ID"))
	}
	return report, nil
}

// importFrom lists the sessions of a place, and imports those that are asked for.
func (x *Extension) importFrom(ctx context.Context, p place, q query.ImportSessions, have map[string]journal.Meta) ([]query.ImportedSession, error) {
	listed := []others.Listed{{Source: p.Source, Path: p.file}}
	if p.file == "" {
		var err error
		if listed, err = p.Discover(); err != nil {
			return nil, problem(p.dir, err)
		}
	}
	var rows []query.ImportedSession
	for _, l := range listed {
		if q.Only != "" && !strings.HasPrefix(l.ID, q.Only) {
			continue
		}
		row := foundRow(p, l)
		_, exists := have[row.Session]
		_, ours := have[l.ID]
		switch wanted := p.file != "" || q.Only != "" || q.All; {
		case l.Source == others.ClaudeCode && ours: // it is the mirror of one of ours
			row.State, row.Session = "exists", l.ID
		case wanted:
			if err := x.importOne(ctx, p, l, q.Dry, &row); err != nil {
				if ctx.Err() != nil {
					return rows, context.Cause(ctx)
				}
				row.State, row.Session, row.Error = "failed", "", err.Error()
			}
		case exists:
			row.State = "exists"
		default:
			row.Session = ""
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Adopt imports a transcript under the ID that it has.
func (x *Extension) Adopt(ctx context.Context, path, id string) (row query.ImportedSession, err error) {
	places, err := x.places(query.ImportSessions{From: "claude", Path: path})
	if err != nil {
		return row, err
	}
	for _, p := range places {
		defer p.root.Close()
		p.as, p.usual = id, true
		l, err := p.Open(p.file)
		if err != nil {
			return row, problem(path, err)
		}
		l.ID = id
		row.Session = id
		if err := x.importOne(ctx, p, l.Listed, false, &row); err != nil {
			return row, problem(path, err)
		}
	}
	return row, nil
}

func foundRow(p place, l others.Listed) query.ImportedSession {
	row := query.ImportedSession{
		Source: string(l.Source), ID: l.ID, Path: filepath.Join(p.dir, filepath.FromSlash(l.Path)), Title: l.Title, Workdir: l.Workdir,
		Bytes: l.Bytes, State: "new", Session: importedID(l),
	}
	if p.as != "" {
		row.ID, row.Session = p.as, p.as
	}
	if id, ok := strings.CutPrefix(l.Path, others.InDatabase); ok {
		row.Path = p.Database + "#" + id
	}
	if !l.Updated.IsZero() {
		row.Updated = l.Updated.UTC().Format(time.RFC3339)
	}
	return row
}

// importedID is what a session is called here: the same one always gets the same.
func importedID(l others.Listed) string {
	sum := sha256.Sum256([]byte(string(l.Source) + "\x00" + l.ID))
	return string(l.Source) + "-" + hex.EncodeToString(sum[:10])
}

// importOne reads a session and stores it, unless it is there already.
func (x *Extension) importOne(ctx context.Context, p place, l others.Listed, dry bool, row *query.ImportedSession) error {
	s, err := p.Open(l.Path)
	if err != nil {
		return err
	}
	if len(s.Entries) == 0 {
		return errors.New("it holds no conversation")
	}
	*row = foundRow(p, s.Listed)
	row.Messages, row.Warnings = len(s.Entries), s.Warnings[:min(len(s.Warnings), maxRemarks)]
	row.Hidden = len(s.Warnings) - len(row.Warnings)
	there, err := x.imported(ctx, row.Session)
	if err != nil {
		return err
	}
	switch {
	case there:
		row.State = "exists"
		return nil
	case dry:
		row.State, row.Session = "readable", ""
		return nil
	}
	if info, err := os.Stat(s.Workdir); !p.usual || err != nil || !info.IsDir() || !filepath.IsAbs(s.Workdir) {
		s.Workdir = x.cfg.Workdir
	}
	if !x.cfg.Known(s.Model) {
		s.Model = "" // it goes on with the one of the settings
	}
	x.mask(&s)
	row.Title = s.Title
	if err := x.store(ctx, row, s); err != nil {
		return errors.Join(err, x.cfg.Forget(context.WithoutCancel(ctx), row.Session))
	}
	row.State, row.Workdir = "imported", s.Workdir
	return nil
}

// Code is that of the note that ends an import. Without it a crash has cut it short.
const Code = "imported"

// imported reports whether a session was imported to its end. What is left of one
// that was not is removed.
func (x *Extension) imported(ctx context.Context, id string) (bool, error) {
	there := false
	for e, err := range x.cfg.Store().Read(ctx, id, 0) {
		if errors.Is(err, journal.ErrMissing) {
			return false, nil
		}
		if err != nil {
			return true, nil //nolint:nilerr // it is there, and damaged: it is not ours to replace
		}
		there = true
		if n, ok := e.Body.(agent.Note); ok && n.Code == Code {
			return true, nil
		}
	}
	if there {
		x.cfg.Logger.Warn("removing an import that was cut short", "session", id)
	}
	return false, x.cfg.Forget(ctx, id)
}

// store writes the log of a session that was held elsewhere.
func (x *Extension) store(ctx context.Context, row *query.ImportedSession, s others.Session) (err error) {
	opened := x.cfg.Opened()
	opened.Session, opened.Workdir = row.Session, s.Workdir
	opened.Origin = &agent.Origin{Source: row.Source, ID: row.ID, At: time.Now().UTC().Truncate(time.Millisecond)}
	events := others.Events(s, opened)
	said := fmt.Sprintf("imported from %s: %d messages", row.Source, row.Messages)
	if n := len(s.Warnings); n > 0 {
		said += fmt.Sprintf("; %d things were left out or mended:\n%s", n, strings.Join(row.Warnings, "\n"))
	}
	events = append(events, agent.Event{Time: events[len(events)-1].Time, Body: agent.Note{Level: "info", Code: Code, Text: said}})
	meta := journal.Meta{SessionInfo: agent.SessionInfo{ID: row.Session, Workdir: s.Workdir}}
	if at := events[0].Time; !at.IsZero() {
		meta.Created = at.UTC().Format(time.RFC3339Nano)
	}
	if err := x.cfg.Store().Create(ctx, meta); err != nil {
		return err
	}
	lease, err := x.cfg.Store().Acquire(ctx, row.Session, journal.Owner{ID: fmt.Sprintf("%s/%d", opened.Host, opened.PID)})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, lease.Release(context.WithoutCancel(ctx), journal.Parked, journal.Meta{}))
	}()
	for part := range slices.Chunk(events, importBatch) {
		if _, err := lease.Append(ctx, journal.Batch{Events: part, Sync: journal.Barrier, Seal: true}); err != nil {
			return err
		}
	}
	return nil
}

// places are where to look. Those of the user that do not exist are left out.
func (x *Extension) places(q query.ImportSessions) ([]place, error) {
	from, ok := sourceNames[q.From]
	if q.From != "" && q.From != "auto" && !ok {
		return nil, problem(q.From, errors.New("no such product: claude, codex, opencode or jsonl"))
	}
	tool := func(name string) string {
		known, _ := x.cfg.Canonical(name)
		return known
	}
	if q.Path != "" {
		return placesAt(filepath.Clean(q.Path), from, tool)
	}
	getenv, home := x.cfg.Getenv, x.cfg.Home
	var all []place
	for _, dir := range []struct {
		source others.Source
		path   string
	}{
		{others.ClaudeCode, filepath.Join(cmp.Or(getenv("CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude")), "projects")},
		{others.Codex, filepath.Join(cmp.Or(getenv("CODEX_HOME"), filepath.Join(home, ".codex")), "sessions")},
		{others.OpenCode, filepath.Join(cmp.Or(getenv("XDG_DATA_HOME"), filepath.Join(home, ".local", "share")), "opencode", "storage")},
	} {
		if from != "" && from != dir.source || !filepath.IsAbs(dir.path) {
			continue
		}
		c := others.Config{Source: dir.source, Tool: tool}
		if dir.source == others.OpenCode {
			c.Database = databaseAt(dir.path)
		}
		root, err := os.OpenRoot(dir.path)
		if err != nil && c.Database != "" {
			dir.path = filepath.Dir(c.Database) // newer versions have no files
			root, err = os.OpenRoot(dir.path)
		}
		if err != nil {
			continue // the user has none
		}
		c.FS = root.FS()
		all = append(all, place{Config: c, dir: dir.path, root: root, usual: true})
	}
	return all, nil
}

// databaseAt returns OpenCode's database in its folder, or beside the folder of its
// files; "" when there is none.
func databaseAt(dir string) string {
	const name = "opencode.db"
	for _, path := range []string{filepath.Join(dir, name), filepath.Join(filepath.Dir(dir), name)} {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// placesAt are a file or a folder that the user has named.
func placesAt(path string, from others.Source, tool func(string) string) ([]place, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, problem(path, err)
	}
	if !info.IsDir() {
		return fileAt(path, from, tool)
	}
	for _, sub := range []string{"", "sessions", "storage", "projects"} {
		root, err := os.OpenRoot(filepath.Join(path, sub))
		if err != nil {
			continue
		}
		for _, source := range []others.Source{others.Codex, others.OpenCode, others.ClaudeCode} {
			c := others.Config{Source: source, FS: root.FS(), Tool: tool}
			if source == others.OpenCode {
				c.Database = databaseAt(filepath.Join(path, sub))
			}
			if from != "" && from != source {
				continue
			}
			if found, err := c.Discover(); err == nil && len(found) > 0 {
				return []place{{Config: c, dir: filepath.Join(path, sub), root: root, usual: true}}, nil
			}
		}
		_ = root.Close() // only read
	}
	return nil, problem(path, errors.New("it holds no sessions that can be read"))
}

func fileAt(path string, from others.Source, tool func(string) string) ([]place, error) {
	path, err := filepath.EvalSymlinks(path) // the user has named the link
	if err != nil {
		return nil, problem(path, err)
	}
	dir, name := filepath.Split(path)
	root, err := os.OpenRoot(cmp.Or(dir, "."))
	if err != nil {
		return nil, problem(path, err)
	}
	if name == filepath.Base(databaseAt(dir)) && (from == "" || from == others.OpenCode) {
		return []place{{Config: others.Config{Source: others.OpenCode, FS: root.FS(), Tool: tool, Database: path}, dir: dir, root: root, usual: true}}, nil
	}
	if from == "" {
		if from, err = sniff(root, name); err == nil && from == "" {
			err = errors.New("whose session it is cannot be told; --from says it: claude, codex, opencode or jsonl")
		}
		if err != nil {
			return nil, errors.Join(problem(path, err), root.Close())
		}
	}
	return []place{{Config: others.Config{Source: from, FS: root.FS(), Tool: tool}, dir: dir, root: root, file: name}}, nil
}

func sniff(root *os.Root, name string) (others.Source, error) {
	f, err := workspace.OpenRegular(root, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	head, err := io.ReadAll(io.LimitReader(f, headBytes))
	return others.Sniff(head), err
}

func problem(path string, err error) error {
	return &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("%s: %v", path, workspace.Cause(err)), Err: err,
		Fix: "see what there is with: dure import",
	}
}
