// Package mcp speaks with servers of the Model Context Protocol and offers what they
// have: tools, prompts, resources, completion. What servers ask in turn, of the model
// or the person, is put to functions that it is given; it decides nothing itself.
//
// Each server has one goroutine, which connects it, notices the end and connects
// again; [Set.Close] ends them all, and the processes. What servers send is untrusted
// and bounded, by the constants at the head of each file. A call is sent once and has
// one result: when its server is away, that is [agent.ErrMCPUnavailable].
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/internal/extend/mcp/servers"
	"dure/internal/kernel/plug"
)

// What is usual where a definition says nothing.
const (
	usualStartup = 30 * time.Second
	usualTimeout = 10 * time.Minute
)

// Config is what a [Set] works with. A nil function is an ability that is missing:
// servers that need it cannot be connected, or are told that there is none.
type Config struct {
	Servers []servers.Server

	// Start starts the program of a server. What it writes to its error output goes
	// to errs. Close ends it with all that it has started.
	Start func(ctx context.Context, s servers.Server, errs io.Writer) (io.ReadWriteCloser, error)

	// HTTP returns the client that reaches a server. Redirects, headers and bounds
	// are added here; which hosts may be reached is decided there.
	HTTP func(servers.Server) (*http.Client, error)

	// Headers returns what the HeadersHelper of a server prints.
	Headers func(context.Context, servers.Server) (map[string]string, error)

	// Dial returns the way to a server inside the embedding program.
	Dial func(context.Context, servers.Server) (sdk.Transport, error)

	// Auth returns what signs in at a server; it may return nil.
	Auth func(servers.Server) auth.OAuthHandler

	// Roots returns the folders of the session, absolute.
	Roots func() []string

	// Ask puts a question of a server to the model. Whether it may is decided there.
	Ask func(ctx context.Context, server string, q agent.Question) (agent.Answer, error)

	// Elicit puts a question of a server to the person.
	Elicit func(context.Context, Elicitation) (plug.ElicitReply, error)

	// Elicited is told when a server says that what a person has agreed to do at an
	// address is finished; it must not block. nil = nobody is.
	Elicited func(server string)

	// Trusted reports whether what a server says of its tools is believed.
	Trusted func(servers.Server) bool

	// Clean takes secrets out of what a server says of itself; nil = nothing more is
	// taken out than this package does.
	Clean func(string) string

	// OnChange is told whenever the state or the offers of a server have changed. It
	// must not block, nor call methods of the set that wait.
	OnChange func(server string)

	Log     *slog.Logger // nil = nowhere
	Version string       // of this program
}

// State says how it stands with a server.
type State string

// The states.
const (
	Pending   State = "pending" // it is being connected, or will be again
	Connected State = "connected"
	Failed    State = "failed"
	NeedsAuth State = "needs-auth" // somebody has to sign in
	Disabled  State = "disabled"
)

// Status is how it stands with one server.
type Status struct {
	Server       servers.Server
	State        State
	Problem      string // why it is not connected
	Title        string // as it calls itself, with its version
	Protocol     string // the version that is spoken
	Instructions string
	Tools        int
	Prompts      int
	Resources    int
	Templates    int
	Left         []string // what it offers and cannot be used, with the reasons
}

// Set is all servers of a session. It is safe for concurrent use.
//
// Connections that end are made anew after 0.5, 1, 2, 4 and 8 s, and then only when
// somebody asks for it; a program that has never answered is not started again. What a
// server has refused unread, because it has forgotten the session, is sent once more.
type Set struct {
	c      Config
	hidden atomic.Pointer[strings.Replacer]
	life   context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	all     []*server // sorted by name; it is replaced, and not changed; guarded by mu
	started bool
	closed  bool
}

// New returns a set that is not connected yet. Of servers with the same name the
// first one counts.
func New(c Config) *Set {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clean == nil {
		c.Clean = func(s string) string { return s }
	}
	if c.Elicited == nil {
		c.Elicited = func(string) {}
	}
	if c.OnChange == nil {
		c.OnChange = func(string) {}
	}
	s := &Set{c: c}
	s.hidden.Store(hiding(c.Servers))
	s.life, s.end = context.WithCancel(context.Background())
	for _, def := range c.Servers {
		if s.find(def.Name) == nil {
			s.all = append(s.all, newServer(s, def))
		}
	}
	slices.SortFunc(s.all, byName)
	s.name()
	return s
}

