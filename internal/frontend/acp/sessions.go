package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// The bounds of what is brought along, and listed.
const (
	pageSize   = 100
	maxFolders = 50
	maxServers = 50
	maxCursor  = 1 << 20 // sessions in front of a page
)

// session is one that is open.
type session struct {
	s     *Server
	id    string
	dir   string
	place Place
	sess  *client.Session

	stop   context.CancelFunc
	done   chan struct{} // closed when its events are not followed any more
	caught chan struct{} // closed when its history has been gone through
	known  chan struct{} // closed when its client knows it: news may be told
	once   sync.Once
	halt   chan struct{} // has a value when the turn that runs is to be stopped
	helps  sync.WaitGroup
	ending sync.Once
	ended  error

	mu      sync.Mutex
	over    bool // its events have ended
	shown   map[string]*shown
	prompts []*prompt // that wait for their end, in the order in which they came
	mode    agent.Mode
	model   string
	effort  string            // as it was chosen
	models  []agent.ModelInfo // that can be chosen; nil = not known yet
}

// find returns a session that is open; nil = it is not.
func (s *Server) find(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// need returns the session that a request is about.
func (s *Server) need(id string) (*session, error) {
	if x := s.find(id); x != nil {
		return x, nil
	}
	return nil, missing(id)
}

func missing(id string) error {
	return &wireError{Code: codeMissing, Message: "there is no session " + strconv.Quote(text.Cut(text.OneLine(id), 80)) + " open here"}
}

// folder checks where a session is to work.
func (s *Server) folder(in place) (Folder, error) {
	f := Folder{Dir: filepath.Clean(in.Cwd), Session: in.Session}
	if !filepath.IsAbs(in.Cwd) {
		return f, badParams("cwd: %q is not an absolute path", text.Cut(text.OneLine(in.Cwd), 80))
	}
	if len(in.More) > maxFolders || len(in.Servers) > maxServers {
		return f, badParams("at most %d folders and %d servers are taken", maxFolders, maxServers)
	}
	for _, dir := range in.More {
		if !filepath.IsAbs(dir) {
			return f, badParams("additionalDirectories: %q is not an absolute path", text.Cut(text.OneLine(dir), 80))
		}
		f.More = append(f.More, filepath.Clean(dir))
	}
	var err error
	f.Servers, err = serversOf(in.Servers)
	return f, err
}

// newSession opens a new session.
func (s *Server) newSession(ctx context.Context, in place) (any, error) {
	in.Session = ""
	return s.open(ctx, in, func(p Place, f Folder) agent.Open {
		return agent.Open{Workdir: f.Dir, Mode: p.Mode, Approver: true}
	}, false)
}

// loadSession opens a stored session, and tells what was said in it.
func (s *Server) loadSession(ctx context.Context, in place) (any, error) {
	return s.stored(ctx, in, true)
}

// resumeSession opens a stored session.
func (s *Server) resumeSession(ctx context.Context, in place) (any, error) {
	return s.stored(ctx, in, false)
}

func (s *Server) stored(ctx context.Context, in place, told bool) (answer, error) {
	if in.Session == "" {
		return answer{}, badParams("sessionId is missing")
	}
	info, err := s.row(ctx, in.Session)
	if err != nil {
		return answer{}, err
	}
	if filepath.IsAbs(in.Cwd) && !same(info.Workdir, in.Cwd) {
		return answer{}, badParams("the session works in %s, not in %s", text.OneLine(info.Workdir), text.Cut(text.OneLine(in.Cwd), 200))
	}
	if x := s.find(info.ID); x != nil { // it is told anew
		if err := x.close(ctx); err != nil {
			return answer{}, err
		}
	}
	in.Session = info.ID
	return s.open(ctx, in, func(Place, Folder) agent.Open { return agent.Open{Session: info.ID, Approver: true} }, told)
}

// row returns what is known of a session, by its whole ID.
func (s *Server) row(ctx context.Context, id string) (agent.SessionInfo, error) {
	base, err := s.base()
	if err != nil {
		return agent.SessionInfo{}, err
	}
	info, err := client.Query[agent.SessionInfo](ctx, base.Client, agent.FindSession{Name: id})
	if err != nil && agent.ProblemOf(err) == nil {
		return info, err
	}
	if err != nil || info.ID != id || info.IsChild() {
		return info, &wireError{Code: codeMissing, Message: "there is no session " + strconv.Quote(text.Cut(text.OneLine(id), 80))}
	}
	return info, nil
}

// same reports whether two paths name one folder.
func same(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	ra, err := filepath.EvalSymlinks(a)
	rb, berr := filepath.EvalSymlinks(b)
	return err == nil && berr == nil && ra == rb
}

// open opens a session, a new one if it has no ID yet, and begins to follow it.
func (s *Server) open(ctx context.Context, in place, how func(Place, Folder) agent.Open, told bool) (answer, error) {
	f, err := s.folder(in)
	if err != nil {
		return answer{}, err
	}
	x := &session{s: s, dir: f.Dir, done: make(chan struct{}), caught: make(chan struct{}), known: make(chan struct{}), halt: make(chan struct{}, 1)}
	if e := s.editor(x); e != nil {
		f.Editor = e
	}
	f.Terminal = s.terminal(x)
	slot := cmp.Or(in.Session, "new "+strconv.Quote(randomID())) // holds its place until it is open
	if err := s.hold(slot); err != nil {
		return answer{}, err
	}
	defer s.forget(slot)
	if x.place, err = s.c.Open(f); err != nil {
		return answer{}, err
	}
	o := how(x.place, f)
	x.sess, err = x.place.Client.Open(ctx, o)
	if err != nil {
		return answer{}, errors.Join(err, x.place.Close())
	}
	x.id = x.sess.Info.ID
	var follow context.Context
	follow, x.stop = context.WithCancel(context.WithoutCancel(s.life))
	x.helps.Go(func() { x.interrupts(follow) })
	go x.follow(follow, told)
	if err := s.keep(x); err != nil { // from then on it may be closed at any time
		return answer{}, errors.Join(err, x.close(ctx))
	}
	select {
	case <-x.caught:
	case <-ctx.Done():
		return answer{}, errors.Join(context.Cause(ctx), x.close(context.WithoutCancel(ctx)))
	}
	out := opened{Modes: x.modes(), Options: x.options(ctx)}
	if o.Session == "" {
		out.ID = x.id
	}
	return answer{result: out, after: func() {
		x.greet(ctx)
		x.once.Do(func() { close(x.known) })
	}}, nil
}

// hold keeps room for a session, unless there are too many. Of two that would open one
// session, the second is refused.
func (s *Server) hold(slot string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, held := s.sessions[slot]; held {
		return &wireError{Code: codeRequest, Message: "the session is open already, or about to be"}
	}
	if len(s.sessions) >= maxOpen {
		return &wireError{Code: codeRequest, Message: strconv.Itoa(maxOpen) + " sessions are open already; close one with session/close"}
	}
	s.sessions[slot] = nil
	return nil
}

// forget gives back room that nobody has taken.
func (s *Server) forget(slot string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[slot] == nil {
		delete(s.sessions, slot)
	}
}

// keep enters a session that is open.
func (s *Server) keep(x *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return errGone
	}
	s.sessions[x.id] = x
	return nil
}

