package serve

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/frontend/auth"
)

// Ready says whether the server takes work.
type Ready struct {
	Ready bool `json:"ready"`
}

// About is what a server is.
type About struct {
	Name    string `json:"name"`
	Version string `json:"version"` // of the program
	API     int    `json:"api"`     // of the routes
	Events  int    `json:"events"`  // of the format of events
}

// api is the version of the routes, which their paths begin with.
const api = 1

// own are the routes of the server itself.
func (s *Server) own() []Route {
	return scopes(slices.Concat([]Route{
		{Method: http.MethodGet, Path: "/healthz", Answer: s.healthy, Open: true, Name: "healthy", Summary: "Answers as long as the server lives.", Out: Ready{}},
		{Method: http.MethodGet, Path: "/readyz", Answer: s.ready, Open: true, Name: "ready", Summary: "Answers 503 once the server is about to end.", Out: Ready{}},
		{Method: http.MethodGet, Path: "/v1/about", Answer: s.about, Name: "about", Summary: "What serves here.", Out: About{}},
	}, s.sessionRoutes(), s.commandRoutes(), s.eventRoutes(), s.metricRoutes(), s.fileRoutes(), s.queryRoutes(), s.describeRoutes()))
}

func (s *Server) healthy(_ *http.Request) (any, error) {
	return Ready{Ready: true}, nil
}

func (s *Server) ready(_ *http.Request) (any, error) {
	if s.draining.Err() != nil {
		return nil, errEnding()
	}
	return Ready{Ready: true}, nil
}

func (s *Server) about(_ *http.Request) (any, error) {
	return About{Name: "dure", Version: s.cfg.Version, API: api, Events: agent.Version}, nil
}

// drain refuses new work, tells readers, and gives turns that run their time.
func (s *Server) drain() {
	s.leave()
	ctx, cancel := context.WithTimeout(s.life, s.cfg.Drain)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.works.wait(ctx) })
	for _, id := range s.users.sessions() {
		wg.Go(func() { s.settled(ctx, id) })
	}
	wg.Wait()
}

// settled waits until no turn runs in a session.
func (s *Server) settled(ctx context.Context, id string) {
	info, err := s.find(auth.With(ctx, auth.User{Scope: auth.Admin}), id)
	if err != nil {
		return // there is nothing to wait for
	}
	running := false
	for e, err := range s.cfg.Client.Attach(id).Events(ctx, 0) {
		if err != nil {
			return
		}
		switch e.Body.(type) {
		case agent.TurnStarted:
			running = true
		case agent.TurnEnded:
			running = false
		}
		if e.Seq >= info.Head && !e.Live() && !running {
			return
		}
	}
}

// leaveTime is how long sessions have to end that nobody uses any more.
const leaveTime = 20 * time.Second

// leave has all users leave.
func (u users) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	var first error
	for _, id := range u.sessions() {
		if _, err := u.part(ctx, id, ""); err != nil && first == nil {
			first = err
		}
	}
	return first
}
