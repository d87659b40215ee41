// Package mcpserve is the front-end for other agents: over the Model Context Protocol it
// lends them the program's tools, runs sessions for them, and shows them files, sessions
// and prompts.
//
// It decides nothing: each call goes through the gate and the guard of a session that is
// made for it. What the gate asks is put to the client's person where the client can ask
// one, and is denied elsewhere. Its goroutines follow the sessions whose tools are lent and
// carry out requests; all end with [Server.Close], but for one that waits for standard input.
package mcpserve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/text"
)

// The bounds of a server.
const (
	maxAtOnce  = 32               // requests that run, those that wait for a person too
	askTime    = 10 * time.Minute // a client's person is waited for so long
	closeTime  = 5 * time.Second
	pageSize   = 200
	newestForm = "2026-07-28" // the protocol in which a server asks by its answers
)

// Lent is a session whose tools can be called from outside.
type Lent interface {
	ID() string

	// Call makes a call. Its events have the ID that it is given.
	Call(ctx context.Context, id, origin string, tool agent.Spec, input []byte) (agent.Result, error)

	// Text is what a model would read of a command or a skill.
	Text(ctx context.Context, name, arguments string) (string, error)

	Close(ctx context.Context) error
}

// Scope says which sessions clients may see and use.
type Scope string

// The scopes.
const (
	None   Scope = "none"
	Own    Scope = "own"    // that clients have started in this folder
	Folder Scope = "folder" // all of this folder
)

// Config says what a server offers. All fields are required unless they say otherwise.
type Config struct {
	Client  client.Client
	Text    text.Catalog // in which the client's person is asked
	Version string
	Workdir string // absolute
	Logger  *slog.Logger

	// Tools are lent under the names that Name makes of theirs; Read, if it is among them,
	// reads the files that are resources.
	Tools []agent.Spec
	Name  func(canonical string) string
	Read  string

	// Lend opens a session whose tools are called; asks says that somebody answers what it
	// asks.
	Lend func(ctx context.Context, title string, asks bool) (Lent, error)

	Sessions Scope

	// Answers lets a client itself answer what its sessions ask, where it has no way to
	// ask a person.
	Answers bool
}

// Server serves clients, one or many, with one set of lent sessions. It is safe for
// concurrent use.
type Server struct {
	c     Config
	mcp   *mcp.Server
	life  context.Context
	end   context.CancelFunc
	wg    sync.WaitGroup
	slots chan struct{}

	mu      sync.Mutex
	closed  bool
	loans   map[bool]*loan     // by whether somebody answers; guarded by mu
	opening sync.Mutex         // held while one is opened
	errands map[string]*errand // that wait for the person of a client, by their state; guarded by mu
	open    map[string]bool    // sessions that were opened for clients; guarded by mu
}

// New returns a server. It opens no session before one is needed.
func New(ctx context.Context, c Config) (*Server, error) {
	s := &Server{
		c: c, slots: make(chan struct{}, maxAtOnce),
		loans: map[bool]*loan{}, errands: map[string]*errand{}, open: map[string]bool{},
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "dure", Version: c.Version}, &mcp.ServerOptions{
		Instructions: instructions(c), Logger: c.Logger, PageSize: pageSize,
		Capabilities:      &mcp.ServerCapabilities{},
		CompletionHandler: s.complete,
		SetCacheable:      func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	s.mcp.AddReceivingMiddleware(s.protect)
	s.lendTools()
	if c.Sessions != None {
		s.sessionTools()
	}
	s.offerResources()
	if err := s.offerPrompts(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// instructions say to the client's model what the server is for.
func instructions(c Config) string {
	t := "Tools that work in " + c.Workdir + ". Paths are relative to it. Each call is decided on by the rules of dure's user; what they deny stays denied: do not look for ways around it."
	if c.Sessions != None {
		t += " session_start hands a whole task to an agent of dure, which works by itself in a session of its own."
	}
	return t
}

// protect keeps a request that goes wrong from taking the server with it.
func (s *Server) protect(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				s.c.Logger.Error("a request of a client panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		return next(ctx, method, req)
	}
}

// Close ends what runs for clients, and the sessions that were opened for them.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	loans, open := s.loans, s.open
	s.loans, s.open = map[bool]*loan{}, map[string]bool{}
	s.mu.Unlock()
	s.end()
	s.wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var err error
	for _, l := range loans {
		err = errors.Join(err, l.Close(ctx))
	}
	for id := range open {
		err = errors.Join(err, s.c.Client.Attach(id).Close(ctx))
	}
	return err
}

var errClosed = errors.New("the server is closing")

// invalid is an error about what a client has sent.
func invalid(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
