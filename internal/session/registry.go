package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/journal"
	"dure/internal/transcript"
)

// Registry holds the sessions that run in this process and opens others. It is
// the in-process [client.Transport]. It is safe for concurrent use; each open
// session has one goroutine, which Shutdown waits for.
type Registry struct {
	cfg Config
	wg  sync.WaitGroup

	mu     sync.Mutex
	open   map[string]*Session
	closed bool
}

// New returns a registry without open sessions.
func New(cfg Config) *Registry {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Lanes == nil {
		cfg.Lanes = NewLanes(nil)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Registry{cfg: cfg, open: map[string]*Session{}}
}

var _ client.Transport = (*Registry)(nil)

// Open opens a session and runs it.
func (r *Registry) Open(ctx context.Context, o agent.Open) (agent.SessionInfo, error) {
	s, err := r.openSession(ctx, o, nil, nil)
	if err != nil {
		return agent.SessionInfo{}, problem(err, o.Session)
	}
	return s.Info(), nil
}

// openChild opens the session that serves a call of parent and hands it its
// prompt.
func (r *Registry) openChild(ctx context.Context, parent *Session, id string, c agent.Child) (*Session, error) {
	o := agent.Open{New: id, Workdir: parent.parts.Workdir, Model: c.Model, Mode: parent.currentMode(), Title: c.Title, MaxSteps: c.MaxSteps}
	if o.Model == "" {
		parent.rec.read(func(st *transcript.State) { o.Model = st.Model })
	}
	child, err := r.openSession(ctx, o, parent, &c)
	if errors.Is(err, journal.ErrExists) {
		o.New, o.Session, o.Model = "", id, c.Model
		child, err = r.openSession(ctx, o, parent, &c)
	}
	if err != nil {
		return nil, err
	}
	if info := child.Info(); info.Status == "interrupted" {
		err = child.Send(ctx, agent.Continue{})
	} else {
		err = child.Send(ctx, agent.Prompt{ID: c.Key, Text: c.Prompt})
	}
	if err != nil {
		child.stop()
		<-child.done
		return nil, err
	}
	return child, nil
}

// opening is a session on its way to being open.
type opening struct {
	*Session
	agent.Open
	parent *Session
	child  *agent.Child
}

// openSession builds the parts of a new session before anything of it is
// stored, so that a wrong model or a missing key leaves nothing behind.
func (r *Registry) openSession(ctx context.Context, o agent.Open, parent *Session, c *agent.Child) (*Session, error) {
	n := &opening{newSession(r, o.Session, o.Approver), o, parent, c}
	if n.Open.Session == "" {
		if n.id = o.New; n.id == "" {
			n.id = journal.NewID(r.cfg.Now())
		}
		if err := n.build(ctx, transcript.New()); err != nil {
			return nil, err
		}
		if err := r.cfg.Store.Create(ctx, n.meta()); err != nil {
			n.close()
			return nil, err
		}
	}
	lease, err := r.cfg.Store.Acquire(ctx, n.id, journal.Owner{ID: fmt.Sprintf("%s/%d", r.cfg.Host, r.cfg.PID)})
	if err != nil {
		n.close()
		return nil, err
	}
	if err = n.begin(ctx, lease); err == nil {
		err = r.add(n.Session)
	}
	if err != nil {
		n.close()
		return nil, errors.Join(err, lease.Release(ctx, journal.Parked, lease.Session()))
	}
	return n.Session, nil
}

func (n *opening) meta() journal.Meta {
	m := journal.Meta{SessionInfo: agent.SessionInfo{ID: n.id, Workdir: n.parts.Workdir, Title: n.Title, Model: n.Model}}
	if n.parent != nil {
		m.Parent = n.parent.id
	}
	return m
}

func (n *opening) close() {
	if n.parts.Close != nil {
		n.parts.Close()
	}
}

// build makes the parts. It checks the model, so that the first prompt does not
// fail for a reason that is known now.
func (n *opening) build(ctx context.Context, st *transcript.State) (err error) {
	s := n.Session
	n.parts, err = n.reg.cfg.Build(ctx, Build{
		Session: n.id, Open: n.Open, Stored: stored(st), Child: n.child,
		Files: slices.Collect(maps.Values(st.Files)), Past: slices.Clip(st.Messages), Reach: s.reach(),
		PutBlob: func(ctx context.Context, r io.Reader, limit int64) (string, int64, error) {
			return s.rec.lease.PutBlob(ctx, r, limit)
		},
	})
	if err != nil {
		return err
	}
	n.limits = n.parts.Limits
	if n.MaxSteps > 0 {
		n.limits.Steps, n.limits.Closing = n.MaxSteps, false
	}
	if n.parent != nil {
		n.via = or(n.parent.via, n.id)
		n.front, n.approver, n.parts.Lane = n.parent.front, n.parent.approver, LaneSubagent
	}
	model, err := n.parts.Model(n.Model)
	if err != nil {
		n.close()
		return err
	}
	n.Model = model.Info().ID
	return nil
}

// stored is the session's row in the list, zero for a new one.
func stored(st *transcript.State) agent.SessionInfo {
	if st.Head == 0 {
		return agent.SessionInfo{}
	}
	return st.Info()
}

// begin opens an epoch in the log of the lease.
func (n *opening) begin(ctx context.Context, lease journal.Lease) (err error) {
	if n.rec, err = openRecord(ctx, lease, n.reg.cfg.Now); err != nil {
		return err
	}
	if n.Open.Session != "" {
		st := n.rec.state // nobody else has it yet
		n.Workdir = or(n.Workdir, st.First.Workdir)
		n.Model = or(n.Model, st.Model)
		n.Mode = or(n.Mode, resumable(st.Mode))
		if err := n.build(ctx, st); err != nil {
			return err
		}
	}
	n.rec.window, n.mode = n.window, n.Mode
	opened := agent.SessionOpened{
		Session: n.id, Workdir: n.parts.Workdir, Agent: n.parts.Agent, Title: n.Title,
		Model: n.Model, Mode: n.Mode, Dialect: n.parts.Dialect, Lane: n.lane(),
		Version: n.reg.cfg.Version, Host: n.reg.cfg.Host, PID: n.reg.cfg.PID, Config: n.parts.Config,
	}
	if n.parent != nil {
		opened.Parent, opened.Call = n.parent.id, n.child.Key
	}
	bodies := []agent.Body{opened}
	if rep := lease.Repaired(); rep != nil {
		bodies = append(bodies, *rep)
	}
	if err := n.rec.store(false, bodies...); err != nil {
		return err
	}
	n.restore()
	return nil
}

// restore gives the parts what the log remembers.
func (s *Session) restore() {
	st := s.rec.state
	s.opened = st.Head
	s.system = s.parts.System(st.Created)
	if s.parts.Grant != nil {
		for _, g := range st.Grants {
			s.parts.Grant(g)
		}
	}
}

// resumable is the mode that a resumed session starts with: the ones that stand
// for a decision of the moment are not taken over.
func resumable(m agent.Mode) agent.Mode {
	if m == agent.ModeBypass || m == agent.ModePlan {
		return ""
	}
	return m
}

// window returns the context window of a model, or 0.
func (s *Session) window(name string) int {
	m, err := s.parts.Model(name)
	if err != nil {
		return 0
	}
	return m.Info().Window
}

// add starts the owner goroutine.
func (r *Registry) add(s *Session) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return journal.ErrClosed
	}
	r.open[s.id] = s
	r.wg.Go(func() {
		s.run()
		if s.err != nil {
			r.cfg.Logger.Error("session ended", "session", s.id, "error", s.err)
		}
	})
	return nil
}