// close ends what runs in a session and gives back what it has taken.
func (x *session) close(ctx context.Context) error {
	x.ending.Do(func() { x.ended = x.end(ctx) })
	return x.ended
}

func (x *session) end(ctx context.Context) error {
	err := x.sess.Close(ctx)
	x.once.Do(func() { close(x.known) }) // what follows waits for it
	if err != nil || x.goesOn(ctx) {
		x.stop()
	}
	late := time.NewTimer(closeTime)
	defer late.Stop()
	select { // the session has ended, or somebody else goes on with it
	case <-x.done:
	case <-late.C:
	case <-ctx.Done():
	}
	x.stop()
	<-x.done
	x.helps.Wait()
	x.s.mu.Lock()
	if x.s.sessions[x.id] == x {
		delete(x.s.sessions, x.id)
	}
	x.s.mu.Unlock()
	return errors.Join(err, x.place.Close())
}

// goesOn reports whether others of this program use the session, which its client has left.
func (x *session) goesOn(ctx context.Context) bool {
	info, err := client.Query[agent.SessionInfo](ctx, x.place.Client, agent.FindSession{Name: x.id})
	return err == nil && info.Status == "running"
}

// closeSession closes a session: what runs in it is interrupted, unless others of this
// program use it too.
func (s *Server) closeSession(ctx context.Context, in ofSession) (any, error) {
	x, err := s.need(in.Session)
	if err != nil {
		return nil, err
	}
	return struct{}{}, x.close(ctx)
}

