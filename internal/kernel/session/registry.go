package session

import (
	"context"
	"errors"
	"fmt"
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
	"dure/internal/kernel/plug"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
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
	if o.Ready {
		err = s.awaitBegun(ctx)
	}
	return s.Info(), err
}

// openChild opens the session that serves a call of parent and hands it its
// prompt.
func (r *Registry) openChild(ctx context.Context, parent *Session, id string, c agent.Child) (*Session, error) {
	return r.startChild(ctx, parent, parent.openFor(id, c), c)
}

// startChild opens a child and hands it its prompt.
func (r *Registry) startChild(ctx context.Context, parent *Session, o agent.Open, c agent.Child) (*Session, error) {
	id := o.New
	var child *Session
	err := journal.ErrExists
	if c.Resume == "" {
		child, err = r.openSession(ctx, o, parent, &c)
	}
	if errors.Is(err, journal.ErrExists) {
		o.New, o.Session, o.Model = "", id, c.Model
		child, err = r.openSession(ctx, o, parent, &c)
	}
	if err != nil {
		return nil, err
	}
	var told bool
	child.rec.read(func(st *transcript.State) { told = st.Inputs[c.Key] })
	if info := child.Info(); told && info.Status == "interrupted" {
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
	if o.Fork == "" {
		return r.openStored(ctx, o, parent, c)
	}
	id, err := r.fork(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Session, o.New = id, ""
	s, err := r.openStored(ctx, o, parent, c)
	if err != nil && r.cfg.Discard != nil && r.get(id) == nil {
		err = errors.Join(err, r.cfg.Discard(context.WithoutCancel(ctx), id))
	}
	return s, err
}

// openStored opens a session that is there, or a new one that is no fork.
func (r *Registry) openStored(ctx context.Context, o agent.Open, parent *Session, c *agent.Child) (*Session, error) {
	n := &opening{newSession(r, o.Session, o.Approver), o, parent, c}
	n.lent = o.Lend
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
	lease, err := r.acquire(ctx, n.id)
	if owned, ok := errors.AsType[*journal.OwnedError](err); ok && o.Takeover && r.cfg.Takeover != nil && r.get(n.id) == nil {
		if err = r.cfg.Takeover(ctx, owned); err == nil {
			lease, err = r.acquire(ctx, n.id)
		}
	}
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

const (
	lockWait = time.Second // how long an owner is waited for, who may be about to go
	lockPoll = 100 * time.Millisecond
)

// acquire takes a session's log. A process that was killed holds it until the system
// has taken it down, and one that closes until it has.
func (r *Registry) acquire(ctx context.Context, id string) (journal.Lease, error) {
	timer := time.NewTicker(lockPoll)
	defer timer.Stop()
	for tries := lockWait / lockPoll; ; tries-- {
		lease, err := r.cfg.Store.Acquire(ctx, id, journal.Owner{ID: fmt.Sprintf("%s/%d", r.cfg.Host, r.cfg.PID)})
		if tries == 0 || !errors.Is(err, journal.ErrOwned) || r.get(id) != nil {
			return lease, err
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (n *opening) meta() journal.Meta {
	m := journal.Meta{SessionInfo: agent.SessionInfo{ID: n.id, Workdir: n.parts.Workdir, Title: n.Title, Model: n.Model}}
	if n.parent != nil {
		m.Parent = n.parent.id
	}
	return m
}

func (n *opening) close() {
	if n.points.Close != nil {
		n.points.Close()
	}
}

// build makes the parts. It checks the model, so that the first prompt does not
// fail for a reason that is known now.
func (n *opening) build(ctx context.Context, st *transcript.State) (err error) {
	s := n.Session
	parent := ""
	if n.parent != nil {
		parent, s.depth = n.parent.id, n.parent.depth+1
	}
	n.parts, err = n.reg.cfg.Build(ctx, plug.Session{
		SessionOpened: agent.SessionOpened{Session: n.id, Parent: parent, Agent: st.First.Agent},
		Marks: agent.Marks{
			Files: maps.Clone(st.Files), Kept: maps.Clone(st.Kept), Spent: st.Spent, Selected: slices.Clone(st.Selected), Off: slices.Clone(st.Off),
		},
		ID: n.id, Open: n.Open, Stored: stored(st), Child: n.child, Depth: s.depth,
		Log: s, Planner: s, Reach: s.reach(), Send: s.Send, Model: s.current,
	})
	if err != nil {
		return err
	}
	if n.points, err = mergePoints(n.parts.Points); err != nil {
		n.close()
		return err
	}
	n.gate, n.limits = stages(n.points.Gate), n.parts.Limits
	if n.MaxSteps > 0 {
		n.limits.Steps, n.limits.Closing = n.MaxSteps, n.child != nil // a child says what it came to
	}
	if n.parent != nil {
		n.via, n.rested = or(n.parent.via, n.id), make(chan struct{}, 1)
		n.front, n.approver, n.parts.Lane = n.parent.front, n.parent.approver, LaneSubagent
		n.account = n.parent.account
	}
	if n.parts.Budget != (plug.Amount{}) {
		n.account = n.account.Child(n.parts.Budget)
	}
	model, err := n.parts.Model(n.Model)
	switch {
	case err == nil:
		n.Model = model.Info().ID
	case !n.Modelless():
		n.close()
		return err
	}
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
	st := n.rec.state // nobody else has it yet
	if n.parent != nil && st.Head > 0 && st.First.Parent != n.parent.id {
		return fmt.Errorf("session %s is no child of %s", n.id, n.parent.id)
	}
	n.owes(st)
	if n.Open.Session != "" {
		n.Workdir = or(n.Workdir, st.First.Workdir)
		n.Model = or(n.Model, st.Model)
		n.Mode = or(n.Mode, resumable(st.Mode))
		n.Profile = or(n.Profile, st.First.Profile)
		if err := n.build(ctx, st); err != nil {
			return err
		}
	}
	n.Mode = or(n.parts.Mode, n.Mode)
	n.rec.window, n.mode = n.window, n.Mode
	opened := n.parts.SessionOpened
	opened.Session, opened.Title, opened.Model, opened.Mode, opened.Lane, opened.Schema = n.id, n.Title, n.Model, n.Mode, n.lane(), n.Schema
	opened.Version, opened.Host, opened.PID = n.reg.cfg.Version, n.reg.cfg.Host, n.reg.cfg.PID
	if n.parent != nil {
		opened.Parent, opened.Call = n.parent.id, n.child.Key
	}
	if from := st.First.Session; from != "" && from != n.id {
		opened.ForkOf, opened.ForkSeq = from, st.Head
	}
	bodies := []agent.Body{opened}
	if opened.ForkOf != "" {
		bodies = append(bodies, tagged(st))
	}
	if rep := lease.Repaired(); rep != nil {
		bodies = append(bodies, *rep)
	}
	lost := append(n.loseHandles(st, opened.ForkOf, n.Modelless()), loseSkills(st, opened.ForkOf)...)
	if err := n.rec.store(len(lost) > 0, append(bodies, lost...)...); err != nil {
		return err
	}
	n.restore()
	return n.storeEarly()
}

// restore gives the parts what the log remembers.
func (s *Session) restore() {
	st := s.rec.state
	s.opened = st.Head
	s.created = st.Created
	if s.points.Permissions.Grant != nil && len(st.Grants) > 0 {
		if err := s.points.Permissions.Grant(agent.RememberSession, st.Grants); err != nil {
			s.reg.cfg.Logger.Warn("remembering what was allowed", "session", s.id, "error", err)
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
	if err := check(c); err != nil {
		return err
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
		return r.listed(ctx, q)
	case agent.FindSession:
		return r.find(ctx, q)
	case agent.ContextUsage:
		return r.context(ctx, q.Session)
	case agent.VerifySeals:
		report, err := r.cfg.Store.Verify(ctx, q.Session)
		return report, problem(err, q.Session)
	}
	if r.cfg.Query == nil {
		return nil, fmt.Errorf("query %q: nobody answers it", q.Query())
	}
	return r.cfg.Query(ctx, q)
}

// row is a session's row in the list.
func (r *Registry) row(m journal.Meta) agent.SessionInfo {
	s := r.get(m.ID)
	if s == nil {
		return m.SessionInfo
	}
	info := s.Info()
	info.Status = "running"
	return info
}

// listed returns the sessions that a query selects.
func (r *Registry) listed(ctx context.Context, q agent.ListSessions) (agent.SessionList, error) {
	list := agent.SessionList{Sessions: []agent.SessionInfo{}}
	page, err := r.cfg.Store.Page(ctx, journal.Query{Workdir: q.Workdir, Tag: q.Tag, Profile: q.Profile, Unarchived: !q.Archived, Before: q.Before, Limit: q.Limit})
	if err != nil {
		return list, problem(err, "")
	}
	for _, m := range page.Sessions {
		list.Sessions = append(list.Sessions, r.row(m))
	}
	list.More = page.More
	return list, nil
}

// find returns the one session that a user means by a name.
func (r *Registry) find(ctx context.Context, q agent.FindSession) (agent.SessionInfo, error) {
	if len(q.Name) == journal.IDLen {
		for m, err := range r.cfg.Store.List(ctx, journal.Query{Prefix: q.Name}) {
			if err == nil {
				return r.row(m), nil
			}
		}
	}
	var found, titled []agent.SessionInfo
	want := journal.Query{Name: q.Name}
	if q.Name == "" {
		want.Workdir, want.Profile = q.Workdir, q.Profile
	}
	for m, err := range r.cfg.Store.List(ctx, want) { // of thousands, the first may do
		if err != nil {
			return agent.SessionInfo{}, problem(err, "")
		}
		info := r.row(m)
		switch {
		case q.Name == "":
			if !info.IsChild() && !info.Archived {
				return info, nil
			}
		case info.ID == q.Name:
			return info, nil
		case info.Title == q.Name:
			titled = append(titled, info)
		case strings.HasPrefix(info.ID, q.Name):
			found = append(found, info)
		}
	}
	said := "begin with"
	if len(titled) > 0 {
		found, said = origins(titled), "are called"
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if q.Name == "" {
			said := "there is no session in " + q.Workdir + " yet"
			if q.Profile != "" {
				said = "there is no session of profile " + q.Profile + " in " + q.Workdir + " yet"
			}
			return agent.SessionInfo{}, &agent.Problem{
				Code: agent.ProblemNone, Message: said, Err: journal.ErrMissing,
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
		Message: fmt.Sprintf("%d sessions %s %q: %s", len(found), said, q.Name, strings.Join(ids, ", ")),
		Fix:     "give the ID, or more of it", Args: map[string]string{"session": q.Name, "matches": strings.Join(ids, ", ")},
	}
}

// origins leaves out forks of sessions with the same title, and the sessions of
// agents: a title means what it was given to.
func origins(all []agent.SessionInfo) []agent.SessionInfo {
	one := make(map[string]bool, len(all))
	for _, i := range all {
		one[i.ID] = true
	}
	return slices.DeleteFunc(all, func(i agent.SessionInfo) bool { return one[i.Parent] })
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

// Park ends the sessions that are meant, and those that work for them, as if the program had
// ended there: what is not in the log does not come into it any more, so that they go on from
// there when they are opened again. Which is meant is asked with the ID of the session that a
// person sees. Calls that run are ended, and are treated by their class then.
func (r *Registry) Park(meant func(id string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*Session
	for _, s := range r.open {
		if meant(s.front.id) {
			list = append(list, s)
		}
	}
	for _, s := range list { // all of them, before any ends
		s.rec.park()
	}
	for _, s := range list {
		s.stop()
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
		p.Code = agent.ProblemOwned
		p.Fix = "close it there, or wait until that process has ended; go on in a copy with: dure fork " + id +
			"; if it hangs: dure --resume " + id + " --takeover"
		p.Args["pid"], p.Args["host"] = fmt.Sprint(owned.PID), owned.Host
		p.Args["since"] = owned.Since.Local().Format(time.DateTime)
	case errors.Is(err, journal.ErrMissing):
		p.Code, p.Message = agent.ProblemMissing, fmt.Sprintf("there is no session %q", id)
		p.Fix = "see the list with: dure sessions"
	case errors.Is(err, journal.ErrNewer):
		p.Code, p.Fix = agent.ProblemVersion, "use a newer dure"
	case errors.Is(err, journal.ErrDamaged):
		p.Code, p.Fix = agent.ProblemDamaged, "see what is wrong with: dure verify "+id+", and mend it with: dure sessions repair "+id
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

// Reach is what a session that is open offers to its capabilities; the zero one = it is not
// open.
func (r *Registry) Reach(id string) agent.Reach {
	if s := r.get(id); s != nil {
		return s.reach()
	}
	return agent.Reach{}
}

// Workdir returns the folder of a session that is open; "" = it is not.
func (r *Registry) Workdir(id string) string {
	if s := r.get(id); s != nil {
		return s.parts.Workdir
	}
	return ""
}
