package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// Opened is a session that was opened, or joined.
type Opened struct {
	Session agent.SessionInfo `json:"session"`

	// User is who has opened it: what closing it takes. The session ends with the last of
	// those who use it.
	User string `json:"user"`
}

// Closing says who leaves a session.
type Closing struct {
	User string `json:"user,omitempty"` // "" = all who have opened it over HTTP
}

// Closed says who has left.
type Closed struct {
	Left int `json:"left"`
}

// sessionRoutes are those about sessions as such.
func (s *Server) sessionRoutes() []Route {
	return []Route{
		{
			Method: http.MethodGet, Path: "/v1/sessions", Answer: s.list, Name: "listSessions", Summary: "Sessions, the newest first.", Out: agent.SessionList{},
			Query: []Parameter{
				{Name: "workdir", Summary: "of this folder"},
				{Name: "tag", Summary: "with this tag"},
				{Name: "profile", Summary: "of this kind of work"},
				{Name: "archived", Type: reflect.Bool, Summary: "with those that were put away"},
				{Name: "limit", Type: reflect.Int64, Summary: "at most so many; 0 = all"},
				{Name: "before", Summary: "changed before this time (RFC 3339)"},
			},
		},
		{
			Method: http.MethodPost, Path: "/v1/sessions", Answer: s.open, Name: "openSession", In: agent.Open{}, Out: Opened{}, Status: http.StatusCreated,
			Summary: "Opens a session, new or stored, and runs it; one that is open is joined.",
		},
		{Method: http.MethodGet, Path: "/v1/sessions/{id}", Answer: s.info, Name: "session", Summary: "A session.", Out: agent.SessionInfo{}},
		{
			Method: http.MethodDelete, Path: "/v1/sessions/{id}", Answer: s.remove, Name: "deleteSession", Out: query.RemovedSession{},
			Summary: "Deletes a session with its children, blobs and checkpoints. One that is open, pinned or busy is kept without force.",
			Query:   []Parameter{{Name: "force", Type: reflect.Bool, Summary: "whatever it does; it is closed before"}},
		},
		{Method: http.MethodPost, Path: "/v1/sessions/{id}/fork", Answer: s.fork, Name: "forkSession", In: agent.Open{}, Out: Opened{}, Status: http.StatusCreated, Summary: "Opens a copy of a session up to and including an event."},
		{Method: http.MethodPost, Path: "/v1/sessions/{id}/close", Answer: s.close, Name: "closeSession", In: Closing{}, Out: Closed{}, Summary: "Leaves a session, as the user whom opening it has answered; without one, all leave who have opened it over HTTP. It ends with the last who uses it."},
	}
}

// flag returns a parameter that is true or false.
func flag(r *http.Request, name string, usual bool) (bool, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return usual, nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, bad(name+": "+strconv.Quote(v)+" is not true or false", "give "+name+"=true or "+name+"=false")
	}
	return b, nil
}

// number returns a parameter that is a whole number of 0 or more.
func number(name, v string) (int64, error) {
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return 0, bad(name+": "+strconv.Quote(v)+" is not a whole number of 0 or more", "give "+name+" a number such as 0 or 20")
	}
	return n, nil
}

func (s *Server) list(r *http.Request) (any, error) {
	v := r.URL.Query()
	q := agent.ListSessions{Workdir: v.Get("workdir"), Tag: v.Get("tag"), Profile: v.Get("profile")}
	archived, err := flag(r, "archived", false)
	limit, wrong := number("limit", v.Get("limit"))
	err = errors.Join(err, wrong)
	if before := v.Get("before"); before != "" {
		at, wrong := time.Parse(time.RFC3339, before)
		if wrong != nil {
			err = errors.Join(err, bad("before: "+wrong.Error(), "give a time such as 2006-01-02T15:04:05Z"))
		}
		q.Before = at
	}
	if err != nil {
		return nil, err
	}
	q.Archived, q.Limit = archived, int(min(limit, 1<<30))
	return s.ask(r, q)
}

// find returns the session of exactly that ID.
func (s *Server) find(ctx context.Context, id string) (agent.SessionInfo, error) {
	info, err := client.Query[agent.SessionInfo](ctx, s.cfg.Client, agent.FindSession{Name: id})
	if err == nil && info.ID != id || id == "" {
		return agent.SessionInfo{}, &agent.Problem{
			Code: agent.ProblemMissing, Message: "there is no session " + strconv.Quote(id), Fix: "GET /v1/sessions lists them",
			Args: map[string]string{"session": id},
		}
	}
	if err == nil && !s.mine(ctx, info) {
		return agent.SessionInfo{}, missingSession(id)
	}
	if err != nil && !everything(ctx) {
		return agent.SessionInfo{}, missingSession(id)
	}
	return info, err
}

func (s *Server) info(r *http.Request) (any, error) {
	info, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return info, nil
}

func (s *Server) open(r *http.Request) (any, error) {
	var o agent.Open
	if err := decode(r, &o); err != nil {
		return nil, err
	}
	return s.opening(r, o)
}

