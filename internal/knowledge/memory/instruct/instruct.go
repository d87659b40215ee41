// Package instruct gives sessions what instruction files say and what agents have noted in
// earlier sessions, and has a person read and change both. It is the memory's part in a
// session: the files are packages memory and notes. It starts no goroutines.
package instruct

import (
	"context"
	"sync"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/memory"
)

// Config says which files there are. All functions are required.
type Config struct {
	// Files are the instruction files of any folder: without Root, Cwd, Trusted and Secret.
	Files memory.Config

	Off     bool   // no instruction files are read
	Where   string // the setting that says so is set
	Home    string // the user's folder of the program, with notes for all projects
	Workdir string // the folder of queries that name none

	// Main returns the folder that a work tree was made from, and other folders as they are.
	Main func(dir string) string

	// Hidden reports whether deny rules keep a file from being read in a session, by its
	// absolute path.
	Hidden func(session, path string) bool

	// Project returns the root of the project that a folder belongs to, and whether what it
	// brings may be read.
	Project func(dir string) (root string, trusted bool)

	// Top returns the root of the repository that a folder is in; "" = it is in none.
	Top func(dir string) string

	// Redact masks the secrets in a text, and takes out what a person does not see. Clean does
	// so with what is written for later sessions.
	Redact, Clean func(text string) string

	// Explain says what a finding means, in English; "" = as it says itself.
	Explain func(query.Finding) (detail, fix string)

	// Draft surveys the working folder and returns what first instructions of it would be, and
	// There says that a file has some.
	Draft func(context.Context) (query.ProjectInit, error)
	There func(path string) error
}

// Extension has the instructions and notes of all sessions. It is safe for concurrent use.
type Extension struct {
	cfg Config

	mu   sync.Mutex
	open map[string]*instructions // of the sessions that are open, by ID
}

// New returns the extension. Nothing is read yet.
func New(cfg Config) *Extension {
	return &Extension{cfg: cfg, open: map[string]*instructions{}}
}

// Name returns the name of the extension.
func (x *Extension) Name() string { return "memory" }

// Attach gives a session what it should remember.
func (x *Extension) Attach(_ context.Context, s *plug.Session) (plug.Points, error) {
	dir := x.cfg.Main(s.Workdir)
	known := x.instructions(dir, func(path string) bool { return x.cfg.Hidden(s.ID, path) })
	known.off = known.off || s.Child != nil && s.Child.Bare
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open[s.ID] = known
	files, notes := x.redacted(known.extra), x.redacted(x.Notebook(dir, s.Agent).extra)
	return plug.Points{
		Extra: func(ctx context.Context, at plug.Moment) []agent.ContextAdded {
			return append(files(ctx, at), notes(ctx, at)...)
		},
		Close: func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			delete(x.open, s.ID)
		},
	}, nil
}

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{
		plug.Storeless(x.list), plug.Storeless(x.makeFile), plug.Storeless(x.add), plug.Storeless(x.undo),
		plug.Storeless(x.listNotes), plug.Storeless(x.deleteNotes), plug.Storeless(x.begin),
	}
}

// redacted masks the secrets in what files say that nobody has asked for, and takes out what
// a person who looks at them would not see. A text that has not changed is looked at once.
func (x *Extension) redacted(source func(context.Context, plug.Moment) []agent.ContextAdded) func(context.Context, plug.Moment) []agent.ContextAdded {
	type text struct{ raw, clean string }
	var mu sync.Mutex
	known := map[string]text{} // by source and key; guarded by mu
	return func(ctx context.Context, at plug.Moment) []agent.ContextAdded {
		all := source(ctx, at)
		mu.Lock()
		defer mu.Unlock()
		for i, c := range all {
			key := c.Source + "\x00" + c.Key
			if was, ok := known[key]; !ok || was.raw != c.Text {
				known[key] = text{c.Text, x.cfg.Redact(c.Text)}
			}
			all[i].Text = known[key].clean
		}
		return all
	}
}