// remove forgets a session that has given up its log; another one with the same
// ID may be open already.
func (r *Registry) remove(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[s.id] == s {
		delete(r.open, s.id)
	}
}

func (r *Registry) get(id string) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open[id]
}

// Send hands a command to a session: directly when it runs here, else through
// its inbox, where its owner, now or later, finds it.
func (r *Registry) Send(ctx context.Context, id string, c agent.Command) error {
	if s := r.get(id); s != nil {
		return problem(s.Send(ctx, c), id)
	}
	body, err := agent.EncodeCommand(c)
	if err != nil {
		return err
	}
	msg := journal.Msg{ID: newID("msg_"), Kind: c.Command(), Body: body}
	if p, ok := c.(agent.Prompt); ok && p.ID != "" {
		msg.ID = p.ID
	}
	return problem(r.cfg.Store.Post(ctx, id, LaneMain, msg), id)
}

// Events yields what is stored after seq and, when the session runs here, what
// follows.
func (r *Registry) Events(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	events := r.cfg.Store.Read
	if s := r.get(id); s != nil {
		events = func(ctx context.Context, _ string, after int64) iter.Seq2[agent.Event, error] {
			return s.rec.follow(ctx, after)
		}
	}
	return func(yield func(agent.Event, error) bool) {
		for e, err := range events(ctx, id, after) {
			if !yield(e, problem(err, id)) {
				return
			}
		}
	}
}

