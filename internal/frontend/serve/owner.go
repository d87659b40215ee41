package serve

import (
	"context"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/auth"
	"dure/internal/state/transcript"
)

// ownerTag begins the tag by which a session is a user's.
const ownerTag = transcript.OwnerTag

// maxFamily is how far a session is looked for that another one works for.
const maxFamily = 8

// caller is who has sent a request. Nobody may do anything.
func caller(ctx context.Context) auth.User {
	u, _ := auth.Who(ctx)
	return u
}

// Still reports whether the sender of a request has the access that they came in with.
func Still(ctx context.Context) bool { return auth.Still(ctx) }

// everything reports whether whoever has sent the request may see and do everything.
func everything(ctx context.Context) bool { return caller(ctx).Scope.May(auth.Admin) }

// mine reports whether whoever has sent the request may know of a session: it is theirs, or
// works for one that is.
func (s *Server) mine(ctx context.Context, info agent.SessionInfo) bool {
	if everything(ctx) {
		return true
	}
	name := caller(ctx).Name
	for range maxFamily {
		if name != "" && slices.Contains(info.Tags, ownerTag+name) {
			return true
		}
		if !info.IsChild() {
			return false
		}
		parent, err := client.Query[agent.SessionInfo](ctx, s.cfg.Client, agent.FindSession{Name: info.Parent})
		if err != nil || parent.ID != info.Parent {
			return false
		}
		info = parent
	}
	return false
}

// Tags are those that sessions have which the sender of a request opens.
func Tags(ctx context.Context) []string {
	if u := caller(ctx); u.Name != "" {
		return []string{ownerTag + u.Name}
	}
	return nil
}

// claim makes a session that was opened anew its user's. One that cannot be is closed.
func (s *Server) claim(ctx context.Context, ss *client.Session) error {
	tags := Tags(ctx)
	if tags == nil {
		return nil
	}
	for _, t := range ss.Info.Tags {
		if !strings.HasPrefix(t, ownerTag) {
			tags = append(tags, t)
		}
	}
	err := ss.Send(ctx, agent.Change{Tags: &tags})
	if err != nil {
		_ = ss.Close(context.WithoutCancel(ctx)) // the error says why
	}
	return err
}

func denied(what string) error {
	return &refused{Status: http.StatusForbidden, Code: forbidden, Detail: what + " takes the scope admin", Fix: "ask whoever runs the server"}
}

// openings are the fields of [agent.Open], and whether users may set them who do not run the
// server: their sessions are in the folder of the server, and decide nothing for others.
var openings = map[string]bool{
	"Session": true, "Fork": true, // of theirs
	"Workdir": true, "Mode": true, // looked at below
	"At": true, "Edit": true, "Model": true, "Title": true, "Profile": true, "Agent": true, "Schema": true, "Approver": true,
	"Ready": true, "MaxSteps": true, "Scratch": true,

	"New": false, "Lend": false, "Lane": false, "Added": false, "After": false, "Setup": false, "Takeover": false, "Owned": false,
}

// mayOpen says what users who do not run the server may not open.
func (s *Server) mayOpen(ctx context.Context, o agent.Open) error {
	if everything(ctx) {
		return nil
	}
	if name, ok := onlyThese(o, func(field string) bool { return openings[field] }); !ok {
		return denied("to open a session with " + name)
	}
	switch {
	case o.Mode == agent.ModeBypass:
		return denied("the mode " + string(o.Mode))
	case o.Workdir != "" && !within(s.cfg.Workdir, o.Workdir):
		return denied("a folder other than " + strconv.Quote(s.cfg.Workdir))
	}
	return nil
}

// onlyThese reports whether nothing is said in a struct but what is let through, and else the
// name of a field that is not.
func onlyThese(v any, may func(field string) bool) (name string, ok bool) {
	of := reflect.ValueOf(v)
	for f, field := range of.Fields() {
		if !field.IsZero() && !may(f.Name) {
			return f.Name, false
		}
	}
	return "", true
}

// within reports whether a folder is another one, or in it, wherever links lead.
func within(root, dir string) bool {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return false
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false
	}
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