// find returns the server with a name; nil = there is none.
func (s *Set) find(name string) *server {
	for _, v := range s.list() {
		if v.def.Name == name {
			return v
		}
	}
	return nil
}

// list returns the servers as they are now.
func (s *Set) list() []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Add takes one more server in, and begins to connect it where the others are. It reports
// whether it did: of a name that another one has, it does not.
func (s *Set) Add(def servers.Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || slices.ContainsFunc(s.all, func(v *server) bool { return v.def.Name == def.Name }) {
		return false
	}
	v, taken := newServer(s, def), map[string]bool{}
	for _, other := range s.all {
		taken[other.short] = true
	}
	v.short = plain(def.Name)
	if v.short == "" || len(v.short) > maxServer || taken[v.short] {
		v.short = marked(cmp.Or(v.short, "x"), def.Name, maxServer)
	}
	if taken[v.short] {
		return false
	}
	all := append(slices.Clone(s.all), v)
	slices.SortFunc(all, byName)
	defs := make([]servers.Server, len(all))
	for i := range all {
		defs[i] = all[i].def
	}
	s.all = all
	s.hidden.Store(hiding(defs))
	if s.started {
		s.wg.Go(v.runs)
	}
	return true
}

// Remove ends the connection of a server, which is not one of the set any more, and
// reports whether it was. It returns when its process is gone.
func (s *Set) Remove(name string) bool {
	s.mu.Lock()
	i := slices.IndexFunc(s.all, func(v *server) bool { return v.def.Name == name })
	if i < 0 {
		s.mu.Unlock()
		return false
	}
	v, started := s.all[i], s.started
	s.all = slices.Delete(slices.Clone(s.all), i, i+1)
	s.mu.Unlock()
	v.end()
	if started {
		<-v.gone
	}
	s.c.OnChange(name)
	return true
}

func byName(a, b *server) int { return strings.Compare(a.def.Name, b.def.Name) }

// Connect begins to connect all servers and returns at once. The second call does
// nothing.
func (s *Set) Connect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.closed {
		return
	}
	s.started = true
	for _, v := range s.all {
		s.wg.Go(v.runs)
	}
}

// Wait returns when each server has been tried once, or ctx is done.
func (s *Set) Wait(ctx context.Context) error {
	for _, v := range s.list() {
		select {
		case <-v.tried:
		case <-v.life.Done():
			if s.life.Err() != nil {
				return errClosed
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Close ends all connections and processes, and returns when they are gone.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.wg.Wait()
}

// Status tells of all servers, sorted by name.
func (s *Set) Status() []Status {
	all := s.list()
	list := make([]Status, 0, len(all))
	for _, v := range all {
		list = append(list, v.status())
	}
	return list
}

// ToolName returns the name that a tool of a server would have; only names of tools that
// it offers are told apart from each other. "" = there is no such server.
func (s *Set) ToolName(server, tool string) string {
	if v := s.find(server); v != nil {
		return prefix + v.short + "__" + tool
	}
	return ""
}

// Disable ends the connection of a server, and Enable makes it again.
func (s *Set) Disable(name string) error { return s.toggle(name, false) }

// Enable is the opposite of [Set.Disable].
func (s *Set) Enable(name string) error { return s.toggle(name, true) }

func (s *Set) toggle(name string, on bool) error {
	v := s.find(name)
	if v == nil {
		return unknown(name)
	}
	v.switchTo(on)
	return nil
}

// Reconnect connects a server anew and returns when that has succeeded or failed.
func (s *Set) Reconnect(ctx context.Context, name string) error {
	v := s.find(name)
	if v == nil {
		return unknown(name)
	}
	return v.again(ctx)
}

var errClosed = errors.New("the session is being closed")

func unknown(name string) error { return fmt.Errorf("there is no MCP server %q", name) }

// An Unavailable is why a server cannot be asked.
type Unavailable struct {
	Server string
	State  State
	Why    error
}

func (u *Unavailable) Error() string {
	return fmt.Sprintf("the MCP server %s is not available: %v", u.Server, u.Why)
}

func (u *Unavailable) Unwrap() error { return u.Why }
