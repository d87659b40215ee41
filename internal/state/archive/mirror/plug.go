package mirror

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/safety/workspace"
	"dure/internal/state/transcript"
)

// Settings say what the extension writes, and where.
type Settings struct {
	Off      bool
	Projects string // the folder in which programs that use the Agent SDK look for conversations
	Name     string // of the folder in it; "" = as the working folder has it
	Version  string
	Shown    func(tool string) string // what those programs call a tool
	Adopted  string                   // says of a session that it was taken over from one of them
	Logger   *slog.Logger

	// Above returns where the file of a session is that another process has open; ok is false
	// for all others.
	Above func(id string) (at Root, ok bool)

	// Find returns a session's row in the list.
	Find func(ctx context.Context, id string) (agent.SessionInfo, error)

	// Hears reports whether somebody wants to know what is added to files, which Told hears,
	// or why nothing more will be.
	Hears func() bool
	Told  func(c Config, lines []byte, err error)
}

// Root is where the file of a session is that a person has: those of its agents are beside it,
// wherever they work.
type Root struct {
	Session string `json:"session"`
	Folder  string `json:"folder"`
}

// Extension has sessions written as they go on, from when they are opened until they are
// closed. What cannot be written is logged, and stays unwritten: the log has it. Each session
// has one goroutine, which closing it ends. It is safe for concurrent use.
type Extension struct {
	cfg Settings

	mu        sync.Mutex
	roots     map[string]Root       // of open sessions, by ID
	following map[string]*following // who writes them, by ID
}

// Extend returns the extension.
func Extend(s Settings) *Extension {
	return &Extension{cfg: s, roots: map[string]Root{}, following: map[string]*following{}}
}

// Name returns the name of the extension.
func (x *Extension) Name() string { return "mirror" }

// Attach has a session written.
func (x *Extension) Attach(_ context.Context, s *plug.Session) (plug.Points, error) {
	if x.cfg.Off || s.Open.Modelless() {
		return plug.Points{}, nil
	}
	real, err := filepath.EvalSymlinks(s.Root)
	if err != nil {
		real = s.Root
	}
	root := Root{s.ID, cmp.Or(x.cfg.Name, Folder(real))}
	if s.Parent != "" {
		root = x.Root(s.Parent)
	}
	if !transcript.IsUUID(root.Session) || !filepath.IsAbs(x.cfg.Projects) {
		return plug.Points{}, nil
	}
	w := &following{x: x, b: *s}
	w.c = Config{
		Projects: x.cfg.Projects, Folder: root.Folder, Session: root.Session, Workdir: real, Branch: workspace.Branch(real), Version: x.cfg.Version,
		Shown: x.cfg.Shown,
	}
	if s.Parent != "" {
		w.c.Agent = s.ID
		if s.Child != nil {
			w.c.Kind, w.c.About = s.Child.Agent, s.Child.Title
		}
	} else if o := s.Stored.Origin; o != nil && o.ID == s.ID {
		w.c.Adopted, w.c.Log = x.cfg.Adopted, strconv.FormatInt(o.At.UnixMilli(), 36)
	}
	x.mu.Lock()
	x.roots[s.ID] = root
	x.mu.Unlock()
	return plug.Points{
		Hooks: plug.Hooks{Opened: func(ctx context.Context, _ string) (words, by string) {
			w.once.Do(func() { w.begin(ctx) })
			return "", ""
		}},
		Close: func() {
			w.end()
			x.mu.Lock()
			defer x.mu.Unlock()
			delete(x.roots, s.ID)
		},
	}, nil
}

// Root returns where the file is of the session that a person has of those that work for each
// other; the zero value = it is not written.
func (x *Extension) Root(id string) Root {
	if at, ok := x.cfg.Above(id); ok {
		return at
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.roots[id]
}

// Apart tells what the process of an agent has written, whose session works for parent.
func (x *Extension) Apart(parent, id string, lines []byte, err error) {
	root := x.Root(parent)
	if root.Session == "" || id == "" || !x.cfg.Hears() {
		return
	}
	x.cfg.Told(Config{Projects: x.cfg.Projects, Folder: root.Folder, Session: root.Session, Agent: id}, lines, err)
}

// follow notes who writes a session; nil = nobody does any more.
func (x *Extension) follow(id string, w *following) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if w == nil {
		delete(x.following, id)
		return
	}
	x.following[id] = w
}

// Wait returns once an event of a session has been written, or will not be, or ctx is done.
func (x *Extension) Wait(ctx context.Context, session string, seq int64) {
	x.mu.Lock()
	w := x.following[session]
	x.mu.Unlock()
	for w != nil {
		reached, moved := w.where()
		if reached >= seq || moved == nil {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// following writes one session. A goroutine does, until end is called; then what is left.
type following struct {
	x    *Extension
	b    plug.Session
	c    Config
	once sync.Once

	m    *Mirror // of the goroutine, until over is closed
	at   int64   // the newest event that was applied
	err  error
	stop context.CancelFunc
	over chan struct{} // nil = it did not begin

	wake    sync.Mutex
	reached int64         // what at was; guarded by wake
	still   bool          // nothing follows; guarded by wake
	moved   chan struct{} // closed with the next change of these; guarded by wake
}

// begin opens the file, takes in what others have said in it, and follows the session.
func (w *following) begin(ctx context.Context) {
	if w.x.cfg.Hears() {
		w.c.Wrote = func(lines []byte) { w.x.cfg.Told(w.c, lines, nil) }
	}
	m, err := Open(w.c)
	if err != nil {
		w.wrong(err)
		return
	}
	w.m, w.at, w.over = m, m.After(), make(chan struct{})
	w.adopt(ctx)
	var life context.Context
	life, w.stop = context.WithCancel(context.Background())
	w.x.follow(w.b.ID, w)
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
func (w *following) adopt(ctx context.Context) {
	said := w.m.Others()
	if w.b.Parent != "" || said == (Others{}) {
		return
	}
	now, err := w.x.cfg.Find(ctx, w.b.ID)
	if err != nil {
		w.x.cfg.Logger.Warn("taking a title over", "session", w.b.ID, "error", err)
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
		w.x.cfg.Logger.Warn("taking a title over", "session", w.b.ID, "error", err)
	}
}

func (w *following) apply(e agent.Event) bool {
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
func (w *following) wrong(err error) {
	w.x.cfg.Logger.Warn("following a session", "session", w.b.ID, "error", err)
	if w.x.cfg.Hears() {
		w.x.cfg.Told(w.c, nil, err)
	}
}

// end writes what is left, and closes the file.
func (w *following) end() {
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
	w.x.follow(w.b.ID, nil)
	if err := w.m.Close(); err != nil {
		w.x.cfg.Logger.Warn("closing the mirror of a session", "session", w.b.ID, "error", err)
	}
}

// reach says how far the session was written, and whether more will be.
func (w *following) reach(seq int64, last bool) {
	w.wake.Lock()
	defer w.wake.Unlock()
	w.reached, w.still = max(w.reached, seq), w.still || last
	if w.moved != nil {
		close(w.moved)
		w.moved = nil
	}
}

// where is how far the session was written, and what is closed once it is further; nil = it
// never will be.
func (w *following) where() (int64, <-chan struct{}) {
	w.wake.Lock()
	defer w.wake.Unlock()
	if w.still {
		return w.reached, nil
	}
	if w.moved == nil {
		w.moved = make(chan struct{})
	}
	return w.reached, w.moved
}