// mayCommand returns a command as its user may send it: they cannot give a session away, let
// everything happen in it, or decide for sessions of others. An answer has the name of who
// gives it.
func mayCommand(ctx context.Context, info agent.SessionInfo, c agent.Command) (agent.Command, error) {
	if answer, ok := c.(agent.Resolve); ok && caller(ctx).Name != "" {
		answer.Decision.By = ownerTag + caller(ctx).Name
		c = answer
	}
	if everything(ctx) {
		return c, nil
	}
	switch b := c.(type) {
	case agent.Change:
		if b.Mode == agent.ModeBypass {
			return nil, denied("the mode " + string(b.Mode))
		}
		if b.Tags != nil {
			ours := func(t string) bool { return strings.HasPrefix(t, ownerTag) }
			tags := slices.DeleteFunc(slices.Clone(*b.Tags), ours)
			for _, t := range info.Tags {
				if ours(t) {
					tags = append(tags, t)
				}
			}
			b.Tags = &tags
		}
		return b, nil
	case agent.Resolve:
		if b.Remember == agent.RememberAlways {
			return nil, denied("an answer that holds for all sessions")
		}
	}
	return c, nil
}

// mayAsk returns a question as its user may ask it. One that nobody has decided about they may
// not ask.
func (s *Server) mayAsk(ctx context.Context, q agent.Query) (agent.Query, error) {
	if everything(ctx) {
		return q, nil
	}
	if _, ok := q.(query.ListModels); ok {
		return query.ListModels{}, nil
	}
	fields := query.AccessTo(q.Query()).Users
	if fields == nil {
		return nil, denied(q.Query())
	}
	if name, ok := onlyThese(q, func(field string) bool { return slices.Contains(fields, field) }); !ok {
		return nil, denied(q.Query() + " with " + name)
	}
	if !slices.Contains(fields, "Session") {
		return q, nil
	}
	session := reflect.ValueOf(q).FieldByName("Session").String()
	if session == "" {
		return nil, denied(q.Query() + " of all sessions")
	}
	_, err := s.find(ctx, session)
	return q, err
}

// mineOf leaves out of an answer what its user does not know.
func (s *Server) mineOf(ctx context.Context, a any) (any, error) {
	if everything(ctx) {
		return a, nil
	}
	if info, ok := a.(agent.SessionInfo); ok && !s.mine(ctx, info) {
		return nil, missingSession(info.ID)
	}
	return a, nil
}

// listMine answers a list of sessions with those of the user.
func (s *Server) listMine(ctx context.Context, q agent.ListSessions) (agent.SessionList, error) {
	limit, tag := q.Limit, q.Tag
	q.Limit, q.Tag = 0, ownerTag+caller(ctx).Name
	if caller(ctx).Name == "" {
		return agent.SessionList{Sessions: []agent.SessionInfo{}}, nil
	}
	all, err := client.Query[agent.SessionList](ctx, s.cfg.Client, q)
	if err != nil {
		return all, err
	}
	list := slices.DeleteFunc(slices.Clone(all.Sessions), func(i agent.SessionInfo) bool { return tag != "" && !slices.Contains(i.Tags, tag) })
	more := 0
	if limit > 0 && len(list) > limit {
		more, list = len(list)-limit, list[:limit]
	}
	return agent.SessionList{Sessions: append([]agent.SessionInfo{}, list...), More: more}, nil
}

func missingSession(id string) error {
	return &agent.Problem{
		Code: agent.ProblemMissing, Message: "there is no session " + strconv.Quote(id), Fix: "GET /v1/sessions lists them",
		Args: map[string]string{"session": id},
	}
}

// Find returns a session that the sender of a request may use, by its whole ID.
func (s *Server) Find(ctx context.Context, id string) (agent.SessionInfo, error) {
	return s.find(ctx, id)
}

// scoped lets those through who may use a route, and says in the log who changes something.
// A route of others is for whoever runs the server, unless it says otherwise.
func (s *Server) scoped(r Route) http.HandlerFunc {
	need := r.Scope
	if need == "" {
		need = auth.Admin
	}
	return func(w http.ResponseWriter, req *http.Request) {
		u := caller(req.Context())
		if !r.Open && !u.Scope.May(need) {
			Refuse(w, &refused{
				Status: http.StatusForbidden, Code: forbidden, Detail: "this takes the scope " + string(need), Fix: "ask whoever runs the server",
				Args: map[string]string{"scope": string(need)},
			})
			return
		}
		if u.Name != "" && req.Method != http.MethodGet {
			s.cfg.Logger.Info("served", "user", u.Name, "method", req.Method, "route", r.Path, "session", req.PathValue("id"))
		}
		r.Serve(w, req)
	}
}

// scopes gives those of the server's own routes.
func scopes(routes []Route) []Route {
	for i, r := range routes {
		switch {
		case r.Scope != "":
		case r.Path == "/metrics":
			routes[i].Scope = auth.Metrics
		case r.Method == http.MethodGet, strings.HasPrefix(r.Path, "/v1/queries/"):
			routes[i].Scope = auth.Read
		default:
			routes[i].Scope = auth.Write
		}
	}
	return routes
}
