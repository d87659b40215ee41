// Package completions answers OpenAI's chat API out of sessions, for tools that speak it:
// each request is a turn, in a session of its own or in one that the client names. The
// turn's calls run inside of dure, under its rules; the client calls no tools.
//
// It decides nothing, and keeps nothing of a session: an answer is a fold of its events.
// A request has one goroutine that reads events; it ends with the request. Whoever mounts
// the routes has seen to it that the client may come in.
package completions

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/auth"
	"dure/internal/frontend/serve"
)

// The bounds of requests.
const (
	maxTurns   = 32               // that run for clients at once
	maxBody    = 32 << 20         // bytes of a request
	maxPending = 1 << 20          // bytes of an answer that a client has not taken
	maxAnswer  = 4 << 20          // bytes of one that is not streamed
	bodyTime   = 30 * time.Second // for a request to come
	writeTime  = 30 * time.Second // for a piece of an answer to be taken
	pulseTime  = 15 * time.Second // between signs of life in a stream
	closeTime  = 10 * time.Second // for a session to be interrupted, closed, removed
	retryAfter = "2"              // seconds
)

// usual is the model of the settings, by the name that clients give it.
const usual = "dure"

// tag is what sessions are tagged with that requests begin.
const tag = "chat"

// Header names the session of a request and of its answer.
const Header = "Dure-Session"

// Config says what to answer from. Client, Workdir and Logger are required.
type Config struct {
	Client  client.Client
	Workdir string // of sessions that requests begin; absolute
	Logger  *slog.Logger

	// Find returns a session that the client of a request may use, or a [*agent.Problem]; nil = any
	// session, by its whole ID.
	Find func(ctx context.Context, id string) (agent.SessionInfo, error)

	// Tags are those of sessions that the client of a request begins, beside "chat"; nil = none.
	Tags func(ctx context.Context) []string

	// Still reports whether the client of a request would be let in again. It is asked with every
	// sign of life; who would not be is treated as one that has gone. nil = they all would.
	Still func(ctx context.Context) bool
}

// Desk answers requests. It is safe for concurrent use.
type Desk struct {
	c     Config
	slots chan struct{}
	pulse time.Duration

	mu   sync.Mutex
	busy map[string]bool // sessions in which a turn of a request runs
}

// New returns a desk.
func New(c Config) *Desk {
	d := &Desk{c: c, slots: make(chan struct{}, maxTurns), pulse: pulseTime, busy: map[string]bool{}}
	if d.c.Find == nil {
		d.c.Find = d.find
	}
	if d.c.Tags == nil {
		d.c.Tags = func(context.Context) []string { return nil }
	}
	if d.c.Still == nil {
		d.c.Still = func(context.Context) bool { return true }
	}
	return d
}

// Routes are the paths of the API. Errors on the way to them are those of the server.
func (d *Desk) Routes() []serve.Route {
	return []serve.Route{
		{
			Method: http.MethodPost, Path: "/v1/chat/completions", Serve: d.complete, Stream: true, Work: true, Scope: auth.Write, Name: "chatCompletions",
			Summary: "The chat API of OpenAI: a turn in a session, as one answer or in pieces.", In: request{}, Out: completion{},
			Header: []serve.Parameter{{Name: Header, Summary: "the session that goes on"}},
		},
		{Method: http.MethodGet, Path: "/v1/models", Serve: d.models, Scope: auth.Read, Name: "chatModels", Summary: "The models that can be asked, as OpenAI lists them.", Out: entries{}},
		{Method: http.MethodGet, Path: "/v1/models/{model...}", Serve: d.model, Scope: auth.Read, Name: "chatModel", Summary: "A model, as OpenAI describes it.", Out: entry{}},
	}
}

// find returns a session by its whole ID.
func (d *Desk) find(ctx context.Context, id string) (agent.SessionInfo, error) {
	info, err := client.Query[agent.SessionInfo](ctx, d.c.Client, agent.FindSession{Name: id})
	if err != nil || info.ID != id {
		return agent.SessionInfo{}, &agent.Problem{
			Code: agent.ProblemMissing, Message: "there is no such session", Args: map[string]string{"session": id}, Err: err,
		}
	}
	return info, nil
}

// reserve takes a session for a request; false = another one has it.
func (d *Desk) reserve(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[id] {
		return false
	}
	d.busy[id] = true
	return true
}

func (d *Desk) free(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.busy, id)
}

// opened opens the session of a request. done gives it back, and removes it if the request
// wants nothing kept.
func (d *Desk) opened(ctx context.Context, in asked) (s *client.Session, done func(), err error) {
	if in.session != "" {
		return d.resumed(ctx, in)
	}
	s, err = d.c.Client.Open(ctx, agent.Open{Workdir: d.c.Workdir, Model: in.model, Owned: len(d.c.Tags(ctx)) > 0})
	if err != nil {
		return nil, nil, err
	}
	done = func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		err := s.Close(closing)
		if err == nil && !in.keep {
			_, err = client.Query[query.RemovedSession](closing, d.c.Client, query.RemoveSession{Session: s.Info.ID, Force: true})
		}
		if err != nil {
			d.c.Logger.Warn("the session of a request was not put away", "session", s.Info.ID, "error", err)
		}
	}
	tags, archived := slices.Concat([]string{tag}, d.c.Tags(ctx)), true
	if err := s.Send(ctx, agent.Change{Tags: &tags, Archived: &archived}); err != nil {
		done()
		return nil, nil, err
	}
	return s, done, nil
}

// resumed opens a session that there is.
func (d *Desk) resumed(ctx context.Context, in asked) (*client.Session, func(), error) {
	info, err := d.c.Find(ctx, in.session)
	if err != nil {
		return nil, nil, err
	}
	if info.Status == "running" || !d.reserve(info.ID) {
		return nil, nil, refuse(http.StatusConflict, "session_busy", "", "a turn runs in the session; ask again when it has ended")
	}
	s, err := d.c.Client.Open(ctx, agent.Open{Session: info.ID, Owned: len(d.c.Tags(ctx)) > 0})
	if err != nil {
		d.free(info.ID)
		return nil, nil, err
	}
	done := func() {
		defer d.free(info.ID)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if err := s.Close(closing); err != nil {
			d.c.Logger.Warn("the session of a request was not closed", "session", info.ID, "error", err)
		}
	}
	if in.model != "" && in.model != s.Info.Model {
		if err := s.Send(ctx, agent.Change{Model: in.model}); err != nil {
			done()
			return nil, nil, err
		}
	}
	return s, done, nil
}
