// Package serve is sessions over HTTP: opening them, commands to them, their events as they
// happen, questions about them and the files in their folders. It is a projection of the
// three verbs of a client, and holds no state of a session.
//
// What others serve behind the same door is given to it as routes. Each request has the
// goroutine of its connection; it starts none of its own but for the one that accepts.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"dure/client"
	"dure/internal/base/meter"
	"dure/internal/frontend/auth"
)

// The bounds of requests.
const (
	maxRequests = 64               // at once, readers of events not counted
	maxReaders  = 4096             // of events, at once
	maxBody     = 16 << 20         // bytes, of a request
	maxNothing  = 4 << 10          // ... that needs no body
	commandTime = time.Minute      // for a session to accept a command
	closeTime   = 5 * time.Second  // for connections to end
	stallTime   = 2 * time.Minute  // after which a reader that takes nothing is gone
	beatTime    = 15 * time.Second // between signs of life to a reader
	readerRetry = time.Second      // after which a reader comes back
)

// DrainTime is how long turns have to come to their end once the server is to end.
const DrainTime = 30 * time.Second

// Config says what a server serves. Client, Token and Version are required.
type Config struct {
	// Client reaches the sessions. Front-ends of one program that use the same ones have
	// the same shared transport.
	Client client.Client

	Token   string // of whoever runs the server; "" = only users come in
	Version string // of the program
	Workdir string // of new sessions whose folder is not said; absolute
	Logger  *slog.Logger

	// Files returns the files in the folder of a session, by its ID; nil = they are not
	// served.
	Files func(ctx context.Context, session string) (Files, error)

	// Guarded has questions be answered that delete sessions, or change the program.
	Guarded bool

	// Drain is how long turns have to come to their end; 0 = DrainTime.
	Drain time.Duration

	// Users come in with tokens of their own; nil = there are none. Hosts are names under
	// which the server is reached beside those of this machine; TLS says that it speaks it.
	Users *auth.Users
	Hosts func(host string) bool
	TLS   bool

	// Meter keeps the figures that are served at /metrics; nil = there are none.
	Meter *meter.Registry

	// Routes are served behind the same door.
	Routes []Route

	stall, beat time.Duration // for tests; 0 = the constants
}

// Server serves sessions. It is safe for concurrent use.
type Server struct {
	cfg    Config
	door   *auth.Door
	routes []Route
	all    http.Handler

	life context.Context // of all requests
	end  context.CancelFunc

	draining context.Context // done when the server is to end
	leave    context.CancelFunc
	readers  atomic.Int64
	users    users
	shares   shares
	answers  answers
	works    works
	figures  figures

	described func() schema // made once
}

// New returns a server. Nothing is listened to before [Server.Serve].
func New(cfg Config) (*Server, error) {
	if cfg.Token != "" || cfg.Users == nil {
		if err := auth.CheckToken(cfg.Token); err != nil {
			return nil, err
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		at    *time.Duration
		usual time.Duration
	}{{&cfg.Drain, DrainTime}, {&cfg.stall, stallTime}, {&cfg.beat, beatTime}} {
		if *d.at == 0 {
			*d.at = d.usual
		}
	}
	s := &Server{cfg: cfg, users: newUsers(), figures: newFigures(cfg.Meter)}
	s.door = &auth.Door{Token: cfg.Token, Users: cfg.Users, Hosts: cfg.Hosts, TLS: cfg.TLS, Logger: cfg.Logger, Refuse: func(w http.ResponseWriter, _ *http.Request, no auth.Refusal) {
		s.figures.refused.Add(1, no.Reason)
		write(w, Problem{Status: no.Status, Code: no.Reason, Detail: no.Said, Fix: cures[no.Reason]})
	}}
	s.life, s.end = context.WithCancel(context.Background())
	s.draining, s.leave = context.WithCancel(s.life)
	s.routes = append(s.own(), cfg.Routes...)
	s.described = sync.OnceValue(s.describe)
	all, err := s.mux()
	if err != nil {
		s.end()
		return nil, err
	}
	s.all = all
	return s, nil
}

// Handler returns what answers requests, door and all.
func (s *Server) Handler() http.Handler { return s.all }

// mux puts the routes behind the door.
func (s *Server) mux() (http.Handler, error) {
	mux := http.NewServeMux()
	known := map[string]bool{}
	for _, r := range s.routes {
		at := r.Method + " " + r.Path
		if r.Answer != nil {
			r.Serve = r.answer
		}
		if known[at] || r.Serve == nil {
			return nil, fmt.Errorf("the route %s is there twice, or empty", at)
		}
		known[at] = true
		r.Serve = s.scoped(r)
		if r.Work {
			r.Serve = s.working(r.Serve)
		}
		mux.HandleFunc(at, r.Serve)
	}
	bounded := s.door.Slots(maxRequests, s.door.Body(maxBody, plain(mux)))
	streams, others := s.door.Bearer(s.shared(ofTurns, mux)), s.door.Bearer(s.shared(ofRequests, bounded))
	open, readers := s.door.Body(maxNothing, mux), s.door.Bearer(s.shared(ofReaders, s.door.Body(maxNothing, mux)))
	return s.counted(harden(s.cfg.stall, s.door.Names(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !path.IsAbs(r.URL.Path) || path.Clean(r.URL.Path) != r.URL.Path {
			write(w, Problem{Status: http.StatusNotFound, Code: noRoute, Detail: "there is no such path", Fix: "see /openapi.json; a path has no empty parts, and no dots"})
			return
		}
		_, pattern := mux.Handler(r)
		route := s.route(pattern)
		tallyOf(r.Context()).route = route.Path
		switch {
		case route.Open:
			open.ServeHTTP(w, r)
		case route.Stream && route.In == nil:
			readers.ServeHTTP(w, r)
		case route.Stream:
			streams.ServeHTTP(w, r)
		default:
			others.ServeHTTP(w, r)
		}
	})))), nil
}

// route returns the route of a pattern; the zero Route when there is none.
func (s *Server) route(pattern string) Route {
	for _, r := range s.routes {
		if r.Method+" "+r.Path == pattern {
			return r
		}
	}
	return Route{}
}

// Serve serves clients until ctx is done and what runs has come to its end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.end()
	srv := auth.Server(s.life, s.all)
	srv.ErrorLog = slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.drain()
	left := s.users.leave()
	s.end() // what is open would be waited for
	closing, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if srv.Shutdown(closing) != nil {
		_ = srv.Close() // they have had their time
	}
	s.works.wait(closing) // those too that have made something else of their connection
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, left)
	}
	return left
}
