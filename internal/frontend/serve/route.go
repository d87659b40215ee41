package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/auth"
)

// A Route is what is served at a path. The description of the API is made of them.
type Route struct {
	Method, Path string // as in [http.ServeMux]

	// Serve answers. The body of the request has been read already, but for a Stream that
	// takes one: that bounds and reads its own.
	Serve func(http.ResponseWriter, *http.Request)

	// Answer returns what is answered as JSON, in the place of Serve.
	Answer func(*http.Request) (any, error)

	Open   bool // without a token
	Stream bool // the answer lasts; it has no place among the requests that are bounded

	// Scope is what who uses the route has to have; "" = that of whoever runs the server.
	Scope auth.Scope

	Work bool // it has a turn run: none begins when the server is to end, which waits for those that run

	Name    string // of the operation
	Summary string
	Query   []Parameter
	Header  []Parameter

	// In and Out are examples of what comes and what is answered: their types are
	// described. nil = no body. OutType is that of an answer that is no JSON.
	In, Out any
	OutType string
	Status  int // of the answer; 0 = 200
}

// SocketRoute is the route of a WebSocket, for whoever may do everything. The end of the server
// waits for it.
func SocketRoute(path, name, summary string, answer http.HandlerFunc) Route {
	return Route{
		Method: http.MethodGet, Path: path, Serve: answer, Stream: true, Work: true, Scope: auth.Admin,
		Status: http.StatusSwitchingProtocols, Name: name, Summary: summary,
	}
}

// A Parameter is a value in an address or a header.
type Parameter struct {
	Name    string
	Type    reflect.Kind // String, Int64 or Bool
	Summary string
	Many    bool // may stand there several times
	Needed  bool
}

// patient waits so long for each part of an answer to be taken.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	path    string // of the request
}

// Unwrap is for [http.ResponseController].
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *patient) Write(b []byte) (int, error) {
	p.wait()
	return p.ResponseWriter.Write(b)
}

func (p *patient) wait() {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.stall)) // where there are none, nothing stalls
}

// harden keeps browsers from making more of an answer than it is, readers from taking it for
// ever, and senders from sending for ever what nobody reads: who reads a body to its end takes
// that bound away.
func harden(stall time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := &patient{w, http.NewResponseController(w), stall, r.URL.Path}
		_ = to.control.SetReadDeadline(time.Now().Add(auth.BodyTime)) // as with wait
		to.wait()
		defer to.wait() // the end of the answer is still to be written
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(to, r)
	})
}

// plain answers as a problem what the mux has no route for, and takes bodies of JSON alone:
// a page can send others without being asked.
func plain(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, pattern := mux.Handler(r)
		if pattern == "" {
			lost := &missed{header: http.Header{}}
			answer.ServeHTTP(lost, r)
			if lost.status == http.StatusMethodNotAllowed {
				allowed := lost.header.Get("Allow")
				w.Header().Set("Allow", allowed)
				write(w, Problem{Status: lost.status, Code: wrongMethod, Detail: r.Method + " is not possible here: " + allowed, Fix: "take one of the header Allow: " + allowed})
				return
			}
			write(w, lostAt(r.URL.Path))
			return
		}
		if r.Method == http.MethodPost && !isJSON(r.Header.Get("Content-Type")) {
			write(w, Problem{Status: http.StatusUnsupportedMediaType, Code: noJSON, Detail: "the body has to be JSON", Fix: "send the header Content-Type: application/json"})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// lostAt is what is said of a path that leads nowhere; where names are to be had, with them.
func lostAt(path string) Problem {
	p := Problem{Status: http.StatusNotFound, Code: noRoute, Detail: "there is no such path", Fix: "see /openapi.json"}
	rest, asked := strings.CutPrefix(path, "/v1/queries/")
	of, name, command := strings.Cut(path, "/commands/")
	id, session := strings.CutPrefix(of, "/v1/sessions/")
	switch {
	case asked:
		p.Detail, p.Fix = fmt.Sprintf("there is no query %.80q", rest), "take one of: "+strings.Join(query.Queries(), ", ")
	case session && command && !strings.Contains(id, "/"):
		p.Detail, p.Fix = fmt.Sprintf("there is no command %.80q", name), "take one of: "+strings.Join(agent.Commands(), ", ")
	}
	return p
}

func isJSON(content string) bool {
	kind, _, _ := strings.Cut(content, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// missed takes the answer of a mux that has no route.
type missed struct {
	header http.Header
	status int
}

func (m *missed) Header() http.Header         { return m.header }
func (m *missed) Write(b []byte) (int, error) { return len(b), nil }
func (m *missed) WriteHeader(status int)      { m.status = status }

// answer answers with what Answer returns.
func (r Route) answer(w http.ResponseWriter, req *http.Request) {
	v, err := r.Answer(req)
	if err != nil {
		Refuse(w, err)
		return
	}
	Answer(w, cmp.Or(r.Status, http.StatusOK), v)
}

// Answer writes v as JSON.
func Answer(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		Refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // whoever has gone does not read it
}
