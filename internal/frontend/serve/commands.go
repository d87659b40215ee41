package serve

import (
	"context"
	"hash/fnv"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"dure/agent"
)

// Accepted says that a session has accepted a command: what it asks for is durable.
type Accepted struct {
	Accepted bool `json:"accepted"`

	// Queued says that the session is not open here: the command waits for who opens it.
	Queued bool `json:"queued,omitempty"`
}

// commandRoutes have a route for each command.
func (s *Server) commandRoutes() []Route {
	var routes []Route
	for _, name := range agent.Commands() {
		c, err := agent.DecodeCommand(name, []byte("{}"))
		typ := reflect.TypeOf(c)
		if err != nil {
			continue // the tests of the vocabulary say that each can be empty
		}
		routes = append(routes, Route{
			Method: http.MethodPost, Path: "/v1/sessions/{id}/commands/" + name, Answer: func(r *http.Request) (any, error) { return s.command(r, name, typ) },
			Name: "command_" + strings.ReplaceAll(name, ".", "_"), Summary: "Sends the command " + name + " to a session.", In: c, Out: Accepted{},
		})
	}
	return routes
}

// begins are commands that begin a turn, or go on with one.
var begins = []string{"prompt", "continue", "compact"}

func (s *Server) command(r *http.Request, name string, typ reflect.Type) (any, error) {
	read := reflect.New(typ)
	err := decode(r, read.Interface())
	if err != nil {
		return nil, err
	}
	c := read.Elem().Interface().(agent.Command) // its type is that of one
	if s.draining.Err() != nil && slices.Contains(begins, name) {
		return nil, errEnding()
	}
	// A command is not taken back because who sent it has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), commandTime)
	defer cancel()
	info, err := s.find(ctx, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if c, err = mayCommand(ctx, info, c); err != nil {
		return nil, err
	}
	running := info.Status == "running"
	if answer, ok := c.(agent.Resolve); ok && running {
		err = s.resolve(ctx, info.ID, answer)
	} else {
		err = s.cfg.Client.Attach(info.ID).Send(ctx, c)
	}
	if p := agent.ProblemOf(err); p != nil && p.Code == agent.ProblemUsage {
		err = bad(p.Message, p.Fix)
	}
	if err != nil {
		return nil, err
	}
	return Accepted{Accepted: true, Queued: !running}, nil
}

// answers has the answers to the questions of a session be looked at one after the other.
type answers [64]sync.Mutex

func (a *answers) of(session string) *sync.Mutex {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(session)) // it never fails
	return &a[sum.Sum32()%uint32(len(a))]
}

// resolve answers a question, and says so when somebody else has done that before.
func (s *Server) resolve(ctx context.Context, session string, c agent.Resolve) error {
	turn := s.answers.of(session)
	turn.Lock()
	defer turn.Unlock()
	return s.cfg.Client.Attach(session).Resolve(ctx, c)
}