func (s *Server) fork(r *http.Request) (any, error) {
	o := agent.Open{}
	err := decode(r, &o)
	if err == nil && (o.Session != "" || o.Fork != "") {
		err = bad("session and fork: the path says which session is copied", "leave them out")
	}
	if err != nil {
		return nil, err
	}
	o.Fork = r.PathValue("id")
	return s.opening(r, o)
}

// opening opens a session for a user.
func (s *Server) opening(r *http.Request, o agent.Open) (any, error) {
	if err := s.checkOpen(&o); err != nil {
		return nil, err
	}
	if err := s.mayOpen(r.Context(), o); err != nil {
		return nil, err
	}
	for _, id := range []string{o.Session, o.Fork} {
		if id == "" {
			continue
		}
		if _, err := s.find(r.Context(), id); err != nil {
			return nil, err
		}
	}
	give, err := s.shares.take(caller(r.Context()).Name, ofOpenings)
	if err != nil {
		return nil, err
	}
	kept := false
	defer func() {
		if !kept {
			give()
		}
	}()
	o.Owned = Tags(r.Context()) != nil
	// Whoever goes away meanwhile leaves nothing half open.
	ss, err := s.cfg.Client.Open(context.WithoutCancel(r.Context()), o)
	if err != nil {
		return nil, err
	}
	if o.Session == "" {
		if err := s.claim(context.WithoutCancel(r.Context()), ss); err != nil {
			return nil, err
		}
	}
	name := s.users.join(ss, give)
	kept = true
	return Opened{Session: ss.Info, User: name}, nil
}

// checkOpen says what of an opening is not for clients, and fills in the folder.
func (s *Server) checkOpen(o *agent.Open) error {
	switch {
	case s.draining.Err() != nil:
		return errEnding()
	case o.Lend:
		return bad("lend: tools are lent by dure mcp serve", "leave it out")
	case o.Workdir != "" && !filepath.IsAbs(o.Workdir):
		return bad("workdir: "+strconv.Quote(o.Workdir)+" is not absolute", "give the whole path of a folder")
	case o.MaxSteps < 0 || o.At < 0:
		return bad("max_steps and at are 0 or more", "leave them out, or give 0 or more")
	case o.Session != "" && o.Fork != "":
		return bad("session and fork exclude each other", "leave one of them out")
	}
	if o.Session == "" && o.Fork == "" && o.Workdir == "" {
		o.Workdir = s.cfg.Workdir
	}
	return nil
}

func errEnding() error {
	return &refused{Status: http.StatusServiceUnavailable, Code: ending, Detail: "the server is about to end", Fix: "wait, and connect to the one that comes after it"}
}

func (s *Server) close(r *http.Request) (any, error) {
	var c Closing
	if err := decode(r, &c); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), commandTime)
	defer cancel()
	_, lost := s.find(ctx, r.PathValue("id"))
	if lost != nil && !everything(ctx) {
		return nil, lost
	}
	left, err := s.users.part(ctx, r.PathValue("id"), c.User)
	switch {
	case err != nil:
	case left == 0 && lost != nil:
		err = lost
	case left == 0 && c.User != "":
		err = &refused{
			Status: http.StatusNotFound, Code: noUser, Detail: "nobody of this name has opened the session, or they have left it",
			Fix: "give the user that opening it has answered; without one, all leave",
		}
	}
	if err != nil {
		return nil, err
	}
	return Closed{Left: left}, nil
}

func (s *Server) remove(r *http.Request) (any, error) {
	force, err := flag(r, "force", false)
	if err != nil {
		return nil, err
	}
	info, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), commandTime)
	defer cancel()
	if force {
		if _, err := s.users.part(ctx, info.ID, ""); err != nil {
			return nil, err
		}
	}
	return s.ask(r.WithContext(ctx), query.RemoveSession{Session: info.ID, Force: force})
}

// users are those who have opened sessions over HTTP, by session and their own names. It is
// safe for concurrent use.
type users struct {
	mu   *sync.Mutex
	open map[string]map[string]opening
}

// opening is what a user holds of a session.
type opening struct {
	ss   *client.Session
	give func() // gives the user's share back
}

// close ends it.
func (o opening) close(ctx context.Context) error {
	defer o.give()
	return o.ss.Close(ctx)
}

func newUsers() users {
	return users{mu: &sync.Mutex{}, open: map[string]map[string]opening{}}
}

// join takes down who uses a session, and returns their name. give is called when they have left.
func (u users) join(ss *client.Session, give func()) string {
	name := "user_" + rand.Text()[:16]
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open[ss.Info.ID] == nil {
		u.open[ss.Info.ID] = map[string]opening{}
	}
	u.open[ss.Info.ID][name] = opening{ss, give}
	return name
}

// part has a user of a session leave it, or all. Whoever has left already is none.
func (u users) part(ctx context.Context, session, name string) (int, error) {
	var leaving []opening
	u.mu.Lock()
	of := u.open[session]
	for user, o := range of {
		if name == "" || name == user {
			leaving = append(leaving, o)
			delete(of, user)
		}
	}
	if len(of) == 0 {
		delete(u.open, session)
	}
	u.mu.Unlock()
	var err error
	for _, o := range leaving {
		err = errors.Join(err, o.close(ctx))
	}
	return len(leaving), err
}

// sessions returns the IDs of those that are in use.
func (u users) sessions() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.open))
}
