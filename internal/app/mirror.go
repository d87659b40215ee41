package app

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/kernel/plug"
	"dure/internal/safety/workspace"
	"dure/internal/state/archive/mirror"
	"dure/internal/state/transcript"
	"dure/internal/tools/catalog"
)

// projects is the folder where programs for agent sessions look for conversations, and the
// name of the folder in it, if that is set.
func (a *App) projects() (dir, name string) {
	getenv := getenv(a.opts.Environ)
	if dir = getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		name = getenv("CLAUDE_CODE_PROJECT_DIR_NAME")
		if filepath.Base(name) != name || name == "." || name == ".." || len(name) > 64 {
			name = ""
		}
	}
	return filepath.Join(cmp.Or(dir, filepath.Join(a.opts.UserHome, ".claude")), "projects"), name
}

// mirrors reports whether the sessions of this program are written where programs for agent
// sessions look for them.
func (a *App) mirrors() bool {
	on := a.cfg.Mirror == config.MirrorAll || a.cfg.Mirror == config.MirrorSDK && a.opts.Flags.Hosted
	return on && !a.opts.Flags.Scratch
}

// mirrorRoot is where the file of a session is that a person has: those of its agents are
// beside it, wherever they work.
type mirrorRoot struct {
	Session string `json:"session"`
	Folder  string `json:"folder"`
}

// mirrored has a session written there as it goes on, from when it is opened until it is
// closed. What cannot be written is logged, and stays unwritten: the log has it.
func (a *App) mirrored(b plug.Session, workdir string) plug.Points {
	if !a.mirrors() || b.Open.Modelless() {
		return plug.Points{}
	}
	dir, name := a.projects()
	real, err := filepath.EvalSymlinks(workdir)
	if err != nil {
		real = workdir
	}
	root := mirrorRoot{b.ID, cmp.Or(name, mirror.Folder(real))}
	if b.Parent != "" {
		root = a.topOf(b.Parent)
	}
	if !transcript.IsUUID(root.Session) || !filepath.IsAbs(dir) {
		return plug.Points{}
	}
	w := &mirroring{app: a, b: b}
	w.c = mirror.Config{
		Projects: dir, Folder: root.Folder, Session: root.Session, Workdir: real, Branch: workspace.Branch(real), Version: a.opts.Version,
		Shown: catalog.Claude.Name,
	}
	if b.Parent != "" {
		w.c.Agent = b.ID
		if b.Child != nil {
			w.c.Kind, w.c.About = b.Child.Agent, b.Child.Title
		}
	} else if o := b.Stored.Origin; o != nil && o.ID == b.ID {
		w.c.Adopted, w.c.Log = imported, strconv.FormatInt(o.At.UnixMilli(), 36)
	}
	a.setRoot(b.ID, root)
	return plug.Points{
		Hooks: plug.Hooks{Opened: func(ctx context.Context, _ string) (words, by string) {
			w.once.Do(func() { w.begin(ctx) })
			return "", ""
		}},
		Close: func() {
			w.end()
			a.setRoot(b.ID, mirrorRoot{})
		},
	}
}