// Query answers what concerns sessions itself.
func (r *Registry) Query(ctx context.Context, q agent.Query) (any, error) {
	switch q := q.(type) {
	case agent.ListSessions:
		return r.list(ctx, journal.Query{Workdir: q.Workdir, Limit: q.Limit})
	case agent.FindSession:
		return r.find(ctx, q)
	case agent.VerifySeals:
		report, err := r.cfg.Store.Verify(ctx, q.Session)
		return report, problem(err, q.Session)
	}
	if r.cfg.Query == nil {
		return nil, fmt.Errorf("query %q: nobody answers it", q.Query())
	}
	return r.cfg.Query(ctx, q)
}

func (r *Registry) list(ctx context.Context, q journal.Query) ([]agent.SessionInfo, error) {
	infos := []agent.SessionInfo{}
	for m, err := range r.cfg.Store.List(ctx, q) {
		if err != nil {
			return nil, problem(err, "")
		}
		info := m.SessionInfo
		if s := r.get(info.ID); s != nil {
			info = s.Info()
			info.Status = "running"
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// find returns the one session that a user means by a name.
func (r *Registry) find(ctx context.Context, q agent.FindSession) (agent.SessionInfo, error) {
	infos, err := r.list(ctx, journal.Query{})
	if err != nil {
		return agent.SessionInfo{}, err
	}
	var found []agent.SessionInfo
	for _, info := range infos {
		switch {
		case q.Name == "":
			if info.Parent == "" && (q.Workdir == "" || info.Workdir == q.Workdir) {
				return info, nil
			}
		case info.ID == q.Name || info.Title == q.Name:
			return info, nil
		case strings.HasPrefix(info.ID, q.Name):
			found = append(found, info)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if q.Name == "" {
			return agent.SessionInfo{}, &agent.Problem{
				Code: agent.ProblemNone, Message: "there is no session in " + q.Workdir + " yet", Err: journal.ErrMissing,
				Fix:  "start one with: dure \"your task\"; those of other folders are listed by: dure sessions",
				Args: map[string]string{"workdir": q.Workdir},
			}
		}
		return agent.SessionInfo{}, problem(journal.ErrMissing, q.Name)
	}
	var ids []string
	for _, f := range found[:min(len(found), 5)] {
		ids = append(ids, f.ID)
	}
	return agent.SessionInfo{}, &agent.Problem{
		Code:    agent.ProblemUnclear,
		Message: fmt.Sprintf("%d sessions begin with %q: %s", len(found), q.Name, strings.Join(ids, ", ")),
		Fix:     "give more of the ID", Args: map[string]string{"session": q.Name, "matches": strings.Join(ids, ", ")},
	}
}

// Close ends a session that runs here.
func (r *Registry) Close(ctx context.Context, id string) error {
	s := r.get(id)
	if s == nil {
		return nil
	}
	s.stop()
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Shutdown ends all sessions and waits for them.
func (r *Registry) Shutdown() {
	r.mu.Lock()
	r.closed = true
	for _, s := range r.open {
		s.stop()
	}
	r.mu.Unlock()
	r.wg.Wait()
	r.cfg.Lanes.Close()
}

func or[T ~string](a, b T) T {
	if a != "" {
		return a
	}
	return b
}

// problem turns the errors of the store into what a person can act on.
func problem(err error, id string) error {
	if err == nil || agent.ProblemOf(err) != nil {
		return err
	}
	p := &agent.Problem{Err: err, Message: err.Error(), Args: map[string]string{"session": id, "error": err.Error()}}
	switch owned, _ := errors.AsType[*journal.OwnedError](err); {
	case owned != nil:
		p.Code, p.Fix = agent.ProblemOwned, "close it there, or wait until that process has ended"
		p.Args["pid"], p.Args["host"] = fmt.Sprint(owned.PID), owned.Host
	case errors.Is(err, journal.ErrMissing):
		p.Code, p.Message = agent.ProblemMissing, fmt.Sprintf("there is no session %q", id)
		p.Fix = "see the list with: dure sessions"
	case errors.Is(err, journal.ErrDamaged):
		p.Code, p.Fix = agent.ProblemDamaged, "see what is wrong with: dure verify "+id
	case errors.Is(err, syscall.ENOSPC):
		p.Code, p.Fix = agent.ProblemDisk, "make room, then go on with: dure --resume "+id
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		p.Code, p.Fix = agent.ProblemHome, "make the folder writable, or name another one in DURE_HOME"
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			p.Args["path"] = pe.Path
		}
	default:
		return err
	}
	return p
}