// deleteSession deletes a session with all that is kept of it. One that is not there is
// gone already.
func (s *Server) deleteSession(ctx context.Context, in ofSession) (any, error) {
	if in.Session == "" {
		return nil, badParams("sessionId is missing")
	}
	if x := s.find(in.Session); x != nil {
		if err := x.close(ctx); err != nil {
			return nil, err
		}
	}
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	info, err := s.row(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	_, err = client.Query[query.RemovedSession](ctx, base.Client, query.RemoveSession{Session: info.ID})
	return struct{}{}, err
}

// listSessions lists the sessions, those of a folder if one is named.
func (s *Server) listSessions(ctx context.Context, in listIn) (any, error) {
	q := agent.ListSessions{}
	if in.Cwd != nil {
		if !filepath.IsAbs(*in.Cwd) {
			return nil, badParams("cwd: %q is not an absolute path", text.Cut(text.OneLine(*in.Cwd), 80))
		}
		q.Workdir = filepath.Clean(*in.Cwd)
	}
	from := 0
	if in.Cursor != nil {
		n, err := strconv.Atoi(*in.Cursor)
		if err != nil || n < 1 || n > maxCursor {
			return nil, badParams("cursor: this is none of ours")
		}
		from = n
	}
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	q.Limit = from + pageSize
	all, err := client.Query[agent.SessionList](ctx, base.Client, q)
	if err != nil {
		return nil, err
	}
	out := listOut{Sessions: []sessionRow{}}
	for _, i := range all.Sessions[min(from, len(all.Sessions)):] {
		if filepath.IsAbs(i.Workdir) {
			out.Sessions = append(out.Sessions, sessionRow{ID: i.ID, Cwd: i.Workdir, Title: text.OneLine(i.Title), Updated: i.Updated})
		}
	}
	if all.More > 0 {
		out.Next = strconv.Itoa(q.Limit)
	}
	return out, nil
}

// serversOf are the servers of a client as the program reads servers; nil = there are none.
func serversOf(list []mcpServer) ([]byte, error) {
	if len(list) == 0 {
		return nil, nil
	}
	all := map[string]any{}
	for _, m := range list {
		name := text.Cut(text.OneLine(m.Name), 80)
		if m.Name == "" || all[m.Name] != nil {
			return nil, badParams("mcpServers: %q is no name, or stands there twice", name)
		}
		entry := map[string]any{}
		switch m.Type {
		case "http", "sse":
			if m.URL == "" {
				return nil, badParams("mcpServers: %q has no url", name)
			}
			entry["type"], entry["url"], entry["headers"] = m.Type, literal(m.URL), pairs(m.Headers)
		case "", "stdio":
			if m.Command == "" {
				return nil, badParams("mcpServers: %q has no command", name)
			}
			args := make([]string, 0, len(m.Args))
			for _, a := range m.Args {
				args = append(args, literal(a))
			}
			entry["type"], entry["command"], entry["args"], entry["env"] = "stdio", literal(m.Command), args, pairs(m.Env)
		default:
			return nil, badParams("mcpServers: %q is of type %q: stdio, http and sse are known", name, text.Cut(text.OneLine(m.Type), 40))
		}
		all[m.Name] = entry
	}
	return json.Marshal(map[string]any{"mcpServers": all})
}

func pairs(list []pair) map[string]string {
	all := map[string]string{}
	for _, p := range list {
		all[p.Name] = literal(p.Value)
	}
	return all
}

// literal is a text in which no variables are looked for, as definitions of servers have
// them: what a client says is meant as it stands.
func literal(s string) string { return strings.ReplaceAll(s, "$", "${acp.dollar:-$}") }
