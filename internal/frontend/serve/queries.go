package serve

import (
	"net/http"
	"reflect"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// queryRoutes have a route for each query.
func (s *Server) queryRoutes() []Route {
	var routes []Route
	for _, name := range query.Queries() {
		asked, answer, _ := query.QueryTypes(name)
		summary := "Asks " + name + "."
		switch a := query.AccessTo(name); {
		case a.Guarded:
			summary = "Asks " + name + ", where the server answers what is guarded."
		case a.Local != "":
			summary = "Is refused: " + name + " is for the machine itself, because " + a.Local + "."
		}
		routes = append(routes, Route{
			Method: http.MethodPost, Path: "/v1/queries/" + name, Answer: func(r *http.Request) (any, error) { return s.query(r, name, asked) },
			Name: "query_" + strings.ReplaceAll(name, ".", "_"), Summary: summary,
			In: reflect.Zero(asked).Interface(), Out: reflect.Zero(answer).Interface(),
		})
	}
	return routes
}

func (s *Server) query(r *http.Request, name string, typ reflect.Type) (any, error) {
	read := reflect.New(typ)
	err := decode(r, read.Interface())
	if err != nil {
		return nil, err
	}
	q := read.Elem().Interface().(agent.Query) // its type is that of one
	switch access := query.AccessTo(name); {
	case access.Local != "":
		return nil, &refused{
			Status: http.StatusForbidden, Code: localOnly, Detail: name + " is answered on the machine itself only: " + access.Local,
			Fix: "run dure on that machine", Args: map[string]string{"query": name, "reason": access.Local},
		}
	case access.Guarded && !s.cfg.Guarded:
		return nil, &refused{Status: http.StatusForbidden, Code: guarded, Detail: name + " is not answered here", Fix: "start the server with --guarded", Args: map[string]string{"query": name}}
	}
	if q, err = s.mayAsk(r.Context(), q); err != nil {
		return nil, err
	}
	return s.ask(r, q)
}

// ask answers with what the client does.
func (s *Server) ask(r *http.Request, q agent.Query) (any, error) {
	ctx := r.Context()
	if list, ok := q.(agent.ListSessions); ok && !everything(ctx) {
		mine, err := s.listMine(ctx, list)
		if err != nil {
			return nil, err
		}
		return mine, nil
	}
	a, err := client.Query[any](ctx, s.cfg.Client, q)
	if err == nil {
		a, err = s.mineOf(ctx, a)
	}
	if find, ok := q.(agent.FindSession); ok && err != nil && !everything(ctx) {
		err = missingSession(find.Name) // more would tell of sessions of others, as their IDs do
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}