// topOf is the session that a person has of those that work for each other; the zero value
// = it is not mirrored.
func (a *App) topOf(id string) mirrorRoot {
	if a.upper.works(id) {
		return a.upper.job.Mirror
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.roots[id]
}

func (a *App) setRoot(id string, root mirrorRoot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if root.Session == "" {
		delete(a.roots, id)
		return
	}
	if a.roots == nil {
		a.roots = map[string]mirrorRoot{}
	}
	a.roots[id] = root
}

// mirroring writes one session. A goroutine does, until end is called; then what is left.
type mirroring struct {
	app  *App
	b    plug.Session
	c    mirror.Config
	once sync.Once

	m    *mirror.Mirror // of the goroutine, until over is closed
	at   int64          // the newest event that was applied
	err  error
	stop context.CancelFunc
	over chan struct{} // nil = it did not begin

	wake    sync.Mutex
	reached int64         // what at was; guarded by wake
	still   bool          // nothing follows; guarded by wake
	moved   chan struct{} // closed with the next change of these; guarded by wake
}

// begin opens the file, takes in what others have said in it, and follows the session.
func (w *mirroring) begin(ctx context.Context) {
	w.c.Wrote = w.app.wrote(w.c)
	m, err := mirror.Open(w.c)
	if err != nil {
		w.wrong(err)
		return
	}
	w.m, w.at, w.over = m, m.After(), make(chan struct{})
	w.adopt(ctx)
	var life context.Context
	life, w.stop = context.WithCancel(context.Background())
	w.app.setMirroring(w.b.ID, w)
	go func() {
		defer close(w.over)
		for e, err := range w.b.Follow(life, w.at) {
			if err != nil || !w.apply(e) {
				return
			}
		}
	}()
}

// adopt takes over what others have said in the file: a title, and a tag in the place of the
// one that they know.
func (w *mirroring) adopt(ctx context.Context) {
	said := w.m.Others()
	if w.b.Parent != "" || said == (mirror.Others{}) {
		return
	}
	found, err := w.app.reg.Query(ctx, agent.FindSession{Name: w.b.ID})
	now, ok := found.(agent.SessionInfo)
	if err != nil || !ok {
		w.app.opts.Logger.Warn("taking a title over", "session", w.b.ID, "error", err)
		return
	}
	change := agent.SettingsChanged{By: "user"}
	if said.Title != now.Title {
		change.Title = said.Title
	}
	if said.Tag != nil {
		if tags := transcript.Retag(now.Tags, *said.Tag); !slices.Equal(tags, now.Tags) {
			change.Tags = &tags
		}
	}
	if change.Title == "" && change.Tags == nil {
		return
	}
	if err := w.b.Record(change); err != nil {
		w.app.opts.Logger.Warn("taking a title over", "session", w.b.ID, "error", err)
	}
}

func (w *mirroring) apply(e agent.Event) bool {
	if e.Live() {
		return true
	}
	w.at = e.Seq
	if err := w.m.Apply(e); err != nil {
		w.err = err
		w.wrong(err)
		w.reach(e.Seq, true)
		return false
	}
	w.reach(e.Seq, false)
	return true
}

// wrong says that nothing more of the session is written.
func (w *mirroring) wrong(err error) {
	w.app.opts.Logger.Warn("mirroring a session", "session", w.b.ID, "error", err)
	w.app.mirroredOf(w.c, nil, err)
}

// end writes what is left, and closes the file.
func (w *mirroring) end() {
	if w.over == nil {
		return
	}
	w.stop()
	<-w.over
	if w.err == nil {
		for e, err := range w.b.Events(context.Background(), w.at) {
			if err != nil || !w.apply(e) {
				break
			}
		}
	}
	w.reach(w.at, true)
	w.app.setMirroring(w.b.ID, nil)
	if err := w.m.Close(); err != nil {
		w.app.opts.Logger.Warn("closing the mirror of a session", "session", w.b.ID, "error", err)
	}
}

// AdoptTranscript makes a session of ours, of the same ID, of one that exists only where
// programs for agent sessions keep them: a fork that one of them has made. It reports
// whether there is one, in the folder of the working folder or in any other.
func (a *App) AdoptTranscript(ctx context.Context, id string) (bool, error) {
	if !transcript.IsUUID(id) {
		return false, nil
	}
	if _, err := a.open(); err != nil {
		return false, err
	}
	dir, name := a.projects()
	real, err := filepath.EvalSymlinks(a.opts.Workdir)
	if err != nil {
		real = a.opts.Workdir
	}
	paths := []string{filepath.Join(dir, cmp.Or(name, mirror.Folder(real)), id+".jsonl")}
	if others, err := filepath.Glob(filepath.Join(dir, "*", id+".jsonl")); err == nil {
		paths = append(paths, others...)
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		row, err := a.adopt(ctx, path, id)
		if err != nil {
			return false, err
		}
		return row.Session == id, nil
	}
	return false, nil
}

// adopt imports a transcript under the ID that it has.
func (a *App) adopt(ctx context.Context, path, id string) (row query.ImportedSession, err error) {
	places, err := a.places(query.ImportSessions{From: "claude", Path: path})
	if err != nil {
		return row, err
	}
	for _, p := range places {
		defer p.root.Close()
		p.as, p.usual = id, true
		l, err := p.Open(p.file)
		if err != nil {
			return row, importProblem(path, err)
		}
		l.ID = id
		row.Session = id
		if err := a.importOne(ctx, p, l.Listed, false, &row); err != nil {
			return row, importProblem(path, err)
		}
	}
	return row, nil
}
